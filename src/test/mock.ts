/**
 * Timers, time, and random numbers of the platform, for the code of a run alone.
 *
 * Globals and modules of Node are replaced while a check runs; what is called outside of a run's tasks gets
 * the real ones. The real ones return with the end of the check.
 */
import { promisify } from 'node:util'
import { TIMER_MS_MAX, uuidText } from '../base/index.ts'
import { type Actor, EPOCH_MS, current } from './play.ts'
import { ClientEnd } from './sockets.ts'

type Any = (...args: never[]) => unknown

/** What Node makes of one that is too long: 1 ms. */
const timerMs = (ms: unknown): number => (Number(ms) > TIMER_MS_MAX ? 1 : Number(ms))

interface Timed {
  readonly actor: Actor
  readonly what: string
  /** Absent: at once. */
  readonly ms?: number
  readonly isRepeated?: boolean
  readonly fn: () => unknown
}

/** What `setTimeout` and its kin return in a run. */
class SeededTimer {
  readonly #timed: Timed
  readonly #where: string
  #isRef = true
  #end = (): void => {}
  /** Whether it keeps a process alive is over. */
  #forget = (): void => {}

  constructor(timed: Timed) {
    this.#timed = timed
    this.#where = timed.actor.play.where()
    this.refresh()
  }
  refresh(): this {
    this.close()
    const { actor, what, ms, isRepeated, fn } = this.#timed
    const { play } = actor
    let isOver = false
    if (this.#isRef && ms !== undefined) this.#forget = play.opened(actor, what)
    const fire = (): void => {
      if (isOver) return
      this.#forget()
      if (isRepeated === true) this.refresh()
      fn()
    }
    const due = (): void => play.ready(actor, what, () => current.run(actor, fire), this.#where)
    const end = ms === undefined ? due() : play.after(ms, due)
    this.#end = () => {
      isOver = true
      end?.()
    }
    return this
  }
  close(): this {
    this.#end()
    this.#forget()
    return this
  }
  ref(): this {
    this.#isRef = true
    return this
  }
  unref(): this {
    this.#isRef = false
    this.#forget()
    return this
  }
  hasRef(): boolean {
    return this.#isRef
  }
  [Symbol.dispose](): void {
    this.close()
  }
}

/** A random UUID of a task. */
export function uuidOf(actor: Actor): string {
  const bytes = Buffer.alloc(16)
  filled(actor, bytes)
  return uuidText(bytes.toString('hex'), 4)
}

/** As `randomFillSync()`: offset and size are of elements. */
function filled({ random }: Actor, view: ArrayBuffer | NodeJS.ArrayBufferView, from = 0, count = Infinity) {
  const { BYTES_PER_ELEMENT: width = 1 } = view as { readonly BYTES_PER_ELEMENT?: number }
  const [buffer, begin] = ArrayBuffer.isView(view) ? [view.buffer, view.byteOffset] : [view, 0]
  const bytes = new Uint8Array(buffer, begin, view.byteLength)
  const end = Math.min(bytes.length, (from + count) * width)
  for (let at = from * width; at < end; at++) bytes[at] = Math.floor(random() * 256)
  return view
}

function mockRandom(within: Within): void {
  within(Math, 'random', ({ random }) => random())
  const crypto = process.getBuiltinModule('node:crypto')
  for (const on of [globalThis.crypto, crypto]) within(on, 'randomUUID', uuidOf)
  // That of node:crypto is looked up here.
  within(globalThis.crypto, 'getRandomValues', (actor, view: Uint8Array) => filled(actor, view))
  /** Called back, or returned. */
  const called = (name: string, make: (actor: Actor, ...args: never[]) => unknown): void =>
    within(crypto, name, (actor, ...args) => {
      const callback: unknown = args.at(-1)
      if (typeof callback !== 'function') return make(actor, ...args)
      const value = make(actor, ...args.slice(0, -1))
      actor.play.ready(actor, `${name}()`, () => current.run(actor, () => (callback as Called)(null, value)))
      return undefined
    })
  called('randomBytes', (actor, size: number) => filled(actor, Buffer.alloc(size)))
  called('randomFill', filled)
  called('randomFillSync', filled)
  called('randomInt', ({ random }, least: number, end?: number) => {
    const [from, to] = end === undefined ? [0, least] : [least, end]
    return from + Math.floor(random() * (to - from))
  })
}

type Called = (error: null, value: unknown) => void

function mockClocks(within: Within): void {
  within(performance, 'now', ({ play }) => play.nowMs())
  const nowNs = ({ play }: Actor): number => Math.round(play.nowMs() * 1e6)
  within(process, 'hrtime', (actor, [s, ns]: readonly [number, number] = [0, 0]) => {
    // In whole ns: of a fraction, a moment ago would be later than now.
    const sinceNs = nowNs(actor) - s * 1e9 - ns
    const leftNs = sinceNs % 1e9
    return [(sinceNs - leftNs) / 1e9, leftNs]
  })
  within(process.hrtime, 'bigint', (actor) => BigInt(nowNs(actor)))
  const { mark } = performance
  within(performance, 'mark', ({ play }, name: string, options?: object) =>
    Reflect.apply(mark, performance, [name, { startTime: play.nowMs(), ...options }]),
  )
  within(process, 'uptime', ({ play }) => play.nowMs() / 1000)
  const { Temporal } = globalThis as { readonly Temporal?: TemporalNow }
  // Absent before Node 26.
  if (Temporal === undefined) return
  const { Now, Instant } = Temporal
  const zoned = ({ play }: Actor, zone = Now.timeZoneId()) =>
    Instant.fromEpochMilliseconds(Math.floor(play.wallMs())).toZonedDateTimeISO(zone)
  within(Now, 'zonedDateTimeISO', zoned)
  within(Now, 'instant', (actor) => zoned(actor)['toInstant']())
  for (const kind of ['DateTime', 'Date', 'Time'])
    within(Now, `plain${kind}ISO`, (actor, zone?: string) => zoned(actor, zone)[`toPlain${kind}`]())
}

/** What is used of it; the declarations of Node 20 lack it. */
interface TemporalNow {
  readonly Now: { timeZoneId(): string }
  readonly Instant: {
    fromEpochMilliseconds(ms: number): { toZonedDateTimeISO(zone: string): Record<string, () => unknown> }
  }
}

/** Where a date is formatted that is not passed, it is that of the run. */
function mockFormats(define: Define): void {
  const { prototype } = Intl.DateTimeFormat
  const nowMs = (): number | undefined => current.getStore()?.play.wallMs()
  const { get } = Object.getOwnPropertyDescriptor(prototype, 'format')!
  define(prototype, 'format', {
    get(this: Intl.DateTimeFormat) {
      const real = Reflect.apply(get!, this, []) as Intl.DateTimeFormat['format']
      return current.getStore() === undefined ? real : (date?: Date | number) => real(date ?? nowMs())
    },
  })
  const { formatToParts: parts } = prototype
  const value = function (this: Intl.DateTimeFormat, date?: Date | number): Intl.DateTimeFormatPart[] {
    return Reflect.apply(parts, this, [date ?? nowMs()])
  }
  define(prototype, 'formatToParts', { value, writable: true })
}

/** Replace them all; what is returned undoes it. */
export function mockGlobals(): () => void {
  const undone: (() => void)[] = []
  const define: Define = (on, name, made) => {
    const before = Object.getOwnPropertyDescriptor(on, name)
    Object.defineProperty(on, name, {
      configurable: true,
      enumerable: before?.enumerable === true,
      ...made,
    })
    undone.push(() => {
      if (before === undefined) Reflect.deleteProperty(on, name)
      else Object.defineProperty(on, name, before)
    })
  }
  /** A function of a run's tasks; others get the real one. */
  const within: Within = (on, name, seeded) => {
    const real = Reflect.get(on, name) as Any
    const replaced = function (this: unknown, ...args: never[]): unknown {
      const actor = current.getStore()
      return actor === undefined ? Reflect.apply(real, this, args) : seeded(actor, ...args)
    }
    define(on, name, { value: Object.assign(replaced, real), writable: true })
  }
  mockTimers(within)
  within(globalThis, 'fetch', ({ play }, ...args: Parameters<typeof fetch>) => play.fetch(...args))
  mockRandom(within)
  mockClocks(within)
  mockFormats(define)
  const { timeOrigin } = performance
  define(performance, 'timeOrigin', {
    get: () => (current.getStore() === undefined ? timeOrigin : EPOCH_MS),
  })
  define(globalThis, 'Date', { value: dateOf(Date), writable: true })
  const socket = Object.getOwnPropertyDescriptor(globalThis, 'WebSocket')
  // Absent in Node 20. To read it loads it, which takes tens of milliseconds.
  if (socket !== undefined) {
    const value = socketOf(() => (socket.get?.call(globalThis) ?? socket.value) as SocketMaker)
    define(globalThis, 'WebSocket', { value, writable: true })
  }
  const { syncBuiltinESMExports } = process.getBuiltinModule('node:module')
  syncBuiltinESMExports()
  return () => {
    for (const undo of undone.reverse()) undo()
    syncBuiltinESMExports()
  }
}

type Define = (on: object, name: string, made: PropertyDescriptor) => void
type Within = (on: object, name: string, seeded: (actor: Actor, ...args: never[]) => unknown) => void

function mockTimers(within: Within): void {
  const promises = process.getBuiltinModule('node:timers/promises')
  const timer =
    (what: string, isRepeated: boolean) =>
    (actor: Actor, fn: (...args: unknown[]) => unknown, ms?: number, ...args: unknown[]) =>
      new SeededTimer({ actor, what, ms: Math.max(1, timerMs(ms) || 1), isRepeated, fn: () => fn(...args) })
  const clear =
    (real: (timer: never) => void) =>
    (_actor: Actor, timer: unknown): void => {
      if (timer instanceof SeededTimer) timer.close()
      else real(timer as never)
    }
  const immediate = (actor: Actor, fn: (...args: unknown[]) => unknown, ...args: unknown[]) =>
    new SeededTimer({ actor, what: 'setImmediate()', fn: () => fn(...args) })
  for (const on of [globalThis, process.getBuiltinModule('node:timers')]) {
    const { clearTimeout, clearInterval, clearImmediate } = on
    within(on, 'setTimeout', timer('setTimeout()', false))
    within(on, 'setInterval', timer('setInterval()', true))
    within(on, 'setImmediate', immediate)
    within(on, 'clearTimeout', clear(clearTimeout))
    within(on, 'clearInterval', clear(clearInterval))
    within(on, 'clearImmediate', clear(clearImmediate))
    for (const name of ['setTimeout', 'setImmediate'] as const)
      Object.defineProperty(on[name], promisify.custom, {
        value: (...args: never[]) => promises[name](...args),
      })
  }
  const later = (what: string) => (actor: Actor, ms: number, value: unknown, options: object | undefined) =>
    sleepOf(actor, what, timerMs(ms), value, options)
  within(promises, 'setTimeout', later('setTimeout()'))
  within(promises.scheduler, 'wait', (actor: Actor, ms: number, options: object) =>
    sleepOf(actor, 'scheduler.wait()', ms, undefined, options),
  )
  within(promises, 'setImmediate', (actor: Actor, value: unknown, options: object) =>
    sleepOf(actor, 'setImmediate()', 0, value, options),
  )
  within(promises.scheduler, 'yield', (actor) => sleepOf(actor, 'scheduler.yield()', 0, undefined))
  within(promises, 'setInterval', ticks)
  within(AbortSignal, 'timeout', (actor: Actor, ms: number) => {
    const controller = new AbortController()
    const why = 'The operation was aborted due to timeout'
    const fn = (): void => controller.abort(new DOMException(why, 'TimeoutError'))
    new SeededTimer({ actor, what: 'AbortSignal.timeout()', ms, fn }).unref()
    return controller.signal
  })
}

/** That of node:timers/promises: one that is read late has what it missed at once. */
async function* ticks(actor: Actor, ms = 1, value?: unknown, options?: object): AsyncGenerator {
  const everyMs = Math.max(1, timerMs(ms) || 1)
  for (let atMs = actor.play.nowMs() + everyMs; ; atMs += everyMs)
    yield await sleepOf(actor, 'setInterval()', atMs - actor.play.nowMs(), value, options)
}

/** Resolves with `value` when so much time has passed. */
export function sleepOf<Value>(
  actor: Actor,
  what: string,
  ms: number,
  value: Value,
  { signal }: { readonly signal?: AbortSignal } = {},
): Promise<Value> {
  const wait = actor.play.wait<Value>(actor, what)
  const abort = (): void => {
    end()
    wait.reject(abortError(signal!))
  }
  const end = actor.play.after(Math.max(0, Number(ms) || 0), () => {
    signal?.removeEventListener('abort', abort)
    wait.resolve(value)
  })
  if (signal?.aborted === true) abort()
  else signal?.addEventListener('abort', abort, { once: true })
  return wait.promise
}

/** As Node's timers reject. */
function abortError({ reason }: AbortSignal): Error {
  const error = new Error('The operation was aborted', { cause: reason })
  return Object.assign(error, { name: 'AbortError', code: 'ABORT_ERR' })
}

type SocketMaker = new (url: string, protocols?: string) => object

/** Of tasks it is one of the run; others get the real one. */
function socketOf(real: () => SocketMaker): object {
  // Of a bound function, which has no prototype: that of a proxy could not differ from it.
  return new Proxy(Object.bind(undefined), {
    construct: (_, args: [string, string?]) =>
      current.getStore()?.play.socket(...args) ?? new (real())(...args),
    get: (_, name) => Reflect.get(current.getStore() === undefined ? real() : ClientEnd, name) as unknown,
  })
}

function dateOf(real: DateConstructor): DateConstructor {
  const nowMs = (): number => {
    const actor = current.getStore()
    return actor === undefined ? real.now() : Math.floor(actor.play.wallMs())
  }
  return new Proxy(real, {
    construct: (target, args: unknown[], made) =>
      Reflect.construct(target, args.length === 0 ? [nowMs()] : args, made) as object,
    apply: () => new real(nowMs()).toString(),
    get: (target, name) => (name === 'now' ? nowMs : Reflect.get(target, name)),
  })
}
