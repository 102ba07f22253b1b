/**
 * Objects of Node's classes: which of them travel, how, and why the others are refused.
 *
 * Their content is in slots of the engine, private fields and symbols, so each kind has a way to save and
 * load it. A class is recognized by where its constructor was written, never by its name alone. Modules of
 * Node are loaded only when an object of them is met.
 */
import type * as Crypto from 'node:crypto'
import type * as Net from 'node:net'
import { isErrorPrototype } from './write-error.ts'
import { fileOfFunction } from '../functions/origin.ts'

/** How objects of one class of Node travel. */
export interface PlatformKind {
  /** The name of the class, and of the kind in frames. */
  readonly name: string
  /** The class in this thread; `undefined` on a Node that lacks it. */
  readonly classHere: () => Function | undefined
  /** Returns the content: strings, numbers, bytes. @throws {Unsaved} when it cannot be read. */
  readonly save: (object: object) => unknown
  /** Makes the object. Throws anything when `saved` is not what `save` returns. */
  readonly load: (saved: unknown) => object
  /** The parts of `saved` that can be refused, by the steps of their paths. */
  readonly parts?: (saved: unknown) => [step: string, value: unknown][]
  /** Set when the content must not leave the process: what to do instead. */
  readonly insideOnly?: string
}

/** Why an object of a carried kind is refused all the same. */
export class Unsaved {
  readonly why: string

  /** @param why The rest of the sentence. */
  constructor(why: string) {
    this.why = why
  }
}

const crypto = () => process.getBuiltinModule('node:crypto')
const net = () => process.getBuiltinModule('node:net')

function globalClass(name: string): () => Function | undefined {
  return () => {
    const value: unknown = Reflect.get(globalThis, name)
    return typeof value === 'function' ? value : undefined
  }
}

const kinds = new Map<string, PlatformKind>()
const add = (kind: PlatformKind): unknown => kinds.set(kind.name, kind)

add({
  name: 'URLSearchParams',
  classHere: () => URLSearchParams,
  save: (object) => URLSearchParams.prototype.toString.call(object),
  load: (saved) => new URLSearchParams(asText(saved)),
})
add({
  name: 'Headers',
  classHere: globalClass('Headers'),
  save: (object) => [...(object as Headers)].flat(),
  load: (saved) => {
    const headers = new Headers()
    for (const [name, value] of pairs(saved)) headers.append(asText(name), asText(value))
    return headers
  },
})
add({
  name: 'FormData',
  classHere: globalClass('FormData'),
  save: (object) => [...(object as FormData)].flat(),
  load: (saved) => {
    const data = new FormData()
    for (const [name, value] of pairs(saved)) {
      if (value instanceof Blob) data.append(asText(name), value)
      else data.append(asText(name), asText(value))
    }
    return data
  },
  parts: (saved) => {
    const entries = pairs(saved)
    const names = entries.map(([name]) => name)
    return entries.map(([name, value], at) => {
      const isOnly = names.indexOf(name) === names.lastIndexOf(name)
      const before = names.slice(0, at).filter((other) => other === name).length
      const written = JSON.stringify(name)
      return [isOnly ? `.get(${written})` : `.getAll(${written})[${before}]`, value]
    })
  },
})
add({
  name: 'Blob',
  classHere: globalClass('Blob'),
  save: (object) => [(object as Blob).type, contentOf(object as Blob)],
  load: (saved) => {
    const [type, content] = saved as [unknown, unknown]
    return new Blob([bytes(content)], { type: asText(type) })
  },
})
add({
  name: 'File',
  // Node 18 and 20 have it in node:buffer from the start, the later ones as a global too.
  classHere: () => process.getBuiltinModule('node:buffer').File,
  save: (object) => {
    const { name, lastModified, type } = object as File
    return [type, contentOf(object as File), name, lastModified]
  },
  load: (saved) => {
    const [type, content, name, lastModified] = saved as unknown[]
    const options = { type: asText(type), lastModified: number(lastModified) }
    return new (process.getBuiltinModule('node:buffer').File)([bytes(content)], asText(name), options)
  },
})
add({
  name: 'KeyObject',
  classHere: () => crypto().KeyObject,
  save: (object) => savedKey(object as Crypto.KeyObject),
  load: loadedKey,
  insideOnly: 'a key stays in the process; send what key.export() returns to where it may be',
})
add({
  name: 'CryptoKey',
  classHere: globalClass('CryptoKey'),
  save: (object) => {
    const { KeyObject } = crypto()
    if (!('toCryptoKey' in KeyObject.prototype))
      throw new Unsaved(
        'this version of Node makes none of its content; send KeyObject.from(key) and import that there',
      )
    const key = object as CryptoKey
    return [savedKey(KeyObject.from(key)), key.algorithm, key.extractable, key.usages]
  },
  load: (saved) => {
    const [key, ...rest] = saved as unknown[]
    const made = loadedKey(key) as unknown as { toCryptoKey(...parts: unknown[]): object }
    return made.toCryptoKey(...rest)
  },
  insideOnly: 'a key stays in the process; send what subtle.exportKey() returns to where it may be',
})
add({
  name: 'BlockList',
  classHere: () => net().BlockList,
  save: (object) => [...(object as Net.BlockList).rules],
  load: (saved) => {
    const list = new (net().BlockList)()
    // The rule that was added last comes first.
    for (const rule of texts(saved).reverse()) addRule(list, rule)
    return list
  },
})

const DURATION_PARTS = [
  'years',
  'months',
  'weeks',
  'days',
  'hours',
  'minutes',
  'seconds',
  'milliseconds',
  'microseconds',
  'nanoseconds',
]
type TemporalClass = (new (...parts: unknown[]) => object) & {
  readonly prototype: { toString(): string }
  from(text: string): object
}
const temporalClass = (name: string) => () =>
  (globalThis as { Temporal?: Record<string, TemporalClass> }).Temporal?.[name]
for (const name of [
  'Instant',
  'PlainDate',
  'PlainTime',
  'PlainDateTime',
  'PlainYearMonth',
  'PlainMonthDay',
  'ZonedDateTime',
  'Duration',
]) {
  const classHere = temporalClass(name)
  const isDuration = name === 'Duration'
  add({
    name,
    classHere,
    // As text, a duration of 5000 milliseconds would arrive as 5 seconds.
    save: isDuration
      ? (object) => DURATION_PARTS.map((part) => Reflect.get(object, part) as unknown)
      : (object) => (classHere() as TemporalClass).prototype.toString.call(object),
    load: (saved) => {
      const made = classHere() as TemporalClass
      return isDuration ? new made(...list(saved).map(number)) : made.from(asText(saved))
    },
  })
}

export function platformKind(name: string): PlatformKind | undefined {
  return kinds.get(name)
}

const kindByPrototype = new WeakMap<object, PlatformKind | 'none'>()

/** The kind of objects of this prototype, of a class of the platform or one that extends it. */
export function kindOfPrototype(prototype: object): PlatformKind | undefined {
  let kind = kindByPrototype.get(prototype)
  if (kind === undefined) {
    const made = classesOf(prototype).find((each) => kinds.has(each.name) && isPlatformClass(each))
    kind = (made === undefined ? undefined : kinds.get(made.name)) ?? 'none'
    kindByPrototype.set(prototype, kind)
  }
  return kind === 'none' ? undefined : kind
}

/** The class of Node, other than Object and errors, that objects of this prototype are of or extend. */
export function platformNameOf(prototype: object): string | undefined {
  return isErrorPrototype(prototype) ? undefined : classesOf(prototype).find(isPlatformClass)?.name
}

/** The constructors of a prototype and those above it, without that of all objects. */
function classesOf(prototype: object): Function[] {
  const found: Function[] = []
  for (let up = prototype; Object.getPrototypeOf(up) !== null; up = Object.getPrototypeOf(up) as object) {
    const made: unknown = Object.getOwnPropertyDescriptor(up, 'constructor')?.value
    if (typeof made === 'function' && made.prototype === up) found.push(made)
  }
  return found
}

function isPlatformClass(made: Function): boolean {
  if (made === kinds.get(made.name)?.classHere()) return true
  return (
    Function.prototype.toString.call(made).endsWith('{ [native code] }') ||
    fileOfFunction(made)?.startsWith('node:') === true
  )
}

const A_STREAM = 'a stream belongs to its thread; send the path that it reads, or the bytes'
const A_SOCKET = 'a socket belongs to its thread; send the bytes that were read from it'
const A_BODY = 'its body belongs to its thread; send its method, URL, headers and the bytes of its body'
const A_PORT =
  'a port belongs to one thread, and which worker takes a task is decided later; send a Channel, ' +
  'or create a BroadcastChannel of one name on both sides'
const AN_EVENT = 'it belongs to its thread; send its fields'
const remedies: Readonly<Record<string, string | undefined>> = {
  Request: A_BODY,
  Response: A_BODY,
  IncomingMessage: A_BODY,
  ServerResponse: A_SOCKET,
  Socket: A_SOCKET,
  Server: A_SOCKET,
  MessagePort: A_PORT,
  BroadcastChannel: A_PORT,
  Stream: A_STREAM,
  ReadableStream: A_STREAM,
  WritableStream: A_STREAM,
  TransformStream: A_STREAM,
  Event: AN_EVENT,
  AbortController: 'it belongs to its thread; send its signal',
  EventEmitter:
    'its listeners belong to its thread; send its fields, or register its class with save and load',
  EventTarget:
    'its listeners belong to its thread; send its fields, or register its class with save and load',
}

/**
 * Why an object of this prototype, of a class of Node, is refused, and what to do. Objects with a body
 * (requests, responses) are refused with this reason even if a class of the program extends theirs.
 */
export function whyRefused(prototype: object): string | undefined {
  const classes = classesOf(prototype)
  const known = classes.find((made) => remedies[made.name] !== undefined && isPlatformClass(made))
  const why = known === undefined ? undefined : remedies[known.name]
  if (why === A_BODY) return why
  if (classes.length === 0 || !isPlatformClass(classes[0])) return undefined
  if (why !== undefined) return why
  return 'its content cannot be read; send the values it is made from and make it in the other thread'
}

/** Consecutive empty pulls, as between the parts of a Blob made of others. */
const EMPTY_PULLS_MAX = 1000

interface BlobReader {
  pull(done: (status: number, part: ArrayBuffer | undefined) => void): void
}

/** The bytes of a Blob in memory. @throws {Unsaved} when they are read asynchronously. */
function contentOf(blob: Blob): Uint8Array {
  const symbols = Object.getOwnPropertySymbols(blob)
  const valueOf = (name: string): unknown => {
    const key = symbols.find((symbol) => symbol.description === name)
    return key && Reflect.get(blob, key)
  }
  // Node has no public synchronous way to read them; this is how it reads them itself.
  const handle = valueOf('kHandle') as { getReader?: () => BlobReader } | undefined
  const later =
    'its content is read asynchronously; send the path of the file, or what blob.bytes() resolves to'
  // Node marks what openAsBlob() returns. A reader would open the file until it is collected itself.
  if (handle?.getReader === undefined || valueOf('kNotCloneable') === true) throw new Unsaved(later)
  const reader = handle.getReader()
  const content = new Uint8Array(blob.size)
  let at = 0
  let isOver = false
  for (let empty = 0; !isOver && at < content.length && empty < EMPTY_PULLS_MAX; empty++) {
    // For a file the callback runs later, when reading is over.
    let isAtOnce = false
    reader.pull((status, part) => {
      if (isOver) return
      isAtOnce = true
      isOver = status <= 0
      if (part === undefined) return
      content.set(new Uint8Array(part), at)
      at += part.byteLength
      empty = 0
    })
    isOver ||= !isAtOnce
  }
  if (at !== content.length) throw new Unsaved(later)
  return content
}

function savedKey(key: Crypto.KeyObject): unknown[] {
  if (key.type === 'secret') return [key.type, key.export()]
  const type = key.type === 'private' ? 'pkcs8' : 'spki'
  return [key.type, key.export({ format: 'der', type: type as 'spki' })]
}

function loadedKey(saved: unknown): Crypto.KeyObject {
  const [type, content] = saved as [unknown, unknown]
  const key = Buffer.from(bytes(content))
  if (type === 'secret') return crypto().createSecretKey(key)
  if (type === 'private') return crypto().createPrivateKey({ key, format: 'der', type: 'pkcs8' })
  if (type === 'public') return crypto().createPublicKey({ key, format: 'der', type: 'spki' })
  throw new TypeError('not a key')
}

const RULE = /^(Address|Range|Subnet): (IPv[46]) ([^-/]+)(?:[-/](.+))?$/

function addRule(list: Net.BlockList, rule: string): void {
  const [, kind, version, first, second] = RULE.exec(rule) as unknown as [
    string,
    string,
    string,
    string,
    string,
  ]
  const family = version === 'IPv4' ? 'ipv4' : 'ipv6'
  if (kind === 'Address') list.addAddress(first, family)
  else if (kind === 'Range') list.addRange(first, second, family)
  else list.addSubnet(first, Number(second), family)
}

function list(value: unknown): unknown[] {
  if (Array.isArray(value)) return value
  throw new TypeError('not a list')
}

function texts(value: unknown): string[] {
  return list(value).map(asText)
}

function pairs(value: unknown): [unknown, unknown][] {
  const flat = list(value)
  const found: [unknown, unknown][] = []
  for (let index = 0; index < flat.length; index += 2) found.push([flat[index], flat[index + 1]])
  return found
}

function asText(value: unknown): string {
  if (typeof value === 'string') return value
  throw new TypeError('not a text')
}

function number(value: unknown): number {
  if (typeof value === 'number') return value
  throw new TypeError('not a number')
}

function bytes(value: unknown): Uint8Array<ArrayBuffer> {
  if (value instanceof Uint8Array) return value as Uint8Array<ArrayBuffer>
  throw new TypeError('not bytes')
}
