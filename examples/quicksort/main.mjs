/**
 * Sorts millions of numbers on one worker and on all, checks the result, and prints the speed-up.
 *
 *   node examples/quicksort/main.mjs [--numbers 2000000] [--workers <one for each core>]
 */
import assert from 'node:assert/strict'
import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { zone } from 'corespun/zone'

const { values } = parseArgs({
  options: { numbers: { type: 'string' }, workers: { type: 'string' } },
})
const count = Number(values.numbers ?? 2_000_000)
const workers = Number(values.workers ?? availableParallelism())
const ROUNDS = 5

const one = await median(1)
const all = await median(workers)
process.stdout.write(
  `${count} numbers: ${one.toFixed(0)} ms on one worker, ${all.toFixed(0)} ms on ${workers}: ` +
    `${(one / all).toFixed(2)} times as fast\n`,
)

/** The median time of several sorts, each of other numbers and verified. */
async function median(workers) {
  const own = zone.create(`quicksort-${workers}`, {
    executor: 'work-stealing',
    workers,
  })
  await own.ready()
  const times = []
  for (let round = 0; round < ROUNDS; round++) {
    const numbers = random(count, round)
    const sum = numbers.reduce((all, each) => all + each, 0)
    const begun = performance.now()
    await own.execute(new URL('./sort.mjs', import.meta.url), 'quicksort', [numbers, 0, count])
    times.push(performance.now() - begun)
    for (let index = 1; index < count; index++) assert.ok(numbers[index - 1] <= numbers[index], 'sorted')
    assert.equal(
      numbers.reduce((all, each) => all + each, 0),
      sum,
      'the same numbers',
    )
  }
  await own.close()
  return times.sort((a, b) => a - b)[ROUNDS >> 1]
}

/** Integers below 2^31 from a seed, in shared memory. */
function random(count, seed) {
  const numbers = new Int32Array(new SharedArrayBuffer(4 * count))
  let state = seed + 1
  for (let index = 0; index < count; index++) {
    state = (Math.imul(state, 1664525) + 1013904223) | 0
    numbers[index] = state >>> 1
  }
  return numbers
}
