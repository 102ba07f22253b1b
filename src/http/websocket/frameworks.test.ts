/**
 * The WebSocket helpers of frameworks over `upgrade`, as docs/guide/websocket.md connects them.
 *
 * hono copies the response that it gets, h3 leaves its handlers at the response.
 */
import assert from 'node:assert/strict'
import { defineWebSocketHandler, H3 } from 'h3'
import { Hono } from 'hono'
import { cors } from 'hono/cors'
import { defineWebSocketHelper, WSContext } from 'hono/ws'
import { onCores } from '../cores.test.support.ts'
import { upgrade } from '../index.ts'
import { RawClient } from './client.test.support.ts'

const upgradeWebSocket = defineWebSocketHelper((c, events) => {
  let context: WSContext
  return upgrade(c.req.raw, {
    open(socket) {
      const { protocol } = socket
      context = new WSContext({
        raw: socket,
        protocol,
        get readyState() {
          return socket.readyState
        },
        send: (data) => void socket.send(data),
        close: (code, reason) => socket.close(code, reason),
      })
      events.onOpen?.(new Event('open'), context)
    },
    message: (_socket, data) =>
      events.onMessage?.(
        new MessageEvent('message', { data: typeof data === 'string' ? data : data.buffer }),
        context,
      ),
    close: (_socket, code, reason) =>
      events.onClose?.(Object.assign(new Event('close'), { code, reason }) as CloseEvent, context),
  })
})

for (const globals of [true, false]) {
  onCores(`hono's upgradeWebSocket works, globals ${globals}`, async (start) => {
    const closed: number[] = []
    const app = new Hono()
    app.use(cors())
    app.get(
      '/ws/:name',
      upgradeWebSocket((c) => ({
        onOpen: (_event, ws) => ws.send(`hello ${c.req.param('name')}`),
        onMessage: (event, ws) => ws.send(`${ws.readyState} ${String(event.data)}`),
        onClose: (event) => void closed.push(event.code),
      })),
    )
    app.get('/', (c) => c.text('page'))
    const server = await start(
      globals ? { fetch: app.fetch } : { routes: { '/*': (request) => app.fetch(request) } },
    )
    const client = await RawClient.open(server.port, { path: '/ws/ada' })
    client.text('a')
    assert.deepEqual(await client.received(2), ['text hello ada', 'text 1 a'])
    await client.close(4000)
    assert.equal(await (await fetch(server.url)).text(), 'page')
    assert.equal((await fetch(`${server.url}/ws/ada`)).status, 426)
    assert.equal(server.stats().errors, 0)
  })
}

type Peer = { send(data: string): void }
type Message = { text(): string }
type Hooks = {
  open?(peer: object): void
  message?(peer: object, message: object): void
  close?(peer: object, details: object): void
}

onCores("h3's defineWebSocketHandler works", async (start) => {
  const app = new H3()
  app.get(
    '/ws',
    defineWebSocketHandler({
      message: (peer: Peer, message: Message) => peer.send(`h3: ${message.text()}`),
    }),
  )
  app.get('/', () => 'page')
  const textOf = (data: string | Uint8Array): object => ({
    text: () => Buffer.from(data as string).toString(),
  })
  const server = await start({
    async fetch(request) {
      const response: Response & { crossws?: Hooks } = await app.fetch(request)
      const hooks = response.crossws
      if (hooks === undefined) return response
      return upgrade(request, {
        open: (socket) => hooks.open?.(socket),
        message: (socket, data) => hooks.message?.(socket, textOf(data)),
        close: (socket, code, reason) => hooks.close?.(socket, { code, reason }),
      })
    },
  })
  const client = await RawClient.open(server.port, { path: '/ws' })
  client.text('a')
  assert.deepEqual(await client.received(1), ['text h3: a'])
  await client.close()
  assert.equal(await (await fetch(server.url)).text(), 'page')
})
