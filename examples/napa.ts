/**
 * A program for napajs, with one import changed: it estimates pi in four threads.
 *
 * `node examples/napa.ts` prints the estimate. Each thread has its own random numbers, from a seed.
 */
import * as napa from 'corespun/napa'

const POINTS = 400_000
const BATCHES = 8

const zone = napa.zone.create('pi', { workers: 4 })
const store = napa.store.create('pi')
const done = napa.metric.get('pi', 'batches', napa.metric.MetricType.Rate)

/** Points of a square that are inside of its circle. */
function inside(points: number, seed: number): number {
  let found = 0
  let state = seed
  const random = (): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
  for (let point = 0; point < points; point += 1) if (Math.hypot(random(), random()) < 1) found += 1
  napa.store.get('pi')?.set(`batch ${seed}`, found)
  return found
}

const seeds = Array.from({ length: BATCHES }, (_, index) => index + 1)
const results = await Promise.all(
  seeds.map(async (seed) => {
    const result = await zone.execute(inside, [POINTS / BATCHES, seed])
    done.increment()
    return result.value as number
  }),
)
const pi = (4 * results.reduce((sum, found) => sum + found, 0)) / POINTS
napa.log('pi', `about ${pi.toFixed(2)}, of ${store.size} batches`)
if (Math.abs(pi - Math.PI) > 0.02) throw new Error(`pi is not ${pi}`)
