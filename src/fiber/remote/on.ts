/**
 * Steps and bodies on other executors: a zone's workers.
 *
 * What runs there is a function without captured variables; arguments and value are copied. Interrupting the
 * fiber cancels the task. What the zone refuses is a failure: a ZoneError about it, a TransportError, a
 * FunctionError. What the function throws is a defect, or a failure if it is an async function, as
 * everywhere; an error of one of those kinds that it throws itself cannot be distinguished from the zone's.
 */
import { FunctionError, TransportError } from '../../transport/internal.ts'
import { type AnyZone, ZoneError } from '../../zone/index.ts'
import { type RemoteZone, isThisThread, isZone } from '../../zone/internal.ts'
import { Made } from '../core/attempt.ts'
import { yieldNow } from '../scheduler/yielding.ts'
import { wrong } from '../errors.ts'
import { Exit, type Failed } from '../core/exit.ts'
import {
  Op,
  PENDING,
  type Step,
  type Waiter,
  Yieldable,
  isGenerator,
  outside,
  running,
  takeResult,
} from '../core/op.ts'
import { inline } from '../core/promises.ts'
import { failedFrom } from '../core/rejections.ts'
import { isRunnable } from '../core/runnable.ts'
import { turn } from '../scheduler/scheduler.ts'

type AnyFunction = (...args: never[]) => unknown

/** The module that runs generators in a worker. */
const REMOTE = new URL('./remote.js', import.meta.url)
const AsyncFunction = (async () => {}).constructor
const GeneratorFunction = Object.getPrototypeOf(function* (): Generator {}).constructor as Function

class ZoneTask extends Op<unknown, unknown> {
  readonly #zone: RemoteZone
  readonly #fn: AnyFunction
  readonly #args: readonly unknown[]
  #waiter: Waiter | undefined
  #value: unknown
  #failed: Failed | undefined
  #cancel: () => void = nothing
  #isUsed = false

  constructor(zone: RemoteZone, fn: AnyFunction, args: readonly unknown[]) {
    super()
    this.#zone = zone
    this.#fn = fn
    this.#args = args
  }

  /** Each use is a task of its own. */
  override [Symbol.iterator](): Iterator<Step<unknown>, unknown, unknown> {
    running.asks = true
    const op = this.#isUsed ? new ZoneTask(this.#zone, this.#fn, this.#args) : this
    op.#isUsed = true
    return op
  }

  park(waiter: Waiter): void {
    this.#waiter = waiter
    if (this.#fn instanceof GeneratorFunction) return this.#parkGenerator()
    this.#cancel = this.#zone.begin(
      this.#fn,
      this.#args,
      (value) => {
        this.#value = value
        this.#wake()
      },
      (reason) => this.#rejected(reason),
    )
  }

  unpark(): boolean {
    this.#waiter = undefined
    this.#cancel()
    return true
  }

  take(fiber: Waiter): unknown {
    if (this.#failed !== undefined) throw fiber.raise(this.#failed)
    return this.#value
  }

  describe(): string {
    const called = this.#fn.name === '' ? 'a task' : `${this.#fn.name}()`
    return `${called} in zone ${this.#zone.id}`
  }

  /** Its end is an exit: a failure there is one here. */
  #parkGenerator(): void {
    const controller = new AbortController()
    this.#cancel = () => controller.abort()
    const { signal } = controller
    const run = this.#zone.execute(REMOTE, 'runBody', [this.#fn, this.#args], { signal })
    const exit = run.then(({ value }) => value as Exit<unknown, unknown>)
    exit.then(
      (exit) => {
        if (exit.kind === 'success') this.#value = exit.value
        else this.#failed = exit
        this.#wake()
      },
      (reason: unknown) => this.#rejected(reason),
    )
  }

  #rejected(reason: unknown): void {
    const isFailure = isRefusal(reason, this.#zone) || this.#fn instanceof AsyncFunction
    this.#failed = isFailure ? failedFrom(reason) : Exit.defect(reason)
    this.#wake()
  }

  #wake(): void {
    this.#waiter?.makeReady()
  }
}

/** A step on this thread: the function is called when `yield*` asks. */
class Here extends Yieldable<unknown, unknown> {
  readonly #fn: AnyFunction
  readonly #args: readonly unknown[]
  #value: unknown

  constructor(fn: AnyFunction, args: readonly unknown[]) {
    super()
    this.#fn = fn
    this.#args = args
  }

  /** What is more than a value is run by the fiber that is there. @throws What the function throws. */
  [Symbol.iterator](): Iterator<Step<unknown>, unknown, unknown> {
    const fiber = running.fiber
    if (fiber === undefined) throw outside('yield* on()')
    // As in an attempt: the interrupted make no further step.
    if (turn.steps <= 0 && fiber.isStopped) return yieldNow()[Symbol.iterator]()
    const made = called(this.#fn, this.#args as never[])
    if (typeof made === 'object' && made !== null) return inline(made)
    this.#value = made
    running.asks = true
    return this
  }

  /** For `yield*`, apart from that of other ops, so that its call sites are monomorphic. */
  next(): IteratorResult<Step, unknown> {
    if (!running.asks) return { done: true, value: takeResult() }
    running.asks = false
    if (--turn.steps > 0) return { done: true, value: this.#value }
    // Other fibers may use this one meanwhile.
    ;(running.fiber as Waiter).op = new Made(this.#value)
    return PENDING
  }
}

/** A call; spreading few arguments costs more than most steps do. */
function called(fn: AnyFunction, args: readonly never[]): unknown {
  if (args.length === 0) return fn()
  return args.length === 1 ? fn(args[0]) : fn(...args)
}

/** What {@link on} returns: the function's value, and what can fail on the way. */
type OnOperation<R> =
  R extends Generator<infer _Y, infer A, infer _N> ? Op<A, unknown> : Op<Awaited<R>, unknown>

/**
 * Runs one step in a zone: `yield* on(zone, parse, text)`. The function must not capture variables.
 * In a fiber that is interrupted meanwhile the task is cancelled: withdrawn if it has not started, else its
 * own signal is aborted. On `zone.node` the function is called here, without a hop.
 * @throws {FiberError} `FIBER_ARGUMENT` when `zone` is not a zone or `fn` is not a function.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { zone } from 'corespun'
 * import { fork, on } from 'corespun/fiber'
 *
 * const cpu = zone.create('cpu', { workers: 1 })
 * assert.equal(await fork(on(cpu, (n: number) => n * n, 12)).join(), 144)
 * await cpu.close()
 * ```
 */
export function on<Args extends unknown[], R>(
  zone: AnyZone,
  fn: (...args: Args) => R,
  ...args: Args
): OnOperation<R> {
  if (typeof fn !== 'function') throw wrong('on(): the step', 'a function', fn)
  const remote = checkZone('on(): the zone', zone)
  return (isThisThread(remote) ? new Here(fn, args) : new ZoneTask(remote, fn, args)) as never
}

/**
 * A body that runs `body` in the zone `on`.
 * @throws {FiberError} `FIBER_ARGUMENT` when it cannot run there.
 */
export function bodyAt(on: unknown, body: unknown, input: unknown): unknown {
  const zone = checkZone('fork(): on', on)
  if (isThisThread(zone)) return body
  if (isRunnable(body)) {
    const { on: move } = body as { on?: unknown }
    if (typeof move !== 'function') throw wrong('fork(): the body', 'an arrow that has a method `on`', body)
    return (move as (this: unknown, zone: AnyZone) => unknown).call(body, zone)
  }
  if (typeof body !== 'function' || isGenerator(body))
    throw wrong('fork(): the body', 'a function or an arrow, since it runs in a zone', body)
  return new ZoneTask(zone, body as AnyFunction, input === undefined ? [] : [input])
}

/** Whether an error is the zone's or the transport's, and not the function's own. */
function isRefusal(reason: unknown, zone: AnyZone): boolean {
  if (reason instanceof ZoneError) return (reason.facts as { zone?: unknown }).zone === zone.id
  return reason instanceof TransportError || reason instanceof FunctionError
}

function nothing(): void {}

function checkZone(name: string, zone: unknown): RemoteZone {
  if (isZone(zone)) return zone
  throw wrong(name, 'a zone of this process', zone)
}
