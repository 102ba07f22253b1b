/**
 * When the workers of a run start. The threads are real, and the test moves the clock of the main thread, so
 * that no outcome depends on the time.
 */
import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { mock, test } from 'node:test'
import type { WorkerEvent } from '../../zone/index.ts'
import type { ItemZone } from './mapper.ts'
import { openZone } from './workers.ts'

const WORKERS = 3
const settings = { workers: WORKERS, tasksPerWorkerMax: 1, tasksMax: 100, queueBytesMax: 1024, graceMs: 100 }
const source = `import { threadId } from 'node:worker_threads'
export const thread = () => threadId
export const leave = () => process.exit(0)`
const module = `data:text/javascript,${encodeURIComponent(source)}`

/** A run's zone on a clock that the test moves, and the workers that were started in it. */
async function check(body: (zone: ItemZone, started: readonly string[]) => Promise<void>): Promise<void> {
  const started: string[] = []
  const onStarted = (event: unknown): void => void started.push((event as WorkerEvent).worker)
  subscribe('corespun:worker:started', onStarted)
  const hasClosed = once('corespun:zone:closed')
  mock.timers.enable({ apis: ['setTimeout'] })
  try {
    const zone = openZone(settings)
    try {
      await body(zone, started)
    } finally {
      await zone.close()
      await hasClosed
    }
  } finally {
    mock.timers.reset()
    unsubscribe('corespun:worker:started', onStarted)
  }
}

/** The next message of a channel. */
function once(channel: string): Promise<unknown> {
  return new Promise((resolve) => {
    const listener = (message: unknown): void => {
      unsubscribe(channel, listener)
      resolve(message)
    }
    subscribe(channel, listener)
  })
}

/** The thread in which a task ran. */
async function thread(zone: ItemZone): Promise<number> {
  return (await zone.execute(module, 'thread', [])).value as number
}

const all = ['corespun run/0', 'corespun run/1', 'corespun run/2']

test('one worker starts, and a run that ends before the others are due is done by it', () =>
  check(async (zone, started) => {
    assert.equal(await thread(zone), await thread(zone))
    assert.deepEqual(started, all.slice(0, 1))
  }))

test('the others start a moment after the first is ready', () =>
  check(async (zone, started) => {
    await Promise.all([once('corespun:worker:ready'), thread(zone)])
    mock.timers.tick(19)
    assert.equal(started.length, 1)
    mock.timers.tick(1)
    assert.deepEqual(started, all)
    await thread(zone)
  }))

test('the others start where the first takes long to be ready', () =>
  check(async (zone, started) => {
    mock.timers.tick(250)
    assert.deepEqual(started, all)
    await thread(zone)
  }))

test('all start at once when there is work for all, and once', () =>
  check(async (zone, started) => {
    zone.startAll()
    assert.deepEqual(started, all)
    zone.startAll()
    await thread(zone)
    mock.timers.tick(1000)
    assert.deepEqual(started, all)
  }))

test('a first worker that ends is replaced before the others start', () =>
  check(async (zone, started) => {
    const first = await thread(zone)
    await assert.rejects(zone.execute(module, 'leave', []), { code: 'WORKER_DIED' })
    assert.notEqual(await thread(zone), first)
    assert.equal(started.length, 2)
    zone.startAll()
    await thread(zone)
    assert.equal(started.length, WORKERS + 1)
  }))
