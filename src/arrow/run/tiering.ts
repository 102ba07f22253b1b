/**
 * What happens to a small synchronous node that is run again and again: it is measured, and then compiled.
 *
 * Both replace nothing that anybody sees: `run` and `step` go on doing the same.
 */
import { generate, generateMethod } from './generate.ts'
import { Raised } from '../build/failure.ts'
import { type Profile, measuredStep, profileOf } from './interpreter.ts'
import { CODED_FUEL, FALLIBLE, HOT_RUNS, UNCODED_FUEL, type Node } from '../build/node.ts'

/** A run of a node whose fuel says that it is special: measured, or the one after which code is there. */
export function tierUp(node: Node, input: unknown): unknown {
  if (node.fuel > 0) return measuredStep(node, input)
  // This run was counted too early: closures count it below, and code counts nothing.
  node.fuel += 1
  compile(node)
  return node.step(input as never)
}

/** Give a small synchronous node its code; without leave to generate it goes on as it was. */
export function compile(node: Node): void {
  const runs = countedRuns(node)
  if (runs > 0) profileOf(node).runs = runs
  node.fuel = UNCODED_FUEL
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
export function countedRuns(node: Node): number {
  const before = (node.profile as Profile | undefined)?.runs ?? 0
  if (node.fuel === CODED_FUEL) return before
  return before + (node.fuel > HOT_RUNS ? UNCODED_FUEL : HOT_RUNS) - node.fuel
}

/** How a small synchronous node that may fail is run from outside. @throws its failure as it is. */
function runFallible(this: Node, input: unknown): unknown {
  try {
    return this.step(input as never)
  } catch (thrown) {
    throw thrown instanceof Raised ? thrown.error : thrown
  }
}

/** In an object, as in steps.ts. */
export const RUNS = Object.freeze({ runFallible })
