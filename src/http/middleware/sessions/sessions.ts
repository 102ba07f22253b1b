/**
 * Sessions: data that a client's requests have in common, by a cookie with a random id.
 *
 * The data is in a store, of this process or of all machines, under the hash of the id. Not here: who the
 * client is, and tokens against CSRF, beyond what `SameSite` prevents.
 */
import { type Kind, anything, callback, integer, optionsOf } from '../../../base/index.ts'
import type { HttpRequest } from '../../app/routes.ts'
import { carry } from '../../app/carried.ts'
import { wrong } from '../../message/limits.ts'
import type { Middleware } from '../../app/middleware.ts'
import { type SessionCookie, cookieSettings, idIn } from './cookie.ts'
import { Session, type SessionSettings, type SessionStore } from './session.ts'

/** Options of {@link sessions}. */
export interface SessionsOptions {
  /**
   * Where sessions are: a `store` of corespun/store, for the workers of this process, or
   * `fleet.store(name, { ttlMs })` of corespun/fleet, for all machines.
   */
  readonly store: SessionStore
  /** How long after its last use a session ends, in ms, to within a tenth. Default a day. */
  readonly ttlMs?: number
  /** Most bytes of the data of a session, encoded. Default 4096. */
  readonly dataBytesMax?: number
  /** The cookie. */
  readonly cookie?: SessionCookie | undefined
  /** Returns the time in ms since 1970; the same on all machines. Default `Date.now`. */
  readonly now?: () => number
}

const DAY_MS = 86_400_000
const OPTIONS = {
  store: anything as Kind<SessionStore | undefined>,
  ttlMs: integer(1000, 400 * DAY_MS, DAY_MS),
  dataBytesMax: integer(1, 2 ** 19, 4096),
  cookie: anything,
  now: callback as Kind<SessionsOptions['now']>,
}

const sessionOf = new WeakMap<object, Session<never>>()

/**
 * Middleware that connects requests with the sessions of their clients. A request without a session costs no
 * access to the store, and a session that no handler asks for none either.
 * @throws {HttpError} `HTTP_ARGUMENT` for invalid options.
 *
 * @example
 * ```ts
 * import assert from 'node:assert'
 * import { createApp, getSession, sessions, use } from 'corespun/http'
 * import { store } from 'corespun/store'
 *
 * const login = async (request: Request) => {
 *   const session = getSession<{ user: string }>(request)
 *   await session.rotate()
 *   await session.update(() => ({ user: 'ada' }))
 *   return 'welcome'
 * }
 * const routes = use({ '/login': { POST: login } }, sessions({ store: store.create('logins') }))
 * const { headers } = await createApp({ routes }).inject('/login', { method: 'POST' })
 * assert.match(headers.getSetCookie()[0], /^sid=[\w-]{43}; Path=\/; Max-Age=86400; HttpOnly; SameSite=Lax$/)
 * ```
 */
export function sessions(options: SessionsOptions): Middleware {
  const { store, cookie: given, now = Date.now, ...limits } = optionsOf(options, OPTIONS, wrong, 'sessions()')
  const { get, update, delete: remove } = Object(store) as Partial<SessionStore>
  if (store === undefined || ![get, update, remove].every((method) => typeof method === 'function'))
    throw wrong('sessions(): store', 'a store, or fleet.store(name, { ttlMs })', store)
  if (store.ttlMs !== undefined && store.ttlMs < limits.ttlMs)
    throw wrong('sessions(): store', `one whose ttlMs is at least ${limits.ttlMs}`, store.ttlMs)
  const cookie = cookieSettings(given)
  const settings: SessionSettings = { store, cookie, now, ...limits }
  return async (request, next) => {
    const id = idIn(request.headers.get('cookie'), cookie.name)
    const session = new Session<never>(settings, id, () => request.url.startsWith('https:'))
    sessionOf.set(request, session)
    try {
      return await next()
    } finally {
      const set = session.sent()
      if (set !== undefined) {
        const headers = carry(request)
        headers.append('set-cookie', set)
        // Unless the handler has its own: what sets a cookie is for one client.
        if (!headers.has('cache-control')) headers.set('cache-control', 'no-store')
      }
    }
  }
}

/**
 * The session of a request's client, in handlers and middleware inside of `sessions()`. Frameworks pass the
 * server's own request, as hono's `c.req.raw`.
 * @throws {HttpError} `HTTP_ARGUMENT` for a request that has not passed `sessions()`.
 *
 * @example
 * ```ts
 * import assert from 'node:assert'
 * import { createApp, getSession, sessions, use } from 'corespun/http'
 * import { store } from 'corespun/store'
 *
 * const user = async (request: Request) => `${await getSession(request).get()}`
 * const app = createApp({ routes: use({ '/': user }, sessions({ store: store.create('users') })) })
 * assert.equal(await (await app.inject('/')).text(), 'undefined')
 * ```
 */
export function getSession<Data = unknown>(request: Request | HttpRequest): Session<Data> {
  const session = sessionOf.get(request)
  if (session === undefined)
    throw wrong(
      'getSession(): request',
      'one that has passed sessions(), as use(routes, sessions({ store }))',
      request,
    )
  return session
}
