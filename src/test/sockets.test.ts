/**
 * WebSockets of a run: messages and closes by either side, and peers that are lost, slow or cut off.
 *
 * What handlers promise is in src/http/websocket; here is what is between them and their clients.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { WebSocketHandlers } from '../http/index.ts'
import { current } from './play.ts'
import { type SeededSocket, type SocketEvent, type World, check } from './index.ts'

const URL = 'ws://localhost:3000/chat'

/** Everything that happens to a socket, and waits for it. */
function watched(socket: SeededSocket) {
  const seen: string[] = []
  const waiting: (() => void)[] = []
  const on = (text: string): void => {
    seen.push(text)
    for (const wake of waiting.splice(0)) wake()
  }
  const handlers = {
    onopen: () => on(`open ${socket.protocol}`.trim()),
    onmessage: ({ data }: SocketEvent) => on(String(data)),
    onerror: () => on('error'),
    onclose: ({ code, reason, wasClean }: SocketEvent) => on(`close ${code} ${reason} ${wasClean}`),
  }
  Object.assign(socket, handlers)
  const has = async (text: string): Promise<void> => {
    while (!seen.includes(text)) await new Promise<void>((resolve) => void waiting.push(resolve))
  }
  return { seen, has }
}

/** A server in a task of its own, and what its handlers have seen. */
async function chat({ spawn, serve, step }: World, handlers: WebSocketHandlers = {}) {
  const closes: string[] = []
  const task = spawn(async () => {
    const websocket: WebSocketHandlers = {
      message: (socket, message) => void socket.send(message),
      ...handlers,
      close: (_, code, reason) => void closes.push(`${code} ${reason}`.trim()),
    }
    await serve({ routes: { '/chat': { websocket }, '/page': () => 'a page' } })
    await new Promise(() => {})
  }, 'server')
  await step()
  await step()
  return { task, closes }
}

const checked = (seeds: number, body: (world: World) => unknown, options = {}): Promise<void> =>
  check({ seeds, stall: 0, ...options }, body)

test('messages arrive in their order, as they were sent, and either side closes', () =>
  checked(30, async (world) => {
    const { closes } = await chat(world, {
      protocols: ['echo'],
      message: (socket, message) =>
        message === 'bye' ? socket.close(4001, 'over') : void socket.send(message),
    })
    const one = new world.WebSocket(URL, ['other', 'echo'])
    assert.throws(() => one.send('early'), { name: 'InvalidStateError' })
    const { seen, has } = watched(one)
    await has('open echo')
    assert.deepEqual([one.url, one.readyState, world.WebSocket.OPEN], [URL, 1, 1])
    for (const text of ['a', 'é', 'c']) one.send(text)
    assert.equal(one.bufferedAmount, 4)
    await has('c')
    assert.equal(one.bufferedAmount, 0)
    one.close(4000, 'enough')
    one.close()
    one.send('late')
    await has('close 4000 enough true')
    assert.deepEqual(seen, ['open echo', 'a', 'é', 'c', 'close 4000 enough true'])
    const two = new world.WebSocket(URL.replace('ws', 'http'), 'echo')
    const bytes: unknown[] = []
    const listener = {
      handleEvent: ({ data, target }: SocketEvent) => void bytes.push(data, target === (two as unknown)),
    }
    two.addEventListener('message', listener, { once: true })
    const then = watched(two)
    await then.has('open echo')
    two.send(new Uint8Array([1, 2]).buffer)
    await then.has('[object Blob]')
    two.binaryType = 'arraybuffer'
    two.send(new Uint8Array([1, 2, 3]).subarray(1))
    await then.has('[object ArrayBuffer]')
    two.send('bye')
    await then.has('close 4001 over true')
    assert.deepEqual([bytes.length, bytes[0] instanceof Blob, bytes[1]], [2, true, true])
    assert.deepEqual(closes, ['4000 enough', '4001 over'])
    assert.throws(() => two.close(1001), { name: 'InvalidAccessError' })
    assert.throws(() => new world.WebSocket('ftp://x'), { name: 'SyntaxError' })
    assert.throws(() => new world.WebSocket('none'), { name: 'SyntaxError' })
  }))

test('a room reaches its members, who are asked to close when the server does', () =>
  checked(20, async ({ serve, WebSocket, fetch }) => {
    const server = await serve({
      routes: {
        '/chat': {
          websocket: {
            open: (socket) => socket.subscribe('all'),
            message: (socket, message) => socket.publish('all', message),
          },
        },
        '/page': () => 'a page',
      },
    })
    const [one, two] = [new WebSocket(URL), new WebSocket(URL)]
    const [first, second] = [watched(one), watched(two)]
    await Promise.all([first.has('open'), second.has('open')])
    one.send('hello')
    await second.has('hello')
    server.publish('all', 'news')
    await Promise.all([first.has('news'), second.has('news')])
    assert.throws(() => server.publish('', 'x'), { code: 'HTTP_ARGUMENT' })
    assert.deepEqual(first.seen, ['open', 'news'])
    assert.equal(await (await fetch('http://localhost:3000/page')).text(), 'a page')
    await server.close()
    assert.deepEqual([first.seen.at(-1), second.seen.at(-1)], ['close 1001  true', 'close 1001  true'])
  }))

test('bytes that a server sends are copied, those of a Buffer too', () =>
  checked(5, async (world) => {
    await chat(world, {
      open: (socket) => {
        const bytes = Buffer.from('abc')
        socket.send(bytes)
        bytes.fill(0)
      },
    })
    const socket = new world.WebSocket(URL)
    socket.binaryType = 'arraybuffer'
    const data = await new Promise<unknown>((resolve) => {
      socket.addEventListener('message', (event) => resolve(event.data), { once: true })
    })
    assert.deepEqual(new Uint8Array(data as ArrayBuffer), new Uint8Array([97, 98, 99]))
  }))

test('the global WebSocket is that of the run in its tasks', async () => {
  class Outside {
    static readonly OPEN = 1
  }
  const before = Object.getOwnPropertyDescriptor(globalThis, 'WebSocket')
  Object.defineProperty(globalThis, 'WebSocket', { value: Outside, configurable: true })
  try {
    await checked(5, async (world) => {
      await chat(world)
      const Global = (globalThis as unknown as World).WebSocket
      assert.equal(Global.OPEN, 1)
      assert.ok(current.exit((): object => new Global(URL)) instanceof Outside)
      const outside = current.exit((): unknown => Reflect.get(Global, 'prototype'))
      assert.equal(outside, Outside.prototype)
      const socket = new Global(URL)
      assert.ok(socket instanceof Global)
      await watched(socket).has('open')
    })
    assert.equal(Reflect.get(globalThis, 'WebSocket'), Outside)
  } finally {
    if (before === undefined) Reflect.deleteProperty(globalThis, 'WebSocket')
    else Object.defineProperty(globalThis, 'WebSocket', before)
  }
})

test('a route without WebSockets, a refusal, and a port without a server are an error and 1006', () =>
  checked(20, async (world) => {
    await chat(world, { upgrade: () => new Response('no', { status: 401 }) })
    for (const url of [URL, 'ws://localhost:3000/page', 'ws://localhost:1/chat']) {
      const { seen, has } = watched(new world.WebSocket(url))
      await has('close 1006  false')
      assert.deepEqual(seen, ['error', 'close 1006  false'])
    }
    const early = new world.WebSocket(URL)
    const { seen } = watched(early)
    early.close()
    await world.sleep(1000)
    assert.deepEqual(seen, ['error', 'close 1006  false'])
  }))

test('a peer that dies, is reset or stays cut off is 1006 at the other end', async () => {
  await checked(40, async (world) => {
    const { task, closes } = await chat(world)
    const client = world.spawn(async () => {
      await watched(new world.WebSocket(URL)).has('open')
      await new Promise(() => {})
    }, 'client')
    const { seen, has } = watched(new world.WebSocket(URL))
    await has('open')
    await world.sleep(100)
    client.kill()
    await world.sleep(100)
    assert.deepEqual(closes, ['1006'])
    const heal = world.cut(task)
    await world.sleep(20_000)
    heal()
    await world.sleep(60_000)
    assert.deepEqual(seen, ['open'])
    task.kill()
    await has('close 1006  false')
  })
  let resets = 0
  const network = { resets: 0.2 }
  await checked(
    60,
    async (world) => {
      await chat(world)
      const socket = new world.WebSocket(URL)
      const { seen, has } = watched(socket)
      while (seen.length === 0) await world.sleep(10)
      for (let count = 0; count < 4; count++) socket.send('x')
      socket.close()
      await Promise.race([has('close 1005  true'), has('close 1006  false')])
      if (seen.includes('error')) resets++
    },
    { network },
  )
  assert.ok(resets > 10 && resets < 60, String(resets))
})

test('a client that is cut off is lost by pings, full, or late to close', () =>
  checked(20, async (world) => {
    for (const [how, code] of [
      ['silent', '1006'],
      ['full', '1013'],
      ['late', '1006'],
      ['large', '1009'],
      ['drained', ''],
    ]) {
      const drained: string[] = []
      const { task, closes } = await chat(world, {
        queuedBytesMax: 600_000,
        messageBytesMax: 1000,
        message: async (socket) => {
          socket.ping()
          await world.sleep(500)
          if (how === 'late') socket.close()
          const count = how === 'full' ? 7 : how === 'drained' ? 5 : 0
          for (let sent = 0; sent < count; sent++) socket.send(new Uint8Array(100_000))
          if (how === 'full') assert.equal(socket.readyState, 1)
        },
        drain: ({ queuedBytes }) => void drained.push(String(queuedBytes)),
      })
      let socket!: SeededSocket
      const client = world.spawn(async () => {
        socket = new world.WebSocket(URL)
        await watched(socket).has('open')
        socket.send(new Uint8Array(how === 'large' ? 2000 : 10))
        await new Promise(() => {})
      }, how)
      await world.sleep(200)
      const heal = how === 'large' ? () => {} : world.cut(client)
      await world.sleep(how === 'drained' ? 2000 : 60_000)
      assert.deepEqual(closes, code === '' ? [] : [code], how)
      heal()
      await world.sleep(60_000)
      assert.equal(socket.readyState, code === '' ? 1 : 3, how)
      assert.equal(drained.length, how === 'drained' ? 1 : 0)
      client.kill()
      task.kill()
    }
  }))

test('a message before its receiver has subscribed is found, and a socket that stays open', async () => {
  const news = (isSafe: boolean) => async (world: World) => {
    const { serve, sleep, random } = world
    const last: string[] = []
    const server = await serve({
      routes: {
        '/chat': {
          websocket: {
            open: async (socket) => {
              if (!isSafe) await sleep(random() * 10)
              socket.subscribe('news')
              for (const text of last) socket.send(text)
            },
          },
        },
      },
    })
    const { seen, has } = watched(new world.WebSocket(URL))
    await has('open')
    server.publish('news', 'one')
    await sleep(1000)
    assert.deepEqual(seen, ['open', 'one'])
  }
  await assert.rejects(checked(100, news(false)), { code: 'CHECK_FAILED' })
  await checked(100, news(true))
  const open = checked(
    1,
    async (world) => {
      await chat(world)
      await watched(new world.WebSocket(URL)).has('open')
    },
    { leaks: true },
  )
  await assert.rejects(open, { code: 'CHECK_LEAK', message: /the WebSocket ws:\/\/localhost:3000\/chat/ })
})
