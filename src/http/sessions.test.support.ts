/**
 * What sessions promise, as tests that run on any store.
 *
 * Those of the process are in middleware/sessions, those of machines in src/fleet.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createApp, getSession, sessions, use } from './index.ts'
import type { Session, SessionStore, SessionsOptions } from './index.ts'
import { jsonErrors } from './app/status-error.ts'

interface Data {
  readonly visits: number
}
type Handler = (session: Session<Data>) => unknown
interface Jar {
  cookie: string
}
/** Status, body, and the cookies that are set. */
type Asked = [status: number, body: unknown, set: string[]]

/** An app with a handler that each request brings along, and what its clients have. */
export function appWith(store: SessionStore, options?: Partial<SessionsOptions>) {
  const works: Handler[] = []
  const respond = async (request: Request): Promise<string> => {
    const work = works[Number(request.headers.get('x-work'))]
    return JSON.stringify((await work(getSession<Data>(request))) ?? null)
  }
  const app = createApp({
    routes: use({ '/': respond }, sessions({ store, ...options })),
    error: jsonErrors(),
  })
  return async (jar: Jar, work: Handler): Promise<Asked> => {
    const headers = {
      'x-work': String(works.push(work) - 1),
      ...(jar.cookie !== '' && { cookie: jar.cookie }),
    }
    const response = await app.inject('/', { headers })
    const set = response.headers.getSetCookie()
    for (const text of set) jar.cookie = text.includes('Max-Age=0') ? '' : text.split(';')[0]
    return [response.status, await response.json(), set]
  }
}

export const codeOf = (body: unknown): string => (body as { error: { code: string } }).error.code

export const visit: Handler = (session) => session.update((data) => ({ visits: (data?.visits ?? 0) + 1 }))
export const look: Handler = (session) => session.get()

/** The tests, with stores of that kind; each is empty. */
export function sessionTests(kind: string, open: () => Promise<SessionStore>): void {
  const check = (name: string, work: (store: SessionStore) => Promise<void>): void => {
    test(`${kind}: ${name}`, async () => work(await open()))
  }
  ordinary(check)
  ends(check)
  atOnce(check)
}

type Check = (name: string, work: (store: SessionStore) => Promise<void>) => void

function ordinary(check: Check): void {
  check('a session begins with its first change, and is that of the cookie', async (store) => {
    const ask = appWith(store)
    const [one, other] = [{ cookie: '' }, { cookie: '' }]
    assert.deepEqual(await ask(one, look), [200, null, []])
    const [, , [set]] = await ask(one, visit)
    assert.match(set, /^sid=[\w-]{43}; Path=\/; Max-Age=86400; HttpOnly; SameSite=Lax$/)
    assert.deepEqual((await ask(one, visit))[1], { visits: 2 })
    assert.deepEqual((await ask(other, visit))[1], { visits: 1 })
    assert.deepEqual(await ask(one, look), [200, { visits: 2 }, []])
    assert.deepEqual(await ask({ cookie: `a=1; ${one.cookie}; b=2` }, look), [200, { visits: 2 }, []])
  })

  check('an id that a client has made up names no session and begins none', async (store) => {
    const ask = appWith(store)
    for (const id of ['x'.repeat(43), 'short', '', '__proto__']) {
      const jar = { cookie: `sid=${id}` }
      assert.deepEqual(await ask(jar, look), [200, null, []])
      assert.equal((await ask(jar, visit))[0], 200)
      assert.notEqual(jar.cookie, `sid=${id}`)
    }
    const jar = { cookie: '' }
    await ask(jar, visit)
    const [, id] = jar.cookie.split('=')
    assert.equal(await store.get(id), undefined, 'the store has no id')
  })

  check('the data is bounded, and what throws writes nothing', async (store) => {
    const ask = appWith(store, { dataBytesMax: 100 })
    const jar = { cookie: '' }
    await ask(jar, visit)
    const throws = (): Data => {
      throw new RangeError('no')
    }
    for (const [fn, expected] of [
      [() => ({ visits: 'x'.repeat(101) as never }), 'HTTP_SESSION_TOO_LARGE'],
      [throws, 'RangeError'],
    ] as const) {
      const refused: Handler = (session) =>
        session.update(fn).then(
          () => 'written',
          (error: Error & { code?: string }) => error.code ?? error.name,
        )
      assert.deepEqual(await ask(jar, refused), [200, expected, []])
    }
    assert.deepEqual((await ask(jar, look))[1], { visits: 1 })
  })
}

function ends(check: Check): void {
  check('a session that is used goes on, and one that is not ends', async (store) => {
    let now = Date.UTC(2026, 5)
    const ask = appWith(store, { ttlMs: 3_600_000, now: () => now })
    const jar = { cookie: '' }
    await ask(jar, visit)
    now += 300_000
    assert.deepEqual(await ask(jar, look), [200, { visits: 1 }, []])
    for (let hour = 0; hour < 3; hour++) {
      now += 3_500_000 - (hour === 0 ? 300_000 : 0)
      const [, data, set] = await ask(jar, look)
      assert.deepEqual([data, set.length], [{ visits: 1 }, 1])
    }
    now += 3_600_001
    assert.deepEqual((await ask(jar, look))[1], null)
    assert.deepEqual((await ask(jar, visit))[1], { visits: 1 })
  })

  check('a session that is destroyed is not there for who has its cookie', async (store) => {
    const ask = appWith(store)
    const jar = { cookie: '' }
    await ask(jar, visit)
    const { cookie } = jar
    const [, , [set]] = await ask(jar, (session) => session.destroy())
    assert.equal(set, 'sid=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax')
    assert.deepEqual((await ask({ cookie }, look))[1], null)
    assert.deepEqual(await ask({ cookie: '' }, (session) => session.destroy()), [200, null, []])
    const both = async (session: Session<Data>): Promise<unknown> => {
      await session.update(() => ({ visits: 7 }))
      await session.destroy()
      await visit(session)
      return session.get()
    }
    assert.deepEqual((await ask(jar, both))[1], { visits: 1 })
    assert.deepEqual((await ask(jar, look))[1], { visits: 1 })
  })

  check('after a rotation the old id names no session', async (store) => {
    const ask = appWith(store)
    const jar = { cookie: '' }
    assert.deepEqual(await ask(jar, (session) => session.rotate()), [200, null, []])
    await ask(jar, visit)
    const { cookie } = jar
    const login = async (session: Session<Data>): Promise<unknown> => {
      await session.rotate()
      return visit(session)
    }
    assert.deepEqual((await ask(jar, login))[1], { visits: 2 })
    assert.notEqual(jar.cookie, cookie)
    assert.deepEqual((await ask({ cookie }, look))[1], null)
    assert.deepEqual((await ask(jar, look))[1], { visits: 2 })
  })
}

function atOnce(check: Check): void {
  check('of changes by requests at once none is lost', async (store) => {
    const ask = appWith(store)
    const jar = { cookie: '' }
    await ask(jar, visit)
    await Promise.all(Array.from({ length: 10 }, () => ask({ ...jar }, visit)))
    assert.deepEqual((await ask(jar, look))[1], { visits: 11 })
    const own = await ask({ cookie: '' }, async (session) => {
      await Promise.all([visit(session), visit(session), visit(session)])
      return session.get()
    })
    assert.deepEqual([own[1], own[2].length], [{ visits: 3 }, 1])
  })

  check('a change does not bring back what another request has ended', async (store) => {
    const ask = appWith(store)
    for (const end of [
      (session: Session<Data>) => session.destroy(),
      (session: Session<Data>) => session.rotate(),
    ])
      for (const change of [visit, (session: Session<Data>) => session.rotate()]) {
        const jar = { cookie: '' }
        await ask(jar, visit)
        const other = { ...jar }
        const [status, body, set] = await ask(jar, async (session) => {
          await session.get()
          await ask(other, end)
          return change(session)
        })
        assert.deepEqual([status, codeOf(body), set], [409, 'SESSION_ENDED', []])
        assert.deepEqual((await ask({ ...jar }, look))[1], null)
        if (other.cookie !== '') assert.deepEqual((await ask(other, look))[1], { visits: 1 })
      }
  })

  check('of a change and a rotation at once none is lost', async (store) => {
    const ask = appWith(store)
    const jar = { cookie: '' }
    await ask(jar, visit)
    const other = { ...jar }
    await ask(jar, async (session) => {
      await session.get()
      await ask(other, visit)
      return session.rotate()
    })
    assert.deepEqual((await ask(jar, look))[1], { visits: 2 })
  })
}
