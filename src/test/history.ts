/**
 * Histories of operations, and whether they follow from a model.
 *
 * Linearizability by the search of Wing and Gong with Lowe's pruning ("Testing for linearizability", 2017):
 * a set of operations that are done, with the state that they have led to, is tried once, as long as it is
 * remembered. Its stack is a list, so a history may have as many operations as memory holds.
 */
import { inspect } from 'node:util'
import { CheckError } from './errors.ts'
import type { Play } from './play.ts'

/** One operation: when it was called, and when it has returned. */
export interface Operation<Input = unknown, Output = unknown> {
  /** The name of the task that called it. */
  readonly task: string
  /** What it was called with. */
  readonly input: Input
  /** Absent as long as it has not returned: it has happened, or it has not. */
  output?: Output
  /** A number that grows with each call and return of its history. */
  readonly calledAt: number
  /** The same when it returned; `Infinity` if it has not. */
  returnedAt: number
}

/** What operations may return: one after the other. */
export interface Model<State, Input, Output> {
  /** The state before the first operation. */
  readonly initial: State
  /** The state behind an operation, as a list; an empty one if it may not return `output` in `state`. */
  next(state: State, input: Input, output: Output | undefined): readonly State[]
  /** A text that differs for states that differ; default: as JSON. */
  key?(state: State): string
}

/**
 * The operations of a run, as their callers have seen them. `world.history()` makes one.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { check } from 'corespun/test'
 *
 * await check({ seeds: 20 }, async ({ history, sleep }) => {
 *   const reads = history<string, number>()
 *   await reads.call('a', async () => (await sleep(5), 1))
 *   assert.equal(reads.operations[0].output, 1)
 * })
 * ```
 */
export class History<Input = unknown, Output = unknown> {
  /** In the order of their calls. */
  readonly operations: Operation<Input, Output>[] = []
  readonly #play: Play
  #at = 0

  /** @internal */
  constructor(play: Play) {
    this.#play = play
  }

  /** Runs an operation and records it. One that throws may have happened. */
  async call(input: Input, fn: () => Output | Promise<Output>): Promise<Output> {
    const task = this.#play.actor('history.call()').name
    const operation: Operation<Input, Output> = { task, input, calledAt: ++this.#at, returnedAt: Infinity }
    this.operations.push(operation)
    const output = await fn()
    operation.output = output
    operation.returnedAt = ++this.#at
    return output
  }
}

/**
 * Checks that operations have an order in which each returns what the model does, and in which none precedes
 * one that had returned before it was called. In the worst case the time is exponential
 * in how many of them overlap.
 * @throws {CheckError} `CHECK_HISTORY`.
 *
 * @example
 * ```ts
 * import { check, linearizable } from 'corespun/test'
 *
 * await check({ seeds: 20 }, async ({ history, spawn, step }) => {
 *   const calls = history<'take', number>()
 *   let next = 0
 *   const take = () => calls.call('take', async () => (await step(), next++))
 *   const tasks = [spawn(take), spawn(take)]
 *   for (const task of tasks) await task.join()
 *   const takes = (state: number, _: 'take', output?: number) =>
 *     output === undefined || output === state ? [state + 1] : []
 *   linearizable(calls, { initial: 0, next: takes })
 * })
 * ```
 */
export function linearizable<State, Input, Output>(
  history: { readonly operations: readonly Operation<Input, Output>[] },
  model: Model<State, Input, Output>,
): void {
  const all = [...history.operations].sort((a, b) => a.calledAt - b.calledAt)
  if (!search(all, model)) throw of('no order of these operations follows from the model', history)
}

/**
 * Checks that each change is in the result, once.
 * @throws {CheckError} `CHECK_HISTORY`.
 *
 * @example
 * ```ts
 * import { check, noLostUpdate } from 'corespun/test'
 *
 * await check({ seeds: 20 }, async ({ spawn, store }) => {
 *   const balances = store<number>()
 *   balances.set('a', 100)
 *   const changes = [5, -20, 7]
 *   const add = (change: number) => () => void balances.update('a', (value) => value! + change)
 *   const tasks = changes.map((change) => spawn(add(change)))
 *   for (const task of tasks) await task.join()
 *   noLostUpdate(100, balances.get('a')!, changes)
 * })
 * ```
 */
export function noLostUpdate(before: number, after: number, changes: readonly number[]): void {
  const expected = changes.reduce((sum, change) => sum + change, before)
  if (after === expected) return
  const history = `  before ${before}, changes ${changes.join(', ')}, after ${after} instead of ${expected}`
  throw new CheckError('CHECK_HISTORY', { reason: 'an update is lost, or was made twice', history })
}

/**
 * Checks that each effect has happened exactly once.
 * @param effects The key of each effect, as it happened. @param keys Which are expected.
 * @throws {CheckError} `CHECK_HISTORY`.
 *
 * @example
 * ```ts
 * import { check, exactlyOnce } from 'corespun/test'
 *
 * await check({ seeds: 20 }, async ({ spawn, sleep }) => {
 *   const sent: string[] = []
 *   const mail = (key: string) => async () => (await sleep(10), void sent.push(key))
 *   const tasks = ['a', 'b'].map((key) => spawn(mail(key)))
 *   for (const task of tasks) await task.join()
 *   exactlyOnce(sent, ['a', 'b'])
 * })
 * ```
 */
export function exactlyOnce(effects: readonly string[], keys: Iterable<string>): void {
  const counts = new Map<string, number>([...keys].map((key) => [key, 0]))
  for (const key of effects) counts.set(key, (counts.get(key) ?? NaN) + 1)
  const bad = [...counts].filter(([, count]) => count !== 1)
  if (bad.length === 0) return
  const times = (count: number): string => (Number.isNaN(count) ? 'not expected' : `${count} times`)
  const history = bad.map(([key, count]) => `  ${key}: ${times(count)}`).join('\n')
  throw new CheckError('CHECK_HISTORY', { reason: 'effects have not happened exactly once', history })
}

/** An operation that is chosen, of those that can be next, and the states behind it that are left to try. */
interface Choice<State> {
  readonly state: State
  readonly candidates: readonly number[]
  at: number
  behind: Iterator<State>
}

function search<State, Input, Output>(
  all: readonly Operation<Input, Output>[],
  model: Model<State, Input, Output>,
): boolean {
  const keyOf = model.key ?? ((state: State): string => JSON.stringify(state) ?? 'undefined')
  const left = new Left(all)
  const tried = new Tried()
  const choices: Choice<State>[] = []
  /** Whether none is left that has returned. */
  const enter = (state: State): boolean => {
    const { candidates, end } = left.next()
    if (candidates === undefined) return true
    if (tried.add(`${end} ${candidates.join()} ${keyOf(state)}`))
      choices.push({ state, candidates, at: -1, behind: [][Symbol.iterator]() })
    return false
  }
  if (enter(model.initial)) return true
  for (let choice = choices.at(-1); choice !== undefined; choice = choices.at(-1)) {
    const { state, candidates } = choice
    const next = choice.behind.next()
    if (next.done !== true) {
      if (enter(next.value)) return true
      continue
    }
    if (choice.at >= 0) left.putBack(candidates[choice.at])
    const index = candidates[++choice.at]
    if (index === undefined) {
      choices.pop()
      continue
    }
    left.take(index)
    choice.behind = model.next(state, all[index].input, all[index].output)[Symbol.iterator]()
  }
  return false
}

/** The operations that are not done: a list by numbers, so that a look at it passes over none that is. */
class Left {
  readonly #all: readonly Operation[]
  /** Of each operation; the last number is the head and the end of the list. */
  readonly #after: Int32Array
  readonly #before: Int32Array

  constructor(all: readonly Operation[]) {
    const size = all.length + 1
    this.#all = all
    this.#after = Int32Array.from({ length: size }, (_, index) => (index + 1) % size)
    this.#before = Int32Array.from({ length: size }, (_, index) => (index + size - 1) % size)
  }

  /**
   * Those that were called before the first return of all that are left: only one of them can be next. None
   * from `end` on is done, so both together are the set. Without `candidates` none is left that has returned.
   */
  next(): { readonly candidates: readonly number[] | undefined; readonly end: number } {
    const candidates: number[] = []
    let firstReturn = Infinity
    let end = this.#after[this.#all.length]
    for (; end < this.#all.length && this.#all[end].calledAt <= firstReturn; end = this.#after[end]) {
      candidates.push(end)
      firstReturn = Math.min(firstReturn, this.#all[end].returnedAt)
    }
    return { candidates: firstReturn === Infinity ? undefined : candidates, end }
  }

  take(index: number): void {
    this.#after[this.#before[index]] = this.#after[index]
    this.#before[this.#after[index]] = this.#before[index]
  }

  /** The one that was taken last of those that are taken. */
  putBack(index: number): void {
    this.#after[this.#before[index]] = index
    this.#before[this.#after[index]] = index
  }
}

/** Of each of two sets of what was tried. */
const TRIED_CHARS_MAX = 2 ** 24

/** What was tried, in two sets: when the new one is full, the old one is forgotten. */
class Tried {
  #old = new Set<string>()
  #new = new Set<string>()
  #chars = 0

  /** False if it was tried, and is remembered. */
  add(key: string): boolean {
    if (this.#new.has(key) || this.#old.has(key)) return false
    if (this.#chars + key.length > TRIED_CHARS_MAX) {
      this.#old = this.#new
      this.#new = new Set()
      this.#chars = 0
    }
    this.#new.add(key)
    this.#chars += key.length
    return true
  }
}

const ON_A_LINE = { breakLength: Infinity, depth: 3 }

function of(reason: string, { operations }: { readonly operations: readonly Operation[] }): CheckError {
  const line = ({ task, input, output, calledAt, returnedAt }: Operation): string =>
    `  ${calledAt} to ${returnedAt}  ${task}: ${inspect(input, ON_A_LINE)} -> ` +
    (returnedAt === Infinity ? 'has not returned' : inspect(output, ON_A_LINE))
  return new CheckError('CHECK_HISTORY', { reason, history: operations.map(line).join('\n') })
}
