/**
 * What stores and locks of a fleet promise, as tests that run on any engine.
 *
 * Each test has two connections, and names that no other has.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { until } from '../../base/wait.test.support.ts'
import type { Fleet } from '../connect.ts'
import { newName } from '../engine/conformance.test.support.ts'
import { FarCopy } from './copy.ts'
import type { FarStore } from './store.ts'

type Prices = FarStore<number>
interface Setting {
  readonly name: string
  readonly fleets: readonly [Fleet, Fleet]
  readonly prices: readonly [Prices, Prices]
}

/** The tests, with connections of that kind. */
export function stateTests(kind: string, connect: () => Promise<Fleet>): void {
  const check = (name: string, work: (setting: Setting) => Promise<void>): void => {
    test(`${kind}: ${name}`, async () => {
      await using one = await connect()
      await using other = await connect()
      const id = newName()
      await work({ name: id, fleets: [one, other], prices: [one.store(id), other.store(id)] })
    })
  }
  stores(check)
  ending(check)
  copies(check)
  locks(check)
  lostLocks(check)
}

type Check = (name: string, work: (setting: Setting) => Promise<void>) => void

function stores(check: Check): void {
  check('a value is that of its last write, on all machines', async ({ prices: [one, other] }) => {
    assert.equal(await one.get('tea'), undefined)
    const first = await one.set('tea', 250)
    assert.deepEqual(await other.get('tea'), { key: 'tea', value: 250, revision: first })
    const second = await other.set('tea', 260, { revision: first })
    assert.ok(second > first)
    for (const revision of [first, 0])
      await assert.rejects(one.set('tea', 1, { revision }), { code: 'FLEET_CONFLICT' })
    await assert.rejects(one.delete('tea', { revision: first }), { code: 'FLEET_CONFLICT' })
    await one.delete('tea', { revision: second })
    assert.equal(await other.get('tea'), undefined)
    await one.set('tea', 270, { revision: 0 })
    await one.delete('tea')
    await one.delete('never')
    assert.equal(await other.get('tea'), undefined)
  })

  check('of updates at once none is lost', async ({ prices }) => {
    const updates = Array.from({ length: 12 }, (_, index) =>
      prices[index % 2].update('count', (count = 0) => count + 1),
    )
    const values = (await Promise.all(updates)).map(({ value }) => value)
    assert.deepEqual(
      values.sort((a, b) => a - b),
      Array.from({ length: 12 }, (_, index) => index + 1),
    )
    const thrown = prices[0].update('count', () => {
      throw new RangeError('no')
    })
    await assert.rejects(thrown, RangeError)
    assert.equal((await prices[1].get('count'))?.value, 12)
  })

  check('a watcher has each change from then on', async ({ prices: [one, other] }) => {
    await one.set('before', 1)
    const changes = await other.watch()
    await one.set('tea', 2)
    const { value: written } = await changes.next()
    assert.deepEqual([written?.key, written?.value, written?.isDeleted], ['tea', 2, false])
    await one.delete('tea')
    const { value: deleted } = await changes.next()
    assert.deepEqual([deleted?.key, deleted?.value, deleted?.isDeleted], ['tea', undefined, true])
    assert.ok(deleted!.revision > written!.revision)
    await changes.return()
  })

  check('what is not a value is left out', async ({ name, fleets: [one], prices: [, prices] }) => {
    const changes = await prices.watch()
    const raw = await one.engine.keyValue(`store_${name}`, { ttlMs: 0 })
    await raw.put('forged', new Uint8Array([255, 1, 2]))
    await prices.set('tea', 1)
    assert.equal((await changes.next()).value?.key, 'tea')
    await changes.return()
    await assert.rejects(prices.get('forged'), { name: 'TransportError' })
    await using copy = await prices.copy()
    assert.deepEqual([copy.size, copy.get('tea'), copy.get('forged')], [1, 1, undefined])
  })
}

function ending(check: Check): void {
  check(
    'a value of a store with ttlMs ends, which nobody can follow',
    async ({ name, fleets: [one, other] }) => {
      const [mine, others] = [one, other].map((fleet) => fleet.store<number>(`${name}_ends`, { ttlMs: 3000 }))
      // Opened before the time of a value runs.
      for (const store of [mine, others]) assert.equal(await store.get('tea'), undefined)
      await mine.set('tea', 1)
      await mine.set('tea', 2, { revision: (await others.get('tea'))!.revision })
      await until(async () => (await others.get('tea')) === undefined)
      assert.equal((await others.update('tea', (value = 7) => value)).value, 7)
      for (const follow of [mine.watch(), mine.copy()])
        await assert.rejects(follow, { code: 'FLEET_ARGUMENT', message: /must be one without ttlMs/ })
    },
  )
}

function copies(check: Check): void {
  check('a copy follows, and states its age', async ({ name, prices: [one, other] }) => {
    await one.set('tea', 1)
    await one.set('removed', 1)
    await one.delete('removed')
    const copy = await other.copy({ checkMs: 10 })
    assert.deepEqual([copy.size, copy.get('tea'), copy.get('removed')], [1, 1, undefined])
    await assert.rejects(other.copy(), { code: 'STORE_EXISTS' })
    await one.set('tea', 2)
    await until(() => copy.get('tea') === 2)
    await one.delete('tea')
    await until(() => copy.size === 0)
    const seen = FarCopy.get<number>(name)
    // It is asked how far the servers are, again and again: the age becomes less.
    let last = seen.ageMs
    await until(() => {
      const isLess = seen.ageMs < last
      last = seen.ageMs
      return isLess
    })
    seen.close() // of a thread that has not made it
    await one.set('tea', 3)
    await until(() => seen.get('tea') === 3)
    copy.close()
    copy.close()
    assert.equal(copy.ageMs, Infinity)
    assert.throws(() => copy.get('tea'), { code: 'STORE_CLOSED' })
    assert.throws(() => FarCopy.get(name), { code: 'STORE_UNKNOWN' })
    await (await other.copy()).close()
  })

  check(
    'a copy whose connection has ended is read, and becomes old',
    async ({ fleets, prices: [, prices] }) => {
      await prices.set('tea', 1)
      await using copy = await prices.copy({ checkMs: 10 })
      await fleets[1].close()
      // Far longer than a check takes would be no proof either: the last check was before.
      const age = copy.ageMs
      await until(() => copy.ageMs > age + 50)
      assert.equal(copy.get('tea'), 1)
    },
  )

  check('a copy with more than it may have is refused, or becomes old', async ({ prices: [one, other] }) => {
    await one.set('small', 1)
    await using copy = await other.copy({ bytesMax: 4096, checkMs: 10 })
    for (let key = 0; key < 200; key++) await one.set(`key ${key}`, key)
    const { size } = copy
    assert.ok(size < 200)
    const age = copy.ageMs
    await until(() => copy.ageMs > age + 50)
    assert.equal(copy.size, size)
    copy.close()
    await assert.rejects(other.copy({ bytesMax: 4096 }), { code: 'STORE_FULL' })
  })
}

function locks(check: Check): void {
  check(
    'a lock is held by one, whose token is larger than all before',
    async ({ name, fleets: [one, other] }) => {
      let holders = 0
      const tokens: number[] = []
      const work = (fleet: Fleet): Promise<void> =>
        fleet.lock(name).guard(async ({ token, signal }) => {
          assert.equal(++holders, 1)
          assert.equal(signal.aborted, false)
          tokens.push(token)
          await setImmediate()
          assert.equal(await other.lock(name).tryGuard(() => 1), undefined)
          holders--
        })
      await Promise.all([one, other, one, other].map(work))
      assert.deepEqual(
        tokens,
        [...tokens].sort((a, b) => a - b),
      )
      assert.equal(new Set(tokens).size, 4)
      assert.deepEqual(await one.lock(name).tryGuard(() => 'free'), { value: 'free' })
    },
  )

  check(
    'who waits ends by its time or its signal, and takes nothing then',
    async ({ name, fleets: [one, other] }) => {
      const lock = other.lock(name)
      let end = (): void => {}
      const held = one.lock(name).guard(() => new Promise<void>((resolve) => (end = resolve)))
      await until(() => end.name !== '')
      while ((await lock.tryGuard(() => 1)) !== undefined);
      const never = (): never => assert.fail('it is held')
      await assert.rejects(lock.guard(never, { timeoutMs: 20 }), { code: 'LOCK_TIMEOUT' })
      const controller = new AbortController()
      const waiting = lock.guard(never, { signal: controller.signal })
      controller.abort(new RangeError('enough'))
      await assert.rejects(waiting, RangeError)
      await assert.rejects(lock.guard(never, { signal: controller.signal }), RangeError)
      end()
      await held
      assert.equal(await lock.guard(() => 'free'), 'free')
    },
  )
}

function lostLocks(check: Check): void {
  check(
    'a lock that is lost ends its function, and is free for others',
    async ({ name, fleets: [one, other] }) => {
      const lost = one.lock(name, { leaseMs: 1000 }).guard(async ({ token, signal }) => {
        // Somebody has deleted it, as an operator would.
        const raw = await other.engine.keyValue('locks', { ttlMs: 0 })
        await raw.delete(name)
        await other.lock(name).guard((next) => assert.ok(next.token > token))
        while (!signal.aborted) await setImmediate()
        return 'too late'
      })
      await assert.rejects(lost, { code: 'LOCK_LOST' })
      await assert.rejects(
        one.lock(name).guard(() => {
          throw new RangeError('mine')
        }),
        RangeError,
      )
      assert.equal(await one.lock(name).guard(() => 1), 1)
    },
  )

  check('a lock is held longer than its lease, and free after the loss of its holder', async (setting) => {
    const { name, fleets } = setting
    const [one, other] = fleets
    const lock = other.lock(name, { leaseMs: 1000 })
    let isLost = false
    const held = one.lock(name, { leaseMs: 1000 }).guard(async ({ signal }) => {
      const { clock } = one.engine
      await new Promise<void>((resolve) => void clock.after(1500, resolve))
      assert.equal(signal.aborted, false)
      assert.equal(await lock.tryGuard(() => 1), undefined)
      await one.engine.close()
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
      isLost = true
    })
    await assert.rejects(held, { code: 'LOCK_LOST' })
    assert.ok(isLost)
    assert.equal(await lock.guard(() => 'free'), 'free')
  })
}
