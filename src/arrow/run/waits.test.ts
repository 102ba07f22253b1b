/**
 * Runs that wait with one signal share a listener of it, of which Node 20 warns from the eleventh on.
 *
 * Counted at a signal of the test's own: the runs of a stream have one signal in the same way.
 */
import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { after, before, test } from 'node:test'
import { Schedule, sleep } from '../../fiber/index.ts'
import { store } from '../../store/index.ts'
import { zone } from '../../zone/index.ts'
import { type Arrow, fromFiber, lift, liftAsync } from '../index.ts'

let cpu: ReturnType<typeof zone.create>
const cache = store.create<string>('arrow-waits')
before(() => {
  cpu = zone.create('arrow-waits', { workers: 1, graceMs: 10 })
})
after(async () => {
  await cpu.close()
  cache.close()
})

const LONG_MS = 1_000_000
const never = liftAsync((_: string) => new Promise<string>(() => {}))
const failing = liftAsync(
  () => Promise.reject(new Error('busy')),
  () => 'busy' as const,
)

const WAITS: Record<string, () => Arrow<string, unknown, unknown>> = {
  'an asynchronous function': () => never,
  'a fiber': () =>
    fromFiber(function* (_: string) {
      yield* sleep(LONG_MS)
    }),
  'the delay of retry': () => failing.retry(Schedule.exponential(LONG_MS)),
  timeout: () => never.timeout(LONG_MS),
  'a value of a store': () => never.through(cache),
  'a zone': () => never.on(cpu),
}

for (const [name, make] of Object.entries(WAITS)) {
  test(`${name}: 16 runs have one listener, and none when they have ended`, async () => {
    const arrow = make()
    const controller = new AbortController()
    const { signal } = controller
    const exits = Array.from({ length: 16 }, () => arrow.runExit('x', signal))
    await new Promise((resolve) => setImmediate(resolve))
    assert.equal(getEventListeners(signal, 'abort').length, 1)
    controller.abort(new Error('enough'))
    for (const exit of exits) assert.equal((await exit).kind, 'interruption')
    assert.equal(getEventListeners(signal, 'abort').length, 0)
  })
}

test('a stream of 16 runs at once prints no warning', async () => {
  const warnings: Error[] = []
  const warned = (warning: Error): void => void warnings.push(warning)
  process.on('warning', warned)
  try {
    const arrow = lift((n: number) => n + 1)
      .on(cpu)
      .andThen(liftAsync(async (n) => n))
    let sum = 0
    for await (const n of arrow.stream(
      Array.from({ length: 64 }, (_, n) => n),
      { concurrency: 16 },
    ))
      sum += n
    assert.equal(sum, 2080)
    await new Promise((resolve) => setImmediate(resolve))
    assert.deepEqual(warnings, [])
  } finally {
    process.off('warning', warned)
  }
})
