/**
 * Where in a run the code is that asks for something: which fiber, and how often it has asked for it.
 *
 * A fiber's path is made of the numbers of forks, counted by the fiber that forks, so it does not depend on
 * which of several fibers is faster. Each fiber has its own counts.
 */
import { type Fiber, FiberLocal, type Schedule } from '../fiber/index.ts'
import { SUPERVISOR, runningFiber } from '../fiber/internal.ts'
import type { AnyZone } from '../zone/index.ts'
import { RunError, type RunFacts } from './errors.ts'
import { childPath, keyOf } from './keys.ts'

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

/** A run, as its code sees it. What is interrupted resolves. */
export interface Asking {
  readonly facts: RunFacts
  readonly id: string
  /** Why this process does not have the run any more; `undefined`: it has. */
  readonly leftReason: string | undefined
  /** Aborted when this process does not have the run any more. */
  readonly whenLeft: AbortSignal
  step(what: Asked, call: StepCall, interrupted: AbortSignal): Promise<unknown>
  pause(what: Asked, ms: number, interrupted: AbortSignal): Promise<unknown>
  signal(what: Asked, call: SignalCall, interrupted: AbortSignal): Promise<unknown>
  now(what: Asked, interrupted: AbortSignal): Promise<unknown>
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
}

const POSITION = new FiberLocal<Position | undefined>(undefined)

const positionAt = (run: Asking, path: string): Position => ({ run, path, counts: new Map(), forks: 0 })

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
  POSITION.set(positionAt(parent.run, childPath(parent.path, parent.forks++)), fiber as Fiber)
}

/**
 * What the running fiber asks for.
 * @throws {RunError} `RUN_REQUIRED` outside of a run; `RUN_LEFT` in what still ends of one.
 */
export function asked(call: string, name: string): Asked {
  const fiber = runningFiber()
  const position = fiber === undefined ? undefined : POSITION.get(fiber)
  if (position === undefined) throw new RunError('RUN_REQUIRED', { call })
  const { run, path, counts } = position
  checkHeld(run)
  const occurrence = (counts.get(name) ?? 0) + 1
  counts.set(name, occurrence)
  return { run, path, name, key: keyOf(path, name, occurrence) }
}

/** @throws {RunError} `RUN_LEFT` when this process does not have the run any more. */
export function checkHeld({ facts, leftReason }: Asking): void {
  if (leftReason !== undefined) throw new RunError('RUN_LEFT', { ...facts, reason: leftReason })
}
