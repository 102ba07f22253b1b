/**
 * The keys of what a run asks for: the path of the fiber, a name, and which time the fiber asks for it.
 *
 * `0/2/charge#1` is the first `charge` of the third fiber that the first fiber has forked which the run has
 * forked. Names of pauses, signals and the like end with a parenthesis, which those of steps cannot have.
 */

/** A key. */
export const keyOf = (path: string, name: string, occurrence: number): string =>
  `${path}${name}#${occurrence}`
/** The path of a fiber that another has forked. */
export const childPath = (path: string, index: number): string => `${path}${index}/`
/** Of the fiber. */
export const pathIn = (key: string): string => /^(?:\d+\/)*/.exec(key)?.[0] ?? ''
/** What was asked for. */
export const nameIn = (key: string): string => key.slice(pathIn(key).length, key.lastIndexOf('#'))
/** The name of a step: without what keys are made of, and not a number with a slash. */
export const isStepName = (name: unknown): name is string =>
  typeof name === 'string' && /^[^()#/]{1,200}$/.test(name) && !/\p{Surrogate}/u.test(name)
