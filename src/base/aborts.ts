/**
 * Listens for an abort, whatever the signal's other listeners do.
 *
 * One that calls `stopImmediatePropagation()` keeps it from all that were added after it, and a call would
 * never end. Node has an event option against that, which only its `addAbortListener` can name; that function
 * itself costs as much again as a listener does, so the option is asked for once and used from then on.
 */
import { addAbortListener } from 'node:events'

const LISTENER_OPTIONS = askedOfNode()

function askedOfNode(): AddEventListenerOptions {
  let given: AddEventListenerOptions = {}
  const asks = {
    aborted: false,
    addEventListener: (_: string, __: unknown, options: AddEventListenerOptions) => (given = options),
  }
  addAbortListener(asks as unknown as AbortSignal, () => {})
  // A copy: Node's own has no prototype, and such are slower to read.
  // Complete, whatever Object.prototype has.
  return { ...given, once: true, capture: false, passive: false, signal: undefined as never }
}

/** Call `listener` once, when `signal` is aborted; `removeEventListener` takes it back. */
export function onAbort(signal: AbortSignal, listener: (event: Event) => void): void {
  signal.addEventListener('abort', listener, LISTENER_OPTIONS)
}

/**
 * What a signal ends: one listener for all that share it, however many they are. Of eleven listeners Node 20
 * warns as of a leak, and each costs more than the one before.
 */
const watchers = new WeakMap<AbortSignal, Set<() => void>>()

/** Call `aborted` when the signal is, until {@link unwatch}. It must not throw. */
export function watch(signal: AbortSignal, aborted: () => void): void {
  const known = watchers.get(signal)
  if (known !== undefined) return void known.add(aborted)
  onAbort(signal, tellAll)
  watchers.set(signal, new Set([aborted]))
}

export function unwatch(signal: AbortSignal, aborted: () => void): void {
  const all = watchers.get(signal)
  if (all === undefined || !all.delete(aborted) || all.size > 0) return
  watchers.delete(signal)
  signal.removeEventListener('abort', tellAll)
}

function tellAll(event: Event): void {
  const all = watchers.get(event.target as AbortSignal) ?? new Set()
  // One that an earlier one has ended no longer listens.
  for (const aborted of [...all]) if (all.has(aborted)) aborted()
}
