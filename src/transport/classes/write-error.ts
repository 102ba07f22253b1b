/**
 * Errors into bytes: class, message, stack, cause, the list of an AggregateError, own fields.
 *
 * The class is one of the language's or a registered one. An error of an unregistered class arrives as the
 * language's class that it extends, under its own name: a second error must not replace the first.
 */
import { stackIn } from '../../base/index.ts'
import type { ClassEntry } from '../class-entry.ts'
import { ERROR_KINDS, TAG_ERROR } from '../format.ts'
import type { Position, Sink } from '../sink.ts'

/** Bits of the byte after the kind: which of the optional parts follow, in this order. */
export const ERROR_HAS_NAME = 1
export const ERROR_HAS_CAUSE = 2
export const ERROR_HAS_ERRORS = 4
export const ERROR_HAS_CLASS = 8
/** The two errors of a SuppressedError. */
export const ERROR_HAS_ERROR = 16
export const ERROR_HAS_SUPPRESSED = 32
/** All of them. */
export const ERROR_PARTS = 63

const kindByPrototype = new Map<object | null, number>()
for (const [kind, name] of ERROR_KINDS.entries()) {
  const made = (globalThis as unknown as Record<string, { prototype: object } | undefined>)[name]
  // SuppressedError is younger than the oldest supported Node.
  if (made !== undefined) kindByPrototype.set(made.prototype, kind)
}

/** An error of a language class, of a registered class without hooks, or of a class below one of those. */
export function writeError(sink: Sink, error: object, entry: ClassEntry | undefined, at: Position): Position {
  const { kind, name } = classOf(error, entry)
  const isHidden = (key: string) => isHiddenIn(error, key)
  const hasCause = isHidden('cause')
  const hasErrors = isHidden('errors')
  const hasError = isHidden('error')
  const hasSuppressed = isHidden('suppressed')
  const { message, cause, errors } = error as { [key: string]: unknown }
  const stack = stackIn(error)
  sink.bytes[at] = TAG_ERROR
  sink.bytes[at + 1] = kind
  sink.bytes[at + 2] =
    (name === undefined ? 0 : ERROR_HAS_NAME) |
    (hasCause ? ERROR_HAS_CAUSE : 0) |
    (hasErrors ? ERROR_HAS_ERRORS : 0) |
    (entry === undefined ? 0 : ERROR_HAS_CLASS) |
    (hasError ? ERROR_HAS_ERROR : 0) |
    (hasSuppressed ? ERROR_HAS_SUPPRESSED : 0)
  let position = sink.value(
    isHidden('message') || kind === DOM_EXCEPTION ? String(message) : undefined,
    at + 3,
  )
  position = sink.value(typeof stack === 'string' ? stack : undefined, position)
  if (name !== undefined) position = sink.string(name, position)
  if (hasCause) position = sink.value(cause, position)
  if (hasErrors) position = sink.value(errors, position)
  if (entry !== undefined) position = sink.uint32(entry.version, sink.string(entry.cid, position))
  if (hasError) position = sink.value((error as { error?: unknown }).error, position)
  if (hasSuppressed) position = sink.value((error as { suppressed?: unknown }).suppressed, position)
  return sink.fields(error, position)
}

/** Whether an own property is not enumerable, as the message and the cause of an error are. */
function isHiddenIn(error: object, key: string): boolean {
  return Object.hasOwn(error, key) && !Object.prototype.propertyIsEnumerable.call(error, key)
}

/** Position of DOMException in the list of kinds. */
export const DOM_EXCEPTION = ERROR_KINDS.indexOf('DOMException')

/** The language's class of an error, and its name where that class has another one. */
function classOf(error: object, entry: ClassEntry | undefined): { kind: number; name: string | undefined } {
  let prototype = Object.getPrototypeOf(error) as object | null
  const own = prototype
  for (; prototype !== null; prototype = Object.getPrototypeOf(prototype) as object | null) {
    const kind = kindByPrototype.get(prototype) ?? kindElsewhere(prototype)
    if (kind === undefined) continue
    const given: unknown = (error as { name?: unknown }).name
    if (kind === DOM_EXCEPTION) return { kind, name: String(given) }
    // A name of its own that is not enumerable, as an error has that was received from another thread.
    if (typeof given === 'string' && isHiddenIn(error, 'name')) return { kind, name: given }
    if (entry !== undefined || prototype === own || Object.hasOwn(error, 'name'))
      return { kind, name: undefined }
    const made: unknown = (error as { constructor?: { name?: unknown } }).constructor?.name
    const isInherited = given === ERROR_KINDS[kind]
    return {
      kind,
      name: String(isInherited && typeof made === 'string' && made !== '' ? made : given),
    }
  }
  return { kind: 0, name: undefined }
}

/** True for the prototype of a class of errors, of the language or below one of those. */
export function isErrorPrototype(prototype: object): boolean {
  for (let up: object | null = prototype; up !== null; up = Object.getPrototypeOf(up) as object | null)
    if ((kindByPrototype.get(up) ?? kindElsewhere(up)) !== undefined) return true
  return false
}

/** The kind of a prototype of another realm (node:vm), by the name of its constructor. */
function kindElsewhere(prototype: object): number | undefined {
  const made: unknown = Object.getOwnPropertyDescriptor(prototype, 'constructor')?.value
  if (typeof made !== 'function' || !Object.hasOwn(prototype, 'message')) return undefined
  const kind = ERROR_KINDS.indexOf(made.name as 'Error')
  return kind < 0 ? undefined : kind
}
