/**
 * The graph of an arrow: the fields of a node, as the tiers that run it see them.
 *
 * Nodes are immutable to users. What changes is how a node runs: `run` and `step` are replaced when it has
 * run often enough. They are own properties, not methods, so that every call site of `arrow.run` has call
 * feedback of its own: an indirect call costs tens of nanoseconds, an inlined one nothing.
 */

import type { Fiber } from '../../fiber/index.ts'

/** The operation of a node. Composite nodes have children in `a` and `b`. */
export const OpCode = Object.freeze({
  /** `data` is the function. */
  call: 0,
  id: 1,
  /** `data` is the value. */
  constant: 2,
  /** `data` is the error. */
  fail: 3,
  /** `data` is an {@link Attempt}. */
  attempt: 4,
  /** `data` is a {@link Wait}. */
  wait: 5,
  swap: 6,
  dup: 7,
  fst: 8,
  snd: 9,
  /** `data` is the function whose value is not used. */
  tap: 10,
  /** `a`, then `b`. */
  chain: 11,
  /** `a` and `b` on one input, `data` on both results. */
  zip: 12,
  merge: 13,
  split: 14,
  first: 15,
  second: 16,
  left: 17,
  right: 18,
  choice: 19,
  /** `a` is the condition. */
  test: 20,
  /** `a` is the condition, `b` runs if it holds, `data` is the node that runs otherwise. */
  branch: 21,
  /** While `a` holds, `b`. */
  loop: 22,
  /** `a`, then what `data` returns for its result, on the same input. */
  flatMap: 23,
  effect: 24,
  /** `data` maps the failure of `a`. */
  mapError: 25,
  /** If `a` fails, what `data` returns for the failure, on the same input. */
  catchAll: 26,
  /** `data` is the name. */
  named: 27,
} as const)

export type OpCode = (typeof OpCode)[keyof typeof OpCode]

export type NodeRun = (this: ArrowNode, input: unknown, signal?: AbortSignal) => unknown

/** It waits: `run` returns a promise. */
export const ASYNC = 1
/** It contains arrows that are known only while it runs. */
export const DYNAMIC = 2
/** It may fail. */
export const FALLIBLE = 4
/** Too large for nested calls. */
export const BIG = 8

/** Nodes of an arrow that runs by nested calls; larger ones are interpreted. */
export const SMALL_SIZE_MAX = 64
/** Greatest size that is counted: an arrow may contain itself twice, forty times over. */
export const SIZE_MAX = 2 ** 30
/** Runs after which code is generated. */
export const HOT_RUNS = 257
/** Fuel of a node that has code and is no longer counted. */
export const CODED_FUEL = SIZE_MAX
/** Fuel of a node that could not get code and is still counted. */
export const UNCODED_FUEL = CODED_FUEL - 1

/** The second argument of an asynchronous stage. */
export interface StageContext {
  /** Aborted when the run is interrupted. Created on first access. */
  readonly signal: AbortSignal
}

/** The run, as Corespun's own stages see it. */
export interface RunContext extends StageContext {
  /** The signal, if the run can be interrupted at all. */
  readonly givenSignal: AbortSignal | undefined
  /** The fiber that started the run: the parent of stages that are fibers. */
  readonly fiber: Fiber | undefined
}

/** A synchronous function, and the function that maps what it throws to a failure. */
export interface Attempt {
  readonly body: (input: unknown) => unknown
  readonly catcher: (thrown: unknown) => unknown
}

/** Adjacent stages with the same key are joined to one. */
export interface Row {
  readonly key: string
  readonly join: (nodes: readonly ArrowNode[]) => ArrowNode
}

/** A stage that waits, as plans and `explain` see it. */
export interface Wait {
  readonly kind: 'async' | 'fiber' | 'retry' | 'timeout' | 'through' | 'on'
  /** Starts it; may throw, or reject with, the wrappers of failure.ts. */
  readonly start: (input: unknown, context: RunContext) => unknown
  /** Its functions, schedule, milliseconds, store or zone. */
  readonly parts: readonly unknown[]
  /** The arrow inside. */
  readonly inner: ArrowNode | undefined
  /** Set when it is joined with its neighbours. */
  readonly row?: Row | undefined
  /** Text for its line in `explain`. */
  readonly shown?: (() => string) | undefined
}

export interface ArrowNode {
  /** Called by users: failures are thrown unwrapped. */
  run: (input: never, signal?: never) => unknown
  /** Called by other nodes: failures are thrown wrapped. Synchronous nodes only. */
  step: (input: never) => unknown
  readonly op: OpCode
  readonly flags: number
  readonly size: number
  /** Runs left until code is generated. */
  fuel: number
  readonly a: ArrowNode | null
  readonly b: ArrowNode | null
  readonly data: unknown
  /** A `Profile`: plans and measurements. */
  profile: unknown
  /** The values that its generated code uses. */
  parts: object | null
}

/** Whether a node may be run by its `step`. */
export function isSync(node: ArrowNode): boolean {
  return (node.flags & (ASYNC | DYNAMIC)) === 0
}

/** The parts of nested chains in the order they run, however they nest. */
export function partsOf(node: ArrowNode): ArrowNode[] {
  if (node.op !== OpCode.chain) return [node]
  const parts: ArrowNode[] = []
  const open: ArrowNode[] = [node]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (next.op === OpCode.chain) open.push(next.b as ArrowNode, next.a as ArrowNode)
    else parts.push(next)
  }
  return parts
}

export function rowOf(part: object): Row | undefined {
  const { op, data } = part as Partial<ArrowNode>
  return op === OpCode.wait ? (data as Wait).row : undefined
}

/** The parts of a chain, each row of neighbours joined to one. Linear: a row is joined once, at its end. */
export function joinRows<Part extends object>(parts: readonly Part[]): Part[] {
  const joined: Part[] = []
  for (let at = 0, end = 1; at < parts.length; at = end, end += 1) {
    const part = parts[at]
    const row = rowOf(part)
    while (row !== undefined && end < parts.length && rowOf(parts[end])?.key === row.key) end += 1
    const isRow = row !== undefined && end - at > 1
    joined.push(isRow ? (row.join(parts.slice(at, end) as never) as object as Part) : part)
  }
  return joined
}

const AsyncFunction = (async () => {}).constructor

/** Whether a function is declared `async`. */
export function isAsyncFunction(fn: unknown): boolean {
  return fn instanceof AsyncFunction
}
