/**
 * Streams among arguments and results: where they are, and the value without them.
 *
 * Only asked when the transport has refused a value, so values without streams pay nothing. Streams are found
 * at the top and nested in arrays and plain objects. A value that is found twice is one stream.
 */
import { types } from 'node:util'
import { isPlainObject } from '../../../base/index.ts'
import { handleOf, isRefusedClass, isTransportable } from '../../../transport/internal.ts'

/** As what a stream arrives in the other thread. */
export type StreamKind = 'items' | 'web' | 'bytes' | 'node'

/** How deep containers are looked into; a stream further down is refused as before. */
const DEPTH_MAX = 64

/** One stream of a value, as the other thread needs it. */
export interface Position {
  /** The keys that lead to it; several where it is at several positions. */
  readonly paths: (readonly (string | number)[])[]
  readonly kind: StreamKind
  /** Properties of a Node stream: whether its items are any values, and the encoding of its strings. */
  readonly objectMode: boolean
  readonly encoding: string | undefined
}

/** A value without its streams. */
export interface Found {
  /** A copy of the containers, with `undefined` where streams were. */
  readonly value: unknown
  readonly positions: readonly Position[]
  readonly sources: readonly object[]
}

/** The streams in a value that the transport has refused; `undefined` without any. */
export function streamsIn(value: unknown): Found | undefined {
  const finder = new Finder()
  const copy = finder.copied(value, [])
  if (finder.sources.length === 0) return undefined
  return { value: copy, positions: finder.positions, sources: finder.sources }
}

/** Puts `streams` to where they were found; returns the value. */
export function restored(
  value: unknown,
  positions: readonly Position[],
  streams: readonly unknown[],
): unknown {
  const root = { value }
  for (const [index, { paths }] of positions.entries())
    for (const path of paths) put(root, ['value', ...path], streams[index])
  return root.value
}

function put(root: object, path: readonly (string | number)[], stream: unknown): void {
  const last = path.length - 1
  let at = root as Record<string | number, object>
  for (const key of path.slice(0, last)) at = at[key] as Record<string | number, object>
  define(at, path[last], stream)
}

/** As an assignment, also of `__proto__`. */
function define(owner: object, key: string | number, value: unknown): void {
  Object.defineProperty(owner, key, { value, configurable: true, enumerable: true, writable: true })
}

class Finder {
  readonly positions: Position[] = []
  readonly sources: object[] = []
  /** Containers and their copies; streams and their indices. */
  readonly #copies = new Map<object, unknown>()
  readonly #indices = new Map<object, number>()

  copied(value: unknown, path: readonly (string | number)[]): unknown {
    if (typeof value !== 'object' || value === null) return value
    const known = this.#copies.get(value)
    if (known !== undefined) return known
    const kind = kindOf(value)
    if (kind !== undefined) return this.#stream(value, kind, path)
    const isArray = Array.isArray(value)
    if ((!isArray && !isPlainObject(value)) || path.length >= DEPTH_MAX) return value
    const copy: object = isArray
      ? new Array(value.length)
      : (Object.create(Object.getPrototypeOf(value) as object | null) as object)
    this.#copies.set(value, copy)
    for (const key of Object.keys(value))
      define(copy, key, this.copied((value as Record<string, unknown>)[key], [...path, key]))
    return copy
  }

  #stream(source: object, kind: StreamKind, path: readonly (string | number)[]): undefined {
    const index = this.#indices.get(source)
    if (index !== undefined) return void this.positions[index]?.paths.push(path)
    this.#indices.set(source, this.sources.length)
    this.sources.push(source)
    const { readableObjectMode, readableEncoding } = source as {
      readonly readableObjectMode?: boolean
      readonly readableEncoding?: string | null
    }
    const isNode = kind === 'node'
    this.positions.push({
      paths: [path],
      kind,
      objectMode: isNode && readableObjectMode === true,
      encoding: (isNode && readableEncoding) || undefined,
    })
  }
}

/** The kind of a value that is read item by item; `undefined` for all that travels in another way. */
export function kindOf(value: object): StreamKind | undefined {
  if (value instanceof ReadableStream) return isByteStream(value) ? 'bytes' : 'web'
  if (Array.isArray(value) || isRefusedClass(value) || isSocket(value)) return undefined
  const { next, pipe, read } = value as { next?: unknown; pipe?: unknown; read?: unknown }
  const isAsync = Symbol.asyncIterator in value
  if (isAsync && typeof pipe === 'function' && typeof read === 'function') return 'node'
  const isIterator = typeof next === 'function' && Symbol.iterator in value
  if (types.isGeneratorObject(value) || isIterator) return 'items'
  return isAsync && !hasAnotherWay(value) ? 'items' : undefined
}

/** Half of a socket would be lost: it stays refused, with what to do instead. */
function isSocket(value: object): boolean {
  return typeof (value as { setNoDelay?: unknown }).setNoDelay === 'function'
}

/** Handles, such as a Channel, and objects of registered classes travel as what they are. */
function hasAnotherWay(value: object): boolean {
  return handleOf(value) !== undefined || (!isPlainObject(value) && isTransportable(value))
}

/** Only a stream of bytes has a reader that fills the memory of its caller. */
function isByteStream(stream: ReadableStream): boolean {
  try {
    stream.getReader({ mode: 'byob' }).releaseLock()
    return true
  } catch {
    return false
  }
}
