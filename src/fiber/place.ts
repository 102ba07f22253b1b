/**
 * Steps and bodies on other executors: a zone's workers.
 *
 * What runs there is a function without captured variables; arguments and value are copied. Interrupting the
 * fiber cancels the task. What the zone refuses is a failure (a ZoneError, a TransportError); what the
 * function throws is a defect, or a failure if it is an async function, as everywhere.
 */
import { SkeinError } from '../base/index.ts'
import { NodeZone, Zone } from '../zone/index.ts'
import { wrong } from './errors.ts'
import { Exit, type Failed } from './exit.ts'
import { Op, type Operation, type Waiter, isGenerator } from './op.ts'
import { within } from './promises.ts'
import { failedFrom } from './rejections.ts'
import { isRunnable } from './runnable.ts'

/** Where a body or a step can run. */
export type Place = Zone | NodeZone

type AnyFunction = (...args: never[]) => unknown

/** The module that runs generators in a worker. */
const REMOTE = new URL('./remote.js', import.meta.url)
const AsyncFunction = (async () => {}).constructor
const GeneratorFunction = Object.getPrototypeOf(function* (): Generator {}).constructor as Function

/** Waits for one task of a zone. */
class ZoneTask extends Op<unknown, unknown> {
  readonly #zone: Zone
  readonly #fn: AnyFunction
  readonly #args: readonly unknown[]
  #waiter: Waiter | undefined
  #value: unknown
  #failed: Failed | undefined
  #giveUp: () => void = nothing

  constructor(zone: Zone, fn: AnyFunction, args: readonly unknown[]) {
    super()
    this.#zone = zone
    this.#fn = fn
    this.#args = args
  }

  park(waiter: Waiter): void {
    this.#waiter = waiter
    if (this.#fn instanceof GeneratorFunction) return this.#parkGenerator()
    this.#giveUp = this.#zone.begin(
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
    this.#giveUp()
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
    this.#giveUp = () => controller.abort()
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
    const isFailure = reason instanceof SkeinError || this.#fn instanceof AsyncFunction
    this.#failed = isFailure ? failedFrom(reason) : Exit.defect(reason)
    this.#wake()
  }

  #wake(): void {
    this.#waiter?.makeReady()
  }
}

/** What {@link on} gives: the function's value, and what can fail on the way. */
type Placed<R> = R extends Generator<infer _Y, infer A, infer _N> ? Op<A, unknown> : Op<Awaited<R>, unknown>

/**
 * Run one step on another executor: `yield* on(zone, parse, text)`. The function must not capture variables.
 * In a fiber that is interrupted meanwhile the task is cancelled: withdrawn if it has not started, else its
 * own signal is aborted. On `zone.node` the function is called here, without a hop.
 * @throws {FiberError} `FIBER_ARGUMENT`.
 */
export function on<Args extends unknown[], R>(
  zone: Place,
  fn: (...args: Args) => R,
  ...args: Args
): Operation<Placed<R> extends Op<infer A, infer _E> ? A : never, unknown> {
  if (typeof fn !== 'function') throw wrong('on: the step', 'a function', fn)
  return placed(checkPlace('on: the zone', zone), fn as AnyFunction, args) as never
}

/**
 * A body that runs `body` at `place`.
 * @throws {FiberError} `FIBER_ARGUMENT` when it cannot run there.
 */
export function bodyAt(place: unknown, body: unknown, input: unknown): unknown {
  const zone = checkPlace('options.on', place)
  if (zone instanceof NodeZone) return body
  if (isRunnable(body)) {
    const { on } = body as { on?: unknown }
    if (typeof on !== 'function') throw wrong('the body', 'an arrow that has a method `on`', body)
    return (on as (this: unknown, zone: Zone) => unknown).call(body, zone)
  }
  if (typeof body !== 'function' || isGenerator(body))
    throw wrong('the body', 'a function or an arrow, since it runs in a zone', body)
  return placed(zone, body as AnyFunction, input === undefined ? [] : [input])
}

function* placed(place: Place, fn: AnyFunction, args: readonly unknown[]): Operation<unknown> {
  if (place instanceof Zone) return yield* new ZoneTask(place, fn, args) as Op<unknown>
  return yield* within(() => fn(...(args as never[])))
}

function nothing(): void {}

function checkPlace(name: string, place: unknown): Place {
  if (place instanceof Zone || place instanceof NodeZone) return place
  throw wrong(name, 'a zone', place)
}
