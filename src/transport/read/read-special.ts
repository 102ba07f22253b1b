/**
 * Bytes into the rare kinds of object: the counterpart of write-special.ts and write-error.ts.
 *
 * Errors of the engine about invalid content become a TransportError; errors of load hooks pass. Nothing here
 * runs code of a frame.
 */
import { types } from 'node:util'
import { CorespunError, hide, isPlainObject, setStack, withStackLimit } from '../../base/index.ts'
import type { ClassEntry } from '../class-entry.ts'
import { classOfCid, handleOfTag } from '../classes/classes.ts'
import { TransportError } from '../errors.ts'
import {
  ERROR_KINDS,
  TAG_ARRAY_BUFFER,
  TAG_ARRAY_BUFFER_RESIZABLE,
  TAG_BIGINT,
  TAG_BOXED,
  TAG_CAPTURING,
  TAG_CLASS,
  TAG_CLASS_NAMED,
  TAG_DATE,
  TAG_ERROR,
  TAG_FUNCTION,
  TAG_HANDLE,
  TAG_JSON,
  TAG_MAP,
  TAG_MOVED_BUFFER,
  TAG_NODE_BUFFER,
  TAG_PLATFORM,
  TAG_REGEXP,
  TAG_SERIALIZED,
  TAG_SET,
  TAG_SHARED_BUFFER,
  TAG_URL,
  TAG_VIEW,
  VIEW_KINDS,
} from '../format.ts'
import { FunctionError } from '../functions/function-errors.ts'
import { exportOfNumber, functionByNumber } from '../functions/functions.ts'
import { capturingFunction } from '../functions/lifted.ts'
import { platformKind } from '../classes/platform.ts'
import { processTables, TABLE_CLASSES } from '../process.ts'
import { HookError, type FrameSource, beyondTrees } from './source.ts'
import {
  DOM_EXCEPTION,
  ERROR_HAS_CAUSE,
  ERROR_HAS_CLASS,
  ERROR_HAS_ERROR,
  ERROR_HAS_ERRORS,
  ERROR_HAS_NAME,
  ERROR_HAS_SUPPRESSED,
  ERROR_PARTS,
  isErrorPrototype,
} from '../classes/write-error.ts'

type ReadKind = (source: FrameSource) => unknown

/** Programs replace it by one that changes what it reads. */
const { parse } = JSON

const kinds: (ReadKind | undefined)[] = []
for (const [tag, read] of [
  [TAG_BIGINT, readBigInt],
  [TAG_DATE, (source) => new Date(source.float64())],
  [TAG_REGEXP, readRegExp],
  [TAG_MAP, readMap],
  [TAG_SET, readSet],
  [TAG_ERROR, readError],
  [TAG_ARRAY_BUFFER, (source) => source.copy(source.uint32()).buffer],
  [TAG_ARRAY_BUFFER_RESIZABLE, readResizable],
  [TAG_VIEW, readView],
  [TAG_NODE_BUFFER, readBuffer],
  [TAG_SHARED_BUFFER, readShared],
  [TAG_MOVED_BUFFER, readShared],
  [TAG_URL, readUrl],
  [TAG_CLASS, (source) => readClass(source, classOfNumber(source))],
  [TAG_CLASS_NAMED, (source) => readClass(source, knownClass(source.string()))],
  [TAG_HANDLE, readHandle],
  [TAG_FUNCTION, readFunction],
  [TAG_CAPTURING, readCapturing],
  [TAG_BOXED, readBoxed],
  [TAG_PLATFORM, readPlatform],
  [TAG_JSON, readJson],
  [TAG_SERIALIZED, readSerialized],
] as [number, ReadKind][])
  kinds[tag] = read

/**
 * The object whose tag was just read.
 * @throws {TransportError} when the tag or what follows it makes no sense.
 */
export function readSpecial(source: FrameSource, tag: number): unknown {
  const kind = kinds[tag]
  beyondTrees.count++
  return kind === undefined ? source.fail(`tag ${tag} is unknown`) : kind(source)
}

/** The text is trusted as numbers of this process are: what is parsed has no bounds. */
function readJson(source: FrameSource): unknown {
  if (!source.isProcess) source.fail('it contains a value of another process')
  return parse(source.string())
}

let Deserializer: typeof import('node:v8').Deserializer | undefined

/** Trusted as well. */
function readSerialized(source: FrameSource): unknown {
  if (!source.isProcess) source.fail('it contains a value of another process')
  Deserializer ??= process.getBuiltinModule('node:v8').Deserializer
  const deserializer = new Deserializer(source.raw(source.uint32()))
  deserializer.readHeader()
  return deserializer.readValue()
}

function readBigInt(source: FrameSource): bigint {
  const sign = source.uint8()
  const magnitude = source.raw(source.uint32())
  if (sign > 1 || magnitude.length === 0) source.fail('a BigInt is malformed')
  try {
    const value = BigInt(`0x${Buffer.from(magnitude).toString('hex')}`)
    return sign === 1 ? -value : value
  } catch {
    return source.fail('a BigInt is too large')
  }
}

function readRegExp(source: FrameSource): RegExp {
  const pattern = source.string()
  const flags = source.string()
  const lastIndex = source.float64()
  let made: RegExp
  try {
    made = new RegExp(pattern, flags)
  } catch {
    return source.fail('a RegExp is malformed')
  }
  made.lastIndex = lastIndex
  return made
}

function readMap(source: FrameSource): Map<unknown, unknown> {
  const map = new Map<unknown, unknown>()
  source.claim(map)
  const count = source.count(2)
  for (let index = 0; index < count; index++) {
    const key = source.value()
    map.set(key, source.value())
  }
  return map
}

function readSet(source: FrameSource): Set<unknown> {
  const set = new Set<unknown>()
  source.claim(set)
  const count = source.count(1)
  for (let index = 0; index < count; index++) set.add(source.value())
  return set
}

function readResizable(source: FrameSource): ArrayBuffer {
  const length = source.uint32()
  const lengthMax = source.uint32()
  const content = source.raw(length)
  if (lengthMax < length) source.fail('a resizable buffer is malformed')
  const why = source.resizables().tooMuch(length, lengthMax)
  if (why !== undefined) source.fail(`too many or too large resizable buffers: ${why}`)
  const make = ArrayBuffer as unknown as new (
    length: number,
    options: { maxByteLength: number },
  ) => ArrayBuffer
  try {
    const buffer = new make(length, { maxByteLength: lengthMax })
    new Uint8Array(buffer).set(content)
    return buffer
  } catch {
    return source.fail('there is no address space for a resizable buffer')
  }
}

function readView(source: FrameSource): object {
  const name = VIEW_KINDS[source.uint8()]
  const offset = source.uint32()
  const count = source.uint32()
  // The most common one; short ones stay in the engine's own memory, where they cost an eighth.
  if (offset === 0 && name === 'Uint8Array') {
    const bytes = source.wholeBuffer(count)
    if (bytes !== undefined) return bytes
  }
  const buffer = source.value()
  if (!types.isAnyArrayBuffer(buffer) || name === undefined) return source.fail('a view has no buffer')
  if (name !== 'Buffer' && !(name in globalThis)) {
    throw new TransportError('TRANSPORT_KIND_UNKNOWN', { kind: name })
  }
  try {
    if (name === 'Buffer') return Buffer.from(buffer as ArrayBuffer, offset, count)
    type View = new (buffer: unknown, offset: number, count: number) => object
    return new (globalThis as unknown as Record<string, View>)[name](buffer, offset, count)
  } catch {
    return source.fail('a view lies outside its buffer')
  }
}

function readBuffer(source: FrameSource): Buffer {
  const { buffer, byteOffset, byteLength } = source.content(source.uint32())
  return Buffer.from(buffer, byteOffset, byteLength)
}

function readShared(source: FrameSource): unknown {
  if (!source.isProcess) source.fail('memory of another process')
  const id = source.uint32()
  try {
    const tables = processTables()
    const buffer = tables.bufferTake(id)
    // Moved memory arrives once: nothing is left to keep, whether or not somebody releases what the frame
    // held.
    if (buffer instanceof ArrayBuffer) tables.bufferRelease(id)
    return buffer
  } catch {
    return source.fail(`memory ${id} was read or released before`)
  }
}

function readUrl(source: FrameSource): URL {
  const href = source.string()
  try {
    return new URL(href)
  } catch {
    return source.fail('a URL is malformed')
  }
}

function readBoxed(source: FrameSource): object {
  const value = source.value()
  const isPrimitive = ['number', 'string', 'boolean', 'bigint'].includes(typeof value)
  return isPrimitive ? (Object(value) as object) : source.fail('a boxed value is malformed')
}

function readPlatform(source: FrameSource): object {
  const name = source.string()
  const kind = platformKind(name)
  if (kind?.classHere() === undefined) throw new TransportError('TRANSPORT_KIND_UNKNOWN', { kind: name })
  if (!source.isProcess && kind.insideOnly !== undefined) source.fail(`a ${name} of another process`)
  const saved = source.value()
  try {
    return kind.load(saved)
  } catch (error) {
    return source.fail(`invalid content of a ${name}`, error)
  }
}

function readFunction(source: FrameSource): Function {
  return functionOf(source, source.uint32())
}

function readCapturing(source: FrameSource): Function {
  const number = source.uint32()
  const values = source.value()
  const fn = capturingFunction(functionOf(source, number), number, values)
  return fn ?? source.fail('the captured values are not those of the function')
}

function functionOf(source: FrameSource, number: number): Function {
  if (!source.isProcess) source.fail('a function in a self-contained frame')
  let made: Function | Promise<Function>
  try {
    made = functionByNumber(number)
  } catch (error) {
    return source.fail(error instanceof Error ? error.message : `function ${number} cannot be made`, error)
  }
  if (typeof made === 'function') return made
  made.catch(() => {}) // The module may fail as well.
  const [module, name] = exportOfNumber(number) as [string, string]
  const reason =
    `its export "${name}" is part of a value, its text alone is not enough, and this thread has not ` +
    'imported the module; import it here before, or send a function that imports it'
  throw new FunctionError('FUNCTION_MODULE', { module, reason })
}

function readHandle(source: FrameSource): object {
  const tag = source.string()
  const entry = handleOfTag(tag)
  if (entry === undefined) throw new TransportError('TRANSPORT_HANDLE_UNKNOWN', { tag })
  if (!source.isProcess && !entry.isSelfContained) source.fail(`a handle of kind '${tag}' of another process`)
  const saved = source.value()
  try {
    return entry.load(saved)
  } catch (error) {
    // The kind's own errors describe a missing object; any other error means that the frame is damaged.
    if (error instanceof CorespunError) throw error
    return source.fail(`invalid content of a handle of kind '${tag}'`, error)
  }
}

const classByNumber = new Map<number, ClassEntry>()

function classOfNumber(source: FrameSource): ClassEntry {
  if (!source.isProcess) source.fail('a class number of another process')
  const number = source.uint32()
  const known = classByNumber.get(number)
  if (known !== undefined) return classOfCid(known.cid) ?? known
  const cid = processTables().interned(TABLE_CLASSES, number)
  if (cid === undefined) return source.fail(`class number ${number} was never assigned`)
  const entry = knownClass(cid)
  classByNumber.set(number, entry)
  return entry
}

function knownClass(cid: string): ClassEntry {
  const entry = classOfCid(cid)
  if (entry === undefined) throw new TransportError('TRANSPORT_CLASS_UNKNOWN', { cid })
  return entry
}

function readClass(source: FrameSource, entry: ClassEntry): object {
  const version = source.uint32()
  checkVersion(entry, version)
  if (entry.save === undefined && entry.load === undefined) return source.instance(entry.prototype)
  source.unclaimed()
  const saved = source.value()
  if (entry.load !== undefined) {
    try {
      return entry.load(saved, version)
    } catch (error) {
      throw new HookError(error)
    }
  }
  if (!isPlainObject(saved)) return source.fail(`class '${entry.cid}' has no fields`)
  const object = Object.create(entry.prototype) as object
  return Object.defineProperties(object, Object.getOwnPropertyDescriptors(saved))
}

function checkVersion(entry: ClassEntry, version: number): void {
  if (version === entry.version || entry.load !== undefined) return
  throw new TransportError('TRANSPORT_CLASS_VERSION', {
    cid: entry.cid,
    version,
    versionKnown: entry.version,
  })
}

function readError(source: FrameSource): object {
  const kind = source.uint8()
  const parts = source.uint8()
  const message = source.value()
  const stack = source.value()
  const name = (parts & ERROR_HAS_NAME) === 0 ? undefined : source.string()
  if (ERROR_KINDS[kind] === undefined || parts > ERROR_PARTS) source.fail('an error is malformed')
  const isTextOrNone = (part: unknown) => part === undefined || typeof part === 'string'
  if (!isTextOrNone(message) || !isTextOrNone(stack)) source.fail('an error is malformed')
  const error = bareError(kind, message, name)
  source.claim(error)
  if ((parts & ERROR_HAS_CAUSE) !== 0) hide(error, 'cause', source.value())
  if ((parts & ERROR_HAS_ERRORS) !== 0) hide(error, 'errors', source.value())
  if ((parts & ERROR_HAS_CLASS) !== 0) {
    const entry = knownClass(source.string())
    checkVersion(entry, source.uint32())
    const hasHooks = entry.save !== undefined || entry.load !== undefined
    if (hasHooks || !isErrorPrototype(entry.prototype))
      source.fail(`class '${entry.cid}' is not a class of errors`)
    Object.setPrototypeOf(error, entry.prototype)
  }
  if ((parts & ERROR_HAS_ERROR) !== 0) hide(error, 'error', source.value())
  if ((parts & ERROR_HAS_SUPPRESSED) !== 0) hide(error, 'suppressed', source.value())
  if (name !== undefined && kind !== DOM_EXCEPTION) hide(error, 'name', name)
  setStack(error, stack)
  source.fieldsInto(error)
  return error
}

/** An error of a language class that has a message or none, and no stack of its own. */
function bareError(kind: number, message: string | undefined, name: string | undefined): object {
  if (kind === DOM_EXCEPTION) return new DOMException(message, name)
  return withStackLimit(0, () => bareNamed(ERROR_KINDS[kind], message))
}

function bareNamed(name: string, message: string | undefined): Error {
  type Made = new (...parts: unknown[]) => Error
  const made = (globalThis as unknown as Record<string, Made | undefined>)[name]
  // A class that this Node is too old for: its name and its parts are kept.
  if (made === undefined) return bareElsewhere(name, message)
  if (name === 'AggregateError' || name === 'SuppressedError') {
    const error = (
      name === 'AggregateError' ? new made([], message) : new made(undefined, undefined, message)
    ) as Error & Record<string, unknown>
    for (const part of ['errors', 'error', 'suppressed']) delete error[part]
    return error
  }
  return new made(message)
}

function bareElsewhere(name: string, message: string | undefined): Error {
  const error = new Error(message)
  hide(error, 'name', name)
  return error
}
