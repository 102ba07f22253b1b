/**
 * What every engine must keep, as tests that any adapter runs.
 *
 * Each test has two connections, which may be those of two machines.
 */
import assert from 'node:assert/strict'
import type { FleetError } from '../errors.ts'
import { type Engine, type Entry, type Lease, PAGE_BYTES_MAX, type Page, type Rank } from './engine.ts'
import {
  Arrivals,
  type Check,
  LONG_MS,
  type Venue,
  bytes,
  checkOf,
  isCode,
  newName,
  text,
} from './conformance.test.support.ts'

/** The tests, with a venue of that kind for each of them. */
export function keepsConformance(kind: string, open: () => Promise<Venue>): void {
  const check = checkOf(kind, open, (engine) => engine)
  itemsWithValues(check)
  queues(check)
  orders(check)
  replacements(check)
  leases(check)
  values(check)
  openings(check)
  watchers(check)
  counts(check)
  pages(check)
  ends(check)
}

function itemsWithValues(check: Check<Engine>): void {
  check(
    'an item comes with its value and ends with a write of it, where the engine can',
    async (one, other) => {
      const name = newName()
      const [mine, others] = [await one.queue(name), await other.queue(name)]
      const values = await other.keyValue(name, { ttlMs: 0 })
      const leases = new Arrivals<Lease>()
      const options = { leasesMax: 1, leaseMs: LONG_MS, values: name }
      const end = await others.take(leases.push, options)
      for (const [id, isThere] of [
        ['a', false],
        ['b', true],
      ] as const) {
        const revision = isThere ? await values.put(id, bytes('before')) : 0
        const changes = new Arrivals<string | undefined>()
        const changed = ({ bytes: written }: Entry): boolean => {
          changes.push(text(written))
          return text(written) === 'after'
        }
        const isAdded = await mine.addUnless?.(name, id, bytes(id), 1, changed)
        if (mine.addUnless !== undefined) assert.equal(isAdded, isThere ? undefined : true)
        assert.equal(await mine.add(id, bytes(id), 1), isAdded === undefined)
        const lease = await leases.next()
        if (lease.value !== undefined) assert.equal(text(lease.value?.bytes), isThere ? 'before' : undefined)
        await assert.rejects(values.put(id, bytes('other'), { revision: 99, done: lease }), {
          code: 'FLEET_CONFLICT',
        })
        assert.notEqual(await mine.find(id), undefined)
        const during = await values.put(id, bytes('during'), { revision })
        if (isAdded) assert.equal(await changes.next(), 'during')
        await values.put(id, bytes('after'), { revision: during, done: lease })
        if (isAdded) assert.equal(await changes.next(), 'after')
        assert.equal(text((await values.get(id))?.bytes), 'after')
        await lease.done()
        assert.equal(await mine.find(id), undefined)
      }
      end()
    },
  )
}

function queues(check: Check<Engine>): void {
  check('an item is lent once, and is removed when it is done', async (one, other) => {
    const name = newName()
    const [mine, others] = [await one.queue(name), await other.queue(name)]
    assert.equal(await mine.add('job 1/ä', bytes('work'), 1), true)
    assert.equal(await others.add('job 1/ä', bytes('other work'), 1), false)
    const leases = new Arrivals<Lease>()
    const end = await others.take(leases.push, { leasesMax: 1, leaseMs: LONG_MS })
    const lease = await leases.next()
    assert.deepEqual([lease.id, text(lease.bytes), lease.attempt], ['job 1/ä', 'work', 1])
    assert.equal(await mine.add('job 1/ä', bytes('again'), 1), false)
    assert.equal(await mine.count(), 1)
    await lease.done()
    assert.equal(await mine.count(), 0)
    assert.equal(await mine.add('job 1/ä', bytes('next'), 1), true)
    const next = await leases.next()
    assert.equal(text(next.bytes), 'next')
    await next.done()
    end()
  })

  check('no more are lent at once than asked for', async (one) => {
    const queue = await one.queue(newName())
    for (const id of ['a', 'b', 'c']) await queue.add(id, bytes(id), 1)
    const leases = new Arrivals<Lease>()
    const end = await queue.take(leases.push, { leasesMax: 2, leaseMs: LONG_MS })
    const [first, second] = [await leases.next(), await leases.next()]
    // A round over the server, in which a third would have come.
    assert.equal(await queue.count(), 3)
    assert.equal(leases.count, 0)
    await first.done()
    const third = await leases.next()
    assert.equal(third.id, 'c')
    await Promise.all([second.done(), third.done()])
    end()
  })
}

function replacements(check: Check<Engine>): void {
  check('an item replaces the one that was found, whatever its rank, or nothing', async (one, other) => {
    const name = newName()
    const [mine, others] = [await one.queue(name), await other.queue(name)]
    const ghost = { bytes: bytes('ghost'), addedMs: 1 }
    assert.equal(await mine.add('a.b', bytes('none'), 1, ghost), false)
    await mine.add('a.b', bytes('first'), 1)
    const leases = new Arrivals<Lease>()
    const end = await others.take(leases.push, { leasesMax: 2, leaseMs: LONG_MS })
    const first = await leases.next()
    const found = (await mine.find('a.b'))!
    assert.equal(await mine.add('a.b', bytes('none'), 1, ghost), false)
    const added = await Promise.all(['b', 'c', 'd'].map((each) => mine.add('a.b', bytes(each), 0, found)))
    assert.deepEqual(added.filter(Boolean), [true])
    const second = await leases.next()
    assert.deepEqual([text(second.bytes), second.id], [['b', 'c', 'd'][added.indexOf(true)], 'a.b'])
    // The end of one that was replaced is not that of its successor.
    await first.done().catch(() => {})
    assert.equal(await mine.count(), 1)
    await second.done()
    assert.equal(await mine.count(), 0)
    end()
  })
}

function orders(check: Check<Engine>): void {
  check('items of a lower rank are lent first, whoever comes', async (one) => {
    const queue = await one.queue(newName())
    for (const [id, rank] of [
      ['late', 2],
      ['b', 1],
      ['now', 0],
      ['c', 1],
      ['soon', 0],
    ] as const)
      assert.equal(await queue.add(id, bytes(id), rank), true)
    // One key is one item, whatever its rank.
    assert.equal(await queue.add('late', bytes('other'), 0), false)
    const leases = new Arrivals<Lease>()
    const end = await queue.take(leases.push, { leasesMax: 1, leaseMs: LONG_MS })
    const order = []
    for (let count = 0; count < 5; count++) {
      const lease = await leases.next()
      order.push(lease.id)
      await lease.done()
    }
    assert.deepEqual(order, ['now', 'soon', 'b', 'c', 'late'])
    // And while it waits for any of them.
    await queue.add('last', bytes(''), 2)
    await (await leases.next()).done()
    end()
  })

  check('an item is found and removed by its id, waiting or lent', async (one, other) => {
    const name = newName()
    const [mine, others] = [await one.queue(name), await other.queue(name)]
    assert.equal(await mine.find('a.b'), undefined)
    await mine.remove('a.b')
    await mine.add('a.b', bytes('first'), 2)
    assert.equal(text((await others.find('a.b'))?.bytes), 'first')
    await others.remove('a.b', await mine.find('a.b'))
    assert.equal(await mine.find('a.b'), undefined)
    await mine.add('a.b', bytes('second'), 1)
    const leases = new Arrivals<Lease>()
    const end = await others.take(leases.push, { leasesMax: 2, leaseMs: LONG_MS })
    const second = await leases.next()
    assert.equal(text(second.bytes), 'second')
    await mine.remove('a.b')
    assert.equal(await mine.add('a.b', bytes('third'), 1), true)
    const third = await leases.next()
    assert.equal(text(third.bytes), 'third')
    assert.equal((await mine.find('a.b'))?.addedMs, third.addedMs)
    // The end of one that was removed is not that of its successor.
    await second.done().catch(() => {})
    await mine.remove('a.b', { ...third, addedMs: third.addedMs - 1 })
    assert.equal(await mine.count(), 1)
    await third.done()
    end()
  })

  check('a lease shows how long ago its item was added, by the server', async (one) => {
    const queue = await one.queue(newName())
    await queue.add('old', bytes(''), 1)
    await new Promise<void>((resolve) => one.clock.after(30, resolve))
    const leases = new Arrivals<Lease>()
    const end = await queue.take(leases.push, { leasesMax: 1, leaseMs: LONG_MS })
    const lease = await leases.next()
    const ageMs = lease.ageMs()
    assert.ok(ageMs >= 20, String(ageMs))
    assert.ok(lease.ageMs() >= ageMs)
    assert.ok(Number.isSafeInteger(Math.round(lease.addedMs)) && lease.addedMs > Date.UTC(2024, 0))
    await lease.done()
    end()
  })
}

function leases(check: Check<Engine>): void {
  check('an item comes again after its lease, unless that is extended, and on request', async (one) => {
    const leaseMs = 1000
    const queue = await one.queue(newName())
    const leases = new Arrivals<Lease>()
    const end = await queue.take(leases.push, { leasesMax: 4, leaseMs })
    await queue.add('slow', bytes(''), 1)
    const first = await leases.next()
    const begunMs = one.clock.nowMs()
    // Extended until two leases have passed; then given up.
    await new Promise<void>((resolve) => {
      const extend = (): void => {
        if (one.clock.nowMs() - begunMs > 2 * leaseMs) return resolve()
        first.extend()
        one.clock.after(leaseMs / 8, extend)
      }
      extend()
    })
    const second = await leases.next()
    assert.ok(one.clock.nowMs() - begunMs > 2 * leaseMs)
    assert.equal(second.id, 'slow')
    assert.ok(second.attempt >= 2)
    second.again(1)
    const third = await leases.next()
    assert.ok(third.attempt > second.attempt)
    await third.done()
    assert.equal(await queue.count(), 0)
    end()
  })

  check('an item of an engine that is closed comes to another one', async (one, other) => {
    const name = newName()
    const queue = await one.queue(name)
    await queue.add('left', bytes('x'), 1)
    const left = new Arrivals<Lease>()
    await queue.take(left.push, { leasesMax: 1, leaseMs: 400 })
    await left.next()
    await one.close()
    const leases = new Arrivals<Lease>()
    await (await other.queue(name)).take(leases.push, { leasesMax: 1, leaseMs: 400 })
    const lease = await leases.next()
    assert.equal(lease.id, 'left')
    assert.ok(lease.attempt >= 2)
    await lease.done()
  })
}

function values(check: Check<Engine>): void {
  check('a value is written by its revision or not at all', async (one, other) => {
    const name = newName()
    const [mine, others] = [await one.keyValue(name, { ttlMs: 0 }), await other.keyValue(name, { ttlMs: 0 })]
    for (const key of ['plain', '', 'a.b > *', 'ключ']) {
      assert.equal(await others.get(key), undefined)
      const first = await mine.put(key, bytes('1'), { revision: 0 })
      await assert.rejects(others.put(key, bytes('x'), { revision: 0 }), isCode('FLEET_CONFLICT'))
      const second = await others.put(key, bytes('2'), { revision: first })
      assert.ok(second > first)
      await assert.rejects(mine.put(key, bytes('x'), { revision: first }), isCode('FLEET_CONFLICT'))
      const third = await mine.put(key, bytes('3'))
      const found = await others.get(key)
      assert.deepEqual([found?.key, text(found?.bytes), found?.revision], [key, '3', third])
      await assert.rejects(mine.delete(key, second), isCode('FLEET_CONFLICT'))
      await mine.delete(key, third)
      await assert.rejects(mine.delete(key, third), isCode('FLEET_CONFLICT'))
      await mine.delete(key)
      assert.equal(await others.get(key), undefined)
      await assert.rejects(mine.put(key, bytes('x'), { revision: third }), isCode('FLEET_CONFLICT'))
      await mine.put(key, bytes('4'), { revision: 0 })
    }
  })
}

function openings(check: Check<Engine>): void {
  check('another time to live than what exists has is refused', async (one, other) => {
    const name = newName()
    await one.keyValue(name, { ttlMs: 60_000 })
    await other.keyValue(name, { ttlMs: 60_000 })
    for (const ttlMs of [0, 5000])
      await assert.rejects(other.keyValue(name, { ttlMs }), isCode('FLEET_MISMATCH'))
  })
  check('the last revision is that of the last write', async (one, other) => {
    const name = newName()
    const [values, same] = [await one.keyValue(name, { ttlMs: 0 }), await other.keyValue(name, { ttlMs: 0 })]
    assert.equal(await values.last(), 0)
    const revision = await values.put('a', bytes('1'))
    assert.equal(await same.last(), revision)
    await values.delete('a')
    assert.ok((await same.last()) > revision)
  })

  check('a value has a time of its own, and may be written anew behind it', async (one) => {
    const values = await one.keyValue(newName(), { ttlMs: 0 })
    const revision = await values.put('short', bytes('1'), { revision: 0, ttlMs: LONG_MS })
    await values.put('short', bytes('2'), { revision, ttlMs: 1000 })
    await values.put('any', bytes('3'), { ttlMs: 1000 })
    await values.put('long', bytes('4'), { ttlMs: LONG_MS })
    for (const key of ['short', 'any'])
      while ((await values.get(key)) !== undefined)
        await new Promise<void>((resolve) => one.clock.after(50, resolve))
    assert.equal(text((await values.get('long'))?.bytes), '4')
    await values.put('short', bytes('5'), { revision: 0 })
    assert.equal(text((await values.get('short'))?.bytes), '5')
  })

  check('of many writers of one revision one wins', async (one, other) => {
    const name = newName()
    const both = [await one.keyValue(name, { ttlMs: 0 }), await other.keyValue(name, { ttlMs: 0 })]
    await both[0].put('count', bytes('0'), { revision: 0 })
    const increment = async (which: number): Promise<void> => {
      for (;;) {
        const { bytes: value, revision } = (await both[which].get('count'))!
        try {
          return void (await both[which].put('count', bytes(String(Number(text(value)) + 1)), { revision }))
        } catch (error) {
          assert.ok(isCode('FLEET_CONFLICT')(error), String(error))
        }
      }
    }
    await Promise.all([0, 1, 0, 1, 0, 1].map(increment))
    assert.equal(text((await both[0].get('count'))?.bytes), '6')
  })
}

function watchers(check: Check<Engine>): void {
  check('a watcher has what there is, and then every change', async (one, other) => {
    const name = newName()
    const [mine, others] = [await one.keyValue(name, { ttlMs: 0 }), await other.keyValue(name, { ttlMs: 0 })]
    const empty = new Arrivals<Entry>()
    const endEmpty = await others.watch(empty.push)
    await mine.put('a', bytes('1'))
    await mine.put('b', bytes('2'))
    assert.deepEqual([(await empty.next()).key, (await empty.next()).key], ['a', 'b'])
    endEmpty()
    const seen = new Map<string, string | undefined>()
    const changes = new Arrivals<Entry>()
    let isThere = false
    const end = await others.watch((entry) => {
      seen.set(entry.key, text(entry.bytes))
      if (isThere) changes.push(entry)
    })
    isThere = true
    assert.deepEqual(
      [...seen],
      [
        ['a', '1'],
        ['b', '2'],
      ],
    )
    const revision = await mine.put('a', bytes('3'))
    const changed = await changes.next()
    assert.deepEqual([changed.key, text(changed.bytes), changed.revision], ['a', '3', revision])
    await mine.delete('b')
    assert.deepEqual([(await changes.next()).bytes, seen.get('b')], [undefined, undefined])
    end()
  })

  check('a watcher from now on has changes alone', async (one, other) => {
    const name = newName()
    const [mine, others] = [await one.keyValue(name, { ttlMs: 0 }), await other.keyValue(name, { ttlMs: 0 })]
    await mine.put('a', bytes('1'))
    const changes = new Arrivals<Entry>()
    const over = new Arrivals<FleetError>()
    const end = await others.watch(changes.push, { from: 'now', over: over.push })
    await others.watch(changes.push, { from: 'now', over: over.push })
    await mine.put('b', bytes('2'))
    assert.equal((await changes.next()).key, 'b')
    end()
    await other.close()
    assert.equal((await over.next()).code, 'FLEET_CLOSED')
    assert.equal(over.count, 0)
  })
}

function counts(check: Check<Engine>): void {
  check('a watcher of a key has its value and its changes alone', async (one, other) => {
    const name = newName()
    const [mine, others] = [await one.keyValue(name, { ttlMs: 0 }), await other.keyValue(name, { ttlMs: 0 })]
    await mine.put('a.b', bytes('before'))
    const changes = new Arrivals<Entry>()
    const end = await others.watch(changes.push, { key: 'a.b' })
    assert.equal(text((await changes.next()).bytes), 'before')
    for (const key of ['a', 'a.b', 'b']) await mine.put(key, bytes(key))
    const written = await changes.next()
    await mine.delete('a.b')
    const deleted = await changes.next()
    assert.deepEqual(
      [written.key, text(written.bytes), deleted.key, deleted.bytes],
      ['a.b', 'a.b', 'a.b', undefined],
    )
    end()
    assert.equal(changes.count, 0)
    // Behind a time without any watcher, too.
    assert.equal((await others.get('a'))?.key, 'a')
    const endAgain = await others.watch(changes.push, { from: 'now', key: 'b' })
    await mine.put('b', bytes('again'))
    assert.equal(text((await changes.next()).bytes), 'again')
    endAgain()
  })

  check('a watcher of a key from now on has the deletion of what it has not seen', async (one, other) => {
    const name = newName()
    const [mine, others] = [await one.keyValue(name, { ttlMs: 0 }), await other.keyValue(name, { ttlMs: 0 })]
    const changes = new Arrivals<Entry>()
    const end = await others.watch(changes.push, { from: 'now', key: 'a' })
    await Promise.all([mine.put('a', bytes('1')), mine.delete('a')])
    while ((await changes.next()).bytes !== undefined);
    end()
  })

  check('what there is is counted, without being opened', async (one, other) => {
    const name = newName()
    const stateOf = async () => (await other.queues()).find((queue) => queue.name === name)
    assert.deepEqual([await stateOf(), await other.valuesIn(name)], [undefined, 0])
    const queue = await one.queue(name)
    const values = await one.keyValue(name, { ttlMs: 0 })
    for (const id of ['a', 'b', 'c']) await queue.add(id, bytes(id), 1)
    for (const key of ['a', 'b']) await values.put(key, bytes(key))
    await values.put('a', bytes('again'))
    const leases = new Arrivals<Lease>()
    const end = await queue.take(leases.push, { leasesMax: 1, leaseMs: LONG_MS })
    const lease = await leases.next()
    const state = (await stateOf())!
    assert.deepEqual([state.waiting, state.lent, await other.valuesIn(name)], [2, 1, 2])
    assert.ok(state.waitedMs >= 0)
    await lease.done()
    end()
  })

  check('an object may be larger than a message', async (one, other) => {
    const name = newName()
    const [mine, others] = [
      await one.objects(name, { ttlMs: 60_000 }),
      await other.objects(name, { ttlMs: 60_000 }),
    ]
    const large = new Uint8Array(2 * one.messageBytesMax + 3).fill(7)
    assert.equal(await others.get('large', large.length), undefined)
    await mine.put('large', large)
    assert.equal(Buffer.compare((await others.get('large', large.length))!, large), 0)
    await assert.rejects(others.get('large', large.length - 1), isCode('FLEET_TOO_LARGE'))
    await others.delete('large')
    assert.equal(await mine.get('large', large.length), undefined)
  })
}

/** All of what is read part by part, and how many parts there were. */
async function paged<Item>(read: (after?: string) => Promise<Page<Item>>): Promise<[Item[], number]> {
  const all: Item[] = []
  let parts = 0
  let after: string | undefined
  do {
    const { items, next } = await read(after)
    all.push(...items)
    parts++
    after = next
  } while (after !== undefined)
  return [all, parts]
}

function pages(check: Check<Engine>): void {
  check('items are listed part by part, whoever has them', async (one, other) => {
    const name = newName()
    const [mine, others] = [await one.queue(name), await other.queue(name)]
    assert.deepEqual(await others.page({ itemsMax: 2 }, true), { items: [], next: undefined })
    const ids = ['a.b', 'ключ', 'c', 'd', 'e']
    for (const [index, id] of ids.entries()) await mine.add(id, bytes(`of ${id}`), (index % 3) as Rank)
    const [all, parts] = await paged((after) => others.page({ after, itemsMax: 2 }))
    assert.deepEqual([all.map(({ id }) => id).sort(), parts], [[...ids].sort(), 3])
    for (const { id, bytes: read, addedMs } of all) {
      const found = await mine.find(id)
      assert.deepEqual([text(read), addedMs], [`of ${id}`, found?.addedMs])
    }
    const leases = new Arrivals<Lease>()
    const end = await mine.take(leases.push, { leasesMax: 1, leaseMs: LONG_MS })
    const lease = await leases.next()
    const [lent] = await paged((after) => others.page({ after, itemsMax: 1 }, true))
    // Those that nobody has had are left out, but what is lent never is.
    assert.deepEqual([lent.map(({ id }) => id), lent.length < ids.length], [[lease.id], true])
    // Nor is what was returned and waits for the next one who takes.
    end()
    lease.again(0)
    await mine.find(lease.id)
    const [returned] = await paged((after) => others.page({ after, itemsMax: 1 }, true))
    assert.equal(returned[0]?.id, lease.id)
    // What is removed meanwhile is not missed.
    const { next } = await others.page({ itemsMax: 2 })
    for (const id of ids) if (id !== lease.id) await mine.remove(id)
    const left = await paged((after) => others.page({ after: after ?? next, itemsMax: 2 }))
    assert.ok(left[0].length <= 1)
    await mine.remove(lease.id)
  })

  check(
    'values are listed part by part, without those that were deleted or have ended',
    async (one, other) => {
      const name = newName()
      const [mine, others] = [
        await one.keyValue(name, { ttlMs: 0 }),
        await other.keyValue(name, { ttlMs: 0 }),
      ]
      assert.deepEqual(await others.page({ itemsMax: 2 }), { items: [], next: undefined })
      for (const key of ['', 'a.b', 'ключ', 'd', 'e', 'deleted']) await mine.put(key, bytes(`of ${key}`))
      const revision = await mine.put('d', bytes('again'))
      await mine.delete('deleted')
      const [all, parts] = await paged((after) => others.page({ after, itemsMax: 2 }))
      const written = all.map((entry) => [entry.key, text(entry.bytes)])
      assert.deepEqual(Object.fromEntries(written), {
        '': 'of ',
        'a.b': 'of a.b',
        ключ: 'of ключ',
        d: 'again',
        e: 'of e',
      })
      assert.deepEqual([all.length, parts, all.find(({ key }) => key === 'd')?.revision], [5, 3, revision])
    },
  )

  check('a part of a list is of limited size', async (one) => {
    const values = await one.keyValue(newName(), { ttlMs: 0 })
    const large = new Uint8Array(one.messageBytesMax / 2)
    const count = Math.ceil(PAGE_BYTES_MAX / large.length) + 1
    for (let index = 0; index < count; index++) await values.put(String(index), large)
    const { items, next } = await values.page({ itemsMax: 100 })
    assert.equal(items.length, count - 1)
    assert.equal((await values.page({ after: next, itemsMax: 100 })).items.length, 1)
  })
}

function ends(check: Check<Engine>): void {
  check('a closed engine refuses', async (one) => {
    await one.close()
    await one.close()
    assert.match(await one.ended, /close/)
    await assert.rejects(
      (async () => (await one.keyValue(newName(), { ttlMs: 0 })).get('x'))(),
      isCode('FLEET_CLOSED'),
    )
  })
}
