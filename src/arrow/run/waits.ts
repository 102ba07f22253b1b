/**
 * The stages that wait: asynchronous functions, fibers, `retry`, `timeout`, `through`.
 *
 * Each is one instruction of the interpreter and follows its rule: a failure is thrown, or rejected with,
 * wrapped; a defect passes unchanged.
 */
import { FiberError, type Exit, type Fiber, type Schedule } from '../../fiber/index.ts'
import {
  RUNNABLE,
  checkedFailed,
  forkAsked,
  isProgram,
  isRunnable,
  isValue,
  runningFiber,
} from '../../fiber/internal.ts'
import { TIMER_MS_MAX, isThenable, unwatch, watch } from '../../base/index.ts'
import type { Store } from '../../store/index.ts'
import { ArrowError, wrong } from '../errors.ts'
import { Raised, Stopped, thrownFor } from '../build/failure.ts'
import { valueOf } from './interpreter.ts'
import { runNode } from './run-node.ts'
import type { ArrowNode, RunContext, StageContext, Wait } from '../build/node.ts'

export type AsyncFunction = (input: unknown, context: StageContext) => unknown

/** An asynchronous function; with a catcher what it rejects with is a failure. */
export function asyncWait(fn: AsyncFunction, catcher: ((thrown: unknown) => unknown) | undefined): Wait {
  const start: Wait['start'] =
    catcher === undefined
      ? fn
      : async (input, context) => {
          try {
            return await fn(input, context)
          } catch (thrown) {
            // An interrupted function that rejects has not failed.
            if (context.givenSignal?.aborted === true) throw thrown
            throw new Raised(catcher(thrown))
          }
        }
  return { kind: 'async', start, parts: [fn, catcher], inner: undefined }
}

/** A fiber for each input, joined. */
export function fiberWait(body: (input: unknown) => unknown): Wait {
  const start: Wait['start'] = (input, context) => {
    const made = body(input)
    if (!isProgram(made))
      throw wrong(
        'the result of the function of fromFiber()',
        'a generator, an operation or a runnable (for a promise, use liftAsync)',
        made,
      )
    // After a wait no fiber's code runs, so a runnable could not find its parent: fork it here.
    const isOwn = isRunnable(made) && (context.fiber === undefined || runningFiber() !== undefined)
    const exit = isOwn ? made[RUNNABLE](undefined as never, context.signal) : exitOf(made, context)
    return isThenable(exit) ? exit.then((ended) => fromExit(ended)) : fromExit(exit)
  }
  return { kind: 'fiber', start, parts: [body], inner: undefined }
}

/** The exit of a fiber, which the run's signal interrupts. */
function exitOf(
  body: Parameters<typeof forkAsked>[0],
  context: RunContext,
): Exit<unknown, unknown> | PromiseLike<Exit<unknown, unknown>> {
  const fiber = childOf(context.fiber, body)
  if (fiber.exit !== undefined) return fiber.exit
  const signal = context.givenSignal
  const interrupt = (): void => void fiber.interrupt(signal?.reason)
  if (signal !== undefined) watch(signal, interrupt)
  if (signal?.aborted === true) interrupt()
  return fiber.await().then((exit) => {
    if (signal !== undefined) unwatch(signal, interrupt)
    return exit
  })
}

/** A child of the run's fiber, also after a wait, when that fiber's code does not run. */
function childOf(parent: Fiber | undefined, body: Parameters<typeof forkAsked>[0]): Fiber {
  try {
    return forkAsked(body, parent)
  } catch (error) {
    // The fiber that started the run has ended, and the run with it.
    if (error instanceof FiberError && error.code === 'FIBER_SCOPE_CLOSED') throw new Stopped(error)
    throw error
  }
}

function fromExit(exit: Exit<unknown, unknown>): unknown {
  if (isValue(exit)) return exit.value
  throw thrownFor(checkedFailed(exit))
}

/** `inner`, run again after each failure when the schedule allows it, after the schedule's delay. */
export function retryWait(schedule: Schedule<never>, inner: ArrowNode): Wait {
  const start = async (input: unknown, context: RunContext): Promise<unknown> => {
    const driver = schedule.start()
    for (;;) {
      try {
        return await runNode(inner, input, context.givenSignal, context.fiber)
      } catch (thrown) {
        if (!(thrown instanceof Raised)) throw thrown
        const delayMs = driver.next(thrown.error as never, performance.now())
        if (delayMs === undefined) throw thrown
        await delay(delayMs, context.givenSignal)
      }
    }
  }
  return { kind: 'retry', start, parts: [schedule], inner }
}

/** `inner`, which is interrupted and fails with `ARROW_TIMEOUT` when it takes longer. */
export function timeoutWait(timeoutMs: number, inner: ArrowNode): Wait {
  const start = (input: unknown, context: RunContext): unknown => {
    const controller = new AbortController()
    const outer = context.givenSignal
    const aborted = (): void => abort(controller, outer?.reason)
    if (outer?.aborted === true) aborted()
    if (outer !== undefined) watch(outer, aborted)
    let isLate = false
    const late = (): void => {
      isLate = true
      controller.abort(new ArrowError('ARROW_TIMEOUT', { timeoutMs }))
    }
    const timer = timeoutMs === Infinity ? undefined : setTimeout(late, timeoutMs)
    const release = (): void => {
      clearTimeout(timer)
      if (outer !== undefined) unwatch(outer, aborted)
    }
    const run = (): unknown => runNode(inner, input, controller.signal, context.fiber)
    return limited(run, controller.signal, () => isLate).finally(release)
  }
  return { kind: 'timeout', start, parts: [timeoutMs], inner, shown: () => `${timeoutMs} ms` }
}

/** Aborts that are being passed on, one inside the other. */
let passing = 0
const PASSING_MAX = 200

/** Abort a signal that follows another. Long chains continue in a microtask, not on the stack. */
function abort(controller: AbortController, reason: unknown): void {
  if (passing === PASSING_MAX) return queueMicrotask(() => abort(controller, reason))
  passing += 1
  controller.abort(reason)
  passing -= 1
}

async function limited(run: () => unknown, signal: AbortSignal, isLate: () => boolean): Promise<unknown> {
  try {
    return await run()
  } catch (thrown) {
    if (thrown instanceof Stopped && isLate()) throw new Raised(signal.reason, thrown.others)
    throw thrown
  }
}

/** The key of an input in a store. */
export type KeyOf = (input: never) => string

/** The store's value for the key of the input, computed by `inner` when it is missing. */
export function throughWait(store: Store<never>, key: KeyOf | undefined, inner: ArrowNode): Wait {
  const start = (input: unknown, context: RunContext): unknown => {
    const name = key === undefined ? input : key(input as never)
    if (typeof name !== 'string')
      throw wrong('through(): the key', 'a string, which through(store, (input) => key) returns', name)
    const signal = context.givenSignal
    const compute = async (): Promise<never> =>
      valueOf(await runNode(inner, input, signal, context.fiber)) as never
    return (store as Store<unknown>).getOrCompute(name, compute, signal === undefined ? {} : { signal })
  }
  return { kind: 'through', start, parts: [store, key], inner, shown: () => `store ${store.id}` }
}

/**
 * Wait for a delay; without one, for a turn of the event loop, so that timers, I/O and aborts are not
 * starved.
 */
function delay(delayMs: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const untilMs = performance.now() + delayMs
    let timer: NodeJS.Timeout | undefined
    let immediate: NodeJS.Immediate | undefined
    const aborted = (): void => {
      clearTimeout(timer)
      clearImmediate(immediate)
      reject(new Stopped(signal?.reason))
    }
    const due = (): void => {
      const leftMs = untilMs - performance.now()
      if (leftMs > 0) return void (timer = setTimeout(due, Math.min(leftMs, TIMER_MS_MAX)))
      if (signal !== undefined) unwatch(signal, aborted)
      resolve()
    }
    if (signal?.aborted === true) return aborted()
    if (signal !== undefined) watch(signal, aborted)
    if (delayMs > 0) due()
    else immediate = setImmediate(due)
  })
}
