/**
 * Supervisor: listeners for the start and the end of fibers, in the part of a program that it supervises.
 *
 * It is inherited as fiber-locals are, by the same map; a fiber without locals is asked nothing.
 */
import { callback, optionsOf } from '../../base/index.ts'
import { wrong } from '../errors.ts'
import type { Exit } from '../core/exit.ts'
import { SUPERVISOR, type Supervising } from '../core/extra.ts'
import type { Fiber } from '../core/fiber.ts'
import type { AnyBody, FailureOf, ValueOf } from '../core/fork.ts'
import type { Operation } from '../core/op.ts'
import { within } from '../core/promises.ts'
import { currentFiber } from '../core/resources.ts'
import { type Wakeable, withWaiter } from '../core/waiters.ts'

/** Listeners of a {@link Supervisor}. What they throw is an `uncaughtException`. */
export interface SupervisorOptions {
  /** Called when a fiber has been forked, before its body is. */
  readonly onStart?: (fiber: Fiber) => void
  /** Called when a fiber has ended and released all it had. */
  readonly onEnd?: (fiber: Fiber, exit: Exit<unknown, unknown>) => void
}

const KINDS = { onStart: callback, onEnd: callback }

/**
 * Is called at the start and the end of each fiber that a supervised body forks, and of those which these
 * fork. It changes nothing: failures are handled as without it.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { Supervisor, fork, sleep } from 'corespun/fiber'
 *
 * const events: string[] = []
 * const supervisor = new Supervisor({
 *   onStart: ({ name }) => events.push(`start ${name}`),
 *   onEnd: ({ name }, exit) => events.push(`end ${name}: ${exit.kind}`),
 * })
 * function* program() {
 *   yield* fork(sleep(1), { name: 'nap' }).join()
 * }
 * await fork(supervisor.supervise(program)).join()
 * assert.deepEqual(events, ['start nap', 'end nap: success'])
 * ```
 */
export class Supervisor {
  readonly #options: SupervisorOptions
  readonly #fibers = new Set<Fiber>()

  /** @throws {FiberError} `FIBER_ARGUMENT`. */
  constructor(options?: SupervisorOptions) {
    this.#options = optionsOf(options, KINDS, wrong, 'new Supervisor()') as SupervisorOptions
  }

  /** The supervised fibers that have not ended. */
  get fibers(): ReadonlySet<Fiber> {
    return this.#fibers
  }

  /**
   * Runs a body in this fiber, and supervises what it forks.
   * @throws {FiberError} `FIBER_REQUIRED`.
   */
  *supervise<const B extends AnyBody>(body: B): Operation<ValueOf<B>, FailureOf<B>> {
    const extra = currentFiber('supervise()').more()
    const outer = extra.locals?.get(SUPERVISOR) as Supervising | undefined
    const supervising: Supervising = (fiber) => {
      outer?.(fiber)
      this.#started(fiber as Fiber)
    }
    extra.locals = new Map(extra.locals).set(SUPERVISOR, supervising)
    try {
      return yield* within(body)
    } finally {
      extra.locals = new Map(extra.locals).set(SUPERVISOR, outer)
    }
  }

  #started(fiber: Fiber): void {
    this.#fibers.add(fiber)
    called(() => this.#options.onStart?.(fiber))
    const ended: Wakeable = {
      wakeBy: () => {
        this.#fibers.delete(fiber)
        called(() => this.#options.onEnd?.(fiber, fiber.exit as Exit<unknown, unknown>))
      },
      waitsFor: () => true,
    }
    // Not as one that asks for its exit: a failure stays one that nobody has received.
    fiber.waiters = withWaiter(fiber.waiters, ended)
  }
}

/** A listener's error is its own, not that of the code that forks. */
function called(listener: () => void): void {
  try {
    listener()
  } catch (error) {
    queueMicrotask(() => {
      throw error
    })
  }
}
