/**
 * Caches and pools under seeds: what is looked up once, used by one, released always.
 *
 * The invariants are counted in the lookups and resources themselves.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { until } from '../../base/wait.test.support.ts'
import { type Fiber, Cache, Pool, dump, exitOf, fail, fork, never, sleep, timeout } from '../index.ts'
import { crowds, play } from './actors.test.support.ts'
import { simulate } from '../../test/played.test.support.ts'

test('one lookup for all who ask meanwhile; the last who leaves ends it', async () => {
  await fc.assert(
    fc.asyncProperty(crowds(fc.nat(2)), fc.nat(), async (actors, seed) => {
      const running = new Map<number, number>()
      let [begun, ended, cut] = [0, 0, 0]
      const cache = new Cache(
        function* (key: number) {
          assert.equal(running.get(key) ?? 0, 0, 'one at a time for a key')
          running.set(key, 1)
          begun += 1
          let isWhole = false
          try {
            yield* sleep(2)
            if (key === 2) yield* fail('no such key')
            isWhole = true
            return key * 10
          } finally {
            if (!isWhole) cut += 1
            ended += 1
            running.set(key, 0)
          }
        },
        { entriesMax: 1, ttlMs: 2 },
      )
      const outcomes = await play(seed, actors, (key) => cache.get(key) as never)
      for (const [index, { kind, value }] of outcomes.entries()) {
        const { does } = actors[index]
        if (kind === 'success') assert.equal(value, does * 10)
        else if (kind === 'failure') assert.equal(value, 'no such key')
        else assert.ok(actors[index].cutMs < Infinity)
      }
      assert.equal(begun, ended)
      assert.ok(cut <= begun)
      assert.ok(cache.size <= 1)
    }),
    { numRuns: 300 },
  )
})

test('a value is kept for its time, from the end of its lookup', async () => {
  let lookups = 0
  const { exit } = await simulate(1, function* () {
    const cache = new Cache(
      function* (key: string) {
        yield* sleep(5)
        return `${key}${(lookups += 1)}`
      },
      { entriesMax: 2, ttlMs: 11 },
    )
    const seen = [yield* cache.get('a')]
    yield* sleep(9)
    seen.push(yield* cache.get('a'))
    yield* sleep(2)
    assert.equal(cache.peek('a'), undefined)
    seen.push(yield* cache.get('a'))
    seen.push(yield* cache.get('b'), yield* cache.get('a'), yield* cache.get('c'))
    // b was used before a.
    assert.deepEqual(
      [cache.peek('a'), cache.peek('b'), cache.peek('c'), cache.size],
      ['a2', undefined, 'c4', 2],
    )
    assert.deepEqual([cache.delete('a'), cache.delete('a'), cache.size], [true, false, 1])
    cache.clear()
    assert.equal(cache.size, 0)
    return seen
  })
  assert.deepEqual(exit, { kind: 'success', value: ['a1', 'a1', 'a2', 'b3', 'a2', 'c4'] })
})

test('a failed lookup is tried again; one that ends at once too', async () => {
  let calls = 0
  const cache = new Cache(
    (_: string) => {
      calls += 1
      if (calls < 3) throw new Error(`call ${calls}`)
      return calls
    },
    { entriesMax: 5 },
  )
  await assert.rejects(cache.get('a'), /call 1/)
  await assert.rejects(cache.get('a'), /call 2/)
  assert.equal(cache.size, 0)
  assert.equal(await cache.get('a'), 3)
  assert.equal(await cache.get('a'), 3)
})

test('a value that was deleted while it was looked up goes to who waits, and is not kept', async () => {
  let end = (_: string): void => {}
  const signals: AbortSignal[] = []
  const lookup = (_: string, { signal }: Fiber) => {
    signals.push(signal)
    return new Promise<string>((resolve) => (end = resolve))
  }
  const cache = new Cache(lookup, { entriesMax: 5 })
  const first = cache.get('a')
  assert.equal(cache.delete('a'), true)
  end('old')
  assert.equal(await first, 'old')
  assert.equal(cache.size, 0)
  const controller = new AbortController()
  const waiting = cache.get('a', { signal: controller.signal })
  controller.abort(new Error('late'))
  await assert.rejects(waiting, /late/)
  assert.deepEqual(
    signals.map(({ aborted }) => aborted),
    [false, true],
  )
  // The next one begins when the interrupted one has ended.
  const next = cache.get('a')
  assert.equal(signals.length, 2)
  end('unused')
  await until(() => signals.length === 3, 'the next lookup')
  end('new')
  assert.equal(await next, 'new')
  assert.deepEqual(dump(), [])
})

interface Resource {
  id: number
  isOpen: boolean
  users: number
  isWell: boolean
}

test('a pool never passes its size, lends to one at a time, and releases all', async () => {
  const kinds = fc.record({ holdMs: fc.nat(3), breaks: fc.boolean(), fails: fc.boolean() })
  await fc.assert(
    fc.asyncProperty(crowds(kinds), fc.nat(), async (actors, seed) => {
      const all: Resource[] = []
      const pool = new Pool({
        acquire: function* () {
          yield* sleep(1)
          const resource = { id: all.length, isOpen: true, users: 0, isWell: true }
          all.push(resource)
          assert.ok(all.filter(({ isOpen }) => isOpen).length <= 2)
          return resource
        },
        *release(resource: Resource) {
          assert.equal(resource.users, 0)
          assert.ok(resource.isOpen)
          yield* sleep(1)
          resource.isOpen = false
        },
        *isHealthy(resource: Resource) {
          yield* sleep(1)
          return resource.isWell
        },
        sizeMax: 2,
        idleMs: 3,
      })
      await play(
        seed,
        actors,
        ({ holdMs, breaks, fails }) =>
          pool.use(function* (resource) {
            assert.ok(resource.isOpen && resource.isWell)
            assert.equal((resource.users += 1), 1)
            try {
              yield* sleep(holdMs)
              if (breaks) resource.isWell = false
              if (fails) yield* fail('no')
            } finally {
              resource.users -= 1
            }
          }) as never,
        () => pool.close() as never,
      )
      assert.deepEqual(
        all.filter(({ isOpen, users }) => isOpen || users > 0),
        [],
      )
      assert.deepEqual([pool.idle, pool.waiting], [0, 0])
    }),
    { numRuns: 300 },
  )
})

test('a closed pool waits for its users, refuses others, and reports what release throws', async () => {
  let end = (): void => {}
  const released: number[] = []
  const pool = new Pool({
    acquire: () => 7,
    release: async (id) => {
      released.push(id)
      throw new Error('not closed')
    },
    sizeMax: 1,
    waitingMax: 1,
  })
  const used = pool.use(() => new Promise<void>((resolve) => (end = resolve)))
  const waiting = pool.use(() => 1)
  await assert.rejects(
    pool.use(() => 2),
    { code: 'FIBER_FULL' },
  )
  const closing = pool.close()
  end()
  await assert.rejects(used, /not closed/)
  await assert.rejects(waiting, { code: 'FIBER_CLOSED' })
  await closing
  assert.deepEqual(released, [7])
  await pool[Symbol.asyncDispose]()
})

test('an interrupt during acquire is delivered when the resource can be released', async () => {
  const log: string[] = []
  const pool = new Pool({
    acquire: function* () {
      yield* sleep(2)
      log.push('acquired')
      return 1
    },
    release: () => void log.push('released'),
    isHealthy: () => Promise.reject(new Error('cannot be checked')),
    sizeMax: 1,
  })
  const exit = await fork(exitOf(timeout(1, pool.use(never)))).join()
  assert.equal(exit.kind === 'failure' && exit.error.code, 'FIBER_TIMEOUT')
  assert.deepEqual([log, pool.idle], [['acquired'], 1])
  assert.equal(await pool.use((id) => id), 1)
  assert.deepEqual(log, ['acquired', 'released', 'acquired'])
  await pool.close()
})

test('a closed pool waits for a resource that is being made, and its user', async () => {
  const log: string[] = []
  let made = (): void => {}
  const pool = new Pool({
    acquire: () => new Promise<void>((resolve) => (made = resolve)),
    release: () => void log.push('released'),
    sizeMax: 1,
  })
  const used = pool.use(() => void log.push('used'))
  const closing = pool.close().then(() => log.push('closed'))
  await new Promise(setImmediate)
  made()
  await Promise.all([used, closing])
  assert.deepEqual(log, ['used', 'released', 'closed'])
})

test('an interrupt does not wait for a health check, and the resource stays or is released', async () => {
  for (const isClosed of [false, true]) {
    const log: string[] = []
    let checks = 0
    const pool = new Pool({
      acquire: () => log.push('acquired'),
      release: () => void log.push('released'),
      isHealthy: () => (checks++ === 0 ? never() : true),
      sizeMax: 1,
    })
    await pool.use(() => {})
    const checking = fork(pool.use(() => {}))
    await until(() => checks === 1)
    const closing = isClosed ? pool.close() : undefined
    assert.equal((await checking.interrupt('stop')).kind, 'interruption')
    if (!isClosed) assert.equal(await pool.use((id) => id), 1)
    await (closing ?? pool.close())
    assert.deepEqual(log, ['acquired', 'released'])
  }
})

for (const [name, make] of Object.entries({
  'a cache without a bound': () => new Cache(() => 1, {} as never),
  'a lookup that is not a function': () => new Cache(1 as never, { entriesMax: 1 }),
  'a pool without release': () => new Pool({ acquire: () => 1, sizeMax: 1 } as never),
  'a pool without a size': () => new Pool({ acquire: () => 1, release() {} } as never),
  'work that is not a function': () =>
    new Pool({ acquire: () => 1, release() {}, sizeMax: 1 }).use(1 as never),
}))
  test(`${name} is refused`, () => assert.throws(make, { code: 'FIBER_ARGUMENT' }))
