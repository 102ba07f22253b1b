/**
 * One server of table websocket, in a process of its own: `server.js <name> <port>`.
 *
 * It prints nothing and serves until it is ended. A room of `ws` is a set, as its documentation shows.
 */
import http from 'node:http'

const host = '127.0.0.1'
const [name, port] = [process.argv[2], Number(process.argv[3])]

const SERVERS: Readonly<Record<string, () => unknown>> = {
  corespun,
  'corespun, two workers': corespunInZone,
  ws,
}

await SERVERS[name]()

async function corespun(): Promise<void> {
  const [{ serve }, { routes }] = await Promise.all([import('corespun/http'), import('./app.js')])
  await serve({ quiet: true, core: 'native', host, port, routes })
}

async function corespunInZone(): Promise<void> {
  const [{ serve }, { zone }] = await Promise.all([import('corespun/http'), import('corespun/zone')])
  const app = new URL('./app.js', import.meta.url)
  await serve({ quiet: true, zone: zone.create('http', { workers: 2 }), app, core: 'native', host, port })
}

async function ws(): Promise<void> {
  const { WebSocketServer } = await import('ws')
  const room = new Set<{ send(message: Uint8Array, options: { binary: boolean }): void }>()
  const server = http.createServer((_request, response) => response.end('ready')).listen(port, host)
  new WebSocketServer({ server }).on('connection', (socket, request) => {
    if (request.url === '/room') {
      room.add(socket)
      socket.on('close', () => room.delete(socket))
    }
    socket.on('message', (message, binary) => {
      if (request.url === '/publish') for (const member of room) member.send(message, { binary })
      else socket.send(message, { binary })
    })
  })
}
