/**
 * Runs a function while permits are held: the common part of locks, read-write locks and semaphores.
 *
 * The core grants permits in the order of the requests, and releases those of a thread that ends.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { effects, isThenable, promiseOf } from '../base/index.ts'
import { native } from '../native/index.ts'
import { Acquire, Fact, Found, Given, thisWaits } from '../bridge/index.ts'
import { SyncError, wrong } from './errors.ts'
import type { SyncHandle } from './handle.ts'
import { type WaitOptions, blockingTurn, turn, waitOf } from './turn.ts'

/** What the function of a guard receives. */
export interface GuardInfo {
  /** Whether the previous holder's thread ended while it held permits: guarded data may be inconsistent. */
  readonly abandoned: boolean
}

const FRESH: GuardInfo = Object.freeze({ abandoned: false })
const ABANDONED: GuardInfo = Object.freeze({ abandoned: true })

/** The guards around the running code, innermost first. */
interface Holding {
  readonly number: number
  readonly amount: number
  active: boolean
  readonly within: Holding | undefined
}

// Constants of this module, which the engine folds; properties of an imported object are loaded at every use.
const { semaphoreTry, semaphoreRelease } = native
const { handle: HANDLE, ticket: TICKET, amount: AMOUNT } = Given
const { status: STATUS } = Found
const { busy: BUSY, abandoned: WAS_ABANDONED } = Acquire
const holding = new AsyncLocalStorage<Holding>()

export function guardSync<R>(
  handle: SyncHandle,
  amount: number,
  fn: (info: GuardInfo) => R,
  timeoutMs: number | undefined,
): R {
  checkBody(`the first argument of a guard of a ${handle.which.kind}`, fn)
  const ticket = thisWaits().ticket()
  let status = tryAcquire(handle, ticket, amount)
  if (status === BUSY) status = acquireBlocking(handle, ticket, amount, timeoutMs)
  let result: R
  try {
    result = fn(status === WAS_ABANDONED ? ABANDONED : FRESH)
  } finally {
    release(handle, ticket)
  }
  if (isThenable(result)) throw new SyncError('SYNC_ASYNC_BODY', handle.which)
  return result
}

export async function guard<R>(
  call: string,
  handle: SyncHandle,
  amount: number,
  fn: (info: GuardInfo) => R | Promise<R>,
  options: WaitOptions | undefined,
  known?: ReadonlySet<string>,
): Promise<R> {
  checkBody(`${call}: the first argument`, fn)
  const wait = waitOf(call, options, known)
  const seeded = effects.seeded?.()
  if (seeded !== undefined) await seeded.step(call)
  const within = holding.getStore()
  const own = ownPermits(handle, within)
  if (own + amount > handle.amount) throw new SyncError('SYNC_DEADLOCK', handle.which)
  const ticket = thisWaits().ticket()
  let status: number
  if (own > 0 && handle.which.kind === 'rwLock') {
    // A nested read can only fail because a writer is queued, and that writer waits for the outer read.
    status = tryAcquire(handle, ticket, amount)
    if (status === BUSY) throw new SyncError('SYNC_DEADLOCK', handle.which)
  } else status = native.semaphoreAcquire(handle.id, ticket, amount, false)
  if (status === Acquire.queued) {
    const cancel = (): boolean => native.semaphoreCancel(handle.id, ticket) === 1
    const fact = await turn(ticket, handle.which, wait, cancel, () => release(handle, ticket))
    status = fact === Fact.abandoned ? Acquire.abandoned : Acquire.granted
  }
  const here: Holding = { number: handle.number, amount, active: true, within }
  const survived = seeded?.whenDead(() => release(handle, ticket))
  try {
    return await holding.run(here, fn, status === WAS_ABANDONED ? ABANDONED : FRESH)
  } finally {
    survived?.()
    here.active = false
    release(handle, ticket)
  }
}

export function tryGuard<R>(
  handle: SyncHandle,
  amount: number,
  fn: (info: GuardInfo) => R,
): { readonly value: R } | undefined {
  checkBody(`the first argument of a guard of a ${handle.which.kind}`, fn)
  const ticket = thisWaits().ticket()
  const status = tryAcquire(handle, ticket, amount)
  if (status === BUSY) return undefined
  const here: Holding = { number: handle.number, amount, active: true, within: holding.getStore() }
  const end = (): void => {
    here.active = false
    release(handle, ticket)
  }
  let isHeld = false
  try {
    const value = holding.run(here, fn, status === WAS_ABANDONED ? ABANDONED : FRESH)
    const promise = promiseOf(value)
    if (promise === undefined) return { value: value }
    isHeld = true
    return { value: promise.finally(end) as R }
  } finally {
    if (!isHeld) end()
  }
}

/** A call of a generator function runs none of its code: the guard would end before its body begins. */
function checkBody(name: string, fn: unknown): void {
  const kind = (fn as { readonly [Symbol.toStringTag]?: unknown } | null | undefined)?.[Symbol.toStringTag]
  const expected = 'a function; in a fiber, run a generator as guard(() => fork(generator).join())'
  if (kind === 'GeneratorFunction' || kind === 'AsyncGeneratorFunction') throw wrong(name, expected, fn)
  if (typeof fn !== 'function') throw wrong(name, 'a function', fn)
}

function tryAcquire(handle: SyncHandle, ticket: number, amount: number): number {
  const { given, words } = handle.scratch
  given[HANDLE] = handle.id
  given[TICKET] = ticket
  given[AMOUNT] = amount
  semaphoreTry()
  return words[STATUS]
}

function acquireBlocking(
  handle: SyncHandle,
  ticket: number,
  amount: number,
  timeoutMs: number | undefined,
): number {
  const status = native.semaphoreAcquire(handle.id, ticket, amount, true)
  if (status === Acquire.own) throw new SyncError('SYNC_DEADLOCK', handle.which)
  if (status !== Acquire.queued) return status
  const fact = blockingTurn(
    ticket,
    handle.which,
    timeoutMs,
    () => native.semaphoreCancel(handle.id, ticket) === 1,
  )
  return fact === Fact.abandoned ? Acquire.abandoned : Acquire.granted
}

function release(handle: SyncHandle, ticket: number): void {
  const { given } = handle.scratch
  given[HANDLE] = handle.id
  given[TICKET] = ticket
  semaphoreRelease()
}

/**
 * The permits that guards around the running code hold. A request for more than the rest would wait for its
 * own code. The async context also covers code that a guard's function started without waiting for it, such
 * as a timer or a listener: the context does not show who waits for whom.
 */
function ownPermits(handle: SyncHandle, within: Holding | undefined): number {
  let own = 0
  for (let at = within; at !== undefined; at = at.within) {
    if (at.active && at.number === handle.number) own += at.amount
  }
  return own
}
