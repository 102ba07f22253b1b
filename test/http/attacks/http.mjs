/**
 * What hostile clients do that speak HTTP, or break it. A server without TLS is their victim.
 *
 * Each returns the sockets that are to be closed behind it, and fails if the server does not end it as it
 * must.
 */
import assert from 'node:assert/strict'
import { pipeline } from 'node:stream/promises'
import zlib from 'node:zlib'
import { decompressors } from '../../../dist/http/coding/codings.js'
import { MANY, PATIENCE_MS, settled } from './many.mjs'
import { closedBy, keepWriting, narrowClients, pause, readAll } from './victim.mjs'

const HEAD = 'GET / HTTP/1.1\r\nHost: x\r\n'
const GET = `${HEAD}\r\n`
const MIB = 1024 * 1024

/** Bodies of chunks that never end: `first`, then `part` again and again. Each closes its connection. */
async function chunks(victim, count, path, part, first = '') {
  const sockets = await victim.connectMany(count)
  for (const socket of sockets) {
    socket.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${first}`)
    keepWriting(socket, part)
  }
  const closed = await Promise.all(sockets.map((socket) => closedBy(socket, PATIENCE_MS)))
  assert.ok(closed.every(Boolean), 'refused')
  return sockets
}

/** A gigabyte of zeros by content coding. */
const BOMBS = {
  gzip: () => Buffer.concat(new Array(1000).fill(zlib.gzipSync(Buffer.alloc(MIB)))),
  br: () => zeros(zlib.createBrotliCompress({ params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 3 } })),
  zstd: () => zeros(zlib.createZstdCompress()),
}

/** Those that are made. @type {Record<string, Promise<Buffer> | Buffer>} */
const made = {}

async function zeros(engine) {
  const found = engine.toArray()
  await pipeline(new Array(1000).fill(Buffer.alloc(MIB)), engine)
  return Buffer.concat(await found)
}

/** @type {import('./victim.mjs').Attack[]} */
export const attacks = [
  {
    name: 'connections that send nothing',
    limits: { idleMs: 600, headersMs: 600 },
    async run(victim) {
      const sockets = await victim.connectMany(MANY)
      assert.ok(await closedBy(sockets[0], PATIENCE_MS), 'closed after its time')
      return sockets
    },
  },

  {
    name: 'heads that come a byte at a time',
    limits: { headersMs: 500 },
    async run(victim) {
      const sockets = await victim.connectMany(MANY)
      const drip = setInterval(() => {
        for (const socket of sockets) if (socket.writable) socket.write('X')
      }, 50)
      for (const socket of sockets) socket.write(HEAD)
      const closed = await Promise.all(sockets.slice(0, 20).map((socket) => closedBy(socket, PATIENCE_MS)))
      clearInterval(drip)
      assert.ok(closed.every(Boolean), 'all closed after headersMs, whatever dripped in')
      return sockets
    },
  },

  {
    name: 'bodies that stop',
    limits: { bodyMs: 400 },
    async run(victim) {
      const sockets = await victim.connectMany(MANY)
      for (const socket of sockets)
        socket.write('POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf')
      const closed = await Promise.all(sockets.slice(0, 20).map((socket) => closedBy(socket, PATIENCE_MS)))
      assert.ok(closed.every(Boolean), 'all closed after bodyMs')
      return sockets
    },
  },

  {
    name: 'readers that do not read',
    limits: { bodyMs: 60_000 },
    async run(victim) {
      // Half of them are owed a megabyte each; V8's own young space, which grows meanwhile, is as much again.
      const sockets = await victim.connectMany(Math.min(MANY, 30))
      for (const [at, socket] of sockets.entries()) {
        socket.pause().write(`GET ${at % 2 ? '/endless' : '/large'} HTTP/1.1\r\nHost: x\r\n\r\n`)
      }
      await settled(victim)
      return sockets
    },
  },

  {
    name: 'tiny windows',
    limits: { bodyMs: 4000 },
    async run(victim) {
      // While they read, however little, they keep their connections; then they do not, and lose them.
      const count = Math.min(MANY, 50)
      const narrow = await narrowClients(victim.port, { count, path: '/endless', readMs: 2500, napMs: 10 })
      try {
        const [bytes, closed] = await narrow.read
        assert.equal(closed, 0, 'closed while they read')
        assert.ok(bytes > count * 200, `${bytes} bytes read`)
        const { connections } = await victim.until(({ connections }) => connections < count / 2)
        assert.ok(connections < count / 2, `${connections} connections of clients that read nothing`)
      } finally {
        narrow.stop()
      }
    },
  },

  {
    name: 'tiny windows, read for longer than bodyMs',
    limits: { bodyMs: 4000 },
    async run(victim) {
      // 1,400 bytes a second: nothing to the buffer of the server's kernel.
      const count = Math.min(MANY, 50)
      const narrow = await narrowClients(victim.port, { count, path: '/endless', readMs: 9000, napMs: 11 })
      try {
        const [bytes, closed] = await narrow.read
        assert.equal(closed, 0, 'closed while they read')
        const { connections } = await victim.stats()
        assert.ok(connections >= count, `${connections} connections, ${bytes} bytes read`)
        const left = await victim.until(({ connections }) => connections < count / 2)
        assert.ok(
          left.connections < count / 2,
          `${left.connections} connections of clients that read nothing`,
        )
      } finally {
        narrow.stop()
      }
    },
  },

  {
    name: 'clients that reset in each phase',
    limits: {},
    async run(victim) {
      const phases = [
        '',
        'GET / HT',
        HEAD,
        GET,
        'GET /never HTTP/1.1\r\nHost: x\r\n\r\n',
        'GET /endless HTTP/1.1\r\nHost: x\r\n\r\n',
        'GET /large HTTP/1.1\r\nHost: x\r\n\r\n',
        'POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf',
        'POST /pipe HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab',
        GET.repeat(50),
      ]
      for (const phase of phases) {
        const sockets = await victim.connectMany(Math.ceil(MANY / phases.length))
        for (const socket of sockets) socket.pause().write(phase)
        await pause(20)
        for (const socket of sockets) socket.resetAndDestroy()
      }
    },
  },

  {
    name: 'half-closed sockets',
    limits: {},
    async run(victim) {
      const sockets = await victim.connectMany(MANY)
      /** What they send before their end, and the complete body of the response, if any. */
      const ends = [
        [''],
        ['GET / HT'],
        [GET, 'hello'],
        ['GET /never HTTP/1.1\r\nHost: x\r\n\r\n'],
        ['GET /slow HTTP/1.1\r\nHost: x\r\n\r\n', 'slow'],
        ['GET /short HTTP/1.1\r\nHost: x\r\n\r\n', `${'5\r\npiece\r\n'.repeat(10)}0\r\n\r\n`],
      ]
      for (const [at, socket] of sockets.entries()) socket.end(ends[at % ends.length][0])
      const found = await Promise.all(sockets.slice(0, 24).map((socket) => readAll(socket, PATIENCE_MS)))
      assert.ok(!found.includes(undefined), 'closed when their client had ended')
      for (const [at, text] of found.entries()) {
        const [, whole] = ends[at % ends.length]
        const body = text.slice(text.indexOf('\r\n\r\n') + 4)
        if (whole !== undefined) assert.equal(body, whole, 'a late response, or one in pieces, is complete')
      }
      return sockets
    },
  },

  {
    name: 'floods of headers',
    limits: {},
    async run(victim) {
      const sockets = await victim.connectMany(Math.min(MANY, 100))
      const flood = `${HEAD}${'X-Flood: yes, very much so\r\n'.repeat(5000)}`
      for (const socket of sockets) socket.write(flood)
      const closed = await Promise.all(sockets.map((socket) => closedBy(socket, PATIENCE_MS)))
      assert.ok(closed.every(Boolean), 'refused')
      return sockets
    },
  },

  {
    name: 'chunk extensions without end',
    limits: { bodyMs: 3000 },
    run: (victim) => chunks(victim, Math.min(MANY, 50), '/echo', ';a=b'.repeat(4000), '1'),
  },

  {
    name: 'small chunks with extensions, one after the other',
    limits: { bodyMs: 3000 },
    run: (victim) => chunks(victim, Math.min(MANY, 20), '/ignore', '1;a\r\nx\r\n'.repeat(2000)),
  },

  {
    name: 'uploads without end',
    limits: { bodyBytesMax: 2 ** 40 },
    async run(victim) {
      // More than the server reads is there at any time: no read of it ever has to wait for the kernel.
      const sockets = await victim.connectMany(4)
      const part = Buffer.alloc(MIB)
      for (const socket of sockets) {
        socket.write(`POST /count HTTP/1.1\r\nHost: x\r\nContent-Length: ${2 ** 40}\r\n\r\n`)
        keepWriting(socket, part)
      }
      await pause(200)
      return sockets
    },
  },

  ...Object.keys(BOMBS)
    .filter((coding) => decompressors().has(coding))
    .map((coding) => ({
      name: `bodies of a gigabyte of zeros, compressed by ${coding}`,
      limits: {},
      async run(victim) {
        const body = await (made[coding] ??= BOMBS[coding]())
        const lines = `Content-Encoding: ${coding}\r\nContent-Length: ${body.length}\r\nConnection: close`
        const head = `POST /decoded HTTP/1.1\r\nHost: x\r\n${lines}\r\n\r\n`
        for (let round = 0; round < 4; round += 1) {
          const sockets = await victim.connectMany(8)
          const responses = sockets.map((socket) => readAll(socket, PATIENCE_MS))
          for (const socket of sockets) {
            socket.write(head)
            socket.write(body)
          }
          for (const text of await Promise.all(responses)) assert.match(text ?? 'nothing', /^HTTP\/1\.1 413 /)
          for (const socket of sockets) socket.destroy()
        }
      },
    })),

  {
    name: 'pipelines without end',
    limits: { streamsMax: 16 },
    async run(victim) {
      const sockets = await victim.connectMany(8)
      for (const socket of sockets) {
        socket.resume()
        keepWriting(socket, GET.repeat(200))
      }
      await pause(200)
      return sockets
    },
  },

  {
    name: 'pipelines whose responses are not read',
    limits: {},
    async run(victim) {
      // Each may hold a response of 1 MB and what the limits allow; without a limit it would be 100 MB each.
      // Half of them wait behind a first response that never arrives.
      const sockets = await victim.connectMany(Math.min(MANY, 20))
      for (const [at, socket] of sockets.entries()) {
        const first = at % 2 ? 'GET /never HTTP/1.1\r\nHost: x\r\n\r\n' : ''
        socket.pause().write(first + 'GET /large HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(100))
      }
      await settled(victim)
      return sockets
    },
  },
]
