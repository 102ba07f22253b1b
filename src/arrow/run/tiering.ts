/**
 * Tiering: a small synchronous node that runs again and again is measured, then compiled.
 *
 * Neither changes what `run` and `step` return.
 */
import { generate, generateMethod } from './generate.ts'
import { Raised } from '../build/failure.ts'
import { noteHot } from './hot.ts'
import { type Profile, profileOf } from './profile.ts'
import { measuredStep } from './run-node.ts'
import { CODED_FUEL, FALLIBLE, HOT_RUNS, UNCODED_FUEL, type ArrowNode } from '../build/node.ts'

/** Run a node whose run is measured, or the run for which its code is generated. */
export function tierUp(node: ArrowNode, input: unknown): unknown {
  if (node.fuel > 0) return measuredStep(node, input)
  // Undo the count of this run: `step` counts it below, and generated code counts nothing.
  node.fuel += 1
  compile(node)
  return node.step(input as never)
}

/** Generate a small synchronous node's code; where that is forbidden it keeps its steps. */
export function compile(node: ArrowNode): void {
  const runs = countedRuns(node)
  if (runs > 0) profileOf(node).runs = runs
  node.fuel = UNCODED_FUEL
  noteHot(node)
  const method = generateMethod(node)
  const code = method?.run ?? generate([node])
  if (code === undefined) return
  node.fuel = CODED_FUEL
  node.parts = method?.parts ?? null
  node.step = code
  if ((node.flags & FALLIBLE) === 0) node.run = code
}

/**
 * The runs of a small synchronous node that its fuel has counted: all until it has code, but see FIRST_STEPS.
 */
export function countedRuns(node: ArrowNode): number {
  const before = (node.profile as Profile | undefined)?.runs ?? 0
  if (node.fuel === CODED_FUEL) return before
  return before + (node.fuel > HOT_RUNS ? UNCODED_FUEL : HOT_RUNS) - node.fuel
}

/** `run` of a small synchronous node that may fail. @throws its failure, unwrapped. */
function runFallible(this: ArrowNode, input: unknown): unknown {
  try {
    return this.step(input as never)
  } catch (thrown) {
    throw thrown instanceof Raised ? thrown.error : thrown
  }
}

/** In an object, as in steps.ts. */
export const RUNS = Object.freeze({ runFallible })
