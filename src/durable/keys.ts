/**
 * The keys of what a run asks for: the path of the fiber, a name, and which time the fiber asks for it.
 *
 * `0/2/charge#1` is the first `charge` of the third fiber that the first fiber has forked which the run has
 * forked; `Ann:1/charge#1` is that of the first branch called Ann. Names of pauses, signals and the like end
 * with a parenthesis, which those of steps cannot have.
 */
import { checkKey as checkKept } from '../fleet/internal.ts'
import { wrong } from './errors.ts'

/** A key. */
export const keyOf = (path: string, name: string, occurrence: number): string =>
  `${path}${name}#${occurrence}`
/** The path of a fiber that another has forked. */
export const childPath = (path: string, index: number): string => `${path}${index}/`
/** The path of a branch. */
export const branchPath = (path: string, name: string, occurrence: number): string =>
  `${path}${name}:${occurrence}/`
/** Of the fiber, or of the branch. */
export const pathIn = (key: string): string => key.slice(0, key.lastIndexOf('/') + 1)
/** What was asked for. */
export const nameIn = (key: string): string => key.slice(pathIn(key).length, key.lastIndexOf('#'))
/** The name of a step: without what keys are made of, and not a number with a slash. */
export const isStepName = (name: unknown): name is string =>
  typeof name === 'string' && /^[^()#/]{1,200}$/.test(name) && !/\p{Surrogate}/u.test(name)

/** Of a step or a signal. @throws {RunError} `RUN_ARGUMENT`. */
export function checkName(call: string, name: unknown): asserts name is string {
  if (!isStepName(name))
    throw wrong(`${call}: the name`, 'a string of 1 to 200 characters without #/()', name)
}

/** Of a run. @throws {RunError} `RUN_ARGUMENT`. */
export function checkKey(call: string, key: string): void {
  try {
    checkKept(call, key)
  } catch {
    throw wrong(`${call}: the key`, 'a string of 1 to 200 characters', key)
  }
}
