/**
 * Nodes from their parts: their flags, size and functions.
 *
 * arrow.ts makes the arrows of users, with first-run functions for small nodes; nodes from another thread are
 * made here and are counted from their first run on.
 */
import {
  ASYNC,
  BIG,
  DYNAMIC,
  FALLIBLE,
  HOT_RUNS,
  OpCode,
  SIZE_MAX,
  SMALL_SIZE_MAX,
  type ArrowNode,
  type NodeRun,
} from '../build/node.ts'
import { RUNS } from './tiering.ts'
import { runNode } from './run-node.ts'
import { unwrapped } from '../build/failure.ts'
import { COUNTED_STEPS, LEAF_STEPS, STEPS } from './steps.ts'

export function flagsOf(
  op: OpCode,
  a: ArrowNode | null,
  b: ArrowNode | null,
  data: unknown,
  size: number,
): number {
  let flags = (a === null ? 0 : a.flags) | (b === null ? 0 : b.flags)
  if (op === OpCode.branch) flags |= (data as ArrowNode).flags
  if (op === OpCode.fail || op === OpCode.attempt) flags |= FALLIBLE
  if (op === OpCode.wait) flags |= ASYNC | FALLIBLE
  if (op === OpCode.flatMap || op === OpCode.catchAll) flags |= DYNAMIC | FALLIBLE
  return size > SMALL_SIZE_MAX ? flags | BIG : flags
}

/** Nodes of this graph, at most SIZE_MAX. */
export function sizeOf(op: OpCode, a: ArrowNode | null, b: ArrowNode | null, data: unknown): number {
  const third = op === OpCode.branch ? (data as ArrowNode).size : 0
  return Math.min(SIZE_MAX, 1 + (a === null ? 0 : a.size) + (b === null ? 0 : b.size) + third)
}

/** `run` of a node that waits, is large or is dynamic. @throws failures unwrapped. */
const runPlanned: NodeRun = function (this: ArrowNode, input, signal) {
  let value: unknown
  try {
    value = runNode(this, input, signal, undefined, true)
  } catch (thrown) {
    if ((this.flags & ASYNC) !== 0) return Promise.reject(unwrapped(thrown, signal))
    throw unwrapped(thrown, signal)
  }
  // A promise that a synchronous stage returns is its value; a dynamic arrow may have waited.
  const waits = (this.flags & ASYNC) !== 0 || ((this.flags & DYNAMIC) !== 0 && value instanceof Promise)
  if (!waits) return value
  return Promise.resolve(value).catch((thrown: unknown) => {
    throw unwrapped(thrown, signal)
  })
}

const stepPlanned: NodeRun = function (this: ArrowNode, input) {
  return runNode(this, input, undefined, undefined, true)
}

export function stepOf(op: OpCode, data: unknown, flags: number): NodeRun {
  if ((flags & (ASYNC | DYNAMIC | BIG)) !== 0) return stepPlanned
  switch (op) {
    case OpCode.call:
      return data as NodeRun
    case OpCode.id:
      return LEAF_STEPS.unchanged
    case OpCode.constant:
      return STEPS.stepConstant
    case OpCode.fail:
      return STEPS.stepFail
    case OpCode.attempt:
      return STEPS.stepAttempt
    case OpCode.swap:
      return LEAF_STEPS.swapped as NodeRun
    case OpCode.dup:
      return LEAF_STEPS.doubled
    case OpCode.fst:
      return LEAF_STEPS.firstOf as NodeRun
    case OpCode.snd:
      return LEAF_STEPS.secondOf as NodeRun
    case OpCode.tap:
      return STEPS.stepTap
    default:
      return COUNTED_STEPS[op] as NodeRun
  }
}

export function runOf(step: NodeRun, flags: number): NodeRun {
  if ((flags & (ASYNC | DYNAMIC | BIG)) !== 0) return runPlanned
  return (flags & FALLIBLE) !== 0 ? RUNS.runFallible : step
}

/** A node that no user sees: not an `Arrow`. */
export function makeNode(op: OpCode, a: ArrowNode | null, b: ArrowNode | null, data: unknown): ArrowNode {
  const size = sizeOf(op, a, b, data)
  const flags = flagsOf(op, a, b, data, size)
  const step = stepOf(op, data, flags)
  const run = runOf(step, flags)
  return { run, step, op, flags, size, fuel: HOT_RUNS, a, b, data, profile: undefined, parts: null }
}
