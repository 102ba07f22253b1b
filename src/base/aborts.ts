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
