/**
 * The server of the hostile tests, in a process of its own, so that its memory and descriptors can be
 * counted.
 *
 * Controlled by messages: `stats` replies with counts, memory after a collection and open descriptors.
 */
import { readdirSync } from 'node:fs'
import { decompress, serve, use } from '../../../dist/http/index.js'

const { limits, tls, collects } = JSON.parse(process.argv[2])
const server = await serve({
  quiet: true,
  core: 'native',
  limits,
  tls,
  host: '127.0.0.1',
  port: 0,
  error: () => undefined,
  routes: {
    '/': () => 'hello',
    '/constant': 'constant',
    '/echo': async (request) => request.text(),
    '/count': async (request) => {
      let bytes = 0
      for await (const chunk of request.body) bytes += chunk.byteLength
      return String(bytes)
    },
    ...use({ '/decoded': async (request) => (await request.text()).length }, decompress()),
    '/pipe': (request) => new Response(request.body),
    '/ignore': () => 'ignored',
    '/live': { websocket: { compression: true, message: (socket, message) => void socket.send(message) } },
    '/never': (request) =>
      new Promise((_, reject) =>
        request.signal.addEventListener('abort', () => reject(request.signal.reason)),
      ),
    '/slow': () => new Promise((resolve) => setTimeout(() => resolve('slow'), 20)),
    '/short': () => {
      let left = 10
      const pull = async (out) => {
        await new Promise((resolve) => setTimeout(resolve, 5))
        out.enqueue(Buffer.from('piece'))
        if ((left -= 1) === 0) out.close()
      }
      return new Response(new ReadableStream({ pull }))
    },
    '/large': () => new Uint8Array(1_000_000),
    '/endless': () =>
      new Response(
        new ReadableStream({
          pull: (out) => out.enqueue(new Uint8Array(16_384)),
        }),
      ),
  },
})

/** Open descriptors; the limit itself when no descriptor is left to count them with. */
function openFiles() {
  try {
    return readdirSync('/proc/self/fd').length
  } catch {
    return Infinity
  }
}

/** What memory it has; counting that takes a descriptor too. */
function memory() {
  try {
    return process.memoryUsage()
  } catch {
    return { rss: Infinity, heapUsed: Infinity }
  }
}

let isStopping = false
// The test has exited: no client is left.
process.once('disconnect', () => isStopping || process.exit(1))
process.on('message', async (message) => {
  if (message === 'stop') {
    isStopping = true
    await server.close({ timeoutMs: 1000 })
    process.disconnect()
    return
  }
  // What was freed is given back by another thread, a little later.
  if (collects) {
    globalThis.gc()
    await new Promise((resolve) => setTimeout(resolve, 50))
    globalThis.gc()
  }
  const { rss, heapUsed } = memory()
  const descriptors = openFiles()
  if (process.connected) process.send({ ...server.stats(), rss, heapUsed, descriptors })
})
process.send({ port: server.port })
