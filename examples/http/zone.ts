/**
 * The same app on every core: each worker of a zone loads the module and listens on the same port.
 *
 * This file is also the app: a worker that loads it serves its exported routes.
 */
import assert from 'node:assert/strict'
import { isMainThread, threadId } from 'node:worker_threads'
import { serve } from 'corespun/http'
import { zone } from 'corespun/zone'

export const routes = {
  '/health': 'ok',
  '/fibonacci/:n': (request: { readonly params: { readonly n: string } }) => ({
    value: fibonacci(Math.min(30, Number(request.params.n))),
    thread: threadId,
  }),
}

function fibonacci(n: number): number {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2)
}

if (isMainThread) {
  const web = zone.create('web', { workers: 2 })
  const server = await serve({ zone: web, app: new URL(import.meta.url), host: '127.0.0.1', port: 0 })
  const asked = Array.from({ length: 8 }, async () => {
    const response = await fetch(`${server.url}/fibonacci/20`)
    return (await response.json()) as { value: number }
  })
  for (const { value } of await Promise.all(asked)) assert.equal(value, 6765)
  const { workers, requests } = await server.stats()
  assert.deepEqual([workers, requests], [2, 8])
  await server.close()
  await web.close()
}
