/**
 * A JSON API: authentication, validation, heavy work in a zone behind a shared cache, a rate limit, metrics.
 *
 * `corespun serve examples/http/api.ts` serves it on all cores. Run by itself, it sends itself requests and
 * prints one line.
 */
import assert from 'node:assert/strict'
import { AsyncLocalStorage } from 'node:async_hooks'
import { isMainThread } from 'node:worker_threads'
import { accessLog, bodyLimit, createApp, jsonErrors, type Middleware } from 'corespun/http'
import { rateLimit, requestId, StatusError, use } from 'corespun/http'
import { store } from 'corespun/store'
import { zone } from 'corespun/zone'

const users = new Map([['secret', 'ada']])
const currentUser = new AsyncLocalStorage<string>()
const digests = store.getOrCreate<string>('digests', { bytesMax: 64 * 1024 * 1024, ttlMs: 60_000 })
const counts = store.getOrCreate<number>('requests by status')

/** Runs in the zone, so it captures nothing. */
async function digest(text: string, rounds: number): Promise<string> {
  const { pbkdf2Sync } = await import('node:crypto')
  return pbkdf2Sync(text, 'salt', rounds, 32, 'sha256').toString('hex')
}

function jobOf(body: unknown): { text: string; rounds: number } {
  const { text, rounds } = (body ?? {}) as { text?: unknown; rounds?: unknown }
  if (typeof text !== 'string') throw new StatusError(400, '`text` must be a string')
  if (typeof rounds !== 'number' || !(Number.isInteger(rounds) && rounds > 0))
    throw new StatusError(400, '`rounds` must be an integer, 1 or more')
  return { text, rounds }
}

const authenticate: Middleware = (request, next) => {
  const token = request.headers.get('authorization')?.replace('Bearer ', '') ?? ''
  const user = users.get(token)
  if (user === undefined) throw new StatusError(401, 'unknown token')
  return currentUser.run(user, next)
}

const privateRoutes = use(
  {
    '/me': () => ({ user: currentUser.getStore() }),
    '/digest': {
      POST: async (request) => {
        const { text, rounds } = jobOf(await request.json())
        // The work ends if the client disconnects; of equal requests at the same time, one computes.
        const cpu = zone.cpu.with({ signal: request.signal, timeoutMs: 30_000 })
        const key = `${rounds} ${text}`
        return { digest: await digests.getOrCompute(key, () => cpu.run(digest, text, rounds)) }
      },
    },
  },
  authenticate,
  rateLimit({ requestsMax: 100, key: () => currentUser.getStore() ?? '' }),
  bodyLimit(64 * 1024),
)

const metrics = (): string =>
  [...counts.keys()].map((key) => `http_requests_total{status="${key}"} ${counts.get(key)}\n`).join('')

export const routes = use(
  { '/health': 'ok', '/metrics': metrics, ...privateRoutes },
  requestId(),
  accessLog({ log: ({ status }) => counts.increment(String(status)) }),
)
export const error = jsonErrors()

if (isMainThread) {
  const app = createApp({ routes, error })
  const headers = { authorization: 'Bearer secret' }
  const post = (body: unknown): Promise<Response> =>
    app.inject('/digest', { method: 'POST', headers, body: JSON.stringify(body) })
  assert.equal((await app.inject('/me')).status, 401)
  assert.deepEqual(await (await app.inject('/me', { headers })).json(), { user: 'ada' })
  assert.equal((await post({ text: 'tea', rounds: 'many' })).status, 400)
  const [first, second] = await Promise.all([1, 2].map(() => post({ text: 'tea', rounds: 1000 })))
  assert.deepEqual(await first?.json(), await second?.json())
  assert.equal(digests.stats().entries, 1)
  assert.match(await (await app.inject('/metrics')).text(), /status="200"\} 3\n/)
  await zone.cpu.close()
  console.log(`${digests.size} digest, ${counts.size} statuses`)
}
