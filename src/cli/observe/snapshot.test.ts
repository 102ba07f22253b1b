/**
 * The figures of a process by its control socket: while its main thread is stuck, with tenants that wait,
 * with dead jobs of a fleet, and by several clients at once.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { until } from '../../base/wait.test.support.ts'
import { durable, runs, signal } from '../../durable/index.ts'
import { connect, host } from '../../fleet/index.ts'
import { lift } from '../../arrow/index.ts'
import { createApp } from '../../http/index.ts'
import { store } from '../../store/index.ts'
import { Semaphore } from '../../sync/index.ts'
import type { Snapshot } from '../../observe/internal.ts'
import { answerOf, inZone, observed } from '../../observe/observe.test.support.ts'

const [major, minor] = process.versions.node.split('.').map(Number)
const hasSqlite = major > 22 || (major === 22 && minor >= 13)
const folder = mkdtempSync(join(tmpdir(), 'fleets-'))
after(() => rmSync(folder, { recursive: true }))

const snapshot = async (path: string): Promise<Snapshot> => {
  const { result, error } = await answerOf(path, 'snapshot')
  assert.equal(error, undefined)
  return result as Snapshot
}

const endless = (): never => {
  for (;;);
}
const failing = (): never => {
  throw new Error('on purpose')
}

test('what waits is counted by priority and tenant, and tenants have their names', () =>
  observed({ name: 'queues' }, async ({ path }) => {
    await snapshot(path)
    await inZone({ workers: 1, graceMs: 0 }, async (own) => {
      const aborts = new AbortController()
      const { signal } = aborts
      const calls = [own.execute(endless, [], { signal })]
      await until(async () => (await snapshot(path)).running.some(({ zone }) => zone === own.id))
      const add = (count: number, options: object): void => {
        for (let n = 0; n < count; n++) calls.push(own.execute(endless, [], { signal, ...options }))
      }
      add(3, { tenant: 'acme' })
      add(2, { tenant: '<b>\u001B[2J', priority: 'high' })
      add(4, { priority: 'low' })
      add(1, {})
      const zoneNow = async () => (await snapshot(path)).zones.find(({ zone }) => zone === own.id)!
      await until(async () => (await zoneNow()).waiting === 10)
      const { high, low, tenants, byTenant, workers } = await zoneNow()
      assert.deepEqual({ high, low, tenants, workers }, { high: 2, low: 4, tenants: 2, workers: 1 })
      assert.deepEqual(byTenant, [
        { tenant: 'acme', waiting: 3 },
        { tenant: '<b>\u001B[2J', waiting: 2 },
      ])
      aborts.abort()
      await Promise.allSettled(calls)
      const after = await zoneNow()
      assert.deepEqual([after.waiting, after.high, after.low, after.byTenant], [0, 0, 0, []])
    })
  }))

test('functions, routes, stages, stores and refusals are in it', () =>
  observed({ name: 'all' }, async ({ path }) => {
    await snapshot(path)
    const prices = store.create<number>('observed-prices')
    prices.set('a', 1)
    prices.get('a')
    prices.get('b')
    const app = createApp({
      routes: { '/observed/:id': () => 'found', '/observed/error': () => failing() },
      error: () => undefined,
    })
    for (const at of ['/observed/1', '/observed/2', '/observed/error', '/nowhere']) await app.inject(at)
    const twice = lift((n: number) => n * 2).named('twice')
    for (let n = 0; n < 1000; n++) twice.run(n)
    await inZone({ workers: 1, tasksMax: 1, graceMs: 0 }, async (own) => {
      await assert.rejects(own.run(failing), { message: 'on purpose' })
      const both = twice.andThen(
        lift((n: number) => n + 1)
          .named('next')
          .on(own),
      )
      for (let n = 0; n < 300; n++) await both.run(n)
      const now = await snapshot(path)
      const failed = now.functions.find(({ zone, name }) => zone === own.id && name === 'failing')!
      assert.deepEqual([failed.failed, failed.done, failed.duration.count], [1, 0, 1])
      assert.equal(failed.duration.buckets.length, now.boundsMs.tasks.length + 1)
      const route = now.routes.find((each) => each.route === '/observed/:id')!
      assert.deepEqual([route.method, route.requests, route.duration.count], ['GET', 2, 2])
      assert.equal(now.routes.find((each) => each.route === '/observed/error')!.serverErrors, 1)
      assert.equal(now.routes.find((each) => each.route === '')!.clientErrors, 1)
      const { entries, hits, misses } = now.stores.find((each) => each.store === 'observed-prices')!
      assert.deepEqual({ entries, hits, misses }, { entries: 1, hits: 1, misses: 1 })
      await until(async () => {
        const { stages } = await snapshot(path)
        return stages.some(({ stage, calls }) => stage === `the way on zone ${own.id}` && calls >= 256)
      })
      const { stages, threads } = await snapshot(path)
      assert.ok(
        stages.some(({ stage, arrow, calls }) => /twice/.test(stage) && /twice/.test(arrow) && calls > 0),
      )
      assert.ok(threads.some(({ thread, heapBytes }) => thread === 'main' && heapBytes > 0))
    })
    prices.close()
  }))

const LONG_MS = 300
const seldomSlow = (ms: number): void => {
  const endMs = performance.now() + ms
  while (performance.now() < endMs);
}

test('slow tasks are in it with what they have waited for, the latest first', () =>
  observed({ name: 'slow' }, async ({ path }) => {
    await snapshot(path)
    await inZone({ workers: 1 }, async (own) => {
      for (let n = 0; n < 200; n++) await own.run(seldomSlow, 0)
      await own.run(seldomSlow, LONG_MS)
      await own.run(seldomSlow, LONG_MS)
      const slowNow = async () => (await snapshot(path)).slow.filter(({ zone }) => zone === own.id)
      await until(async () => (await slowNow()).filter(({ ms }) => ms >= LONG_MS).length === 2)
      const [last, ...before] = await slowNow()
      assert.deepEqual([last.kind, last.name, last.thread], ['task', 'seldomSlow', `${own.id}/0`])
      assert.ok(last.usualMs < last.ms / 3 && last.waits.queueMs !== undefined)
      assert.ok(before.every(({ number }) => number < last.number))
    })
  }))

test('while the main thread is in a loop, all that it does not have to answer for is there', () =>
  observed({ name: 'stuck' }, async ({ path }) => {
    await inZone({ workers: 1 }, async (own) => {
      const shared = new SharedArrayBuffer(4)
      await snapshot(path)
      const answered = own.module<typeof import('./stuck.test.support.ts')>(
        new URL('./stuck.test.support.js', import.meta.url),
      )
      const asked = answered.snapshotWhile(path, shared)
      const flag = new Int32Array(shared)
      while (Atomics.load(flag, 0) === 0);
      const { running, zones } = (await asked) as Snapshot
      assert.ok(running.some(({ zone, name }) => zone === own.id && name === 'snapshotWhile'))
      assert.ok(zones.some(({ zone }) => zone === own.id))
    })
  }))

test('of more than a thousand stores and locks the others are counted', () =>
  observed({ name: 'long' }, async ({ path }) => {
    const before = await snapshot(path)
    const names = Array.from({ length: 1003 }, (_, index) => `listed ${index}`)
    const stores = names.map((name) => store.create(name))
    const locks = names.map((name) => Semaphore.create(name, { permits: 1 }))
    const after = await snapshot(path)
    assert.deepEqual([after.stores.length, after.locks.length], [1000, 1000])
    const beyond = { stores: before.stores.length + 3, locks: before.locks.length + 3 }
    assert.deepEqual(after.leftOut, beyond)
    for (const each of stores) each.close()
    for (const each of locks) each[Symbol.dispose]()
  }))

test('many clients at once have the same figures', () =>
  observed({ name: 'many' }, async ({ path }) => {
    await snapshot(path)
    const all = await Promise.all(Array.from({ length: 12 }, () => snapshot(path)))
    for (const { pid, version, name } of all)
      assert.deepEqual({ pid, version, name }, { pid: process.pid, version: 1, name: 'many' })
  }))

test('dead jobs have their errors, and are run anew where that is allowed', async () => {
  const module = new URL(
    "data:text/javascript,export const send = () => { throw new Error('no <b>mail</b>') }",
  )
  await using fleet = await connect('memory:')
  await using hosting = await host(fleet, { name: 'mail', module, version: 'v1', jobsMax: 2 })
  const jobs = fleet.jobs<{ send(): void }>(hosting.name)
  await jobs.submit('invoice-17', 'send', [])
  await assert.rejects(jobs.result('invoice-17'), { code: 'JOB_DEAD' })
  await observed({ name: 'jobs', allowControl: true }, async ({ path }) => {
    await until(async () => (await snapshot(path)).fleet?.dead.length === 1)
    const { fleet: now, actions } = await snapshot(path)
    const [{ zone, key, name, errors }] = now!.dead
    assert.deepEqual({ zone, key, name }, { zone: 'mail', key: 'invoice-17', name: 'send' })
    assert.match(errors[errors.length - 1], /no <b>mail<\/b>/)
    assert.deepEqual(
      now!.queues.map(({ zone, dead }) => ({ zone, dead })),
      [{ zone: 'mail', dead: 1 }],
    )
    assert.equal(now!.hosts[0].zone, 'mail')
    assert.deepEqual(actions, ['reload', 'retry'])
    const control = (params: object) => answerOf(path, 'control', { action: 'retry', params })
    assert.deepEqual(await control({ zone: 'mail', key: 'invoice-17' }), { result: true })
    assert.deepEqual(await control({ zone: 'mail', key: 'unknown' }), { result: false })
    assert.equal((await control({ key: 'invoice-17' })).error?.code, 'OBSERVE_ARGUMENT')
  })
  await observed({ name: 'looking', fleets: [fleet] }, async ({ path }) => {
    assert.deepEqual((await snapshot(path)).actions, [])
    const answer = await answerOf(path, 'control', { action: 'retry', params: { zone: 'mail', key: 'a' } })
    assert.equal(answer.error?.code, 'OBSERVE_FORBIDDEN')
  })
})

test('fleets that workers alone are connected to are in it, and a worker that is stuck is named', () =>
  observed({ name: 'workers', allowControl: true }, async ({ path }) => {
    await inZone({ workers: 1, graceMs: 0 }, async (own) => {
      const worker = own.module<typeof import('./connected.test.support.ts')>(
        new URL('./connected.test.support.js', import.meta.url),
      )
      await worker.connected('memory:', 'invoice-18')
      // A busy machine may take longer than a thread that is asked has.
      await until(async () => (await snapshot(path)).fleet?.dead.length === 1)
      const { fleet, threads, actions } = await snapshot(path)
      assert.deepEqual(
        fleet!.dead.map(({ zone, key, errors }) => [zone, key, errors]),
        [['mail', 'invoice-18', ['no address']]],
      )
      assert.deepEqual(
        threads.filter(({ fleets }) => fleets > 0).map(({ thread, fleets }) => [thread, fleets]),
        [[`${own.id}/0`, 1]],
      )
      assert.ok(actions.includes('retry'))
      const control = (params: object) => answerOf(path, 'control', { action: 'retry', params })
      assert.deepEqual(await control({ zone: 'mail', key: 'unknown' }), { result: false })
      assert.deepEqual(await control({ zone: 'mail', key: 'invoice-18' }), { result: true })
      const shared = new SharedArrayBuffer(8)
      const words = new Int32Array(shared)
      const task = worker.blocked(shared)
      await until(() => words[1] === 1)
      const late = `fleets: ${own.id}/0 has not responded within 500 ms`
      await until(async () => (await snapshot(path)).fleet!.problems.includes(late))
      Atomics.store(words, 0, 1)
      Atomics.notify(words, 0)
      await task
      await until(async () => (await snapshot(path)).fleet!.problems.length === 0)
      await worker.disconnected()
      await until(async () => (await snapshot(path)).fleet === undefined)
    })
  }))

test('a fleet that several threads are connected to is asked once', { skip: !hasSqlite }, async () => {
  const address = `sqlite:${join(folder, 'shared.db')}`
  await using fleet = await connect(address)
  await fleet.jobs<{ send(): void }>('post').submit('a', 'send', [])
  await observed({ name: 'shared' }, async ({ path }) => {
    await inZone({ workers: 1 }, async (own) => {
      const worker = own.module<typeof import('./connected.test.support.ts')>(
        new URL('./connected.test.support.js', import.meta.url),
      )
      await worker.connected(address, 'b')
      const connections = async () =>
        (await snapshot(path)).threads.reduce((sum, { fleets }) => sum + fleets, 0)
      await until(async () => (await connections()) === 2)
      await until(async () => (await snapshot(path)).fleet?.dead.length === 1)
      const { queues } = (await snapshot(path)).fleet!
      assert.deepEqual(
        queues.map(({ zone }) => zone),
        ['mail', 'post'],
      )
      await worker.disconnected()
    })
  })
})

test('durable jobs and runs that this process has ended are counted by their outcome', async () => {
  const module = new URL(
    'data:text/javascript,export const add = (a, b) => a + b; export const fail = () => { throw 1 }',
  )
  await using fleet = await connect('memory:')
  await using hosting = await host(fleet, { name: 'sums', module, version: 'v1', jobsMax: 2 })
  const jobs = fleet.jobs<{ add(a: number, b: number): number; fail(): void }>(hosting.name)
  const order = durable('order', function* (isGood: boolean) {
    yield* signal('paid')
    if (!isGood) throw new Error('no')
  })
  await using own = await runs(fleet, { definitions: [order] })
  await observed({ name: 'ended' }, async ({ path }) => {
    await snapshot(path)
    for (const key of ['a', 'b']) await jobs.submit(key, 'add', [1, 2])
    await jobs.submit('c', 'fail', [], { retry: { attemptsMax: 1 } })
    await jobs.submit('d', 'add', [1, 2], { delayMs: 60_000 })
    assert.equal(await jobs.cancel('d'), true)
    await Promise.allSettled(['a', 'b', 'c'].map((key) => jobs.result(key)))
    const started = await Promise.all(
      ['good', 'bad', 'cancelled', 'now'].map((key) => own.start('order', key === 'good', { key })),
    )
    const [good, bad, cancelled, atOnce] = started
    await good.signal('paid')
    await bad.signal('paid')
    await cancelled.cancel()
    await atOnce.cancel({ now: true })
    await Promise.allSettled(started.map((run) => run.result()))
    const endedNow = async () => (await snapshot(path)).ended
    await until(async () => (await endedNow()).reduce((sum, { cancelled }) => sum + cancelled, 0) === 3)
    const sums = { kind: 'jobs', zone: 'sums' }
    assert.deepEqual(
      (await endedNow()).filter(({ zone, name }) => zone === 'sums' || name === 'order'),
      [
        { ...sums, name: 'add', done: 2, failed: 0, cancelled: 1 },
        { kind: 'runs', zone: '', name: 'order', done: 1, failed: 1, cancelled: 2 },
        { ...sums, name: 'fail', done: 0, failed: 1, cancelled: 0 },
      ],
    )
  })
})

test('a fleet that does not answer is a problem in the figures', () => {
  const overview = (): Promise<never> => Promise.reject(new Error('the servers are away'))
  const jobs = (): never => failing()
  return observed({ name: 'away', fleets: [{ overview, jobs }] }, async ({ path }) => {
    const { fleet } = await snapshot(path)
    assert.deepEqual(fleet!.problems, ['the servers are away'])
  })
})
