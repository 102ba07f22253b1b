/**
 * What the code of a run can ask for: steps, pauses, signals, the time, and numbers that are the same again.
 *
 * Arguments are checked here; what is done is in held.ts, which this file has as an interface of context.ts.
 */
import { TIMER_MS_MAX, anything, integer, milliseconds, optionsOf, uuidText } from '../base/index.ts'
import { type Operation, Schedule, attempt } from '../fiber/index.ts'
import { runningFiber } from '../fiber/internal.ts'
import type { AnyZone } from '../zone/index.ts'
import { type Asked, type Begin, type StepCall, asked, checkHeld, inBranch } from './context.ts'
import { wrong } from './errors.ts'
import { checkName } from './keys.ts'
import { keptOf } from './values.ts'

/** About an attempt of a step; its function receives it behind its arguments. */
export interface StepInfo {
  /**
   * The same for all attempts of this step, also after a crash, and that of no other step: pass it on as the
   * idempotency key of what the step does.
   */
  readonly key: string
  /** 1 for the first one. One that a crash has ended is not counted. */
  readonly attempt: number
  /** Aborted when the step is to end: by its `timeoutMs`, or with its fiber. Absent in a zone. */
  readonly signal?: AbortSignal
}

/** How a step is run. */
export interface StepOptions {
  /** When it is run again after it has failed. A `NonRetryableError` is not retried. Default: never. */
  readonly retry?: Schedule
  /** How long an attempt may take, in ms. Default: as long as it does. */
  readonly timeoutMs?: number
  /** Where it runs: `zone.cpu`, or another zone. Its function must not capture variables. Default: here. */
  readonly zone?: AnyZone
}

/** The arguments, and what comes behind them; conditional, so that `args` decides what they are. */
type Followed<Args> = Args extends unknown[] ? [...Args, StepInfo] : never

const STEP_KINDS = {
  retry: {
    expected: 'a Schedule',
    accepts: (value: unknown) => value instanceof Schedule,
    default: undefined as Schedule | undefined,
  },
  timeoutMs: integer<undefined>(1, TIMER_MS_MAX, undefined),
  zone: anything,
}

/**
 * Calls a function, records what it returns, and returns that: after a crash the function is not called
 * again. One that was running when the process died is. It returns a copy, as it would after a crash.
 * @param name Of the step; the second `charge` of a fiber is another step than the first. At most 200
 *   characters, without `#/()`.
 * @param fn Receives the arguments and, behind them, a {@link StepInfo}. What it throws fails the step, when
 *   no attempt is left.
 * @throws {RunError} `RUN_ARGUMENT`, `RUN_REQUIRED`. It fails with what the function throws, with
 *   `RUN_STEP_TIMEOUT` and `RUN_TOO_LARGE`.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { durable, runs, step } from 'corespun/durable'
 * import { connect } from 'corespun/fleet'
 *
 * const charge = async (cents: number) => `charged ${cents}`
 * const order = durable('order', function* (cents: number) {
 *   return yield* step('charge', charge, [cents])
 * })
 * await using fleet = await connect('memory:')
 * await using work = await runs(fleet, { definitions: [order] })
 * const run = await work.start('order', 250)
 * assert.equal(await run.result(), 'charged 250')
 * ```
 */
export function step<Value>(
  name: string,
  fn: (info: StepInfo) => Value,
  args?: readonly [],
  options?: StepOptions,
): Operation<Awaited<Value>, unknown>
/** `step` of a function with arguments: see the first overload. */
export function step<Args extends unknown[], Value>(
  name: string,
  fn: (...args: Followed<Args>) => Value,
  args: readonly [...Args],
  options?: StepOptions,
): Operation<Awaited<Value>, unknown>
export function* step(
  name: string,
  fn: (...args: never[]) => unknown,
  args: readonly unknown[] = [],
  options?: StepOptions,
): Operation<unknown, unknown> {
  checkName('step()', name)
  if (typeof fn !== 'function') throw wrong('step(): fn', 'a function', fn)
  if (!Array.isArray(args)) throw wrong('step(): args', 'an array', args)
  const { retry, timeoutMs, zone } = optionsOf(options, STEP_KINDS, wrong, 'step()')
  if (zone !== undefined && typeof (Object(zone) as AnyZone).execute !== 'function')
    throw wrong('step(): zone', 'a zone', zone)
  const call = { fn: fn as StepCall['fn'], args, retry, timeoutMs, zone: zone as AnyZone | undefined }
  const what = asked(`step(${JSON.stringify(name)})`, name)
  return yield* performed(what, (live, interrupted) => live.step(what, call, interrupted))
}

/**
 * Names a part, whose steps are found again by that, and not by where the part was begun, so that code may be
 * changed so that `all`, `race` and `forEach` have others, or in another order.
 * @param name As that of a step. The second branch of a name is another one than the first.
 * @throws {RunError} `RUN_ARGUMENT`, `RUN_REQUIRED`.
 *
 * @example
 * ```ts
 * import { branch, durable, step } from 'corespun/durable'
 * import { forEach } from 'corespun/fiber'
 *
 * export const mailing = durable('mailing', function* (names: string[]) {
 *   const send = (name: string) => branch(name, step('send', async () => `to ${name}`))
 *   return yield* forEach(names, send, { concurrency: 4 })
 * })
 * ```
 */
export function* branch<Value, Failure>(
  name: string,
  body: Operation<Value, Failure>,
): Operation<Value, Failure> {
  checkName('branch()', name)
  if (typeof (Object(body) as Partial<typeof body>)[Symbol.iterator] !== 'function')
    throw wrong('branch(): the body', 'an operation, such as step() returns', body)
  return yield* inBranch(name, body)
}

/**
 * Waits by the clock on the wall, across restarts. A run that has waited for `idleMs`, and has more than that
 * left, leaves memory meanwhile.
 * @param time In ms, 0 or more; or a number with a unit: `ms`, `s`, `min`, `h` or `days`.
 * @throws {RunError} `RUN_ARGUMENT`, `RUN_REQUIRED`.
 * @example
 * ```ts
 * import { durable, pause, step } from 'corespun/durable'
 *
 * export const reminder = durable('reminder', function* (address: string) {
 *   yield* pause('3 days')
 *   yield* step('send', async () => console.log(`to ${address}`))
 * })
 * ```
 */
export function* pause(time: number | Duration): Operation<void, unknown> {
  const ms = durationMs(time)
  if (!(ms >= 0 && ms < Infinity))
    throw wrong('pause(): the time', 'milliseconds from 0, or such as 10 s, 5 min, 1.5 h, 3 days', time)
  const what = asked('pause()', 'pause()')
  yield* performed(what, (live, interrupted) => live.pause(what, ms, interrupted))
}

/** A time as it is spoken: `10 s`, `1.5 h`, `3 days`. */
export type Duration = `${number}${'' | ' '}${'ms' | 's' | 'min' | 'h' | 'day' | 'days'}`

const UNITS_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  min: 60_000,
  h: 3_600_000,
  day: 86_400_000,
  days: 86_400_000,
}

/** NaN for another. */
function durationMs(time: unknown): number {
  if (typeof time === 'number') return time
  const [, count, unit] = /^(\d+(?:\.\d+)?) ?(ms|s|min|h|days?)$/.exec(String(time)) ?? []
  return Number(count) * (UNITS_MS[unit] ?? NaN)
}

const SIGNAL_KINDS = { timeoutMs: milliseconds<undefined>(Number.MAX_SAFE_INTEGER, undefined) }

/**
 * Waits for a signal of that name, which `run.signal(name, value)` sends, and returns its value. One that was
 * sent before is received at once; each is received once, in the order in which they were sent.
 * @returns `undefined` if none is received within `timeoutMs`, by the clock on the wall.
 * @throws {RunError} `RUN_ARGUMENT`, `RUN_REQUIRED`.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { durable, runs, signal } from 'corespun/durable'
 * import { connect } from 'corespun/fleet'
 *
 * const approval = durable('approval', function* () {
 *   return (yield* signal<boolean>('approved', { timeoutMs: 86_400_000 })) ?? false
 * })
 * await using fleet = await connect('memory:')
 * await using work = await runs(fleet, { definitions: [approval] })
 * const run = await work.start('approval', undefined)
 * await run.signal('approved', true)
 * assert.equal(await run.result(), true)
 * ```
 */
export function signal<Value>(name: string): Operation<Value, unknown>
/** `signal` with a time after which it returns `undefined`: see the first overload. */
export function signal<Value>(
  name: string,
  options: { readonly timeoutMs?: number },
): Operation<Value | undefined, unknown>
export function* signal(
  name: string,
  options?: { readonly timeoutMs?: number },
): Operation<unknown, unknown> {
  checkName('signal()', name)
  const { timeoutMs } = optionsOf(options, SIGNAL_KINDS, wrong, 'signal()')
  const what = asked(`signal(${JSON.stringify(name)})`, `signal(${name})`)
  return yield* performed(what, (live, interrupted) => live.signal(what, { name, timeoutMs }, interrupted))
}

/**
 * In a finalizer or a `finally` block nothing interrupts the fiber: there what is asked for ends when this
 * process does not have the run any more, and its code must not go on as if it were done.
 */
export function* performed(what: Asked, begin: Begin): Operation<unknown, unknown> {
  const { run } = what
  const isMasked = runningFiber()?.isMasked === true
  return yield* attempt(async (signal) => {
    if (!isMasked) return run.ask(what, begin, signal)
    const value = await run.ask(what, begin, run.whenLeft)
    checkHeld(run)
    return value
  })
}

/**
 * The time, in ms since 1970, recorded as a step: after a crash it is the same.
 * @throws {RunError} `RUN_REQUIRED`.
 * @example
 * ```ts
 * import { durable, now } from 'corespun/durable'
 *
 * export const stamp = durable('stamp', function* () {
 *   return new Date(yield* now())
 * })
 * ```
 */
export function* now(): Operation<number, unknown> {
  const what = asked('now()', 'now()')
  const recorded = performed(what, (live, interrupted) => live.value(what, (atMs) => atMs, interrupted))
  return (yield* recorded) as number
}

/**
 * Whether the run is to take the path that was added to its code: yes for one that comes here for the first
 * time, which is recorded, and no for one that was further already when the code was changed.
 * @param name Of the change, as that of a step.
 * @throws {RunError} `RUN_ARGUMENT`, `RUN_REQUIRED`.
 *
 * @example
 * ```ts
 * import { durable, patched, step } from 'corespun/durable'
 *
 * export const order = durable('order', function* (cents: number) {
 *   if (yield* patched('check the stock first')) yield* step('check', async () => 'in stock')
 *   return yield* step('charge', async () => `charged ${cents}`)
 * })
 * ```
 */
export function* patched(name: string): Operation<boolean, unknown> {
  checkName('patched()', name)
  const what = asked(`patched(${JSON.stringify(name)})`, `patched(${name})`)
  if (what.run.isPast(what)) return false
  const recorded = performed(what, (live, interrupted) => live.value(what, () => true, interrupted))
  return (yield* recorded) as boolean
}

/**
 * Shows a value of the run to whoever reads `run.progress()`: what the function returns now, and some time
 * after each step. Nothing is recorded for it.
 * @param see It returns a copy of its state; what it throws is what readers receive.
 * @throws {RunError} `RUN_REQUIRED`, `RUN_ARGUMENT`.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { durable, expose, runs, step } from 'corespun/durable'
 * import { connect } from 'corespun/fleet'
 *
 * const reading = durable('reading', function* (pages: number) {
 *   let read = 0
 *   yield* expose(() => ({ read, pages }))
 *   for (; read < pages; read++) yield* step('read', async () => 'text')
 * })
 * await using fleet = await connect('memory:')
 * await using work = await runs(fleet, { definitions: [reading] })
 * const run = await work.start('reading', 3)
 * let shown: unknown
 * for await (shown of run.progress());
 * assert.deepEqual(shown, { read: 3, pages: 3 })
 * ```
 */
// oxlint-disable-next-line require-yield -- as random()
export function* expose(see: () => unknown): Operation<void> {
  if (typeof see !== 'function') throw wrong('expose(): its argument', 'a function', see)
  asked('expose()', 'expose()').run.expose(see)
}

/**
 * Begins the run anew with another input and an empty journal, so a run without an end has a journal with
 * one. It does not return. Fibers that the run has forked end, and children that they wait for go on. Signals
 * that wait are kept.
 * @throws {RunError} `RUN_REQUIRED`, `RUN_TOO_LARGE`; `RUN_CANCELLED` in a finalizer of a run that was
 *   cancelled.
 *
 * @example
 * ```ts
 * import { checkpoint, durable, pause, step } from 'corespun/durable'
 *
 * export const daily = durable('daily', function* (count: number) {
 *   for (let n = 0; n < 100; n++) {
 *     yield* step('report', async () => `day ${count + n}`)
 *     yield* pause('1 day')
 *   }
 *   yield* checkpoint(count + 100)
 * })
 * ```
 */
export function* checkpoint(input: unknown): Operation<never, unknown> {
  const what = asked('checkpoint()', 'checkpoint()')
  const frame = keptOf(input)
  return (yield* performed(what, (live, interrupted) => live.checkpoint(what, frame, interrupted))) as never
}

/**
 * A number from 0 (included) to 1 (excluded), the same after a crash. Nothing is recorded for it.
 * @throws {RunError} `RUN_REQUIRED`.
 * @example
 * ```ts
 * import { durable, random } from 'corespun/durable'
 *
 * export const dice = durable('dice', function* () {
 *   return 1 + Math.floor(6 * (yield* random()))
 * })
 * ```
 */
// oxlint-disable-next-line require-yield -- as the others, so that callers need not distinguish them
export function* random(): Operation<number> {
  return (hashOf(asked('random()', 'random()'), 0) >>> 0) / 2 ** 32
}

/**
 * A unique id in the form of a UUID, the same after a crash. It is not a secret. Nothing is recorded for it.
 * @throws {RunError} `RUN_REQUIRED`.
 * @example
 * ```ts
 * import { durable, id } from 'corespun/durable'
 *
 * export const named = durable('named', function* () {
 *   return yield* id()
 * })
 * ```
 */
// oxlint-disable-next-line require-yield -- as random()
export function* id(): Operation<string> {
  return uuidOf(asked('id()', 'id()'))
}

/** Follows from the run and from where in it the code is. */
export function uuidOf(what: Asked): string {
  const hex = [1, 2, 3, 4].map((salt) => (hashOf(what, salt) >>> 0).toString(16).padStart(8, '0')).join('')
  return uuidText(hex, 8)
}

/** It sets the hashes of salts apart: a salt as it is would be undone by its digit, which is hashed first. */
const APART = 2_654_435_761

/** Of the run, where in it, and a salt: xmur3, whose bits are all of the same use. */
function hashOf({ run, key }: Asked, salt: number): number {
  let hash = 1_779_033_703 ^ Math.imul(salt, APART)
  for (const char of `${salt}${run.seed}${key}`) {
    hash = Math.imul(hash ^ (char.codePointAt(0) as number), 3_432_918_353)
    hash = (hash << 13) | (hash >>> 19)
  }
  hash = Math.imul(hash ^ (hash >>> 16), 2_246_822_507)
  hash = Math.imul(hash ^ (hash >>> 13), 3_266_489_909)
  return hash ^ (hash >>> 16)
}
