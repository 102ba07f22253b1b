/**
 * Twenty tasks, four at a time, each with a timeout and retries; the expensive part of each on another core.
 *
 * The tasks share a connection that is released however they end. Prints one line.
 */
import assert from 'node:assert/strict'
import { Schedule, acquireRelease, fail, forEach, fork, on, retry, sleep, timeout } from 'corespun/fiber'
import { zone } from 'corespun/zone'

/** Runs in the zone, so it captures nothing. */
function score(text: string): number {
  let hash = 0
  for (let round = 0; round < 1000; round += 1)
    for (let index = 0; index < text.length; index += 1) hash = (hash * 31 + text.charCodeAt(index)) >>> 0
  return hash % 100
}

const cpu = zone.create('cpu', { workers: 2 })
const patient = Schedule.exponential(1).jittered().and(Schedule.recurs(3))
let calls = 0
let openCount = 0

function* read(id: number) {
  yield* sleep(1)
  calls += 1
  if (calls % 7 === 0) yield* fail(`server busy at ${id}`)
  return `document ${id}`
}

function* scoreOf(id: number) {
  const text = yield* retry(() => timeout(1000, read(id)), patient)
  return yield* on(cpu, score, text)
}

function* program() {
  yield* acquireRelease(
    () => (openCount += 1),
    () => void (openCount -= 1),
  )
  const ids = Array.from({ length: 20 }, (_, id) => id)
  return yield* forEach(ids, scoreOf, { concurrency: 4 })
}

const scores = await fork(program()).join()
assert.deepEqual(
  scores,
  scores.map((_, id) => score(`document ${id}`)),
)
assert.equal(openCount, 0)
await cpu.close()
console.log(`${scores.length} documents scored, ${calls} reads`)
