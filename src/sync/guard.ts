/**
 * Permits held while a function runs: what locks, read-write locks and semaphores do.
 *
 * The core gives permits in the order they were asked for. A thread that ends gives back what it held.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { isThenable, promiseOf } from '../base/index.ts'
import { native } from '../native/index.ts'
import { Acquire, Fact, Found, Given, thisWaits } from '../bridge/index.ts'
import { SyncError } from './errors.ts'
import { Thing } from './thing.ts'
import { type WaitOptions, blockingTurn, turn, waitOf } from './turn.ts'

/** What a function that holds something is told. */
export interface Held {
  /** The thread that held it before died while it did: what it guards may be half changed. */
  readonly abandoned: boolean
}

const FRESH: Held = Object.freeze({ abandoned: false })
const ABANDONED: Held = Object.freeze({ abandoned: true })

/** What the code that runs now holds, innermost first. */
interface Holding {
  readonly number: number
  readonly amount: number
  active: boolean
  readonly within: Holding | undefined
}

const { semaphoreTry, semaphoreRelease } = native
const holding = new AsyncLocalStorage<Holding>()

/**
 * Run `fn` with `amount` permits, blocking until they are had.
 * @throws {SyncError} `SYNC_OWN`, `SYNC_TIMEOUT`, `SYNC_ASYNC_BODY`.
 */
export function guardSync<R>(
  thing: Thing,
  amount: number,
  fn: (held: Held) => R,
  timeoutMs: number | undefined,
): R {
  const ticket = thisWaits().ticket()
  let status = tryAcquire(thing, ticket, amount)
  if (status === Acquire.busy) status = acquireBlocking(thing, ticket, amount, timeoutMs)
  let result: R
  try {
    result = fn(status === Acquire.abandoned ? ABANDONED : FRESH)
  } finally {
    release(thing, ticket)
  }
  if (isThenable(result)) throw new SyncError('SYNC_ASYNC_BODY', thing.which)
  return result
}

/**
 * Run `fn` with `amount` permits when it is its turn, and hold them until what it returns has settled.
 * @throws {SyncError} `SYNC_OWN`, `SYNC_TIMEOUT`, `SYNC_ARGUMENT`.
 * @throws the signal's reason, and what `fn` throws.
 */
export async function guard<R>(
  call: string,
  thing: Thing,
  amount: number,
  fn: (held: Held) => R | Promise<R>,
  options: WaitOptions | undefined,
  known?: ReadonlySet<string>,
): Promise<R> {
  const wait = waitOf(call, options, known)
  const within = holding.getStore()
  const own = ownPermits(thing, within)
  if (own + amount > thing.amount) throw new SyncError('SYNC_OWN', thing.which)
  const ticket = thisWaits().ticket()
  let status: number
  if (own > 0 && thing.which.kind === 'rwLock') {
    // A read within a read is not free only because a writer waits in front, for the outer one to end.
    status = tryAcquire(thing, ticket, amount)
    if (status === Acquire.busy) throw new SyncError('SYNC_OWN', thing.which)
  } else status = native.semaphoreAcquire(thing.handle, ticket, amount, false)
  if (status === Acquire.queued) {
    const fact = await turn(
      ticket,
      thing.which,
      wait,
      () => native.semaphoreCancel(thing.handle, ticket) === 1,
    )
    status = fact === Fact.abandoned ? Acquire.abandoned : Acquire.granted
  }
  const here: Holding = { number: thing.number, amount, active: true, within }
  try {
    return await holding.run(here, fn, status === Acquire.abandoned ? ABANDONED : FRESH)
  } finally {
    here.active = false
    release(thing, ticket)
  }
}

/** Run `fn` with `amount` permits if they are free now; a promise it returns keeps them until it settles. */
export function tryGuard<R>(
  thing: Thing,
  amount: number,
  fn: (held: Held) => R,
): { readonly value: R } | undefined {
  const ticket = thisWaits().ticket()
  const status = tryAcquire(thing, ticket, amount)
  if (status === Acquire.busy) return undefined
  // As in guard: what `fn` awaits is refused when it would wait for `fn`.
  const here: Holding = { number: thing.number, amount, active: true, within: holding.getStore() }
  const end = (): void => {
    here.active = false
    release(thing, ticket)
  }
  let isHeld = false
  try {
    const value = holding.run(here, fn, status === Acquire.abandoned ? ABANDONED : FRESH)
    const promise = promiseOf(value)
    if (promise === undefined) return { value: value }
    isHeld = true
    return { value: promise.finally(end) as R }
  } finally {
    if (!isHeld) end()
  }
}

function tryAcquire(thing: Thing, ticket: number, amount: number): number {
  const { given, words } = Thing.scratchOf(thing)
  given[Given.handle] = thing.handle
  given[Given.ticket] = ticket
  given[Given.amount] = amount
  semaphoreTry()
  return words[Found.status]
}

function acquireBlocking(
  thing: Thing,
  ticket: number,
  amount: number,
  timeoutMs: number | undefined,
): number {
  const status = native.semaphoreAcquire(thing.handle, ticket, amount, true)
  if (status === Acquire.own) throw new SyncError('SYNC_OWN', thing.which)
  if (status !== Acquire.queued) return status
  const fact = blockingTurn(
    ticket,
    thing.which,
    timeoutMs,
    () => native.semaphoreCancel(thing.handle, ticket) === 1,
  )
  return fact === Fact.abandoned ? Acquire.abandoned : Acquire.granted
}

function release(thing: Thing, ticket: number): void {
  const { given } = Thing.scratchOf(thing)
  given[Given.handle] = thing.handle
  given[Given.ticket] = ticket
  semaphoreRelease()
}

/**
 * What the code that runs now holds of a thing. More than the thing has left beside it would never come: the
 * code holds it until it has ended. Code that a guard's function has begun and does not wait for (a listener
 * of what it emits, a timer) has the same async context and is judged the same: the context does not say who
 * waits for whom.
 */
function ownPermits(thing: Thing, within: Holding | undefined): number {
  let own = 0
  for (let at = within; at !== undefined; at = at.within) {
    if (at.active && at.number === thing.number) own += at.amount
  }
  return own
}
