/**
 * Timers, time, and random numbers of the platform, for the code of a run alone.
 *
 * Globals and modules of Node are replaced while a check runs; what is called outside of a run's tasks gets
 * the real ones. The real ones return with the end of the check.
 */
import { type Actor, current } from './play.ts'
import { ClientEnd } from './sockets.ts'

type Any = (...args: never[]) => unknown

/** What `setTimeout` and its kin return in a run. */
class SeededTimer {
  end = (): void => {}
  /** Whether it keeps a process alive, and what is to be done when it does not any more. */
  isRef = true
  forget = (): void => {}
  readonly #begin: (timer: SeededTimer) => void

  constructor(begin: (timer: SeededTimer) => void) {
    this.#begin = begin
    begin(this)
  }
  ref(): this {
    this.isRef = true
    return this
  }
  unref(): this {
    this.isRef = false
    this.forget()
    return this
  }
  hasRef(): boolean {
    return this.isRef
  }
  refresh(): this {
    this.end()
    this.#begin(this)
    return this
  }
  close(): this {
    this.end()
    return this
  }
  [Symbol.dispose](): void {
    this.end()
  }
}

/** A timer of a task, which fires as often as it is to. */
function timerOf(
  actor: Actor,
  what: string,
  ms: number,
  isRepeated: boolean,
  fn: () => unknown,
): SeededTimer {
  const where = actor.play.where()
  return new SeededTimer((timer) => {
    const begin = (): void => {
      let isOver = false
      timer.forget = timer.isRef ? actor.play.opened(actor, what) : (): void => {}
      const fire = (): void => {
        if (isOver) return
        timer.forget()
        if (isRepeated) begin()
        fn()
      }
      const end = actor.play.after(ms, () =>
        actor.play.ready(actor, what, () => current.run(actor, fire), where),
      )
      timer.end = () => {
        isOver = true
        timer.forget()
        end()
      }
    }
    begin()
  })
}

/** A random UUID of a task. */
export function uuidOf({ random }: Actor): string {
  const hex = (count: number): string =>
    Array.from({ length: count }, () => Math.floor(random() * 16).toString(16)).join('')
  const variant = '89ab'[Math.floor(random() * 4)]
  return `${hex(8)}-${hex(4)}-4${hex(3)}-${variant}${hex(3)}-${hex(12)}`
}

/** As `randomBytes()` of node:crypto. */
function bytesOf(
  actor: Actor,
  size: number,
  callback?: (error: null, bytes: Buffer) => void,
): Buffer | undefined {
  const bytes = Buffer.from(Array.from({ length: size }, () => Math.floor(actor.random() * 256)))
  if (callback === undefined) return bytes
  actor.play.ready(actor, 'randomBytes()', () => current.run(actor, () => callback(null, bytes)))
  return undefined
}

/** Replace them all; what is returned undoes it. */
export function mockGlobals(): () => void {
  const undone: (() => void)[] = []
  const put = (on: object, name: string, make: (real: Any) => unknown): void => {
    const before = Object.getOwnPropertyDescriptor(on, name)
    const value = make(Reflect.get(on, name) as Any)
    const enumerable = before?.enumerable === true
    Object.defineProperty(on, name, { value, writable: true, configurable: true, enumerable })
    undone.push(() => {
      if (before === undefined) Reflect.deleteProperty(on, name)
      else Object.defineProperty(on, name, before)
    })
  }
  /** A function of a run's tasks; others get the real one. */
  const within = (on: object, name: string, seeded: (actor: Actor, ...args: never[]) => unknown): void =>
    put(on, name, (real) => {
      const replaced = function (this: unknown, ...args: never[]): unknown {
        const actor = current.getStore()
        return actor === undefined ? Reflect.apply(real, this, args) : seeded(actor, ...args)
      }
      return Object.assign(replaced, real)
    })
  mockTimers(within)
  within(globalThis, 'fetch', ({ play }, ...args: Parameters<typeof fetch>) => play.fetch(...args))
  within(Math, 'random', ({ random }) => random())
  within(performance, 'now', ({ play }) => play.nowMs())
  within(globalThis.crypto, 'randomUUID', uuidOf)
  within(process.getBuiltinModule('node:crypto'), 'randomUUID', uuidOf)
  within(process.getBuiltinModule('node:crypto'), 'randomBytes', bytesOf)
  put(globalThis, 'Date', (real) => dateOf(real as unknown as DateConstructor))
  const socket = Object.getOwnPropertyDescriptor(globalThis, 'WebSocket')
  // Absent in Node 20. To read it loads it, which takes tens of milliseconds.
  if (socket !== undefined) {
    const value = socketOf(() => (socket.get?.call(globalThis) ?? socket.value) as SocketMaker)
    Object.defineProperty(globalThis, 'WebSocket', { value, writable: true, configurable: true })
    undone.push(() => void Object.defineProperty(globalThis, 'WebSocket', socket))
  }
  const { syncBuiltinESMExports } = process.getBuiltinModule('node:module')
  syncBuiltinESMExports()
  return () => {
    for (const undo of undone.reverse()) undo()
    syncBuiltinESMExports()
  }
}

type Within = (on: object, name: string, seeded: (actor: Actor, ...args: never[]) => unknown) => void

function mockTimers(within: Within): void {
  const promises = process.getBuiltinModule('node:timers/promises')
  const timer =
    (what: string, isRepeated: boolean) =>
    (actor: Actor, fn: (...args: unknown[]) => unknown, ms?: number, ...args: unknown[]): SeededTimer =>
      timerOf(actor, what, Math.max(1, Number(ms) || 1), isRepeated, () => fn(...args))
  const clear =
    (real: (timer: never) => void) =>
    (_actor: Actor, timer: unknown): void => {
      if (timer instanceof SeededTimer) timer.end()
      else real(timer as never)
    }
  const immediate = (actor: Actor, fn: (...args: unknown[]) => unknown, ...args: unknown[]): SeededTimer => {
    const made = new SeededTimer(() => {})
    let isOver = false
    made.end = () => {
      isOver = true
    }
    const run = (): unknown => isOver || fn(...args)
    actor.play.ready(actor, 'setImmediate()', () => current.run(actor, run))
    return made
  }
  for (const on of [globalThis, process.getBuiltinModule('node:timers')]) {
    const { clearTimeout, clearInterval, clearImmediate } = on
    within(on, 'setTimeout', timer('setTimeout()', false))
    within(on, 'setInterval', timer('setInterval()', true))
    within(on, 'setImmediate', immediate)
    within(on, 'clearTimeout', clear(clearTimeout))
    within(on, 'clearInterval', clear(clearInterval))
    within(on, 'clearImmediate', clear(clearImmediate))
  }
  const later = (what: string) => (actor: Actor, ms: number, value: unknown, options: object | undefined) =>
    sleepOf(actor, what, ms, value, options)
  within(promises, 'setTimeout', later('setTimeout()'))
  within(promises.scheduler, 'wait', (actor: Actor, ms: number, options: object) =>
    sleepOf(actor, 'scheduler.wait()', ms, undefined, options),
  )
  within(promises, 'setImmediate', (actor: Actor, value: unknown, options: object) =>
    sleepOf(actor, 'setImmediate()', 0, value, options),
  )
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
