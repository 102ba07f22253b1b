/**
 * Where in a run the code is that asks for something: which fiber, and how often it has asked for it.
 *
 * A fiber's path is made of the numbers of forks, counted by the fiber that forks, so it does not depend on
 * which of several fibers is faster. Each fiber has its own counts. A branch has a path by its name instead.
 */
import { type Fiber, FiberLocal, type Operation, type Schedule } from '../fiber/index.ts'
import { SUPERVISOR, runningFiber } from '../fiber/internal.ts'
import type { AnyZone } from '../zone/index.ts'
import { RunError, type RunFacts } from './errors.ts'
import { branchPath, childPath, keyOf } from './keys.ts'
import type { Children } from './room.ts'
import type { Kept } from './values.ts'

/** A step, as a run performs it. */
export interface StepCall {
  readonly fn: (...args: unknown[]) => unknown
  readonly args: readonly unknown[]
  readonly retry: Schedule | undefined
  readonly timeoutMs: number | undefined
  readonly zone: AnyZone | undefined
}

/** A wait for a signal. */
export interface SignalCall {
  readonly name: string
  readonly timeoutMs: number | undefined
}

/** What a run does of what was not recorded. What is interrupted resolves. */
export interface Live {
  step(what: Asked, call: StepCall, interrupted: AbortSignal): Promise<unknown>
  pause(what: Asked, ms: number, interrupted: AbortSignal): Promise<unknown>
  signal(what: Asked, call: SignalCall, interrupted: AbortSignal): Promise<unknown>
  /** A value that follows from the time. */
  value(what: Asked, see: (atMs: number) => unknown, interrupted: AbortSignal): Promise<unknown>
  /** Begins anew with the input, and does not resolve. */
  checkpoint(what: Asked, input: Kept, interrupted: AbortSignal): Promise<unknown>
  /** The runs of a definition, for who starts one of them. */
  children(name: string): Promise<Children>
}

/** How what is asked for begins. */
export type Begin = (live: Live, interrupted: AbortSignal) => Promise<unknown>

/** A run, as its code sees it. */
export interface Asking {
  readonly facts: RunFacts
  /** What its ids and random numbers follow from. */
  readonly seed: string
  /** Why this process does not have the run any more; `undefined`: it has. */
  readonly leftReason: string | undefined
  /** Aborted when this process does not have the run any more. */
  readonly whenLeft: AbortSignal
  /** What was recorded, or else what `begin` makes of it. Resolves when it is interrupted. */
  ask(what: Asked, begin: Begin, interrupted: AbortSignal): Promise<unknown>
  /** Whether the code was changed behind where the run is. */
  isPast(what: Asked): boolean
  /** Shows what the function returns, from now on. */
  expose(see: () => unknown): void
}

/** Something that the code of a run asks for. */
export interface Asked {
  readonly run: Asking
  readonly path: string
  readonly name: string
  readonly key: string
}

interface Position {
  readonly run: Asking
  readonly path: string
  readonly counts: Map<string, number>
  forks: number
  /** Of the fiber that has forked this one, until this one has asked for something. */
  parent: Position | undefined
}

const POSITION = new FiberLocal<Position | undefined>(undefined)

const positionAt = (run: Asking, path: string, parent?: Position): Position => {
  return { run, path, counts: new Map(), forks: 0, parent }
}

/** The fiber is the first of a run; those that it forks, and they fork, belong to it. */
export function enter(run: Asking, fiber: Fiber): void {
  POSITION.set(positionAt(run, ''), fiber)
  const extra = fiber.more()
  extra.locals = new Map(extra.locals).set(SUPERVISOR, forked)
}

/** A fiber has the position of the one that forks it, until it has begun. */
function forked(fiber: object): void {
  const parent = POSITION.get(fiber as Fiber)
  if (parent === undefined) return
  const path = childPath(parent.path, parent.forks++)
  POSITION.set(positionAt(parent.run, path, parent), fiber as Fiber)
}

/**
 * What the running fiber asks for.
 * @throws {RunError} `RUN_REQUIRED` outside of a run; `RUN_LEFT` in what still ends of one.
 */
export function asked(call: string, name: string): Asked {
  const position = here(call)
  const { run, path } = position
  position.parent = undefined
  const occurrence = counted(position, name)
  return { run, path, name, key: keyOf(path, name, occurrence) }
}

/** Where the running fiber is. */
function here(call: string): Position {
  const fiber = runningFiber()
  const position = fiber === undefined ? undefined : POSITION.get(fiber)
  if (position === undefined) throw new RunError('RUN_REQUIRED', { call })
  checkHeld(position.run)
  return position
}

/** Which time that is. */
function counted({ counts }: Position, name: string): number {
  const occurrence = (counts.get(name) ?? 0) + 1
  counts.set(name, occurrence)
  return occurrence
}

/**
 * What the body asks for has a path by the name of the branch, and by that of the fiber that has forked this
 * one, if it has asked for nothing yet: so it does not matter which of its forks it is.
 */
export function* inBranch<Value, Failure>(
  name: string,
  body: Operation<Value, Failure>,
): Operation<Value, Failure> {
  const position = here('branch()')
  const of = position.parent ?? position
  position.parent = undefined
  const fiber = runningFiber() as Fiber
  POSITION.set(positionAt(of.run, branchPath(of.path, name, counted(of, `${name}:`))), fiber)
  try {
    return yield* body
  } finally {
    POSITION.set(position, fiber)
  }
}

/** @throws {RunError} `RUN_LEFT` when this process does not have the run any more. */
export function checkHeld({ facts, leftReason }: Asking): void {
  if (leftReason !== undefined) throw new RunError('RUN_LEFT', { ...facts, reason: leftReason })
}
