/**
 * The model of streams among arguments and results: a plan of what happens on the way, and its outcome.
 *
 * Shared by the tests of zones of threads and of processes. Not a test itself.
 */
import fc from 'fast-check'
import { until } from '../../../base/wait.test.support.ts'
import type { AnyZone } from '../../index.ts'

/** What happens on the way, by position; beyond the count for never. */
export interface Plan {
  readonly count: number
  readonly sourceThrowsAt: number
  readonly taskThrowsAt: number
  readonly taskLeavesAt: number
  readonly readerLeavesAt: number
  readonly isNested: boolean
  readonly isSlow: boolean
}

interface Noted {
  isOpen: boolean
  isClosed: boolean
}

/** Notes whether it was begun, and that it was closed. */
function source({ count, sourceThrowsAt, isSlow }: Plan, noted: Noted): AsyncGenerator<number> {
  return (async function* () {
    try {
      noted.isOpen = true
      for (const item of numbers(count)) {
        if (item === sourceThrowsAt) throw new RangeError(`source at ${item}`)
        if (isSlow && item % 7 === 0) await new Promise((resolve) => setImmediate(resolve))
        yield item
      }
    } finally {
      noted.isClosed = true
    }
  })()
}

interface Given {
  readonly plan: Plan
  readonly items: AsyncIterable<number>
}

/** Sums up what it receives, so that a lost or doubled item shows in all after it. */
async function* work({ plan, items }: Given): AsyncGenerator<string> {
  let total = 0
  for await (const item of items) {
    if (item === plan.taskThrowsAt) throw new TypeError(`task at ${item}`)
    if (item === plan.taskLeavesAt) return
    total += item
    yield `${item}: ${total}`
  }
}

/** What a call with streams both ways returns, or fails with. */
export async function outcome(target: AnyZone, plan: Plan): Promise<unknown> {
  const noted = { isOpen: false, isClosed: false }
  const values: string[] = []
  let error: string | undefined
  try {
    const result = plan.isNested
      ? (
          await target.run(
            (given: Given, next: typeof work) => ({ rows: next(given) }),
            {
              plan,
              items: source(plan, noted),
            },
            work,
          )
        ).rows
      : await target.run(work, { plan, items: source(plan, noted) })
    for await (const value of result) {
      values.push(value)
      if (values.length === plan.readerLeavesAt) break
    }
  } catch (caught) {
    error = String(caught)
  }
  // A source that is producing an item is not waited for.
  if (noted.isOpen) await until(() => noted.isClosed, 'the end of the source')
  return { values, error }
}

const position = fc.oneof({ weight: 3, arbitrary: fc.constant(1e9) }, { weight: 1, arbitrary: fc.nat(60) })

export const plans = fc.record({
  count: fc.oneof(fc.nat(60), fc.constant(3000)),
  sourceThrowsAt: position,
  taskThrowsAt: position,
  taskLeavesAt: position,
  readerLeavesAt: position.map((at) => at + 1),
  isNested: fc.boolean(),
  isSlow: fc.boolean(),
})

export function* numbers(count: number): Generator<number, void, undefined> {
  for (let item = 0; item < count; item++) yield item
}
