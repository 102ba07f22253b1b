/**
 * A chat: rooms over WebSockets, a page for browsers, and news that a request publishes.
 *
 * `corespun serve examples/http/chat.ts` serves it on all cores. Run by itself, it talks to itself where Node
 * has a client (version 22 and later), and prints one line.
 */
import assert from 'node:assert/strict'
import { isMainThread } from 'node:worker_threads'
import { publish, type Routes, serve, type ServerSocket, StatusError } from 'corespun/http'

type Member = { readonly room: string; readonly name: string }

const page = `<!doctype html>
<meta charset="utf-8">
<ul id="lines"></ul>
<input id="text" autofocus>
<script type="module">
  const { search, host, protocol } = location
  const name = search || '?name=guest'
  const socket = new WebSocket(protocol.replace('http', 'ws') + '//' + host + '/rooms/lobby' + name)
  socket.onmessage = ({ data }) => {
    const line = document.createElement('li')
    line.textContent = data
    document.querySelector('#lines').append(line)
  }
  document.querySelector('#text').onchange = ({ target }) => {
    socket.send(target.value)
    target.value = ''
  }
</script>`

export const routes: Routes = {
  '/': new Response(page, { headers: { 'content-type': 'text/html;charset=UTF-8' } }),
  '/rooms/:room': {
    websocket: {
      upgrade(request) {
        const name = new URL(request.url).searchParams.get('name') ?? ''
        if (!/^\w{1,20}$/.test(name)) throw new StatusError(400, '`name` must have 1 to 20 letters')
        return { data: { room: request.params['room'], name } }
      },
      open(socket: ServerSocket<Member>) {
        socket.subscribe(socket.data.room)
        sendAll(socket, `${socket.data.name} enters`)
      },
      message: (socket: ServerSocket<Member>, text) =>
        sendAll(socket, `${socket.data.name}: ${String(text)}`),
      close: (socket: ServerSocket<Member>) => socket.publish(socket.data.room, `${socket.data.name} leaves`),
      messageBytesMax: 2000,
      compression: true,
    },
    POST: async (request) => {
      publish(request, request.params['room'], `news: ${await request.text()}`)
      return 'sent\n'
    },
  },
}

/** All in the room receive it, on every worker. */
function sendAll(socket: ServerSocket<Member>, text: string): void {
  socket.publish(socket.data.room, text)
  socket.send(text)
}

if (isMainThread) await talk()

async function talk(): Promise<void> {
  const server = await serve({ routes, port: 0, quiet: true })
  const lines: string[] = []
  if (typeof WebSocket === 'function') {
    const socket = new WebSocket(`${server.url.replace('http', 'ws')}/rooms/lobby?name=ada`)
    const received = new Promise<void>((resolve) => {
      socket.addEventListener('message', ({ data }) => {
        if (lines.push(String(data)) === 3) resolve()
      })
    })
    await new Promise((resolve) => socket.addEventListener('open', resolve))
    socket.send('hello')
    await fetch(`${server.url}/rooms/lobby`, { method: 'POST', body: 'lunch' })
    await received
    assert.deepEqual(lines.sort(), ['ada enters', 'ada: hello', 'news: lunch'])
    socket.close()
  }
  assert.equal((await fetch(`${server.url}/rooms/lobby`)).status, 426)
  await server.close()
  console.log(`chat: ${lines.length} messages`)
}
