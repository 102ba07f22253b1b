/**
 * How values travel in napajs: as JSON, and what JSON does not have in a context beside it.
 *
 * `_cid` in the text names a class or a function, `_serialized` what the context contains. Functions are
 * numbers of the process, compiled once per thread. The context travels by Corespun's own codec: shared
 * memory by reference, buffers, Maps and errors as copies.
 */
import {
  TransportError,
  encode,
  functionByNumber,
  isTransportable as isOfCore,
  readFrame,
  textNumber,
} from '../transport/internal.ts'

/** What napajs's own types have for values that travel: anything, unchecked. */
export type Unchecked = ReturnType<typeof JSON.parse>
/** A function that travels by its text; `origin`, if it has one, is the file that it belongs to. */
export type AnyFunction = (...args: Unchecked[]) => Unchecked
/** A class whose objects travel. */
export type TransportableClass = new (...args: Unchecked[]) => Transportable

/** The address of a native object: its low and its high 32 bits, and perhaps the hash of its type. */
export type Handle = [number, number] | [number, number, number]

/** An object that travels by its own methods. */
export interface Transportable {
  /** The name of its class in payloads. */
  cid(): string
  /** Returns a plain object with the field `_cid`. */
  marshall(context: TransportContext): object
  /** Takes over what `payload` has, whose inner objects have been read. */
  unmarshall(payload: object, context: TransportContext): void
}

/** An object that all threads share. Here: an allocator. */
export interface Shareable extends Transportable {
  /** Its address. */
  readonly handle: Handle
  /** How many objects and contexts refer to it. */
  readonly refCount: number
  /** Whether its address is the null pointer. */
  isNull(): boolean
}

/** What all threads share of an allocator. @internal */
export interface SharedRecord {
  readonly handle: Handle
  readonly type: string
  /** The last of them is that of the references. */
  readonly counts: BigInt64Array
}

/** What travels beside the texts. @internal */
export type Saved =
  | { readonly record: SharedRecord }
  | { readonly shared: unknown }
  | { readonly frame: Uint8Array }

/** What payloads refer to: shared memory, buffers, shareable objects. */
export class TransportContext {
  /** Makes the object of a record. @internal */
  static loads: (record: SharedRecord) => Shareable
  /** @internal */
  readonly saved: Saved[]

  /** @internal */
  constructor(saved: readonly Saved[] = []) {
    this.saved = [...saved]
  }

  /** How many shareable objects are in it. */
  get sharedCount(): number {
    return this.saved.filter((each) => 'record' in each).length
  }

  /** Adds an object that all threads share. */
  saveShared(object: Shareable): void {
    const { record } = object as unknown as { readonly record: SharedRecord }
    if (this.#record(record.handle) !== undefined) return
    this.saved.push({ record })
    Atomics.add(record.counts, record.counts.length - 1, 1n)
  }

  /** The shareable object of a handle. @throws {TransportError} `TRANSPORT_REFUSED` if it has no such one. */
  loadShared(handle: Handle): Shareable {
    return TransportContext.loads(this.recordOf(handle))
  }

  /** @internal */
  recordOf(handle: Handle): SharedRecord {
    const found = this.#record(handle)
    if (found === undefined) throw refused('handle', `[${handle.join()}]`, 'the context has no such object')
    return found
  }

  #record(handle: Handle): SharedRecord | undefined {
    for (const each of this.saved)
      if ('record' in each && each.record.handle.join() === handle.join()) return each.record
    return undefined
  }

  /** Where a value is that JSON does not have: as it is if threads share it, or else a copy. @internal */
  put(value: object, isShared = isSharedMemory(value)): number {
    return this.saved.push(isShared ? { shared: value } : { frame: encode(value) }) - 1
  }

  /** @internal */
  take(at: number): unknown {
    const each = this.saved[at]
    if (each === undefined || 'record' in each)
      throw refused('context', `number ${at}`, 'the context has no such value')
    return 'shared' in each ? each.shared : readFrame(each.frame, 0, each.frame.length)
  }
}

const classes = new Map<string, TransportableClass>()

/**
 * Registers a class by a name of its own, in each thread that imports its module.
 * @throws {TransportError} `TRANSPORT_REGISTRATION` when another class has the name.
 * @internal
 */
export function registerAs(name: string, subClass: TransportableClass): void {
  const known = classes.get(name)
  if (known !== undefined && known !== subClass)
    throw new TransportError('TRANSPORT_REGISTRATION', { cid: name, why: 'another class has this cid' })
  classes.set(name, subClass)
}

/** Whether a value has the method `cid`, as objects that travel by their own methods have. */
export function isCid(value: unknown): value is Transportable {
  return value !== null && typeof value === 'object' && typeof (value as Transportable).cid === 'function'
}

/** Whether a value can travel: JSON, functions, registered classes, and what `corespun/transport` copies. */
export function isTransportable(value: Unchecked): boolean {
  if (value === null || typeof value !== 'object')
    return typeof value !== 'symbol' && typeof value !== 'bigint'
  if (Array.isArray(value)) return value.every(isTransportable)
  if (isPlain(value)) return Object.values(value).every(isTransportable)
  return isCid(value) || isOfCore(value)
}

/**
 * A value as what JSON can write, the parts of it left as they are.
 * @throws {TransportError} `TRANSPORT_REFUSED` for an object that cannot travel, or not without a context.
 */
export function marshallTransform(value: Unchecked, context?: TransportContext | null): Unchecked {
  if (value === null || typeof value !== 'object' || Array.isArray(value) || isPlain(value)) return value
  const name = (value as object).constructor.name
  if (!context) throw refused('value', `an object of ${name}`, 'it needs a transport context')
  if (isCid(value)) return value.marshall(context)
  if (!isOfCore(value) && !isSharedMemory(value))
    throw refused('value', `an object of ${name}`, 'register its class with @cid or transport.register')
  return { _serialized: context.put(value) }
}

/**
 * A value as JSON; functions by their number.
 * @throws {TransportError} `TRANSPORT_REFUSED` as {@link marshallTransform}.
 * @throws {FunctionError} for a function whose text is not enough.
 */
export function marshall(value: Unchecked, context?: TransportContext | null): string {
  if (typeof value === 'function') return JSON.stringify({ _cid: 'function', hash: saveFunction(value) })
  const written = JSON.stringify(value, (_, part) => marshallTransform(part, context)) as string | undefined
  return written ?? 'undefined'
}

/**
 * The value of a text that {@link marshall} returned in this process.
 * @throws {TransportError} `TRANSPORT_CLASS_UNKNOWN` for a class that this thread has not registered.
 */
export function unmarshall(json: string, context?: TransportContext | null): Unchecked {
  if (json === 'undefined') return undefined
  // A reviver is called for each part: only for texts that need it.
  if (!json.includes('"_')) return JSON.parse(json)
  return JSON.parse(json, (_, part) => loaded(part, context))
}

function loaded(part: Unchecked, context: TransportContext | null | undefined): Unchecked {
  if (part === null || typeof part !== 'object') return part
  const { _cid: name, _serialized: at } = part
  if (name === 'function') return loadFunction(part.hash)
  if (name === undefined && typeof at !== 'number') return part
  if (!context)
    throw refused('value', `an object of ${name ?? 'a built-in class'}`, 'it needs a transport context')
  if (name === undefined) return context.take(at)
  const found = classes.get(name)
  if (found === undefined) throw new TransportError('TRANSPORT_CLASS_UNKNOWN', { cid: name })
  const object = new found()
  object.unmarshall(part, context)
  return object
}

/**
 * The name of a function in this process, for {@link loadFunction} in any thread.
 * @throws {FunctionError} when its text is not enough.
 */
export function saveFunction(fn: AnyFunction): string {
  return String(numberOf(fn, () => ''))
}

/** The function that {@link saveFunction} has named; what it captured is a global of this thread. */
export function loadFunction(hash: string): AnyFunction {
  return functionByNumber(Number(hash)) as AnyFunction
}

/** The number of a function. `caller` returns its file if that is not known. @internal */
export function numberOf(fn: AnyFunction, caller: () => string): number {
  const { origin } = fn as { readonly origin?: unknown }
  return textNumber(fn, caller, typeof origin === 'string' && origin !== '' ? origin : undefined)
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

function isSharedMemory(value: object): boolean {
  return value instanceof SharedArrayBuffer || (ArrayBuffer.isView(value) && isSharedMemory(value.buffer))
}

function refused(path: string, what: string, why: string): TransportError {
  return new TransportError('TRANSPORT_REFUSED', { path, what, why })
}
