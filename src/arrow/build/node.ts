/**
 * The graph that an arrow is: what a node holds, as the tiers that run it see it.
 *
 * Nodes are immutable to users. What changes is how a node runs: `run` and `step` are replaced when it has
 * run often enough. They are own properties and not methods so that every place that calls `arrow.run` has
 * the engine's call feedback to itself: an indirect call costs tens of nanoseconds, an inlined one nothing.
 */

import type { Fiber } from '../../fiber/index.ts'

/** What a node does. Composite ones have children in `a` and `b`. */
export const Op = Object.freeze({
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

/** The number of what a node does. */
export type OpCode = (typeof Op)[keyof typeof Op]

/** It waits: its run gives a promise. */
export const ASYNC = 1
/** What it runs is known only while it runs. */
export const DYNAMIC = 2
/** It may fail. */
export const FALLIBLE = 4
/** Too large to be run by calls that nest. */
export const BIG = 8

/** Nodes of an arrow that runs by calls that nest; larger ones get a program. */
export const SMALL_SIZE_MAX = 64
/** Sizes are counted up to here: an arrow that contains itself twice, forty times over, is larger. */
export const SIZE_MAX = 2 ** 30
/** Runs after which code is generated. */
export const HOT_RUNS = 257
/** Fuel of a node that has code: it is counted no more. */
export const CODED_FUEL = SIZE_MAX
/** Fuel of a node that could not get code, and goes on counting. */
export const UNCODED_FUEL = CODED_FUEL - 1

/** A function of one argument, called as a method of the node. */
export type Step = (this: never, input: never, signal?: never) => unknown

/** What a stage that waits is given beside its input. */
export interface StageContext {
  /** Aborted when the run is interrupted. Made when first asked for. */
  readonly signal: AbortSignal
}

/** The part of a run that stages inside of Corespun use. */
export interface RunContext extends StageContext {
  /** The signal, if the run can be interrupted at all. */
  readonly givenSignal: AbortSignal | undefined
  /** The fiber whose code began the run: stages that are fibers are its children. */
  readonly fiber: Fiber | undefined
}

/** A synchronous function and what makes its throws failures. */
export interface Attempt {
  readonly body: (input: unknown) => unknown
  readonly catcher: (thrown: unknown) => unknown
}

/** Stages of one key, one right behind the other, are joined to one. */
export interface Row {
  readonly key: string
  readonly join: (nodes: readonly Node[]) => Node
}

/** How a stage that waits is known to plans and to `explain`. */
export interface Wait {
  readonly kind: 'async' | 'fiber' | 'retry' | 'timeout' | 'through' | 'on'
  /** Runs it; may throw or reject with what failure.ts has. */
  readonly start: (input: unknown, context: RunContext) => unknown
  /** What it was made from: functions, schedule, milliseconds, store, zone. */
  readonly parts: readonly unknown[]
  /** The arrow inside, if it has one. */
  readonly inner: Node | undefined
  /** How it becomes one stage with its neighbours, if it does. */
  readonly row?: Row | undefined
  /** What is added to its line in `explain`. */
  readonly shown?: (() => string) | undefined
}

/** A node of the graph. */
export interface Node {
  /** Run from outside: failures are thrown as they are. */
  run: (input: never, signal?: never) => unknown
  /** Run from inside: failures are thrown wrapped. Synchronous nodes only. */
  step: (input: never) => unknown
  readonly op: OpCode
  readonly flags: number
  readonly size: number
  /** Runs left until code is generated. */
  fuel: number
  readonly a: Node | null
  readonly b: Node | null
  readonly data: unknown
  /** What the tiers know of it: programs and measurements. */
  profile: unknown
  /** What its generated code refers to. */
  parts: object | null
}

/** Whether a node may be run by its `step`. */
export function isSync(node: Node): boolean {
  return (node.flags & (ASYNC | DYNAMIC)) === 0
}

/** The parts of nested chains in the order they run, however they nest. */
export function partsOf(node: Node): Node[] {
  if (node.op !== Op.chain) return [node]
  const parts: Node[] = []
  const open: Node[] = [node]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (next.op === Op.chain) open.push(next.b as Node, next.a as Node)
    else parts.push(next)
  }
  return parts
}

/** How a part of a chain is joined with its neighbours; `undefined` for one that is not. */
export function rowOf(part: object): Row | undefined {
  const { op, data } = part as Partial<Node>
  return op === Op.wait ? (data as Wait).row : undefined
}

/**
 * The parts of a chain, each row of neighbours joined to one; linear, since a row is joined only when it
 * ends.
 */
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
