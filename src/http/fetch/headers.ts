/**
 * `Headers` as the Fetch standard has them, cheap to make and to send.
 *
 * Fields are stored in two arrays in the order they arrived; iteration sorts and joins them. The headers of a
 * request are read from its exchange one by one until all are requested. Instances pass `instanceof Headers`,
 * and whatever accepts `HeadersInit` accepts them, because it iterates. Over 400 lines: one class, whose two
 * representations share each method.
 */
import { isObject, shown } from '../../base/index.ts'
import { type Exchange, TYPE_LAST, TYPES } from '../message/core-interface.ts'
import { HttpError } from '../errors.ts'
import type { HeadersInit, Inspect } from '../message/standard.ts'
import { isNative, whenLoaded } from './native.ts'

/** Where the fields of a request are read from. */
type Fields = Pick<Exchange, 'header' | 'headerPairs'>

const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
/** What a value may be on the wire: no control character but tab, nothing beyond Latin-1. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/
/** What the standard refuses of a value after its ends were trimmed. */
const VALUE_FORBIDDEN = /[\0\r\n]|[^\0-\xff]/
const ENDS = /^[\t\n\r ]+|[\t\n\r ]+$/g
/** Names met before, to their lower case: nearly all headers of a program. Bounded. */
const KNOWN_NAMES = new Map<string, string>()
const KNOWN_NAMES_MAX = 512
/** Headers that the core writes itself; of an app's own, a length and `connection: close` are heeded. */
const CORE_OWN = new Set([
  'connection',
  'content-length',
  'date',
  'keep-alive',
  'transfer-encoding',
  'upgrade',
])

/** A list of connection options that has `close` (RFC 9110, 7.6.1). */
const CLOSE = /(^|,)[\t ]*close[\t ]*(,|$)/i

/** The headers of a response, ready to be sent. */
export interface HeaderLines {
  /** Content type by number, 0 if it is in `lines` or absent; with `TYPE_LAST` if the connection closes. */
  readonly type: number
  /** Lines of the form `name: value\r\n`, without those that the core writes. */
  readonly lines: string
  /** The app's own content-length, if it set one. */
  readonly length: number | undefined
}

/** Lower-case `name`, or throw as the standard does. @throws {TypeError} When it is no field name. */
function nameOf(name: unknown): string {
  const text = typeof name === 'string' ? name : `${name as number}` // unlike String, throws for a symbol
  const known = KNOWN_NAMES.get(text)
  if (known !== undefined) return known
  if (!NAME.test(text)) throw new TypeError(`Headers: ${shown(text)} is an invalid header name`)
  const lower = text.toLowerCase()
  if (KNOWN_NAMES.size < KNOWN_NAMES_MAX) KNOWN_NAMES.set(text, lower)
  return lower
}

/** Trim `value`, or throw as the standard does. @throws {TypeError} When it cannot be sent. */
function valueOf(value: unknown, name: string): string {
  let text = typeof value === 'string' ? value : `${value as number}`
  if (VALUE.test(text) && !isSpace(text.charCodeAt(0)) && !isSpace(text.charCodeAt(text.length - 1)))
    return text
  text = text.replace(ENDS, '')
  if (VALUE_FORBIDDEN.test(text))
    throw new TypeError(`Headers: ${shown(text)} is an invalid value for the header ${name}`)
  return text
}

function isSpace(code: number): boolean {
  return code === 32 || code === 9
}

let linesOf: (headers: CorespunHeaders) => HeaderLines
let isOwn: (headers: object) => headers is CorespunHeaders

/**
 * The standard `Headers`, without objects for header lines that nobody reads.
 *
 * @example
 * ```ts
 * import assert from 'node:assert'
 * import { Headers } from 'corespun/http'
 *
 * const headers = new Headers({ accept: 'text/html' })
 * headers.append('accept', 'text/plain')
 * assert.equal(headers.get('accept'), 'text/html, text/plain')
 * ```
 */
export class CorespunHeaders implements Headers {
  #names: string[] = []
  #values: string[] = []
  /** Where the fields of a request still lie; undefined once they are here. */
  #exchange: Fields | undefined
  /** The entries that iteration returns, until the next change. */
  #sorted: [string, string][] | undefined

  static {
    linesOf = (headers) => headers.#lines()
    isOwn = (headers): headers is CorespunHeaders => #names in headers
  }

  /**
   * @param init What the standard's constructor takes.
   * @throws {TypeError} For names and values that cannot be sent.
   */
  constructor(init?: HeadersInit | null)
  /** @internal The headers of `exchange`. */
  constructor(init?: HeadersInit | null, exchange?: Exchange)
  constructor(init?: HeadersInit | null, exchange?: Exchange) {
    this.#exchange = exchange instanceof Object ? exchange : undefined
    if (init !== undefined) this.#fill(init)
  }

  #fill(init: HeadersInit | null): void {
    if (!isObject(init)) throw new TypeError('Headers: init must be an object')
    if (#names in init && !Object.hasOwn(init, Symbol.iterator)) {
      init.#load()
      this.#names = [...init.#names]
      this.#values = [...init.#values]
      return
    }
    const { [Symbol.iterator]: iterate } = init as Partial<Iterable<Iterable<string>>>
    if (iterate === undefined || iterate === null) {
      for (const [name, value] of recordOf(init as Record<string, string>)) this.append(name, value)
      return
    }
    // The standard reads the method once, and all pairs before it refuses one.
    let refused: unknown
    for (const pair of { [Symbol.iterator]: () => iterate.call(init) }) {
      const parts = partsOf(pair)
      if (refused === undefined) refused = this.#refused(parts)
    }
    if (refused !== undefined) throw refused
  }

  /** Append a pair. Returns why it cannot be. */
  #refused(parts: readonly string[]): unknown {
    if (parts.length !== 2) return new TypeError('Headers: each pair of init must have a name and a value')
    try {
      this.append(parts[0], parts[1])
      return undefined
    } catch (error) {
      return error
    }
  }

  /** All fields of the request, taken over from its exchange. */
  #load(): void {
    const exchange = this.#exchange
    if (exchange === undefined) return
    const pairs = exchange.headerPairs()
    this.#exchange = undefined
    for (let at = 0; at < pairs.length; at += 2) {
      this.#names.push(pairs[at].toLowerCase())
      this.#values.push(pairs[at + 1])
    }
  }

  #change(): void {
    this.#load()
    this.#sorted = undefined
  }

  /** Adds a value to a header. @throws {TypeError} For a name or a value that cannot be sent. */
  append(name: string, value: string): void {
    needs(arguments.length, 2)
    const key = nameOf(name)
    const text = valueOf(value, key)
    this.#change()
    this.#names.push(key)
    this.#values.push(text)
  }

  /** Replaces all values of a header. @throws {TypeError} For a name or a value that cannot be sent. */
  set(name: string, value: string): void {
    needs(arguments.length, 2)
    const key = nameOf(name)
    const text = valueOf(value, key)
    this.#change()
    const at = this.#names.indexOf(key)
    if (at < 0) {
      this.#names.push(key)
      this.#values.push(text)
      return
    }
    this.#values[at] = text
    this.#drop(key, at + 1)
  }

  /** Removes a header. @throws {TypeError} If `name` is not a field name. */
  delete(name: string): void {
    needs(arguments.length, 1)
    const key = nameOf(name)
    this.#change()
    this.#drop(key, 0)
  }

  #drop(key: string, from: number): void {
    for (let at = this.#names.indexOf(key, from); at >= 0; at = this.#names.indexOf(key, at)) {
      this.#names.splice(at, 1)
      this.#values.splice(at, 1)
    }
  }

  /** The values of a header, joined by `, `; `null` without any. @throws {TypeError} For an invalid name. */
  get(name: string): string | null {
    needs(arguments.length, 1)
    const key = nameOf(name)
    if (this.#exchange !== undefined && key !== 'cookie' && key !== 'set-cookie')
      return this.#exchange.header(key) ?? null
    this.#load()
    const first = this.#names.indexOf(key)
    if (first < 0) return null
    let joined = this.#values[first]
    for (let at = this.#names.indexOf(key, first + 1); at >= 0; at = this.#names.indexOf(key, at + 1)) {
      joined += `${key === 'cookie' ? '; ' : ', '}${this.#values[at]}`
    }
    return joined
  }

  /** Whether the header is present. @throws {TypeError} If `name` is not a field name. */
  has(name: string): boolean {
    needs(arguments.length, 1)
    return this.get(name) !== null
  }

  /** Every `set-cookie` value, in the order of insertion. */
  getSetCookie(): string[] {
    this.#load()
    return this.#values.filter((_, at) => this.#names[at] === 'set-cookie')
  }

  /** As the standard's. @throws {TypeError} If `callback` is not a function. */
  forEach(callback: (value: string, key: string, parent: Headers) => void, thisArg?: unknown): void {
    if (typeof callback !== 'function') throw new TypeError('Headers.forEach: callback must be a function')
    for (const [name, value] of this) callback.call(thisArg, value, name, this)
  }

  /** Names and values, sorted by name. */
  entries(): ReturnType<Headers['entries']> {
    return this.#entries((pair) => [...pair]) as unknown as ReturnType<Headers['entries']>
  }

  /** Names, sorted. */
  keys(): ReturnType<Headers['keys']> {
    return this.#entries(([name]) => name) as unknown as ReturnType<Headers['keys']>
  }

  /** Values, sorted by name. */
  values(): ReturnType<Headers['values']> {
    return this.#entries(([, value]) => value) as unknown as ReturnType<Headers['values']>
  }

  /** The same as `entries()`. */
  [Symbol.iterator](): ReturnType<Headers['entries']> {
    return this.entries()
  }

  #entries<Part>(part: (pair: [string, string]) => Part): HeadersIterator<Part> {
    // By index into what is there now, as the standard has it: what changes meanwhile is seen.
    return new HeadersIterator((at) => {
      const pair = this.#pairs()[at]
      return pair === undefined ? { done: true, value: undefined } : { done: false, value: part(pair) }
    })
  }

  /** `Headers`. */
  get [Symbol.toStringTag](): string {
    return 'Headers'
  }

  [Symbol.for('nodejs.util.inspect.custom')](_depth: number, options: object, inspect: Inspect): string {
    return `Headers ${inspect(Object.fromEntries(this.#pairs()), options)}`
  }

  #pairs(): [string, string][] {
    if (this.#sorted !== undefined) return this.#sorted
    this.#load()
    const pairs: [string, string][] = []
    for (const name of [...new Set(this.#names)].sort()) {
      if (name === 'set-cookie') for (const value of this.getSetCookie()) pairs.push([name, value])
      else pairs.push([name, this.get(name)!])
    }
    this.#sorted = pairs
    return pairs
  }

  #lines(): HeaderLines {
    this.#load()
    const sink = new LineSink()
    for (let at = 0; at < this.#names.length; at += 1) sink.add(this.#names[at], this.#values[at])
    return sink
  }
}

whenLoaded(({ Headers }) => {
  Reflect.setPrototypeOf(CorespunHeaders, Headers)
  Reflect.setPrototypeOf(CorespunHeaders.prototype, Headers.prototype)
})
Object.defineProperty(CorespunHeaders, 'name', { value: 'Headers' })
Object.defineProperty(CorespunHeaders, Symbol.hasInstance, {
  value: (value: unknown) =>
    typeof value === 'object' && value !== null && (isOwn(value) || isNative('Headers', value)),
})

/**
 * A record as the standard reads it: each key's descriptor, then its value.
 * @throws {TypeError} For an enumerable symbol, and for text beyond Latin-1 before anything after it is read.
 */
function recordOf(init: Record<string, string>): [string, string][] {
  const pairs: [string, string][] = []
  for (const key of Reflect.ownKeys(init)) {
    if (Reflect.getOwnPropertyDescriptor(init, key)?.enumerable !== true) continue
    if (typeof key === 'symbol') throw new TypeError('Headers: a symbol is not a header name')
    const name = latin1(key)
    const value: unknown = init[key]
    pairs.push([name, latin1(`${value as number}`)]) // unlike String, throws for a symbol
  }
  return pairs
}

/** The texts of one pair, which may be any iterable object. */
function partsOf(pair: unknown): string[] {
  if (!isObject(pair)) throw new TypeError('Headers: each pair of init must be an iterable object')
  const parts: unknown[] = [...(pair as Iterable<unknown>)]
  for (let at = 0; at < parts.length; at++) {
    if (typeof parts[at] !== 'string') parts[at] = `${parts[at] as number}`
  }
  return parts as string[]
}

function latin1(text: string): string {
  if (/[^\0-\xff]/.test(text)) throw new TypeError(`Headers: ${shown(text)} has a character beyond Latin-1`)
  return text
}

/** What `entries`, `keys` and `values` return. */
class HeadersIterator<Part> {
  #at = 0
  readonly #read: (at: number) => IteratorResult<Part, undefined>

  constructor(read: (at: number) => IteratorResult<Part, undefined>) {
    this.#read = read
  }

  next(): IteratorResult<Part, undefined> {
    const result = this.#read(this.#at)
    this.#at += 1
    return result
  }
}
Object.setPrototypeOf(
  HeadersIterator.prototype,
  Object.getPrototypeOf(Object.getPrototypeOf([].values())) as object,
)
Object.defineProperty(HeadersIterator.prototype, 'next', { enumerable: true })
Object.defineProperty(HeadersIterator.prototype, Symbol.toStringTag, {
  value: 'Headers Iterator',
  configurable: true,
})

/** @throws {TypeError} If a method has fewer arguments than the standard requires. */
function needs(given: number, required: number): void {
  if (given < required)
    throw new TypeError(`Headers: ${required} argument${required > 1 ? 's' : ''} required, ${given} given`)
}

/** Collects checked fields in the form that the core expects. */
class LineSink implements HeaderLines {
  type = 0
  lines = ''
  length: number | undefined

  /** A name in lower case and a value, both checked before. */
  add(name: string, value: string): void {
    if (name === 'content-type' && this.type === 0) {
      const type = TYPES.indexOf(value as (typeof TYPES)[number], 1)
      if (type > 0) {
        this.type = type
        return
      }
    }
    if (CORE_OWN.has(name)) {
      if (name === 'content-length' && /^\d{1,15}$/.test(value)) this.length = Number(value)
      else if (name === 'connection' && CLOSE.test(value)) this.type |= TYPE_LAST
      return
    }
    if (!VALUE.test(value)) throw new HttpError('HTTP_HEADER', { name, received: shown(value) })
    this.lines += `${name}: ${value}\r\n`
  }
}

/**
 * Make any headers ready to be sent; plain objects and pairs are checked on the way.
 * @throws {HttpError} `HTTP_HEADER` for a value with a control character.
 * @throws {TypeError} For names and values that `Headers` refuses.
 */
export function headerLines(headers: HeadersInit): HeaderLines {
  if (isOwn(headers)) return linesOf(headers)
  const sink = new LineSink()
  if (Symbol.iterator in headers) {
    for (const [name, value] of headers as Iterable<[string, string]>) {
      const key = nameOf(name)
      sink.add(key, valueOf(value, key))
    }
  } else {
    for (const name in headers) {
      const key = nameOf(name)
      sink.add(key, valueOf(headers[name], key))
    }
  }
  return sink
}
