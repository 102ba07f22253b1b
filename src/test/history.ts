/**
 * Histories of operations, and whether they follow from a model.
 *
 * Linearizability by the search of Wing and Gong with Lowe's pruning ("Testing for linearizability", 2017):
 * a set of operations that are done, with the state that they have led to, is tried once.
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
 * one that had returned before it was called.
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
 * Checks that an increment of every caller is in the end result: none was lost, none was added twice.
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

function search<State, Input, Output>(
  all: readonly Operation<Input, Output>[],
  model: Model<State, Input, Output>,
): boolean {
  const keyOf = model.key ?? ((state: State): string => JSON.stringify(state) ?? 'undefined')
  const isDone = all.map(() => false)
  const seen = new Set<string>()
  const left = (): boolean => all.every(({ returnedAt }, at) => isDone[at] || returnedAt === Infinity)
  const go = (state: State): boolean => {
    if (left()) return true
    const key = `${isDone.map(Number).join('')} ${keyOf(state)}`
    if (seen.has(key)) return false
    seen.add(key)
    // Only one that was called before the first return of those that are left can be next.
    let firstReturn = Infinity
    for (const [at, { returnedAt }] of all.entries())
      if (!isDone[at]) firstReturn = Math.min(firstReturn, returnedAt)
    for (const [at, { calledAt, input, output }] of all.entries()) {
      if (isDone[at] || calledAt > firstReturn) continue
      isDone[at] = true
      for (const next of model.next(state, input, output)) if (go(next)) return true
      isDone[at] = false
    }
    return false
  }
  return go(model.initial)
}

const ON_A_LINE = { breakLength: Infinity, depth: 3 }

function of(reason: string, { operations }: { readonly operations: readonly Operation[] }): CheckError {
  const line = ({ task, input, output, calledAt, returnedAt }: Operation): string =>
    `  ${calledAt} to ${returnedAt}  ${task}: ${inspect(input, ON_A_LINE)} -> ` +
    (returnedAt === Infinity ? 'has not returned' : inspect(output, ON_A_LINE))
  return new CheckError('CHECK_HISTORY', { reason, history: operations.map(line).join('\n') })
}
