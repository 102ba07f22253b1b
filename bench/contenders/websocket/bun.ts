/**
 * Bun's server for table websocket: `bun.js <port>`, run by Bun itself.
 *
 * Rooms are its topics, as its documentation recommends.
 */
interface BunSocket {
  readonly data: { readonly path: string }
  subscribe(topic: string): void
  publish(topic: string, message: Uint8Array): number
  send(message: Uint8Array): number
}
interface BunServer {
  upgrade(request: Request, options: { data: BunSocket['data'] }): boolean
}
declare const Bun: { serve(options: Record<string, unknown>): unknown }

Bun.serve({
  port: Number(process.argv[2]),
  hostname: '127.0.0.1',
  fetch(request: Request, server: BunServer) {
    const path = new URL(request.url).pathname
    if (path !== '/' && server.upgrade(request, { data: { path } })) return undefined
    return new Response('ready')
  },
  websocket: {
    open(socket: BunSocket) {
      if (socket.data.path === '/room') socket.subscribe('room')
    },
    message(socket: BunSocket, message: Uint8Array) {
      if (socket.data.path === '/publish') socket.publish('room', message)
      else socket.send(message)
    },
  },
})
