/**
 * Iterators that are read after the call that made them has returned: their steps run in the context of that
 * call, wherever the reader is. So a handler may return a stream, and the tasks behind it have the deadline,
 * the trace and the values of its request.
 */
import { AsyncIteratorPrototype } from '../../base/index.ts'
import { here } from '../ground/current.ts'

type Step = (...args: unknown[]) => unknown

interface Steps {
  readonly next: Step
  readonly return?: Step
  readonly throw?: Step
}

const BoundPrototype: object = Object.create(AsyncIteratorPrototype, {
  [Symbol.toStringTag]: { value: 'AsyncGenerator', configurable: true },
})

/** `iterator` with its steps in the context of the calling code; itself where the thread carries nothing. */
export function bound<Of extends object>(iterator: Of): Of {
  const within = here.carrier?.bound()
  if (within === undefined) return iterator
  const steps = iterator as unknown as Steps
  const own = Object.create(BoundPrototype) as Record<string, Step>
  for (const name of ['next', 'return', 'throw'] as const) {
    if (typeof steps[name] === 'function') own[name] = (...args) => within(() => steps[name]!(...args))
  }
  return own as unknown as Of
}
