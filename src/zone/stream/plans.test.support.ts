/**
 * The model of `stream`: a plan of what happens on the way, against the same function called here.
 *
 * Shared by the tests of zones of threads and of processes. Not a test itself.
 */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { until } from '../../base/wait.test.support.ts'
import type { AnyZone } from '../index.ts'

/** The function of a stream that returns its items. */
export async function* pass<T>(items: AsyncIterable<T>): AsyncGenerator<T> {
  for await (const item of items) yield item
}

/** What happens on the way, by position; -1 for never. */
export interface Plan {
  readonly count: number
  readonly sourceThrowsAt: number
  readonly taskThrowsAt: number
  readonly taskEndsAt: number
  readonly readerLeavesAt: number
  /** Items that the function makes of one. */
  readonly factor: number
  readonly isSlow: boolean
}

/** How far ahead the sides may be. */
export interface Window {
  readonly aheadMax: number
  readonly aheadBytesMax: number
}

const at = fc.oneof({ weight: 2, arbitrary: fc.constant(-1) }, { weight: 1, arbitrary: fc.nat(400) })

export const plans = fc.record({
  count: fc.nat(400),
  sourceThrowsAt: at,
  taskThrowsAt: at,
  taskEndsAt: at,
  readerLeavesAt: at,
  factor: fc.nat(3),
  isSlow: fc.boolean(),
})

export const windows = fc.record({
  aheadMax: fc.oneof(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 10, max: 2000 })),
  aheadBytesMax: fc.oneof(fc.integer({ min: 1, max: 500 }), fc.constant(2 ** 20)),
})

/** Compares the stream of a zone with the function called here. */
export async function checkPlan(target: AnyZone, plan: Plan, window: Window): Promise<void> {
  const [expectedNote, note] = [{ isClosed: false }, { isClosed: false }]
  const expected = await outcomeOf(work(planned(plan, source(plan, expectedNote))), plan)
  const values = target.stream(work, planned(plan, source(plan, note)), window)
  assert.deepEqual(await outcomeOf(values, plan), expected)
  // Read ahead, a source may have been opened, or have ended, where it was not here.
  if (plan.readerLeavesAt !== 0) await until(() => note.isClosed, 'the end of the source')
}

/** A source that notes how it was left. */
async function* source(
  { count, sourceThrowsAt, isSlow }: Plan,
  noted: { isClosed: boolean },
): AsyncGenerator<number> {
  try {
    for (let item = 0; item < count; item++) {
      if (item === sourceThrowsAt) throw new RangeError(`source at ${item}`)
      if (isSlow) await new Promise((resolve) => setImmediate(resolve))
      yield item
    }
  } finally {
    noted.isClosed = true
  }
}

/** Sums up what it receives of each position, so that a lost or doubled item shows in all after it. */
async function* work(items: AsyncIterable<{ item: number; plan: Plan }>): AsyncGenerator<string> {
  let sum = 0
  for await (const { item, plan } of items) {
    if (item === plan.taskThrowsAt) throw new TypeError(`task at ${item}`)
    if (item === plan.taskEndsAt) return
    sum += item
    for (let times = 0; times < plan.factor; times++) yield `${item}.${times}: ${sum}`
  }
}

interface Outcome {
  readonly values: string[]
  readonly error: string | undefined
}

async function outcomeOf(values: AsyncIterable<string>, { readerLeavesAt }: Plan): Promise<Outcome> {
  const taken: string[] = []
  try {
    if (readerLeavesAt === 0) return { values: taken, error: undefined }
    for await (const value of values) {
      taken.push(value)
      if (taken.length === readerLeavesAt) break
    }
    return { values: taken, error: undefined }
  } catch (error) {
    return { values: taken, error: String(error) }
  }
}

async function* planned(
  plan: Plan,
  items: AsyncIterable<number>,
): AsyncGenerator<{ item: number; plan: Plan }> {
  for await (const item of items) yield { item, plan }
}
