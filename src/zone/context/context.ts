/**
 * Contexts that calls take with them: registered AsyncLocalStorages, and the trace.
 *
 * Both ends must have registered a name, since each thread loads modules of its own; a thread that has not
 * passes the value on to its own calls.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { type Kind, valueOfKind } from '../../base/index.ts'
import { ZoneError } from '../errors.ts'
import { wrong } from '../ground/settings.ts'
import { here } from '../ground/current.ts'
import { type Carrier, type ContextStorage, thisCarrier } from './carrier.ts'
import type { CpuAccount, CpuTime } from '../ground/cpu.ts'
import type { TaskTracing, TraceContext } from '../ground/record.ts'

/** Most names that a thread carries: each call looks at all of them. */
const NAMES_MAX = 32

/** A value that calls take with them: see {@link carry}. */
export interface Context<Value> {
  /** The value of the calling code; `undefined` outside of `run`. */
  getStore(): Value | undefined
  /** Runs `body`, and what it causes, with a value. */
  run<R>(value: Value, body: () => R): R
}

/**
 * A value that calls take with them, such as the user of a request: `carry<User>('user')` returns the same
 * AsyncLocalStorage wherever a thread asks for the name. The task finds the value by `getStore()`, and so do
 * the calls that it makes, fibers, and remote stages of arrows. The value is copied like an argument;
 * `undefined` is not carried.
 *
 * Both ends must have asked for the name. A worker that has not passes the value on with the calls that its
 * task makes; if the task asks later, it finds the value then. A caller that has not sends no value, and the
 * task finds `undefined`. Broadcasts carry nothing, since they run again in later workers.
 * @param name Of 1 to 128 characters; at most 32 names in a thread.
 * @throws {ZoneError} `ZONE_ARGUMENT`.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { carry, zone } from 'corespun/zone'
 *
 * const cpu = zone.create('cpu', { workers: 1 })
 * const greet = async () => {
 *   const { carry } = await import('corespun/zone')
 *   return `Hello ${carry<string>('user').getStore()}`
 * }
 * assert.equal(await carry<string>('user').run('Ann', () => cpu.run(greet)), 'Hello Ann')
 * await cpu.close()
 * ```
 */
export function carry<Value>(name: string): Context<Value>
/**
 * As above, with an AsyncLocalStorage that the program has already; returns it.
 * @throws {ZoneError} `CONTEXT_EXISTS` if another storage has the name; `ZONE_ARGUMENT`.
 */
export function carry<Storage extends ContextStorage>(name: string, storage: Storage): Storage
export function carry(name: string, storage?: ContextStorage): ContextStorage {
  valueOfKind('carry()', 'name', name, NAME, wrong)
  const carrier = thisCarrier()
  const known = carrier.storage(name)
  if (known !== undefined && (storage === undefined || storage === known)) return known
  if (known !== undefined) throw new ZoneError('CONTEXT_EXISTS', { name })
  if (carrier.storagesCount >= NAMES_MAX)
    throw wrong('carry(): the name', `one of at most ${NAMES_MAX} in a thread`, name)
  const chosen = storage === undefined ? new AsyncLocalStorage() : checkedStorage(storage)
  carrier.register(name, chosen)
  return chosen
}

function checkedStorage(storage: unknown): ContextStorage {
  const { getStore, run } = (storage ?? {}) as Partial<ContextStorage>
  if (typeof getStore === 'function' && typeof run === 'function') return storage as ContextStorage
  throw wrong('carry(): the storage', 'an AsyncLocalStorage', storage)
}

const NAME: Kind<string> = {
  expected: 'a string of 1 to 128 characters',
  accepts: (name) => typeof name === 'string' && name.length > 0 && name.length <= 128,
  default: '',
}

/**
 * The trace that the calling code is part of; `undefined` outside of one. Its properties are the headers of
 * requests that belong to it: `fetch(url, { headers: { ...currentTrace() } })`.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { currentTrace, withTrace } from 'corespun/zone'
 *
 * assert.equal(currentTrace(), undefined)
 * assert.deepEqual(withTrace({ baggage: 'tenant=7' }, currentTrace), { baggage: 'tenant=7' })
 * ```
 */
export function currentTrace(): TraceContext | undefined {
  return (here.carrier as Carrier | undefined)?.trace
}

/**
 * Runs `body` as part of a trace, which calls take with them: such as that of a message from a queue.
 * Requests have `traceContext()` of corespun/http. As W3C Trace Context demands, a malformed part is left
 * out, and `tracestate` with a malformed `traceparent`.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { currentTrace, withTrace, zone } from 'corespun/zone'
 *
 * const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
 * const cpu = zone.create('cpu', { workers: 1 })
 * const seen = async () => (await import('corespun/zone')).currentTrace()?.traceparent
 * assert.equal(await withTrace({ traceparent }, () => cpu.run(seen)), traceparent)
 * assert.equal(currentTrace(), undefined)
 * await cpu.close()
 * ```
 */
export function withTrace<R>(trace: Readonly<Partial<TraceContext>>, body: () => R): R {
  return thisCarrier().with({ trace: checkedTrace(trace) }, body)
}

/**
 * Runs `body`, which receives the CPU time that it and what it causes have used: in this thread, also after
 * an `await`, and in the tasks that it calls, whose `currentTask().cpuMs` is their part. A task adds to it
 * when it has ended, however that was, except by the death of its worker.
 *
 * Unused, it costs nothing. A thread in which it has been called follows its callbacks from then on, which
 * makes each `await` there slower; workers with one task at a time do not need that.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { measureCpu, zone } from 'corespun/zone'
 *
 * const cpu = zone.create('cpu', { workers: 1 })
 * const square = async (n: number) => {
 *   const { currentTask } = await import('corespun/zone')
 *   return [n * n, currentTask()?.cpuMs] as const
 * }
 * await measureCpu(async (used) => {
 *   const [squared, ofTask = 0] = await cpu.run(square, 3)
 *   assert.equal(squared, 9)
 *   assert.ok(used.cpuMs >= ofTask)
 * })
 * await cpu.close()
 * ```
 */
export function measureCpu<R>(body: (used: CpuTime) => R): R {
  return thisCarrier().metered().measure(body)
}

/**
 * The same for one of many: where `goesOn` afterwards, until `endCpu`.
 * @param body Runs at once.
 */
export function sampleCpu(body: (used: CpuTime) => void, goesOn: () => boolean): void {
  thisCarrier().metered().sample(body, goesOn)
}

/** Whether that may begin now in this thread, whose callbacks it makes slower. */
export function maySample(): boolean {
  return thisCarrier().metered().maySample()
}

/** What is sampled has ended. */
export function endCpu(used: CpuTime): void {
  const account = used as CpuAccount
  account.meter.end(account)
}

/** What the tasks of measured code have waited, the tasks that it has called itself; in ms. */
export function waitsOf(used: CpuTime): { readonly queueMs: number; readonly hopMs: number } {
  return (used as CpuAccount).waits
}

/** Runs a later part of what is measured. */
export function continueCpu<R>(used: CpuTime, body: () => R): R {
  const account = used as CpuAccount
  return account.meter.task(account, false, body)
}

/** Runs `body` with at most that much time for the calls that it makes. */
export function withTimeLimit<R>(timeoutMs: number, body: () => R): R {
  return thisCarrier().with({ timeoutMs }, body)
}

/** Makes spans of this thread's tasks from now on. Returns a function that ends that. */
export function traceWith(tracing: TaskTracing): () => void {
  const carrier = thisCarrier()
  carrier.tracing = tracing
  return () => {
    if (carrier.tracing === tracing) carrier.tracing = undefined
  }
}

/**
 * The span of the running task, and its samples in a profile, show another function than the task's own. The
 * span shows what has caused it.
 */
export function traceAbout(name: string, cause?: TraceContext): void {
  here.carrier?.tracing?.about(name, cause)
  here.labels?.about(name)
}

/** The span of the running task shows an error that the task returns. */
export function traceFailed(error: unknown): void {
  here.carrier?.tracing?.failed(error)
}

const PARENT = /^(?!ff)[\da-f]{2}-(?!0{32})[\da-f]{32}-(?!0{16})[\da-f]{16}-[\da-f]{2}(?:$|-)/
const VISIBLE = /^[\t\x20-\x7e]+$/
const STATE_MAX = 512
const BAGGAGE_MAX = 8192

/** Those parts of a trace that are well-formed; `undefined` if none is. */
export function checkedTrace({
  traceparent,
  tracestate,
  baggage,
}: {
  readonly [Name in keyof TraceContext]: TraceContext[Name] | undefined
}): TraceContext | undefined {
  const isParent =
    typeof traceparent === 'string' &&
    PARENT.test(traceparent) &&
    // Later versions may be longer; this one is not.
    (traceparent.length === 55 || (traceparent.length < STATE_MAX && !traceparent.startsWith('00')))
  const trace = {
    ...(isParent ? { traceparent } : {}),
    ...(isParent && isText(tracestate, STATE_MAX) ? { tracestate } : {}),
    ...(isText(baggage, BAGGAGE_MAX) ? { baggage } : {}),
  }
  return Object.keys(trace).length === 0 ? undefined : trace
}

function isText(value: unknown, charactersMax: number): value is string {
  return typeof value === 'string' && value.length <= charactersMax && VISIBLE.test(value)
}
