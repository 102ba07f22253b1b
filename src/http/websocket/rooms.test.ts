/**
 * Rooms of WebSockets within one thread, on both cores.
 *
 * cluster/rooms.test.ts has those of several workers.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { publish, type ServerSocket } from '../index.ts'
import { later, onWires, RawClient, serving } from './client.test.support.ts'

onWires('rooms: members receive what others, requests and the server publish', async (start, clients) => {
  const server = await start({
    routes: {
      '/': {
        websocket: {
          open: (socket) => socket.subscribe('all'),
          message: (socket, message) => socket.publish('all', message),
          compression: 1000,
        },
      },
      '/news': {
        POST: async (request) => {
          publish(request, 'all', await request.text())
          return 'sent'
        },
      },
    },
  })
  const more = ['Sec-WebSocket-Extensions: permessage-deflate']
  const one = await clients.open(server.port)
  const two = await clients.open(server.port, { more })
  const three = await clients.open(server.port, { more })
  one.text('hello')
  await Promise.all([two.received(1), three.received(1)])
  await fetch(`${server.url}/news`, { method: 'POST', body: 'news' })
  await Promise.all([one.received(1), two.received(2), three.received(2)])
  server.publish('all', 'y'.repeat(40_000))
  server.publish('nobody', 'is there')
  assert.throws(() => server.publish('', 'a'), { code: 'HTTP_ARGUMENT' })
  await Promise.all([one.received(2), two.received(3), three.received(3)])
  assert.deepEqual(one.words, ['text news', `text ${'y'.repeat(40_000)}`])
  assert.deepEqual(two.words.slice(0, 2), ['text hello', 'text news'])
  assert.match(two.words[2], /^65 /, 'compressed for those that have agreed')
  assert.deepEqual(three.words, two.words)
  await Promise.all([one.close(), two.close(), three.close()])
})

/** A step of the model: who does what in which room. */
const STEP = fc.record({
  who: fc.nat(3),
  what: fc.constantFrom('enter', 'enter', 'leave', 'publish', 'publish', 'server', 'close'),
  room: fc.constantFrom('a', 'b', 'c'),
})

onWires('rooms behave like a plain list of members', async (start, wires) => {
  const server = await serving(start, {
    message(socket: ServerSocket, message) {
      const [what, room, text] = String(message).split(' ')
      if (what === 'enter') socket.subscribe(room)
      else if (what === 'leave') socket.unsubscribe(room)
      else socket.publish(room, text)
      socket.send(`done ${[...socket.rooms].sort().join('')}`)
    },
  })
  await fc.assert(
    fc.asyncProperty(fc.array(STEP, { maxLength: 20 }), async (steps) => {
      const clients = await Promise.all([0, 1, 2, 3].map(() => wires.open(server.port)))
      const rooms = clients.map(() => new Set<string>())
      const expected: string[][] = clients.map(() => [])
      const open = clients.map(() => true)
      for (const [at, { who, what, room }] of steps.entries()) {
        const text = `m${at}`
        if (!open[who]) continue
        if (what === 'close') {
          open[who] = false
          expected[who].push('close 1000')
          rooms[who].clear()
          await clients[who].close()
          continue
        }
        if (what === 'enter') rooms[who].add(room)
        if (what === 'leave') rooms[who].delete(room)
        for (const [other, entered] of rooms.entries())
          if (entered.has(room) && (what === 'server' || (what === 'publish' && other !== who)))
            expected[other].push(`text ${text}`)
        if (what === 'server') server.publish(room, text)
        else {
          clients[who].text(`${what} ${room} ${text}`)
          expected[who].push(`text done ${[...rooms[who]].sort().join('')}`)
        }
        await Promise.all(clients.map((client, index) => client.received(expected[index].length)))
      }
      for (const [index, client] of clients.entries()) {
        if (open[index]) {
          await client.close()
          expected[index].push('close 1000')
        }
        assert.deepEqual(client.words, expected[index])
      }
    }),
    { numRuns: 12 },
  )
})

test('a socket may enter 1024 rooms', async (t) => {
  const { serve } = await import('../serve.ts')
  const checked = later<void>()
  const server = await serve({
    quiet: true,
    port: 0,
    routes: {
      '/': {
        websocket: {
          open(socket) {
            for (let room = 0; room < 1024; room++) socket.subscribe(`room ${room}`)
            socket.subscribe('room 0')
            assert.throws(() => socket.subscribe('one more'), { code: 'HTTP_ARGUMENT' })
            checked.resolve()
          },
        },
      },
    },
  })
  t.after(() => server.close({ timeoutMs: 100 }))
  const client = await RawClient.open(server.port)
  await checked.promise
  await client.close()
})
