/**
 * `join`: two calls of one task, at once where a worker is free, and never a blocked thread.
 *
 * In a worker of a `work-stealing` zone the second call is put on the worker's deque, where other workers may
 * steal it, while the first runs here. If it is not stolen, it runs here next with the same argument objects:
 * nothing is decoded. If it is stolen, this thread helps with forked work until the result has arrived. So a
 * join costs a fraction of a hop where no worker is idle, and a tree of joins spreads by itself (Frigo,
 * Leiserson, Randall: The implementation of the Cilk-5 multithreaded language, 1998; Rayon's `join`).
 * Everywhere else the two run here, one after the other.
 */
import { promiseOf } from '../../base/index.ts'
import {
  FOUND,
  Given,
  HEADER_BYTES,
  Helped,
  OUTCOME,
  Status,
  Step,
  Work,
  native,
} from '../../native/index.ts'
import { functionNumber } from '../../transport/internal.ts'
import { ZoneError } from '../errors.ts'
import { type Arrival, type Bridge, valueOf } from '../../bridge/index.ts'
import { wrong } from '../ground/settings.ts'
import type { CpuAccount } from '../ground/cpu.ts'
import { writeArguments } from '../context/frame.ts'
import type { CallRecord } from '../ground/record.ts'
import { here } from '../ground/current.ts'
import { addCaller, siteOf } from './stacks.ts'
import { type Task, callDepth, currentTask } from '../ground/task.ts'

/** A function and its arguments: one side of a join. */
export type Fork<Args extends unknown[] = unknown[], Value = unknown> = readonly [
  (this: Task, ...args: Args) => Value,
  ...Args,
]

type AnyFunction = (this: Task | undefined, ...args: unknown[]) => unknown

/** How a worker of a zone that steals joins. Set by its main module. */
export interface Joiner {
  readonly bridge: Bridge
  readonly zone: string
  /** This thread's handle of its own zone. */
  readonly handle: number
  /** Run the task that `help` has found, to its end or its first `await`. */
  runFound(): void
}

let joiner: Joiner | undefined

/** This thread joins as that worker; `undefined`: it has left. @internal */
export function useJoiner(next: Joiner | undefined): void {
  joiner = next
}

/** Joins within joins within what is run while waiting for one; deeper ones do not take others' work. */
const HELP_DEPTH_MAX = 32
let helping = 0

/** What waits for a joined call is the thread itself. */
const NOBODY: Arrival = { ended: () => {} }

/**
 * Call two synchronous functions, each with its arguments, and return both values: at once if a worker of
 * this zone is idle, one after the other if not. For divide and conquer inside a task: the parts should take
 * some microseconds at least. The functions must be able to travel (see `run`): self-contained, or exported
 * by a module that a task of this zone has been called from; they get the task as `this`. The arguments of
 * the second are copied if another worker takes it; share memory with a SharedArrayBuffer. With memory that
 * is given away by `move` the second is not offered to others: it runs here, and the memory stays.
 *
 * If a function throws, `join` throws its error once neither runs any more; the first one's, if both do. A
 * second one that has not begun by then never does.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { zone } from 'corespun/zone'
 *
 * const halves = await zone.cpu.run(async () => {
 *   const { join } = await import('corespun/zone')
 *   const square = (n: number): number => n * n
 *   return join([square, 3], [square, 4])
 * })
 * assert.deepEqual(halves, [9, 16])
 * await zone.cpu.close()
 * ```
 * @throws {ZoneError} `JOIN_ASYNC` when one returns a promise; `WORKER_DIED` when the worker that had taken
 *   the second died.
 */
export function join<A extends unknown[], X, B extends unknown[], Y>(
  first: Fork<A, X>,
  second: Fork<B, Y>,
): [X, Y] {
  const [f, ...a] = sideOf('the first side', first)
  const [g, ...b] = sideOf('the second side', second)
  const task = currentTask()
  const record = joiner === undefined ? undefined : here.carrier?.record()
  const call = joiner === undefined ? -1 : fork(joiner, g, b, record)
  if (joiner === undefined || call < 0) {
    return [sync(f, f.apply(task, a)) as X, sync(g, g.apply(task, b)) as Y]
  }
  let x: unknown
  try {
    x = sync(f, f.apply(task, a))
  } catch (error) {
    quietly(() => settle(joiner as Joiner, call, record, () => {}))
    throw error
  }
  const y = settle(joiner, call, record, () => sync(g, g.apply(task, b)))
  return [x as X, y as Y]
}

/** The first error is the one that counts. */
function quietly(body: () => void): void {
  try {
    body()
  } catch {
    // See above.
  }
}

function sideOf(name: string, side: unknown): [AnyFunction, ...unknown[]] {
  if (!Array.isArray(side) || typeof side[0] !== 'function') {
    throw wrong(`join(): ${name}`, 'an array of a function and its arguments', side)
  }
  return side as never
}

function sync(fn: AnyFunction, value: unknown): unknown {
  const promise = promiseOf(value)
  if (promise !== undefined) {
    // Nobody will look at it: a rejection of it is not the process's business.
    promise.catch(() => {})
    throw new ZoneError('JOIN_ASYNC', {
      zone: joiner?.zone ?? 'node',
      name: fn.name,
    })
  }
  return value
}

/** Offer a call to others; its number, or -1 when the zone has no capacity for it. */
function fork(
  { bridge, handle }: Joiner,
  fn: AnyFunction,
  args: readonly unknown[],
  record: CallRecord | undefined,
): number {
  const number = functionNumber(fn)
  const length = writeArguments(bridge, args, record, true)
  // Arguments too large for the scratch are not worth the copy. Moved memory belongs to the frame: once it
  // is written, this thread could not run the call itself any more.
  if (length < 0 || (length > 0 && bridge.writer.lent.length > 0)) {
    bridge.discard()
    return -1
  }
  const call = bridge.take(NOBODY)
  const { given } = bridge
  given[Given.zone] = handle
  given[Given.fn] = number
  given[Given.length] = length
  given[Given.call] = call
  given[Given.depth] = callDepth()
  native.joinFork()
  if (given[OUTCOME] === 0) return call
  bridge.release(call)
  return -1
}

/** Wait for a forked call, helping meanwhile; `mine` runs it here if nobody has taken it. */
function settle(
  { bridge, zone, runFound }: Joiner,
  call: number,
  record: CallRecord | undefined,
  mine: () => unknown,
): unknown {
  const { given, words } = bridge
  for (;;) {
    given[Helped.call] = call
    given[Helped.steals] = helping < HELP_DEPTH_MAX ? 1 : 0
    native.help()
    const found = words[FOUND]
    if (found === Step.mine) {
      bridge.release(call)
      return mine()
    }
    if (found === Step.joined) return received(bridge, zone, call, record?.cpu)
    if (found !== Step.task) continue
    helping++
    try {
      runFound()
    } finally {
      helping--
    }
  }
}

function received(bridge: Bridge, zone: string, call: number, cpu: CpuAccount | undefined): unknown {
  const { words, inbound } = bridge
  const [status, length] = [words[Work.fn], words[Work.length]]
  const large = words[Work.large] === 1
  const bytes = large ? native.largeResult(call) : inbound
  const start = large ? 0 : HEADER_BYTES
  const end = cpu === undefined ? start + length : cpu.receive(bytes, start, start + length, 0)
  bridge.release(call)
  if (status === Status.done) return valueOf(bytes, start, end)
  if (status === Status.closed) throw new ZoneError('ZONE_CLOSED', { zone })
  if (status === Status.orphaned) throw new ZoneError('ZONE_OWNER_DIED', { zone })
  const error = valueOf(bytes, start, end)
  addCaller(error, zone, siteOf(join))
  throw error
}
