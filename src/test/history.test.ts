/**
 * The search for an order of a history: against all orders of small ones, and of long ones to their end.
 *
 * Histories of runs are in check.test.ts.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { generator } from '../base/index.ts'
import { type Model, type Operation, linearizable } from './index.ts'

type Write = number | 'read'
const REGISTER: Model<number, Write, number> = {
  initial: 0,
  next: (state, input, output) => {
    if (input !== 'read') return [input]
    return output === undefined || output === state ? [state] : []
  },
}

const isFine = (operations: readonly Operation<Write, number>[], model = REGISTER): boolean => {
  try {
    linearizable({ operations }, model)
    return true
  } catch (error) {
    assert.equal((error as { readonly code?: string }).code, 'CHECK_HISTORY')
    return false
  }
}

/** Whether any order of all that have returned, and of some of the others, is one of a register. */
function hasOrder(left: readonly Operation<Write, number>[], state: number): boolean {
  if (left.every(({ returnedAt }) => returnedAt === Infinity)) return true
  return left.some(
    (next) =>
      left.every(({ returnedAt }) => returnedAt >= next.calledAt) &&
      REGISTER.next(state, next.input, next.output).some((after) =>
        hasOrder(
          left.filter((other) => other !== next),
          after,
        ),
      ),
  )
}

test('a small history has an order if any of all orders is one', () => {
  const counts = [0, 0]
  for (let seed = 1; seed <= 600; seed++) {
    const random = generator(seed)
    const below = (count: number): number => Math.floor(random() * count)
    const operations: Operation<Write, number>[] = []
    const open: Operation<Write, number>[] = []
    for (let at = 1; at <= 12; at++)
      if (open.length === 0 || (operations.length < 6 && below(2) === 0)) {
        const input = below(2) === 0 ? 'read' : 1 + below(2)
        const made: Operation<Write, number> = { task: '', input, calledAt: at, returnedAt: Infinity }
        operations.push(made)
        open.push(made)
      } else {
        const [one] = open.splice(below(open.length), 1)
        Object.assign(one, { output: one.input === 'read' ? below(3) : one.input, returnedAt: at })
      }
    const expected = hasOrder(operations, 0)
    assert.equal(isFine(operations), expected, `seed ${seed}`)
    counts[Number(expected)]++
  }
  assert.ok(Math.min(...counts) > 100, String(counts))
})

/** Writes and reads of two clients that overlap, and one that has never returned. */
function long(count: number): Operation<Write, number>[] {
  const task = 'a'
  const lost = { task, input: 9, calledAt: 0, returnedAt: Infinity }
  const all = Array.from({ length: count }, (_, index): Operation<Write, number> => {
    const value = 1 + (index >> 1)
    return {
      task,
      input: index % 2 ? 'read' : value,
      output: value,
      calledAt: 2 * index + 1,
      returnedAt: 2 * index + 4,
    }
  })
  return [lost, ...all]
}

test('a history of 20,000 operations is searched to its end', () => {
  const all = long(20_000)
  assert.ok(isFine(all))
  all.at(-1)!.output = -1
  assert.ok(!isFine(all))
})

test('what was tried is forgotten behind a bound, and the search goes on', () => {
  const all = long(30)
  all.at(-1)!.output = -1
  const padding = 'x'.repeat(500_000)
  let charCount = 0
  const key = (state: number): string => {
    charCount += padding.length
    return `${state}${padding}`
  }
  assert.ok(!isFine(all, { ...REGISTER, key }))
  assert.ok(charCount > 2 ** 24 && charCount < 2 ** 27, String(charCount))
})
