/**
 * Zones by name: `zone.current`, `get`, `getOrCreate`, their settings and statistics, seen from every thread.
 *
 * One zone of two workers serves the whole file.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { until } from '../base/wait.test.support.ts'
import { type Task, ZoneError, currentTask, zone } from './index.ts'

const here = zone.create('names', { workers: 2 })
after(() => here.close())

test('`this` and currentTask() are the task, also after it has waited', async () => {
  const seen = await here.run(async function (this: Task) {
    const { currentTask } = await import('./index.js')
    const before = currentTask() === this
    await new Promise((resolve) => setImmediate(resolve))
    return [
      this.zone,
      this.worker,
      before,
      currentTask() === this,
      this.signal.aborted,
      this.signal === this.signal,
    ]
  })
  assert.deepEqual([seen[0], ...seen.slice(2)], ['names', true, true, false, true])
  assert.match(seen[1] as string, /^names\/[01]$/)
  assert.equal(currentTask(), undefined)
})

test("zone.current is the worker's zone inside and zone.node outside; zone.get finds from both", async () => {
  assert.equal(zone.current, zone.node)
  assert.equal(zone.get('node'), zone.node)
  const ids = await here.run(async () => {
    const { zone } = await import('./index.js')
    return [
      zone.current.id,
      zone.get('names').id,
      zone.get('node').id,
      zone.node.id,
      zone.current === zone.get('names'),
    ]
  })
  assert.deepEqual(ids, ['names', 'names', 'node', 'node', true])
  assert.equal(zone.get('names').id, 'names')
  assert.equal(zone.get('names'), zone.get('names'))
})

test('finding a zone again and again costs no more each time', async () => {
  // Processor time: other programs do not count.
  const getMs = (times: number): number => {
    const { user: before } = process.cpuUsage()
    for (let index = 0; index < times; index++) zone.get('names')
    return (process.cpuUsage().user - before) / 1000
  }
  const first = getMs(20_000)
  const rest = getMs(100_000)
  assert.ok(
    rest < 5 * first * 5 + 50,
    `20,000 took ${first.toFixed(0)} ms, 100,000 more ${rest.toFixed(0)} ms`,
  )
  const inside = await here.run(async () => {
    const { zone } = await import('./index.js')
    for (let index = 0; index < 20_000; index++) void zone.current.id
    return zone.current.id
  })
  assert.equal(inside, 'names')
})

test('names: a taken one, the reserved one, an unknown one with the list of those there are', () => {
  assert.throws(() => zone.create('names'), {
    code: 'ZONE_EXISTS',
    facts: { zone: 'names' },
    message: /"names" already exists/,
  })
  assert.throws(() => zone.create('node'), { code: 'ZONE_EXISTS' })
  assert.throws(
    () => zone.get('nobody'),
    (error: ZoneError<'ZONE_UNKNOWN'>) => {
      assert.equal(error.code, 'ZONE_UNKNOWN')
      assert.ok(error.facts.known.includes('names'))
      assert.match(error.message, /no zone is named "nobody"; existing zones: .*names/)
      return true
    },
  )
  assert.throws(() => zone.get(''), { code: 'ZONE_ARGUMENT' })
})

test('a zone shows its complete settings, to every thread', async () => {
  assert.equal(here.settings.workers, 2)
  assert.ok(Object.isFrozen(here.settings))
  const there = await here.run(async () => {
    const { zone } = await import('./index.js')
    const { settings } = zone.get('names') as { settings?: object }
    return [settings, Object.isFrozen(settings)]
  })
  assert.deepEqual(there, [here.settings, true])
})

test('stats count what was done and what is there', async () => {
  await here.ready()
  const before = here.stats()
  await Promise.all(Array.from({ length: 10 }, () => here.run(() => {})))
  await assert.rejects(here.run(() => Promise.reject(new Error('x'))))
  const now = here.stats()
  assert.deepEqual(
    [
      now.ended - before.ended,
      now.died - before.died,
      now.waiting,
      now.waitingBytes,
      now.running,
      now.workers,
    ],
    [11, 0, 0, 0, 0, 2],
  )
  assert.ok(now.asleep <= 2 && now.wakeUps >= before.wakeUps)
  assert.deepEqual([now.done - before.done, now.failed - before.failed], [10, 1])
  assert.equal(now.runUs.count - before.runUs.count, 11)
  const { mean, p50, p90, p99, p999, max } = now.runUs
  assert.ok(0 < p50 && p50 <= p90 && p90 <= p99 && p99 <= p999 && p999 <= max && 0 < mean && mean <= max)
  assert.ok(now.waitUs.count >= 11 && now.waitUs.max < 60e6)
  assert.deepEqual(
    now.byWorker.map(({ worker }) => worker),
    ['names/0', 'names/1'],
  )
  const sum = (key: 'done' | 'failed'): number => now.byWorker.reduce((all, worker) => all + worker[key], 0)
  assert.deepEqual([sum('done'), sum('failed')], [now.done, now.failed])
  const { byWorker } = now
  const measured = (key: 'waitUs' | 'runUs'): number =>
    byWorker.reduce((all, each) => all + each[key].count, 0)
  assert.deepEqual([measured('waitUs'), measured('runUs')], [now.waitUs.count, now.runUs.count])
  // Not equal to the last digit: the length of a tick is measured anew at each question, and differs by more
  // where the thread has lost its core in the midst of one.
  await until(() => {
    const { byWorker, runUs } = here.stats()
    return Math.abs(Math.max(...byWorker.map((worker) => worker.runUs.max)) / runUs.max - 1) < 0.01
  }, 'the longest task of the zone is that of one of its workers')
  assert.ok(byWorker.every(({ waiting }) => waiting === 0))
  assert.equal(
    byWorker.reduce((all, { wakeUps }) => all + wakeUps, 0),
    now.wakeUps,
  )
  assert.ok(now.byWorker.every(({ utilisation }) => utilisation >= 0 && utilisation <= 1))
})

test('ZoneError crosses threads as itself, with code and facts', async () => {
  const error = await here.run(async () => {
    const { zone } = await import('./index.js')
    try {
      return zone.get('nobody')
    } catch (error) {
      return error
    }
  })
  assert.ok(error instanceof ZoneError)
  assert.equal(error.code, 'ZONE_UNKNOWN')
  assert.equal((error.facts as { zone: string }).zone, 'nobody')
})

test('getOrCreate creates a zone once, whichever thread asks, and names an option that differs', async () => {
  const own = zone.create('get-or-create-maker', { workers: 2, tasksPerWorkerMax: 4 })
  const made = await Promise.all(
    Array.from({ length: 8 }, () =>
      own.run(async () => {
        const { zone } = await import('./index.js')
        const shared = zone.getOrCreate('get-or-create', { workers: 1, tasksMax: 77 })
        return [shared.settings.tasksMax, await shared.run(() => 'ran')]
      }),
    ),
  )
  assert.deepEqual(
    made,
    made.map(() => [77, 'ran']),
  )
  const found = zone.getOrCreate('get-or-create', { tasksMax: 77 })
  assert.equal(found, zone.getOrCreate('get-or-create'))
  assert.throws(() => zone.getOrCreate('get-or-create', { workers: 1, tasksMax: 5 }), {
    code: 'ZONE_ARGUMENT',
    message:
      'zone.getOrCreate(): tasksMax must be 77, as the zone "get-or-create" exists with it; received 5',
  })
  // It outlives the threads that asked for it.
  await own.close()
  assert.equal(await found.run(() => 'open'), 'open')
  assert.throws(() => zone.create('get-or-create'), {
    code: 'ZONE_EXISTS',
    message: /zone\.getOrCreate\(\) or zone\.get\(\) returns it/,
  })
  assert.throws(() => zone.getOrCreate('get-or-create', { tasksMax: 0 }), { code: 'ZONE_ARGUMENT' })
  assert.throws(() => zone.getOrCreate('node'), { code: 'ZONE_EXISTS' })
  await found.close()
})
