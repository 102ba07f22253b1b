/**
 * A small service: typed routes, a constant, a stream, and a callback that logs errors.
 *
 * It sends itself a few requests and stops, so that it ends when it runs as a test.
 */
import assert from 'node:assert/strict'
import { serve } from 'corespun/http'

const notes = new Map([['1', 'buy milk']])

const server = await serve({
  port: 0,
  host: '127.0.0.1',
  routes: {
    '/health': 'ok',
    '/notes': {
      GET: () => Object.fromEntries(notes),
      POST: async (request) => {
        const id = String(notes.size + 1)
        notes.set(id, await request.text())
        return new Response(null, { status: 201, headers: { location: `/notes/${id}` } })
      },
    },
    '/notes/:id': (request) => notes.get(request.params.id) ?? new Response('no such note', { status: 404 }),
    '/count': () => {
      let count = 0
      const stream = new ReadableStream<Uint8Array>({
        pull(controller) {
          count += 1
          controller.enqueue(new TextEncoder().encode(`${count}\n`))
          if (count === 3) controller.close()
        },
      })
      return new Response(stream, { headers: { 'content-type': 'text/plain' } })
    },
  },
  error: (cause, request) => {
    console.error(`${request.method} ${request.url}:`, cause)
  },
})

assert.equal(await (await fetch(`${server.url}/health`)).text(), 'ok')
const made = await fetch(`${server.url}/notes`, { method: 'POST', body: 'call home' })
assert.equal(made.headers.get('location'), '/notes/2')
assert.equal(await (await fetch(`${server.url}/notes/2`)).text(), 'call home')
assert.equal((await fetch(`${server.url}/notes/3`)).status, 404)
assert.equal(await (await fetch(`${server.url}/count`)).text(), '1\n2\n3\n')
await server.close()
