/**
 * The errors that callers of the writer receive: a refusal with its path, everything else unchanged.
 *
 * The path is searched only after a refusal (path.ts), so that writing keeps none.
 */
import { shown } from '../base/index.ts'
import { platformNameOf } from './classes/platform.ts'
import { TransportError } from './errors.ts'
import { DEPTH_MAX } from './format.ts'
import { pathOf, pathOfDepth, pathOfRevoked } from './path.ts'
import { Refusal } from './sink.ts'
import { TOO_DEEP, type WriterState } from './write/writer-state.ts'

/** The error for what writing `root` threw; `rootName` is how its path begins. */
export function refused(error: unknown, writer: WriterState, root: unknown, rootName: string): unknown {
  const savedOf = (object: object) => writer.savedOf(object)
  if (error === TOO_DEEP || isStackOverflow(error)) {
    const path = pathOfDepth(root, rootName, DEPTH_MAX, savedOf)
    return new TransportError('TRANSPORT_DEPTH', { path, depthMax: DEPTH_MAX })
  }
  if (error instanceof TypeError && error.message.includes('revoked')) {
    // The engine's message about a revoked Proxy names neither the Proxy nor its path.
    const path = pathOfRevoked(root, rootName, savedOf)
    if (path === undefined) return error
    const facts = { path, what: 'a Proxy', why: 'it was revoked' }
    return new TransportError('TRANSPORT_REFUSED', facts, { cause: error })
  }
  if (!(error instanceof Refusal)) return error
  const path = pathOf(root, rootName, error.value, savedOf)
  const options = error.cause === undefined ? undefined : { cause: error.cause }
  if (error.kind === 'function')
    return new TransportError('TRANSPORT_FUNCTION', { path, why: error.why }, options)
  if (error.kind === 'class') {
    const own = ownReason(error.value as object)
    if (own !== undefined)
      return new TransportError('TRANSPORT_REFUSED', { path, what: shown(error.value), why: own }, options)
    const made: unknown = (error.value as { constructor?: { name?: unknown } }).constructor?.name
    const className = typeof made === 'string' ? made : ''
    const base = platformNameOf(Object.getPrototypeOf(error.value) as object)
    const facts = base === undefined ? { path, className } : { path, className, base }
    return new TransportError('TRANSPORT_CLASS_UNREGISTERED', facts)
  }
  return new TransportError('TRANSPORT_REFUSED', { path, what: shown(error.value), why: error.why }, options)
}

const REFUSALS: ReadonlySet<unknown> = new Set([
  'TRANSPORT_REFUSED',
  'TRANSPORT_CLASS_UNREGISTERED',
  'TRANSPORT_FUNCTION',
])

/** Whether an error states that a part of a value cannot travel, whatever its size. */
export function isRefusal(error: unknown): boolean {
  return error instanceof TransportError && REFUSALS.has(error.code)
}

const ownReasons = new Map<Function, string>()

/** Refuse objects of a class of Corespun with a reason and what to do, since no user can register it. */
export function refuseClass(refusedClass: Function, why: string): void {
  ownReasons.set(refusedClass, why)
}

/** Whether a value is of a class that {@link refuseClass} has refused. */
export function isRefusedClass(value: object): boolean {
  return ownReason(value) !== undefined
}

function ownReason(value: object): string | undefined {
  for (const [refusedClass, why] of ownReasons) {
    if (value instanceof refusedClass) return why
  }
  return undefined
}

export function isStackOverflow(error: unknown): boolean {
  return error instanceof RangeError && error.message.includes('call stack')
}
