/**
 * The rare kinds into bytes: every object that is not plain and not an array.
 *
 * Chosen by prototype, then checked by what the engine records of the object (`node:util/types`), because an
 * object may have any prototype. Objects that are not listed here, registered as a class or as a handle are
 * refused.
 */
import { types } from 'node:util'
import { shown } from '../../base/index.ts'
import type { ClassEntry } from '../class-entry.ts'
import { checkState, classOfPrototype, handleOf, type HandleEntry } from '../classes/classes.ts'
import {
  TAG_ARRAY_BUFFER,
  TAG_ARRAY_BUFFER_RESIZABLE,
  TAG_BIGINT,
  TAG_BOXED,
  TAG_DATE,
  TAG_HANDLE,
  TAG_MAP,
  TAG_MOVED_BUFFER,
  TAG_NODE_BUFFER,
  TAG_PLATFORM,
  TAG_REGEXP,
  TAG_SET,
  TAG_SHARED_BUFFER,
  TAG_URL,
  TAG_VIEW,
  VIEW_KINDS,
} from '../format.ts'
import { isMoved } from '../classes/memory.ts'
import { kindOfPrototype, Unsaved, whyRefused, type PlatformKind } from '../classes/platform.ts'
import { Refusal, type Position, type Sink } from '../sink.ts'
import { isErrorPrototype, writeError } from '../classes/write-error.ts'

type WriteKind = (sink: Sink, object: object, at: Position) => Position

const kinds = new Map<object, WriteKind>([
  [Date.prototype, writeDate],
  [RegExp.prototype, writeRegExp],
  [Map.prototype, writeMap],
  [Set.prototype, writeSet],
  [ArrayBuffer.prototype, writeArrayBuffer],
  [SharedArrayBuffer.prototype, writeSharedBuffer],
  [URL.prototype, writeUrl],
  boxedKind(Number.prototype, types.isNumberObject),
  boxedKind(String.prototype, types.isStringObject),
  boxedKind(Boolean.prototype, types.isBooleanObject),
  boxedKind(BigInt.prototype, types.isBigIntObject),
])
for (const [kind, name] of VIEW_KINDS.entries()) {
  const view = (globalThis as Record<string, unknown>)[name] as { prototype: object } | undefined
  // Float16Array is younger than the oldest supported Node.
  if (view !== undefined) kinds.set(view.prototype, (sink, object, at) => writeView(sink, object, kind, at))
}
/** The name of a typed array, whatever its prototype; `undefined` for any other object. */
const nameOfView = Object.getOwnPropertyDescriptor(
  Object.getPrototypeOf(Uint8Array.prototype),
  Symbol.toStringTag,
)?.get as (this: object) => string | undefined

/** An object that is neither plain nor an array of this realm. @throws {Refusal} when it cannot travel. */
export function writeSpecial(sink: Sink, object: object, prototype: object, at: Position): Position {
  const kind = kinds.get(prototype) ?? kindElsewhere(prototype)
  if (kind !== undefined) return kind(sink, object, at)
  const entry = classOfPrototype(prototype)
  const isError = types.isNativeError(object) || object instanceof DOMException
  if (entry !== undefined) {
    if (isError && entry.save === undefined && entry.load === undefined)
      return writeError(sink, checkedError(object, prototype), entry, at)
    return writeClass(sink, object, entry, at)
  }
  const handle = handleOf(object)
  if (handle !== undefined) return writeHandle(sink, object, handle, at)
  if (isError) return writeError(sink, checkedError(object, Error.prototype), undefined, at)
  const platform = kindOfPrototype(prototype)
  if (platform !== undefined) return writePlatform(sink, object, platform, at)
  // As with structuredClone, what extends a class of the language arrives as an object of that class.
  if (Array.isArray(object)) return sink.array(object, at)
  const base = kindAbove(prototype)
  if (base !== undefined) return base(sink, object, at)
  throw new Refusal(object, ...refusalOf(object, prototype))
}

/** The kind of the nearest prototype above that is one of the language's. */
function kindAbove(prototype: object): WriteKind | undefined {
  for (let up: object | null = prototype; up !== null; up = Object.getPrototypeOf(up) as object | null) {
    const kind = kinds.get(up) ?? kindElsewhere(up)
    if (kind !== undefined) return kind
  }
  return undefined
}

const nameOfException = Object.getOwnPropertyDescriptor(DOMException.prototype, 'name')?.get as (
  this: object,
) => string

/**
 * @throws {Refusal} when `prototype` is not of an error, or `object` only has the prototype of a
 * DOMException.
 */
function checkedError(object: object, prototype: object): object {
  if (!isErrorPrototype(prototype))
    throw new Refusal(object, 'refused', 'it is an error, but its class is not a class of errors')
  if (!(object instanceof DOMException)) return object
  try {
    nameOfException.call(object)
    return object
  } catch {
    throw spoofed(object, 'DOMException')
  }
}

/** True for a plain object of another realm (node:vm): its prototype is that realm's Object.prototype. */
export function isPlainElsewhere(object: object, prototype: object): boolean {
  return (
    Object.getPrototypeOf(prototype) === null &&
    Object.hasOwn(prototype, 'isPrototypeOf') &&
    Object.prototype.toString.call(object) === '[object Object]'
  )
}

/** True for an array of another realm: only Array.prototype is itself an array. */
export function isArrayElsewhere(object: object, prototype: object): object is unknown[] {
  return Array.isArray(object) && Array.isArray(prototype)
}

/**
 * The kind of which `prototype` is the prototype in another realm: same name, same number of prototypes
 * above.
 */
function kindElsewhere(prototype: object): WriteKind | undefined {
  const made: unknown = Object.getOwnPropertyDescriptor(prototype, 'constructor')?.value
  const name: unknown = typeof made === 'function' ? made.name : undefined
  if (typeof name !== 'string') return undefined
  const local = Object.getOwnPropertyDescriptor(globalThis, name)?.value as { prototype?: object } | undefined
  if (local?.prototype === undefined || heightOf(local.prototype) !== heightOf(prototype)) return undefined
  const isOfThisRealm = Object.prototype.isPrototypeOf.call(Object.prototype, prototype)
  return isOfThisRealm ? undefined : kinds.get(local.prototype)
}

function heightOf(prototype: object): number {
  let height = 0
  for (let up: unknown = prototype; up !== null; up = Object.getPrototypeOf(up)) height++
  return height
}

export function writeBigInt(sink: Sink, value: bigint, at: Position): Position {
  const digits = (value < 0n ? -value : value).toString(16)
  const magnitude = Buffer.from(digits.length % 2 === 0 ? digits : `0${digits}`, 'hex')
  sink.bytes[at] = TAG_BIGINT
  sink.bytes[at + 1] = value < 0n ? 1 : 0
  return sink.raw(magnitude, sink.uint32(magnitude.length, at + 2))
}

const timeOf = Date.prototype.getTime
const keysOfMap = Map.prototype.keys
const valuesOfMap = Map.prototype.values
const valuesOfSet = Set.prototype.values

/** What a method of `kind` returns; each asks the engine for the kind first, without a call into C++. */
function asked<Answer>(method: (this: never) => Answer, object: object, kind: string): Answer {
  try {
    return method.call(object as never)
  } catch (error) {
    throw error instanceof TypeError ? spoofed(object, kind) : error
  }
}

function writeDate(sink: Sink, object: object, at: Position): Position {
  const time = asked(timeOf, object, 'Date')
  sink.bytes[at] = TAG_DATE
  return sink.float64(time, at + 1)
}

function writeRegExp(sink: Sink, object: object, at: Position): Position {
  if (!types.isRegExp(object)) throw spoofed(object, 'RegExp')
  sink.bytes[at] = TAG_REGEXP
  const flags = sink.string(object.flags, sink.string(object.source, at + 1))
  return sink.float64(object.lastIndex, flags)
}

function writeMap(sink: Sink, object: object, at: Position): Position {
  const keys = [...asked<Iterable<unknown>>(keysOfMap, object, 'Map')]
  const values = [...valuesOfMap.call(object)]
  sink.bytes[at] = TAG_MAP
  let position = sink.uint32(keys.length, at + 1)
  for (let index = 0; index < keys.length; index++)
    position = sink.value(values[index], sink.value(keys[index], position))
  return position
}

function writeSet(sink: Sink, object: object, at: Position): Position {
  const values = [...asked<Iterable<unknown>>(valuesOfSet, object, 'Set')]
  sink.bytes[at] = TAG_SET
  let position = sink.uint32(values.length, at + 1)
  for (let index = 0; index < values.length; index++) position = sink.value(values[index], position)
  return position
}

function writeArrayBuffer(sink: Sink, object: object, at: Position): Position {
  if (!types.isArrayBuffer(object)) throw spoofed(object, 'ArrayBuffer')
  const buffer = object as ArrayBuffer & {
    readonly resizable?: boolean
    readonly maxByteLength?: number
  }
  const content = contentOf(buffer)
  if (sink.isInside && isMoved(buffer)) {
    sink.bytes[at] = TAG_MOVED_BUFFER
    sink.commitments.push({ position: at + 1, buffer })
    return at + 5
  }
  if (buffer.resizable === true) {
    sink.resizable(buffer, content.length, buffer.maxByteLength as number)
    sink.bytes[at] = TAG_ARRAY_BUFFER_RESIZABLE
    const length = sink.uint32(content.length, at + 1)
    return sink.raw(content, sink.uint32(buffer.maxByteLength as number, length))
  }
  sink.bytes[at] = TAG_ARRAY_BUFFER
  return sink.raw(content, sink.uint32(content.length, at + 1))
}

/** The bytes of a buffer. @throws {Refusal} when its memory was given away. */
function contentOf(buffer: ArrayBuffer): Uint8Array {
  try {
    return new Uint8Array(buffer)
  } catch {
    throw new Refusal(buffer, 'refused', MOVED_AWAY)
  }
}

function writeSharedBuffer(sink: Sink, object: object, at: Position): Position {
  if (!types.isSharedArrayBuffer(object)) throw spoofed(object, 'SharedArrayBuffer')
  if (!sink.isInside)
    throw new Refusal(object, 'refused', 'shared memory cannot leave the process; send a copy of its bytes')
  sink.bytes[at] = TAG_SHARED_BUFFER
  sink.commitments.push({ position: at + 1, buffer: object })
  return at + 5
}

function writeView(sink: Sink, object: object, kind: number, at: Position): Position {
  const expected = VIEW_KINDS[kind] as string
  const isBuffer = expected === 'Buffer'
  const name = expected === 'DataView' && types.isDataView(object) ? expected : nameOfView.call(object)
  if (name !== (isBuffer ? 'Uint8Array' : expected)) throw spoofed(object, expected)
  const view = object as Uint8Array
  const { buffer, byteOffset, byteLength } = boundsOf(view)
  // A Buffer is part of a pool more often than not: the rest of the pool belongs to others and stays here.
  // Shared memory is never a pool: a view of part of it stays a view.
  if (isBuffer && byteLength !== buffer.byteLength && !types.isSharedArrayBuffer(buffer)) {
    sink.bytes[at] = TAG_NODE_BUFFER
    return sink.raw(view, sink.uint32(byteLength, at + 1))
  }
  sink.bytes[at] = TAG_VIEW
  sink.bytes[at + 1] = kind
  const count = expected === 'DataView' ? byteLength : view.length
  return sink.value(buffer, sink.uint32(count, sink.uint32(byteOffset, at + 2)))
}

const keysOfView = Uint8Array.prototype.keys as (this: object) => unknown
const isResizable = (buffer: ArrayBufferLike): boolean =>
  (buffer as { readonly resizable?: boolean }).resizable === true

/** @throws {Refusal} when the view no longer lies within its buffer. */
function boundsOf(view: ArrayBufferView): Pick<ArrayBufferView, 'buffer' | 'byteOffset' | 'byteLength'> {
  const { buffer } = view
  try {
    const { byteOffset, byteLength } = view
    // A typed array outside of its buffer seems empty; only its methods throw.
    if (byteLength === 0 && nameOfView.call(view) !== undefined && isResizable(buffer)) keysOfView.call(view)
    return { buffer, byteOffset, byteLength }
  } catch {
    const why = buffer.byteLength === 0 ? MOVED_AWAY : 'it lies outside its buffer'
    throw new Refusal(view, 'refused', why)
  }
}

/** The getter of the class: an object may have a field of that name. */
const hrefOf = Object.getOwnPropertyDescriptor(URL.prototype, 'href')!.get as (this: URL) => string

function writeUrl(sink: Sink, object: object, at: Position): Position {
  let href: string
  try {
    href = hrefOf.call(object as URL)
  } catch {
    throw spoofed(object, 'URL')
  }
  sink.bytes[at] = TAG_URL
  return sink.string(href, at + 1)
}

/**
 * By the prototype's own `valueOf`: an object may have another one, or a prototype that is not its kind's.
 */
function boxedKind(
  prototype: { valueOf(): unknown },
  isKind: (object: unknown) => boolean,
): [object, WriteKind] {
  const { valueOf } = prototype
  return [
    prototype,
    (sink, object, at) => {
      if (!isKind(object)) throw spoofed(object, 'boxed value')
      sink.bytes[at] = TAG_BOXED
      return sink.value(valueOf.call(object), at + 1)
    },
  ]
}

function writeClass(sink: Sink, object: object, entry: ClassEntry, at: Position): Position {
  const { save, load } = entry
  if (save === undefined && load === undefined) return sink.instance(object, entry, at)
  const position = sink.classTag(entry, at)
  if (save === undefined) {
    checkState(object)
    return sink.savedFields(object, position)
  }
  sink.opened(object, true)
  const saved = sink.saved(object, () => save(object))
  if (load === undefined && !isPlain(saved)) {
    const why = `its save returned ${shown(saved)}; without a load that must be a plain object, the fields`
    throw new Refusal(object, 'refused', why)
  }
  const end = sink.value(saved, position)
  sink.opened(object, false)
  return end
}

/** True for a plain object, of this realm or another. */
function isPlain(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  const prototype = Object.getPrototypeOf(value) as object | null
  return prototype === null || prototype === Object.prototype || isPlainElsewhere(value, prototype)
}

function writeHandle(sink: Sink, object: object, entry: HandleEntry, at: Position): Position {
  if (!sink.isInside && !entry.isSelfContained) {
    const why = `a handle of kind '${entry.tag}' is valid in this process only; send plain values`
    throw new Refusal(object, 'refused', why)
  }
  sink.bytes[at] = TAG_HANDLE
  const position = sink.string(entry.tag, at + 1)
  sink.opened(object, true)
  const end = sink.value(
    sink.saved(object, () => entry.save(object)),
    position,
  )
  sink.opened(object, false)
  return end
}

function writePlatform(sink: Sink, object: object, kind: PlatformKind, at: Position): Position {
  if (!sink.isInside && kind.insideOnly !== undefined) throw new Refusal(object, 'refused', kind.insideOnly)
  sink.bytes[at] = TAG_PLATFORM
  const position = sink.string(kind.name, at + 1)
  const saved = sink.saved(object, () => savedOf(object, kind))
  return sink.value(saved, position)
}

function savedOf(object: object, kind: PlatformKind): unknown {
  try {
    return kind.save(object)
  } catch (error) {
    if (error instanceof Unsaved) throw new Refusal(object, 'refused', error.why)
    throw spoofed(object, kind.name)
  }
}

function spoofed(object: object, kind: string): Refusal {
  return new Refusal(object, 'refused', `it has the prototype of a ${kind} but is not one`)
}

export const A_SYMBOL = 'a symbol has an identity that no other thread has; send a string'
const MOVED_AWAY = 'its memory was moved away; copy it before move(), or send it once'
const A_GENERATOR = 'a running generator belongs to its thread; send an array of what it yields'
const AN_ITERATOR = 'an iterator belongs to its thread; send an array of its values'

function refusalOf(object: object, prototype: object): ['refused' | 'class', string] {
  if (types.isPromise(object)) return ['refused', 'a promise settles in one thread only; await it first']
  if (types.isWeakMap(object) || types.isWeakSet(object) || object instanceof WeakRef) {
    return [
      'refused',
      'its weak references exist in this thread only; send a Map, a Set or the object itself',
    ]
  }
  if (types.isGeneratorObject(object)) return ['refused', A_GENERATOR]
  if (types.isMapIterator(object) || types.isSetIterator(object)) return ['refused', AN_ITERATOR]
  if (types.isBoxedPrimitive(object)) return ['refused', A_SYMBOL]
  const why = whyRefused(prototype)
  if (why !== undefined) return ['refused', why]
  if (object === globalThis) return ['refused', 'each thread has its own; send the values themselves']
  if (!Object.hasOwn(prototype, 'constructor')) {
    if (typeof (object as { next?: unknown }).next === 'function') return ['refused', AN_ITERATOR]
    return ['refused', 'its prototype has no class; copy its fields into a plain object']
  }
  return ['class', '']
}
