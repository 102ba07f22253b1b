/**
 * A client's session in one request: read when it is asked for, written when it is changed.
 *
 * A change is made on the value that the store has, so of changes by requests at once none is lost, and a
 * session that another request has ended is not brought back. A store that fails is status 503, and leaves
 * session and cookie as they are.
 */
import { isDeepStrictEqual } from 'node:util'
import { encode } from '../../../transport/internal.ts'
import { StatusError } from '../../app/status-error.ts'
import { HttpError } from '../../errors.ts'
import { type CookieSettings, cookieText, keyOf, newId } from './cookie.ts'

/** Where sessions are: a `store` of corespun/store, or `fleet.store(name, { ttlMs })` of corespun/fleet. */
export interface SessionStore {
  /** How long it keeps a value after its last write, in ms; as long as `update` demands without it. */
  readonly ttlMs?: number
  /** The value of a key, or an object that has it as `value`. */
  get(key: string): unknown
  /** Replaces the value of a key by what `fn` returns, at once; writes nothing if `fn` throws. */
  update(key: string, fn: (value: unknown) => unknown, options: { readonly ttlMs: number }): unknown
  /** Deletes a key. */
  delete(key: string): unknown
}

/** Complete options of sessions. */
export interface SessionSettings {
  readonly store: SessionStore
  readonly ttlMs: number
  readonly dataBytesMax: number
  readonly cookie: CookieSettings
  readonly now: () => number
}

/** What a store has. */
type Stored = readonly [expiresMs: number, data: unknown]

/** The part of its time after which reading a session extends it. */
const EXTEND_AFTER = 0.1

/**
 * The session of a request's client. {@link getSession} returns it.
 *
 * All methods fail with status 503 (`SESSIONS_UNAVAILABLE`) when the store fails.
 *
 * @example
 * ```ts
 * import assert from 'node:assert'
 * import { createApp, getSession, type Session, sessions, use } from 'corespun/http'
 * import { store } from 'corespun/store'
 *
 * const visits = async (request: Request) => {
 *   const session: Session<number> = getSession(request)
 *   return `${await session.update((count = 0) => count + 1)}`
 * }
 * const routes = use({ '/': visits }, sessions({ store: store.create('sessions') }))
 * const app = createApp({ routes })
 * const cookie = (await app.inject('/')).headers.getSetCookie()[0].split(';')[0]
 * assert.equal(await (await app.inject('/', { headers: { cookie } })).text(), '2')
 * ```
 */
export class Session<Data = unknown> {
  readonly #settings: SessionSettings
  readonly #isEncrypted: () => boolean
  #id: string | undefined
  #data: Promise<Data | undefined> | undefined
  #cookie: string | undefined
  #isSent = false
  /** Changes of this request are made one after the other. */
  #turn: Promise<unknown> = Promise.resolve()

  /** @internal */
  constructor(settings: SessionSettings, id: string | undefined, isEncrypted: () => boolean) {
    this.#settings = settings
    this.#id = id
    this.#isEncrypted = isEncrypted
  }

  /** @internal The cookie to be set; from now on none can be. */
  sent(): string | undefined {
    this.#isSent = true
    return this.#cookie
  }

  /** The data; `undefined` without a session. Extends its time. Later calls return the same object. */
  get(): Promise<Data | undefined> {
    this.#data ??= this.#read()
    return this.#data
  }

  /**
   * Replaces the data by what `fn` makes of it, which receives `undefined` without a session, and creates one
   * then. When another request changes it meanwhile, `fn` is called again with what that has written.
   * @throws {HttpError} `HTTP_SESSION_TOO_LARGE`; `HTTP_SESSION_LATE` for a new session after the response.
   * @throws {StatusError} 409 (`SESSION_ENDED`) if another request has ended or rotated the session.
   * @throws Whatever `fn` throws; nothing is written then.
   */
  update(fn: (data: Data | undefined) => Data): Promise<Data> {
    return this.#inTurn(async () => {
      await this.get()
      const id = this.#id
      let data!: Data
      const changed = (before: Data | undefined): Data => this.#checked((data = fn(before)))
      if (id === undefined) await this.#create(() => changed(undefined))
      else await this.#change(id, changed)
      this.#data = Promise.resolve(data)
      return data
    })
  }

  /**
   * Changes the id of the session, as after every login: who had the old one has no session any more. Does
   * nothing without a session.
   * @throws As `update`.
   */
  rotate(): Promise<void> {
    return this.#inTurn(async () => {
      const data = await this.get()
      const old = this.#id
      if (old === undefined) return
      // The new one first: when the store fails, there is one at least.
      const id = await this.#create(() => data as Data)
      let last: unknown
      try {
        await this.#change(old, (current) => void (last = current), 0)
        if (!isDeepStrictEqual(last, data)) await this.#change(id, () => last)
      } catch (error) {
        // Another request has ended it, and its cookie counts.
        if (isEnded(error)) {
          this.#cookie = undefined
          this.#id = undefined
          this.#data = Promise.resolve(undefined)
          await this.#delete(id).catch(() => {}) // nobody has this id
        }
        throw error
      }
      this.#data = Promise.resolve(last as Data)
      await this.#delete(old).catch(() => {}) // it has ended, and goes with its time
    })
  }

  /** Ends the session, and removes the cookie. */
  destroy(): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#id !== undefined) await this.#end(this.#id)
    })
  }

  async #end(id: string): Promise<void> {
    await this.#delete(id)
    this.#id = undefined
    this.#data = Promise.resolve(undefined)
    this.#setCookie()
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work, work)
    this.#turn = done
    return done
  }

  async #read(): Promise<Data | undefined> {
    const id = this.#id
    if (id === undefined) return undefined
    const { store, ttlMs, now } = this.#settings
    try {
      const found = await asked(async () => store.get(keyOf(id)))
      const [expiresMs, data] = this.#living(
        Array.isArray(found) ? found : (Object(found) as { value?: unknown }).value,
      )
      if (expiresMs - now() < (1 - EXTEND_AFTER) * ttlMs) await this.#extend(id)
      return data as Data
    } catch (error) {
      // A failure of the store may pass; it does not mean that there is no session.
      if (!isEnded(error)) {
        this.#data = undefined
        throw error
      }
      this.#id = undefined
      return undefined
    }
  }

  /** What was read stays read where nothing can be written, as on a full disk. @throws {StatusError} 409. */
  async #extend(id: string): Promise<void> {
    try {
      await this.#change(id, (current) => current)
    } catch (error) {
      if (isEnded(error)) throw error
    }
  }

  /** @throws {StatusError} 409. */
  #living(stored: unknown): Stored {
    if (Array.isArray(stored) && stored[0] > this.#settings.now()) return stored as unknown as Stored
    throw new StatusError(409, 'the session has ended; repeat the request', { code: 'SESSION_ENDED' })
  }

  #checked(data: Data): Data {
    const { dataBytesMax } = this.#settings
    const bytes = encode(data).length
    if (bytes > dataBytesMax) throw new HttpError('HTTP_SESSION_TOO_LARGE', { bytes, dataBytesMax })
    return data
  }

  async #create(make: () => Data): Promise<string> {
    if (this.#isSent) throw new HttpError('HTTP_SESSION_LATE', { cookie: this.#settings.cookie.name })
    const id = newId()
    await this.#write(id, make)
    this.#id = id
    this.#setCookie()
    return id
  }

  /** Changes a session that exists. @param ttlMs 0: it ends. */
  async #change(id: string, fn: (data: Data) => unknown, ttlMs = this.#settings.ttlMs): Promise<void> {
    await this.#write(id, (stored) => fn(this.#living(stored)[1] as Data), ttlMs)
    if (ttlMs > 0) this.#setCookie()
  }

  async #write(id: string, make: (stored: unknown) => unknown, ttlMs = this.#settings.ttlMs): Promise<void> {
    const { store, now } = this.#settings
    let refused: { readonly error: unknown } | undefined
    const made = (stored: unknown): Stored => {
      refused = undefined
      try {
        // The end is one by each machine's clock.
        return [ttlMs === 0 ? 0 : now() + ttlMs, make(stored)]
      } catch (error) {
        refused = { error }
        throw error
      }
    }
    const updated = async (): Promise<unknown> => store.update(keyOf(id), made, { ttlMs: Math.max(1, ttlMs) })
    await asked(updated, () => refused)
  }

  async #delete(id: string): Promise<void> {
    await asked(async () => this.#settings.store.delete(keyOf(id)))
  }

  #setCookie(): void {
    const { cookie, ttlMs } = this.#settings
    if (!this.#isSent)
      this.#cookie = cookieText(this.#id, cookie, { ttlMs, isEncrypted: this.#isEncrypted() })
  }
}

const isEnded = (error: unknown): boolean =>
  error instanceof StatusError && error.facts.error === 'SESSION_ENDED'

/** @param refused The error of what the store has called. */
async function asked<T>(
  work: () => Promise<T>,
  refused: () => { readonly error: unknown } | undefined = () => undefined,
): Promise<T> {
  try {
    return await work()
  } catch (cause) {
    const own = refused()
    if (own !== undefined) throw own.error
    throw new StatusError(503, 'sessions cannot be read or written now', {
      code: 'SESSIONS_UNAVAILABLE',
      headers: { 'retry-after': '1' },
      cause,
    })
  }
}
