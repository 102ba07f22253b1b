/**
 * Clients of table tls, in a process of their own: `client.js handshakes <port> <seconds> <clients>`, or
 * `client.js idle <port> <sockets>`, which keeps them until its input ends.
 *
 * They print one line of JSON. Each handshake is whole, with TLS 1.3: no session is resumed.
 */
import { once } from 'node:events'
import tls from 'node:tls'

/** Sockets that are opened at once. */
const AT_ONCE = 100

const [what, port, first, second] = [process.argv[2], ...process.argv.slice(3).map(Number)] as [
  string,
  number,
  number,
  number,
]

if (what === 'idle') await idle(first)
else await handshakes(first, second)

async function handshakes(seconds: number, clients: number): Promise<void> {
  const from = performance.now()
  let count = 0
  const isOver = (): boolean => performance.now() - from > seconds * 1000
  const one = async (): Promise<void> => {
    while (!isOver()) {
      const socket = await connect()
      const closed = once(socket.resume(), 'close')
      socket.end()
      await closed // the server has received all of the handshake
      count += 1
    }
  }
  await Promise.all(Array.from({ length: clients }, one))
  console.log(JSON.stringify({ handshakes: count, seconds: (performance.now() - from) / 1000 }))
}

async function idle(sockets: number): Promise<void> {
  const open: tls.TLSSocket[] = []
  while (open.length < sockets) {
    const some = Array.from({ length: Math.min(AT_ONCE, sockets - open.length) }, connect)
    open.push(...(await Promise.all(some)))
  }
  console.log(JSON.stringify({ sockets: open.length }))
  await once(process.stdin.resume(), 'end')
  for (const socket of open) socket.destroy()
}

async function connect(): Promise<tls.TLSSocket> {
  const socket = tls.connect({ host: '127.0.0.1', port, rejectUnauthorized: false })
  await once(socket, 'secureConnect')
  if (socket.getProtocol() !== 'TLSv1.3' || socket.isSessionReused())
    throw new Error(`not a whole handshake of TLS 1.3: ${socket.getProtocol()}`)
  return socket
}
