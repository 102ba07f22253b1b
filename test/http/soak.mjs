/**
 * Many requests on one server, by pipelined connections: `soak.mjs <requests>`.
 *
 * Memory must be flat: what the process holds at the end may not exceed what it held after the first fifth by
 * more than a fixed amount. Prints both, and exits with 1 when it grew.
 */
import { once } from 'node:events'
import { Victim } from './attacks/victim.mjs'

const REQUESTS = Number(process.argv[2] ?? 5_000_000)
const CONNECTIONS = 32
const BATCH = 16
const GROWTH_MAX = 24 * 1024 * 1024
const GET = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'
const POST = 'POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nabcd'
const CONSTANT = 'GET /constant HTTP/1.1\r\nHost: x\r\n\r\n'

const victim = await Victim.start({})
await run(REQUESTS / 5)
const before = await victim.stats()
await run((REQUESTS * 4) / 5)
const after = await victim.stats()
const [held, holds] = [before.rss, after.rss].map((bytes) => (bytes / 1e6).toFixed(1))
console.log(`${after.requests} requests: ${held} MB after a fifth, ${holds} MB at the end`)
await victim.stop()
process.exitCode = after.rss - before.rss > GROWTH_MAX || after.errors > 0 ? 1 : 0

/** So many requests, over all connections. */
async function run(requests) {
  const each = Math.ceil(requests / CONNECTIONS / BATCH)
  await Promise.all(
    Array.from({ length: CONNECTIONS }, (_, at) => client([GET, POST, CONSTANT][at % 3], each)),
  )
}

/** One connection: a batch, its responses, the next batch. */
async function client(request, batches) {
  const socket = await victim.connect()
  const batch = request.repeat(BATCH)
  for (let at = 0; at < batches; at += 1) {
    socket.write(batch)
    let responses = 0
    while (responses < BATCH) {
      const [chunk] = await once(socket, 'data')
      responses += String(chunk).split('HTTP/1.1 200').length - 1
    }
  }
  socket.destroy()
}
