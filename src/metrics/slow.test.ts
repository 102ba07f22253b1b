/**
 * Tasks that are slow leave a record with what they have waited for, and others leave none.
 *
 * Each test has functions of its own: what is usual is known by function.
 */
import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { test } from 'node:test'
import { until } from '../base/wait.test.support.ts'
import { serve, serverTiming, use } from '../http/index.ts'
import { type Zone, type ZoneOptions, zone } from '../zone/index.ts'
import { type SlowEvent, startMetrics } from './index.ts'
import { slowRecords } from './internal.ts'
import type { SlowRecord } from './slow.ts'

startMetrics()

const recordsOf = (name: string): SlowRecord[] => slowRecords().filter((record) => record.name === name)
/** What is slow takes this at least, and far longer than the slowest of the usual ones on a busy machine. */
const LONG_MS = 300
const LONG = 5
let made = 0

/** Does it often, and returns what is slow then, in ms. */
async function longAfter(count: number, run: () => Promise<unknown>): Promise<number> {
  let longMs = LONG_MS
  for (let done = 0; done < count; done++) {
    const begunMs = performance.now()
    await run()
    longMs = Math.max(longMs, Math.ceil((performance.now() - begunMs) * LONG))
  }
  return longMs
}

/** A zone whose workers have often called `fn`, without an argument. */
async function usual(
  options: ZoneOptions,
  fn: (ms?: number) => unknown,
  body: (own: Zone, longMs: number) => Promise<void>,
) {
  await using own = zone.create(`slow-${++made}`, options)
  await own.ready()
  await body(own, await longAfter(200, () => own.run(fn)))
}

async function records(name: string, count: number): Promise<SlowRecord[]> {
  await until(() => recordsOf(name).length >= count)
  return recordsOf(name).slice(-count)
}

function computes(ms = 0): void {
  const endMs = performance.now() + ms
  while (performance.now() < endMs);
}

test('a slow task has its zone, worker, source, CPU time and way back', () =>
  usual({ workers: 1 }, computes, async (own, longMs) => {
    await own.run(computes, longMs)
    const [record] = await records('computes', 1)
    const { kind, thread, status, source, ms, usualMs, waits } = record
    assert.deepEqual([kind, record.zone, thread, status], ['task', own.id, `${own.id}/0`, 0])
    assert.match(source, /slow\.test\.js:\d+$/)
    assert.ok(ms >= longMs && usualMs < ms / 3, `${usualMs} of ${ms}`)
    assert.ok(Math.abs(Date.parse(record.time) - Date.now()) < 60_000)
    const { queueMs = -1, hopMs = -1, cpuMs = -1, loopMs } = waits
    assert.ok(cpuMs > 0 && cpuMs <= ms && queueMs >= 0 && queueMs <= ms - longMs + 1 && hopMs >= 0)
    assert.equal(loopMs, undefined)
  }))

function waits(ms = 0): void {
  const endMs = performance.now() + ms
  while (performance.now() < endMs);
}

test('the wait for a worker is the queue', () =>
  usual({ workers: 1 }, waits, async (own, longMs) => {
    const before = recordsOf('waits').length
    await Promise.all([own.run(waits, longMs), own.run(waits)])
    const [first, second] = (await records('waits', before + 2)).slice(-2)
    assert.ok(first.ms >= longMs)
    assert.ok((second.waits.queueMs ?? 0) > longMs * 0.9, JSON.stringify(second))
    assert.ok(second.ms - (second.waits.queueMs ?? 0) < longMs)
  }))

function allocates(ms = 0): number {
  const endMs = performance.now() + ms
  let kept: unknown[] = []
  let count = 0
  while (performance.now() < endMs) {
    kept.push({ text: `${(count += 1)}` })
    if (kept.length > 100_000) kept = []
  }
  return count
}

test('collections of garbage are added by the thread that ran it', () =>
  usual({ workers: 1 }, allocates, async (own, longMs) => {
    const found = (): SlowRecord | undefined =>
      recordsOf('allocates').find(({ waits }) => (waits.gcMs ?? 0) > 0)
    // Of the first ones it is not known: the worker begins to observe meanwhile.
    await until(async () => found() !== undefined || (await own.run(allocates, longMs), false))
    const { waits = {}, ms = 0 } = found() ?? {}
    assert.ok(waits.gcMs! <= ms, JSON.stringify(waits))
  }))

function turns(ms = 0): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

test('of tasks that take turns the CPU time is not known', () =>
  usual({ workers: 1, tasksPerWorkerMax: 4 }, turns, async (own, longMs) => {
    await own.run(turns, longMs * 2)
    const [{ waits }] = await records('turns', 1)
    assert.equal(waits.cpuMs, undefined)
    assert.ok(waits.queueMs !== undefined)
  }))

function outside(ms = 0): void {
  const endMs = performance.now() + ms
  while (performance.now() < endMs);
}

test('a worker that is a process has records without CPU time', { skip: process.platform === 'win32' }, () =>
  usual({ workers: 1, isolation: 'process' }, outside, async (own, longMs) => {
    await own.run(outside, longMs)
    const [{ thread, ms, waits }] = await records('outside', 1)
    assert.equal(thread, `${own.id}/0`)
    assert.ok(ms >= longMs)
    assert.equal(waits.cpuMs, undefined)
  }),
)

function dies(exits = 0): void {
  if (exits === 1) process.exit()
}

test('a task whose worker dies leaves none, nor one that is as usual, nor the first ones', async () => {
  await usual({ workers: 1 }, dies, async (own, longMs) => {
    await assert.rejects(own.run(dies, 1), { code: 'WORKER_DIED' })
    await own.run(dies)
    assert.deepEqual(
      recordsOf('dies').filter(({ ms }) => ms > longMs),
      [],
    )
  })
  await using own = zone.create('first ones', { workers: 1 })
  function first(ms: number): void {
    const endMs = performance.now() + ms
    while (performance.now() < endMs);
  }
  for (const ms of [0, 0, 20]) await own.run(first, ms)
  assert.deepEqual(recordsOf('first'), [])
})

function published(ms = 0): void {
  const endMs = performance.now() + ms
  while (performance.now() < endMs);
}

test('the main thread publishes each once', () =>
  usual({ workers: 1 }, published, async (own, longMs) => {
    const events: SlowEvent[] = []
    const listener = (event: unknown): void => {
      const { name } = event as SlowEvent
      if (name === 'published' && (event as SlowEvent).ms >= longMs) events.push(event as SlowEvent)
    }
    subscribe('corespun:slow', listener)
    try {
      await own.run(published, longMs)
      await until(() => events.length > 0)
      await own.run(published, longMs * 4)
      await until(() => events.length > 1)
      assert.equal(new Set(events).size, 2)
      assert.equal(new Set(events.map(({ time }) => time)).size, 2)
      assert.equal('number' in events[0], false)
    } finally {
      unsubscribe('corespun:slow', listener)
    }
  }))

test('a slow request has how long its thread was busy, and what is measured of its tasks', async () => {
  await using own = zone.create('of requests', { workers: 1 })
  const found = (name: string): SlowRecord | undefined => recordsOf(`GET ${name}`).at(-1)
  const busy = ({ url }: Request): string => {
    computes(Number(new URL(url).searchParams.get('ms')))
    return 'done'
  }
  const waits = async ({ url }: Request): Promise<string> => {
    await own.run(computes, Number(new URL(url).searchParams.get('ms')))
    return 'done'
  }
  const routes = { '/busy': busy, '/waits': waits, ...use({ '/timed': waits }, serverTiming()) }
  await using server = await serve({ port: 0, quiet: true, routes })
  const get = async (path: string, ms: number): Promise<void> => {
    assert.equal(await (await fetch(`${server.url}${path}?ms=${ms}`)).text(), 'done')
  }
  const longs: number[] = []
  for (const path of ['/busy', '/waits', '/timed']) {
    const longMs = await longAfter(100, () => get(path, 0))
    await get(path, longMs)
    longs.push(longMs)
  }
  const [ofBusy, ofWaits, ofTimed] = ['/busy', '/waits', '/timed'].map(
    (path) => found(path) ?? assert.fail(path),
  )
  for (const [index, { kind, status, thread, zone, ms, usualMs }] of [ofBusy, ofWaits, ofTimed].entries()) {
    assert.deepEqual([kind, status, thread, zone], ['request', 200, 'main', ''])
    assert.ok(ms >= longs[index] * 0.9 && usualMs * 3 < ms)
  }
  assert.ok(ofBusy.waits.loopMs! > longs[0] * 0.9, JSON.stringify(ofBusy))
  assert.ok(ofWaits.waits.loopMs! < ofWaits.ms, JSON.stringify(ofWaits))
  // Nobody measures it, unless it is a sample.
  assert.equal(ofWaits.waits.cpuMs === undefined, ofWaits.waits.queueMs === undefined)
  const { cpuMs = 0, queueMs = -1, hopMs = -1 } = ofTimed.waits
  assert.ok(cpuMs > 0 && queueMs >= 0 && hopMs > 0 && queueMs + hopMs < ofTimed.ms, JSON.stringify(ofTimed))
})
