/**
 * An AbortSignal passed as an argument arrives as a signal that is aborted when the first one is.
 *
 * A signal has a number in the process. The thread that first sends one owns it: it fires the number when
 * its signal is aborted and forgets it when its signal is collected. A thread that receives the number has
 * one signal for it, kept as long as it can be aborted, since a task may have nothing but a listener on it,
 * and then as long as somebody holds it. The reason travels with the abort; where it cannot be sent or read,
 * that error is the reason.
 */
import { Mail, native } from '../../native/index.ts'
import { registerHandle } from '../../transport/internal.ts'
import { onAbort } from '../../base/index.ts'
import { thisBridge } from '../../bridge/index.ts'
import { reasonFrame, reasonIn } from './reasons.ts'

/** Signals that this thread has sent, by number; and their numbers. */
const sent = new Map<number, WeakRef<AbortSignal>>()
const numbers = new WeakMap<AbortSignal, number>()
/** Numbers of aborted signals that still exist; and of those that were collected, oldest first. */
const aborted = new Set<number>()
const collected = new Set<number>()
/** Signals that this thread has received, by number; and what aborts those that can still be aborted. */
const received = new Map<number, WeakRef<AbortSignal>>()
const controllers = new Map<number, AbortController>()

/**
 * Most signals whose reason the core keeps after they were aborted and collected. A call that was sent with
 * one may not have begun, or the mail about its abort may not have been read.
 */
const COLLECTED_MAX = 4096

const sentGone = new FinalizationRegistry<number>((number) => {
  sent.delete(number)
  if (!aborted.delete(number)) return native.signalForget(number)
  collected.add(number)
  if (collected.size <= COLLECTED_MAX) return
  const oldest = collected.values().next().value as number
  collected.delete(oldest)
  native.signalForget(oldest)
})
const receivedGone = new FinalizationRegistry<number>((number) => {
  if (received.get(number)?.deref() === undefined) received.delete(number)
})

/** Lets signals travel, and receives their aborts in this thread. */
export function carrySignals(): void {
  thisBridge().onMail(Mail.signal, (number) => abort(number, native.signalReason(number)))
  registerHandle({ tag: 'corespun.AbortSignal', is: AbortSignal, save: numberOf, load: signalOf })
}

function numberOf(signal: AbortSignal): number {
  const known = numbers.get(signal)
  if (known !== undefined) return known
  const number = native.signalMake()
  numbers.set(signal, number)
  sent.set(number, new WeakRef(signal))
  sentGone.register(signal, number)
  if (signal.aborted) fire(number, signal)
  else onAbort(signal, (event) => fire(number, event.target as AbortSignal))
  return number
}

function fire(number: number, signal: AbortSignal): void {
  aborted.add(number)
  native.signalFire(number, reasonFrame(signal.reason))
}

function signalOf(number: number): AbortSignal {
  const known = sent.get(number)?.deref() ?? received.get(number)?.deref()
  if (known !== undefined) return known
  const controller = new AbortController()
  const { signal } = controller
  numbers.set(signal, number)
  controllers.set(number, controller)
  received.set(number, new WeakRef(signal))
  receivedGone.register(signal, number)
  const reason = native.signalListen(number)
  if (reason !== undefined) abort(number, reason)
  return signal
}

/** @param reason `undefined` when nobody can abort it any more. */
function abort(number: number, reason: Uint8Array | undefined): void {
  const controller = controllers.get(number)
  controllers.delete(number)
  if (reason !== undefined) controller?.abort(reasonIn(reason))
}
