/**
 * The model of `stream`: a plan of what happens on the way, against the same function called here.
 *
 * Shared by the tests of zones of threads and of processes. Not a test itself.
 */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { until } from '../../base/wait.test.support.ts'
import { collected } from '../../base/collected.test.support.ts'
import { type AnyZone, ZoneError } from '../index.ts'

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

/** A plan whose worker dies with an item of that position, or in a turn of its loop behind it. */
export const deaths = fc.record({
  plan: fc.record({
    count: fc.nat(400),
    sourceThrowsAt: fc.constant(-1),
    taskThrowsAt: fc.constant(-1),
    taskEndsAt: fc.constant(-1),
    readerLeavesAt: fc.constant(-1),
    factor: fc.integer({ min: 1, max: 3 }),
    isSlow: fc.boolean(),
  }),
  diesAt: fc.nat(450),
  isLater: fc.boolean(),
})

/**
 * Compares a stream whose worker dies with the function called here: what arrives is the beginning of its
 * items, then comes the death, and the source is closed.
 */
export async function checkDeath(
  target: AnyZone,
  { plan, diesAt, isLater }: { readonly plan: Plan; readonly diesAt: number; readonly isLater: boolean },
  window: Window,
): Promise<void> {
  const note = { isClosed: false }
  const expected = await collected(work(planned(plan, source(plan, { isClosed: false }))))
  const dying = planned(plan, source(plan, note))
  const values = target.stream(mortal, withDeath(dying, diesAt, isLater), window)
  const taken: string[] = []
  let error: unknown
  try {
    for await (const value of values) taken.push(value)
  } catch (thrown) {
    error = thrown
  }
  assert.deepEqual(taken, expected.slice(0, taken.length))
  if (diesAt >= plan.count) assert.deepEqual([error, taken.length], [undefined, expected.length])
  else assert.ok(error instanceof ZoneError && error.code === 'WORKER_DIED', String(error))
  if (!isLater) assert.ok(taken.length <= diesAt * plan.factor, 'what was not made has not arrived')
  await until(() => note.isClosed, 'the end of the source')
}

async function* withDeath(
  items: AsyncIterable<{ item: number; plan: Plan }>,
  diesAt: number,
  isLater: boolean,
): AsyncGenerator<{ item: number; plan: Plan; dies: 'at once' | 'later' | undefined }> {
  for await (const { item, plan } of items)
    yield { item, plan, dies: item !== diesAt ? undefined : isLater ? 'later' : 'at once' }
}

/** As `work`, until its worker dies. */
async function* mortal(
  items: AsyncIterable<{ item: number; plan: Plan; dies: 'at once' | 'later' | undefined }>,
): AsyncGenerator<string> {
  let sum = 0
  let death: Promise<void> | undefined
  for await (const { item, plan, dies } of items) {
    if (dies === 'at once') process.exit(3)
    if (dies === 'later') death = new Promise(() => setImmediate(() => process.exit(3)))
    sum += item
    for (let times = 0; times < plan.factor; times++) yield `${item}.${times}: ${sum}`
  }
  await death
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
