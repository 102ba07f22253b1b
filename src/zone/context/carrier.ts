/**
 * How this thread carries contexts: which AsyncLocalStorages, and what belongs to the running code.
 *
 * It is made when something is carried, and calls look at that one variable (`here.carrier`). What a task has
 * received is in its record; a storage of this thread's own contains what code has set since, and what the
 * task only passes on. So a thread that receives deadlines and traces alone never enters a storage, since
 * Node 20 and 22 follow every promise of a thread in which one was entered.
 */
import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks'
import { currentTask } from '../ground/task.ts'
import { here } from '../ground/current.ts'
import { CpuMeter } from '../ground/cpu.ts'
import {
  Carried,
  type CallRecord,
  type Carrying,
  type Slots,
  type TaskTracing,
  type TraceContext,
  nowMs,
} from '../ground/record.ts'

/** The part of AsyncLocalStorage in use, so that the published types do not need those of Node. */
export interface ContextStorage {
  /** The value of the calling code. */
  getStore(): unknown
  /** Runs `body` with a value. */
  run<R>(store: never, body: () => R): R
}

/** As Node has it. */
interface RegisteredStorage extends ContextStorage {
  enterWith?(store: never): void
}

/** What belongs to the running code besides its task's record and the values of registered storages. */
interface Ambient {
  readonly deadlineMs: number
  readonly trace: TraceContext | undefined
  /** Names that this thread has not registered, and their values: they go on to further calls. */
  readonly others: readonly unknown[]
}

const NONE: readonly unknown[] = Object.freeze([])
const NO_SLOTS: Slots = { storagesCount: 0, values: NONE, others: NONE }

/**
 * The context of a thread's start. Turns of tasks run in it, and each task sets what it has received, where
 * that differs from what the task before it had. So tasks of one context in a row cost nothing more, and what
 * is set is left with the turn. `run` of a storage makes two Maps on Node 24, each slower than all of this.
 */
const OUTSIDE = new AsyncResource('CORESPUN')

export class Carrier implements Carrying {
  readonly #names: string[] = []
  readonly #storages: RegisteredStorage[] = []
  readonly #ambient = new AsyncLocalStorage<Ambient | undefined>()
  /** What the last call with a context that is fixed has taken. */
  #last: Carried | undefined
  /** Whether the storage above may contain something. */
  #hasAmbient = false
  /** Whether a task has received a name that was not registered. */
  #hasOthers = false
  /** The running turn began in {@link OUTSIDE}. */
  #isInTurn = false
  tracing: TaskTracing | undefined = undefined
  meter: CpuMeter | undefined = undefined

  storage(name: string): ContextStorage | undefined {
    return this.#storages[this.#names.indexOf(name)]
  }

  get storagesCount(): number {
    return this.#storages.length
  }

  /**
   * Tasks that have received the name before, such as the one whose import registers it, find their value
   * too: from then on the storage also looks among those that they would pass on.
   */
  register(name: string, storage: ContextStorage): void {
    this.#names.push(name)
    this.#storages.push(storage)
    if (!this.#hasOthers) return
    const stored = storage.getStore.bind(storage)
    const getStore = (): unknown => stored() ?? valueIn(this.#now()?.others ?? NONE, name)
    Object.defineProperty(storage, 'getStore', { value: getStore, configurable: true, writable: true })
  }

  /** The meter of this thread, made at its first use. */
  metered(): CpuMeter {
    return (this.meter ??= new CpuMeter())
  }

  get trace(): TraceContext | undefined {
    const active = this.tracing?.current()
    if (active !== undefined) return active
    const now = this.#now()
    return now === undefined ? currentTask()?.record?.carried?.trace : now.trace
  }

  /** Runs `body` with an earlier deadline, or in another trace. */
  with<R>(
    changes: { readonly timeoutMs: number } | { readonly trace: TraceContext | undefined },
    body: () => R,
  ): R {
    const { trace } = 'trace' in changes ? changes : this
    const deadlineMs =
      'timeoutMs' in changes ? Math.min(this.deadlineMs(), nowMs() + changes.timeoutMs) : this.deadlineMs()
    const others = this.#now()?.others ?? NONE
    this.#hasAmbient = true
    return this.#ambient.run({ deadlineMs, trace, others }, body)
  }

  record(): CallRecord | undefined {
    const now = this.#now()
    const received = currentTask()?.record
    const ownMs = received === undefined ? Infinity : received.deadlineMs
    const deadlineMs = now === undefined ? ownMs : Math.min(ownMs, now.deadlineMs)
    const trace = this.tracing?.current() ?? (now === undefined ? received?.carried?.trace : now.trace)
    const carried = this.#carried(trace, now === undefined ? NONE : now.others)
    const cpu = this.meter?.current()
    if (deadlineMs === Infinity && cpu === undefined) return carried?.alone
    return { deadlineMs, carried, cpu }
  }

  deadlineMs(): number {
    const received = currentTask()?.record?.deadlineMs ?? Infinity
    return Math.min(received, this.#now()?.deadlineMs ?? Infinity)
  }

  isToEnter(record: CallRecord | undefined): boolean {
    const slots = this.#slotsOf(record?.carried)
    if (slots.others !== NONE || this.#now() !== undefined) return true
    // What another task has left there is not this one's.
    for (let index = 0; index < this.#storages.length; index++)
      if (!Object.is(this.#storages[index].getStore(), slots.values[index])) return true
    return false
  }

  enter<R>(record: CallRecord | undefined, isInTurn: boolean, body: () => R): R {
    const carried = record?.carried
    if (isInTurn && this.#isInTurn) return this.#entered(carried, body)
    return new AsyncResource('CORESPUN').runInAsyncScope(() => this.#entered(carried, body))
  }

  turn(body: () => void): void {
    if (this.#storages.length === 0 && !this.#hasAmbient) return body()
    this.#isInTurn = true
    try {
      OUTSIDE.runInAsyncScope(body)
    } finally {
      this.#isInTurn = false
    }
  }

  /** Runs `body` after setting a context, which stays where that is possible. */
  #entered<R>(carried: Carried | undefined, body: () => R): R {
    const { values, others } = this.#slotsOf(carried)
    const ambient = others === NONE ? undefined : { deadlineMs: Infinity, trace: carried?.trace, others }
    if (ambient !== undefined) this.#hasAmbient = this.#hasOthers = true
    if (this.#now() !== ambient) this.#ambient.enterWith(ambient)
    let run = body
    for (let index = 0; index < this.#storages.length; index++) {
      const storage = this.#storages[index]
      const value = values[index]
      if (Object.is(storage.getStore(), value)) continue
      if (storage.enterWith !== undefined) storage.enterWith(value as never)
      else {
        const inner = run
        run = () => storage.run(value as never, inner)
      }
    }
    return run()
  }

  #slotsOf(carried: Carried | undefined): Slots {
    if (carried?.values === undefined) return NO_SLOTS
    const known = carried.slots
    if (known?.storagesCount === this.#storages.length) return known
    const { values } = carried
    return (carried.slots = {
      storagesCount: this.#storages.length,
      values: this.#names.map((name) => valueIn(values, name)),
      others: this.#unknown(values),
    })
  }

  bound(): (<R>(body: () => R) => R) | undefined {
    const { meter } = this
    const isAny = this.#hasAmbient || this.#storages.length > 0 || this.tracing !== undefined
    if (!isAny && meter === undefined) return undefined
    const snapshot = AsyncLocalStorage.snapshot()
    if (meter === undefined) return snapshot
    const account = meter.current()
    return (body) => snapshot(() => meter.charge(account, body))
  }

  #now(): Ambient | undefined {
    return this.#hasAmbient ? this.#ambient.getStore() : undefined
  }

  /** The trace and the values for a call; `undefined` for nothing. */
  #carried(trace: TraceContext | undefined, others: readonly unknown[]): Carried | undefined {
    const last = this.#last
    if (last !== undefined && isTrace(last.trace, trace) && this.#areValues(last.values ?? NONE, others))
      return last
    const values = this.#values(others)
    if (trace === undefined && values === undefined) return undefined
    const carried = new Carried(trace, values)
    // What a program can change is read for each call, and not kept.
    if (carried.isFixed) this.#last = carried
    return carried
  }

  /** Whether `#values` would return these. */
  #areValues(values: readonly unknown[], others: readonly unknown[]): boolean {
    let at = 0
    for (let index = 0; index < this.#storages.length; index++) {
      const value = this.#storages[index].getStore()
      if (value === undefined) continue
      if (values[at] !== this.#names[index] || !Object.is(values[at + 1], value)) return false
      at += 2
    }
    for (let index = 0; index < others.length; index++, at++)
      if (!Object.is(values[at], others[index])) return false
    return at === values.length
  }

  /** Names and values for a call: those of storages, then those that the calling code has received. */
  #values(others: readonly unknown[]): readonly unknown[] | undefined {
    let values: unknown[] | undefined
    for (let index = 0; index < this.#storages.length; index++) {
      const value = this.#storages[index].getStore()
      if (value !== undefined) (values ??= []).push(this.#names[index], value)
    }
    // A name that was registered late is found in its storage first.
    if (others.length > 0) (values ??= []).push(...others)
    return values
  }

  /** Those names and values that no storage of this thread takes. */
  #unknown(values: readonly unknown[]): readonly unknown[] {
    let others: unknown[] | undefined
    for (let at = 0; at < values.length; at += 2)
      if (!this.#names.includes(values[at] as string)) (others ??= []).push(values[at], values[at + 1])
    return others ?? NONE
  }
}

function isTrace(one: TraceContext | undefined, other: TraceContext | undefined): boolean {
  if (one === other) return true
  if (one === undefined || other === undefined) return false
  const { traceparent, tracestate, baggage } = other
  return one.traceparent === traceparent && one.tracestate === tracestate && one.baggage === baggage
}

function valueIn(values: readonly unknown[], name: string): unknown {
  for (let at = 0; at < values.length; at += 2) if (values[at] === name) return values[at + 1]
  return undefined
}

export function thisCarrier(): Carrier {
  return (here.carrier ??= new Carrier()) as Carrier
}
