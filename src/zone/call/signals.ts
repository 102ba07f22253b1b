/**
 * An AbortSignal passed as an argument arrives as a signal that is aborted when the first one is.
 *
 * A signal has a number in the process. The thread that first sends one owns it: it fires the number when
 * its signal is aborted and forgets it when its signal is collected. A thread that receives the number has
 * one signal for it, kept only as long as somebody holds it. The reason travels with the abort; where it
 * cannot be sent or read, that error is the reason.
 */
import { Mail, native } from '../../native/index.ts'
import { registerHandle } from '../../transport/internal.ts'
import { onAbort } from '../../base/index.ts'
import { thisBridge } from '../../bridge/index.ts'
import { reasonFrame, reasonIn } from './reasons.ts'

/** Signals that this thread has sent, by number; and their numbers. */
const sent = new Map<number, WeakRef<AbortSignal>>()
const numbers = new WeakMap<AbortSignal, number>()
/** Controllers of signals that this thread has received. A signal keeps its controller alive. */
const received = new Map<number, WeakRef<AbortController>>()
const controllers = new WeakMap<AbortSignal, AbortController>()

const sentGone = new FinalizationRegistry<number>((number) => {
  sent.delete(number)
  native.signalForget(number)
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
  native.signalFire(number, reasonFrame(signal.reason))
}

function signalOf(number: number): AbortSignal {
  const known = sent.get(number)?.deref() ?? received.get(number)?.deref()?.signal
  if (known !== undefined) return known
  const controller = new AbortController()
  numbers.set(controller.signal, number)
  controllers.set(controller.signal, controller)
  received.set(number, new WeakRef(controller))
  receivedGone.register(controller.signal, number)
  abort(number, native.signalListen(number))
  return controller.signal
}

function abort(number: number, reason: Uint8Array | undefined): void {
  if (reason !== undefined) received.get(number)?.deref()?.abort(reasonIn(reason))
}
