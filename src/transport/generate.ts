/**
 * Generates a writer and a reader for each shape that is used often.
 *
 * Each has code of its own, so objects that make the engine's caches of one shape useless (dictionary mode,
 * very many hidden classes) do not affect other shapes. The code receives the writer or the reader as an
 * argument and keeps nothing between calls. Where generating code is forbidden, the loops in writer.ts and
 * reader.ts do the same work.
 *
 * Keys enter the code as JSON strings only; nothing else in it comes from a value or a frame.
 */
import { CHUNK_CHARS, TAG_FALSE, TAG_INT16, TAG_OBJECT16, TAG_STRING, TAG_TRUE } from './format.ts'

/** The members of the writer that generated code uses. */
export interface GeneratedSink {
  readonly bytes: Uint8Array
  readonly isProcess: boolean
  text: string
  depth: number
  /** Leaves so far: objects that contain no other object. */
  leafCount: number
  number(value: number, at: number): number
  string(text: string, at: number): number
  /** Write field `index` of an object of `shape`: a value of a less common kind. */
  field(value: unknown, shape: GeneratedShape, index: number, at: number): number
  /** Write the tag of the shape. */
  shapeTag(shape: GeneratedShape, at: number): number
  /** Write the tag of the class before that of the shape. */
  classTag(owner: GeneratedClass, at: number): number
  /** Called below the depth of a tree. */
  deep(): void
  /** Record a leaf and its content in the frame (of classes: an empty range, see writer.ts). */
  leaf(object: object, from: number, to: number): void
}

/** The members of a shape that generated code uses. */
export interface GeneratedShape {
  readonly keys: readonly string[]
  /** Process-wide number, or 0. */
  readonly number: number
}

/** The members of the reader that generated code uses. */
export interface GeneratedSource {
  readonly bytes: Uint8Array
  at: number
  readonly text: string
  textAt: number
  value(): unknown
  other(tag: number): unknown
}

/**
 * Writes an object at `at` of a frame without a graph; returns its end, or -1 when it has other keys or
 * another prototype.
 */
export type WriteObject = (sink: GeneratedSink, object: object, at: number) => number
/** Reads the fields into a new plain object. */
export type ReadFields = (source: GeneratedSource) => object

/** Most shapes that have writers at a time, and readers; each takes some kilobytes. */
const GENERATED_MAX = 1000
/** Most keys with code at a time: each key of a reader takes about a kilobyte. */
const KEYS_MAX = 32_768
/** Objects of a shape before code is generated for it, at first and at most. */
const USES_FIRST = 16
const USES_MAX = 16_384

/**
 * Code pays for a shape of at least every 64th object: the engine compiles only what runs often, and
 * interpreted it is slower than the loops, which are compiled.
 */
const SHARE = 64

/** Turns of a loop after which the engine has what it needs to copy the literal of a function. */
const TURNS = 400

/** Something that code may be generated for. */
export interface Generated {
  readonly keys: readonly string[]
  /** The number of its objects that were written or read without code. */
  readonly uses: number
  /** {@link CodeBudget.looped} when it was met. */
  readonly since: number
  /** Drop the code; count uses from 0 again. */
  forget(): void
}

/**
 * Limits the generated code. At the limit all of it is dropped, and shapes must be used twice as often as
 * before to get code again: with endlessly many shapes, generating soon stops.
 */
export class CodeBudget {
  /** Uses after which a shape may get code. */
  usesMin = USES_FIRST
  /** Objects of all shapes that were written or read without code. */
  looped = 0
  #holders: Generated[] = []
  #keys = 0

  /** Whether `holder` has been used often enough: at least for every `share`th object. */
  pays(holder: Generated, share = SHARE): boolean {
    return holder.uses >= this.usesMin && holder.uses * share >= this.looped - holder.since
  }

  /** Whether `holder`, used `usesMin` times, may get code. */
  admits(holder: Generated): boolean {
    if (isGeneratingForbidden()) return false
    if (this.#holders.length >= GENERATED_MAX || this.#keys + holder.keys.length > KEYS_MAX) {
      for (const other of this.#holders) other.forget()
      this.#holders = []
      this.#keys = 0
      this.usesMin = Math.min(this.usesMin * 2, USES_MAX)
    }
    this.#holders.push(holder)
    this.#keys += holder.keys.length
    return true
  }

  /** Whether a holder that has code may get more, for a class. */
  admitsMore(holder: Generated): boolean {
    if (this.#keys + holder.keys.length > KEYS_MAX) return false
    this.#keys += holder.keys.length
    return true
  }
}

/** The expression for the prototype; Node can disable `__proto__` (`--disable-proto`). */
const prototypeOf = hasProto() ? 'object.__proto__' : 'Object.getPrototypeOf(object)'

function hasProto(): boolean {
  try {
    return Reflect.get({}, '__proto__') === Object.prototype
  } catch {
    return false
  }
}

/** False for keys that would hide an object's prototype from generated code. */
export function isGenerable(keys: readonly string[]): boolean {
  return !keys.includes('__proto__')
}

let isForbidden: boolean | undefined

/** True when this process may not generate code (`--disallow-code-generation-from-strings`). */
export function isGeneratingForbidden(): boolean {
  if (isForbidden === undefined) {
    try {
      isForbidden = new Function('return true')() !== true
    } catch {
      isForbidden = true
    }
  }
  return isForbidden
}

/** The class of the objects that generated code writes or reads; plain objects have no such class. */
export interface GeneratedClass {
  readonly prototype: object
  readonly version: number
  /** A later registration of the class has replaced this one. */
  readonly isStale: boolean
  /** Process-wide number, or 0. */
  readonly number: number
}

/**
 * The writer for objects of `shape`, plain or of a class. Its numbers are part of the code, so they must not
 * change afterwards. The keys are compared before anything else: an object of other keys leaves no trace in
 * the engine's caches for the fields. Then the prototype, by the one expression that costs nothing for a
 * cached hidden class; a shape with a key of that name gets no code, see {@link isGenerable}.
 */
export function generateWriter(shape: GeneratedShape, depthMax: number, owner?: GeneratedClass): WriteObject {
  const { keys, number } = shape
  const fields = keys.map((key, index) => `value = object[${JSON.stringify(key)}]${writeOne(index)}`).join('')
  const tag = `at = sink.shapeTag(shape, at)`
  const numbered =
    number === 0 || number > 0xffff
      ? tag
      : `if (sink.isProcess) {
      bytes[at] = ${TAG_OBJECT16}; bytes[at + 1] = ${number & 0xff}; bytes[at + 2] = ${number >> 8}
      at += 3
    } else ${tag}`
  const code = `return function writeObject(sink, object, at) {
    ${owner === undefined ? isNotPlain(keys) : isNotInstance(keys)}
    if (++sink.depth > ${depthMax}) sink.deep()
    const leaves = sink.leafCount
    const bytes = sink.bytes
    ${owner === undefined ? '' : 'at = sink.classTag(owner, at)'}
    ${numbered}
    ${owner === undefined ? 'const from = at' : ''}
    let text = sink.text
    let value
    ${fields}
    sink.text = text
    sink.depth--
    if (leaves === sink.leafCount) sink.leaf(object, ${owner === undefined ? 'from' : 'at'}, at)
    return at
  }`
  const prototype = owner?.prototype ?? Object.prototype
  const names = ['keys', 'shape', 'owner', 'prototype', 'ownKeys', 'hasOnlyFields']
  return new Function(...names, code)(
    keys,
    shape,
    owner,
    prototype,
    Object.keys,
    hasOnlyFields,
  ) as WriteObject
}

const { getOwnPropertyNames, getOwnPropertySymbols, setPrototypeOf } = Object
const plainPrototype = Object.prototype

/**
 * Whether an object with `count` own enumerable string keys has no other own properties. The engine lists
 * names from its cache when all are enumerable, and looks for symbols without making a set; `Reflect.ownKeys`
 * does neither and takes four times as long.
 */
export function hasOnlyFields(object: object, count: number): boolean {
  return getOwnPropertySymbols(object).length === 0 && getOwnPropertyNames(object).length === count
}

/** Returns -1 for an object that is not plain or has other keys. */
function isNotPlain(keys: readonly string[]): string {
  return `let count = 0
    for (const key in object) if (key !== keys[count++]) return -1
    if (count !== ${keys.length} || ${prototypeOf} !== prototype) return -1`
}

/**
 * Returns -1 for an object of another class, with other keys or with state in no field, and when the class
 * was registered again. `Object.keys` lists no inherited keys, and comparing its list takes no longer than
 * `for-in`.
 */
function isNotInstance(keys: readonly string[]): string {
  const count = keys.length
  const differs = keys
    .map((key, index) => `if (own[${index}] !== ${JSON.stringify(key)}) return -1`)
    .join('\n    ')
  return `const own = ownKeys(object)
    if (own.length !== ${count} || ${prototypeOf} !== prototype || owner.isStale) return -1
    ${differs}
    if (!hasOnlyFields(object, ${count})) return -1`
}

function writeOne(index: number): string {
  return `
    if (typeof value === 'number') {
      if (value > 0 && value < ${TAG_STRING} && (value | 0) === value) bytes[at++] = value
      else at = sink.number(value, at)
    } else if (typeof value === 'string') {
      if (value.length < 64 && text.length < ${CHUNK_CHARS - 64}) {
        bytes[at++] = ${TAG_STRING} + value.length
        text += value
      } else { sink.text = text; at = sink.string(value, at); text = sink.text }
    } else if (value === true) bytes[at++] = ${TAG_TRUE}
    else if (value === false) bytes[at++] = ${TAG_FALSE}
    else { sink.text = text; at = sink.field(value, shape, ${index}, at); text = sink.text }`
}

/** The reader for these keys: of plain objects, or of objects of a class that accept all keys as fields. */
export function generateReader(keys: readonly string[], prototype?: object): ReadFields {
  const fields = keys.map(
    (_, index) => `
    tag = bytes[at++]
    let value${index}
    if (tag < ${TAG_STRING}) value${index} = tag
    else if (tag < ${TAG_INT16} && textAt + tag - ${TAG_STRING} <= textLength) {
      value${index} = text.substring(textAt, textAt += tag - ${TAG_STRING})
    } else if (tag === ${TAG_TRUE}) value${index} = true
    else if (tag === ${TAG_FALSE}) value${index} = false
    else {
      source.at = at; source.textAt = textAt
      value${index} = source.other(tag)
      at = source.at; textAt = source.textAt; text = source.text; textLength = text.length
    }`,
  )
  // In brackets `__proto__` is a field like any other.
  const nameOf = (key: string) => (key === '__proto__' ? '["__proto__"]' : JSON.stringify(key))
  const literal = `return { ${keys.map((key, index) => `${nameOf(key)}: value${index}`).join(', ')} }`
  const made = `const object = new Made()
    ${keys.map((key, index) => `object[${JSON.stringify(key)}] = value${index}`).join('\n    ')}
    return object`
  const code = `return function readFields(source) {
    const bytes = source.bytes
    let at = source.at, text = source.text, textLength = text.length, textAt = source.textAt, tag
    ${fields.join('')}
    source.at = at
    source.textAt = textAt
    ${prototype === undefined ? literal : made}
  }`
  const Made = function () {}
  if (prototype !== undefined) Made.prototype = prototype
  return new Function('Made', code)(Made) as ReadFields
}

/**
 * The reader for a dictionary: a copy of an object with these keys that the engine keeps as a table, in which
 * each value is replaced. A key `__proto__` would be no field of it, see {@link isGenerable}.
 */
export function generateTableReader(keys: readonly string[]): ReadFields {
  const fields = keys.map((key) => `${JSON.stringify(key)}: 0`).join(', ')
  // With a prototype the engine would make a hidden class of it.
  const copy = new Function(
    'turns',
    `while (turns-- > 0);
    return { __proto__: null, ${fields} }`,
  ) as (turns: number) => Record<string, unknown>
  // Until a function has run often, the engine makes the literal anew each time.
  copy(TURNS)
  return (source) => {
    const object = copy(0)
    for (let index = 0; index < keys.length; index++) object[keys[index]] = source.value()
    return setPrototypeOf(object, plainPrototype) as object
  }
}
