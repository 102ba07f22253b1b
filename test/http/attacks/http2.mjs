/**
 * What hostile clients do over HTTP/2: floods of frames that cost a server more than their sender.
 *
 * As those in http.mjs; the frames are written by hand, since no client sends them.
 */
import assert from 'node:assert/strict'
import {
  END_HEADERS,
  END_STREAM,
  frame,
  GET,
  RawClient,
  Type,
} from '../../../dist/http/http2/client.test.support.js'
import { MANY, PATIENCE_MS, settled } from './many.mjs'
import { closedBy, keepWriting, pause } from './victim.mjs'

/** Connections of an attack: each has many streams. */
const CONNECTIONS = Math.ceil(MANY / 15)
/** SETTINGS_INITIAL_WINDOW_SIZE 0. */
const NO_WINDOW = Buffer.from([0, 4, 0, 0, 0, 0])
/** Path `/large` of the server, as a literal. */
const LARGE = Buffer.concat([
  Buffer.from([0x82, 0x86, 0x04, 0x06]),
  Buffer.from('/large'),
  Buffer.from([0x01, 0x01, 0x61]),
])

const get = (stream) => frame(Type.headers, END_HEADERS | END_STREAM, stream, GET)
const reset = (stream) => frame(Type.reset, 0, stream, Buffer.from([0, 0, 0, 8]))

function connectMany({ port }, settings) {
  return Promise.all(Array.from({ length: CONNECTIONS }, () => RawClient.connect(port, settings)))
}

/** Writes what `next` returns, as fast as it is taken, until the server closes each connection. */
async function flood(clients, next) {
  const closed = clients.map(async ({ socket }) => {
    let count = 0
    // What a kernel takes at once is followed by the next write before anything is read.
    const more = () => {
      if (socket.writable) socket.write(next(count++), () => void setImmediate(more))
    }
    more()
    return closedBy(socket, PATIENCE_MS)
  })
  assert.ok((await Promise.all(closed)).every(Boolean), 'closed')
  return clients.map(({ socket }) => socket)
}

/** @type {import('./victim.mjs').Attack[]} */
export const attacks = [
  {
    name: 'streams that are reset as soon as they begin',
    limits: {},
    async run(victim) {
      return flood(await connectMany(victim), (count) => {
        const streams = Array.from({ length: 20 }, (_, at) => 2 * (20 * count + at) + 1)
        return Buffer.concat(streams.flatMap((stream) => [get(stream), reset(stream)]))
      })
    },
  },

  {
    name: 'heads that never end',
    limits: {},
    async run(victim) {
      const field = Buffer.concat([
        Buffer.from([0x00, 0x01, 0x78, 0x7f, 0x81, 0x1e]),
        Buffer.alloc(4000, 'x'),
      ])
      const first = frame(Type.headers, END_STREAM, 1, GET)
      const more = frame(Type.continuation, 0, 1, field)
      return flood(await connectMany(victim), (count) => (count === 0 ? first : more))
    },
  },

  {
    name: 'empty parts of heads',
    limits: {},
    async run(victim) {
      const first = frame(Type.headers, END_STREAM, 1, GET)
      const more = Buffer.concat(Array.from({ length: 100 }, () => frame(Type.continuation, 0, 1)))
      return flood(await connectMany(victim), (count) => (count === 0 ? first : more))
    },
  },

  {
    name: 'pings and settings, whose acknowledgements are not read',
    limits: { bodyMs: 60_000 },
    async run(victim) {
      const clients = await connectMany(victim)
      const each = Buffer.concat([frame(Type.ping, 0, 0, Buffer.alloc(8)), frame(Type.settings, 0, 0)])
      const part = Buffer.concat(Array.from({ length: 1000 }, () => each))
      for (const { socket } of clients) {
        socket.pause()
        keepWriting(socket, part)
      }
      await pause(500)
      return clients.map(({ socket }) => socket)
    },
  },

  {
    name: 'windows that stay closed',
    limits: { bodyMs: 60_000 },
    async run(victim) {
      // Each connection is owed a hundred megabytes.
      const clients = await connectMany(victim, NO_WINDOW)
      for (const { socket } of clients)
        for (let stream = 1; stream < 200; stream += 2)
          socket.write(frame(Type.headers, END_HEADERS | END_STREAM, stream, LARGE))
      await settled(victim)
      return clients.map(({ socket }) => socket)
    },
  },
]
