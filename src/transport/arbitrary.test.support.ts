/**
 * Values for property tests and the fuzzer: everything that can travel, nested, shared and in cycles.
 *
 * Trees come mostly from fast-check itself; graphs are objects wired to each other at random afterwards,
 * because no generator of trees ever makes a cycle.
 */
import { File } from 'node:buffer'
import { createSecretKey } from 'node:crypto'
import { BlockList } from 'node:net'
import fc from 'fast-check'
import { register, registerHandle } from './classes/classes.ts'
import { move } from './classes/memory.ts'

/** Which values: those of frames that stay in the process too; those that are not the same afterwards too. */
export interface Kinds {
  readonly mode?: 'process' | 'self-contained'
  readonly moves?: boolean
}

/** A value of any carried kind. Objects may be shared and lead back to themselves. */
export function anyValue(kinds: Kinds = {}): fc.Arbitrary<unknown> {
  return fc.oneof(
    { weight: 3, arbitrary: anyTree() },
    { weight: 1, arbitrary: anyGraph() },
    { weight: 1, arbitrary: anyOfCorespun(kinds) },
  )
}

class Plain {
  inner: unknown = undefined
}
class Saving {
  inner: unknown = undefined
}
class Loading {
  inner: unknown = undefined
}
class Hooked {
  readonly inner: unknown
  constructor(inner: unknown) {
    this.inner = inner
  }
}
class Failure extends RangeError {}
class Door {
  readonly number: number
  constructor(number: number) {
    this.number = number
  }
}
const doors = [0, 1, 2].map((number) => new Door(number))
register(Plain, { cid: 'any.Plain', version: 3 })
register(Saving, { cid: 'any.Saving', save: ({ inner }) => ({ inner }) })
register(Loading, { cid: 'any.Loading', load: (saved) => withInner(new Loading(), saved) })
register(Hooked, {
  cid: 'any.Hooked',
  save: ({ inner }) => [inner],
  load: (saved: unknown) => new Hooked(Array.isArray(saved) ? saved[0] : undefined),
})
register(Failure, { cid: 'any.Failure' })
registerHandle({
  tag: 'any.Door',
  is: Door,
  save: ({ number }) => ({ number }),
  // As careless as a load can be: a damaged frame makes it stumble.
  load: ({ number }: { number: number }) => doors[Number(number.toFixed()) % doors.length] ?? new Door(0),
})

/** What a load hook makes of anything that a damaged frame hands to it. */
function withInner(object: Loading, saved: unknown): Loading {
  object.inner = typeof saved === 'object' && saved !== null && 'inner' in saved ? saved.inner : undefined
  return object
}

const functions = [(a: number) => a + 1, () => 'text', async (a: unknown) => a]

/** Classes, handles, functions and memory of the process, in some objects and arrays. */
function anyOfCorespun({ mode, moves = false }: Kinds): fc.Arbitrary<unknown> {
  const bytes = fc.uint8Array({ maxLength: 40 })
  const ofProcess = [
    fc.constantFrom(...doors),
    fc.constantFrom(...functions),
    bytes.map((content) => createSecretKey(content)),
    bytes.map((content) => shared(content)),
    bytes.map((content) => new Uint8Array(shared(content), 0, content.length)),
  ]
  const moved = bytes.map((content) => move(Uint8Array.from(content)))
  const kinds = fc.oneof(
    anyLeaf(),
    fc.tuple(bytes, fc.nat(300)).map(([content, more]) => resizable(content, more)),
    ...(mode === 'process' ? ofProcess : []),
    ...(mode === 'process' && moves ? [moved] : []),
  )
  return fc.letrec((tie) => ({
    node: fc.oneof({ depthSize: 'small' }, kinds, tie('object'), tie('list')),
    list: fc.array(tie('node'), { maxLength: 6 }),
    object: fc
      .tuple(fc.constantFrom(Plain, Saving, Loading, Hooked, Failure), tie('node'))
      .map(([Made, inner]) =>
        Made === Hooked ? new Hooked(inner) : Object.assign(new (Made as new () => object)(), { inner }),
      ),
  })).node
}

function shared(content: Uint8Array): SharedArrayBuffer {
  const buffer = new SharedArrayBuffer(content.length)
  new Uint8Array(buffer).set(content)
  return buffer
}

function resizable(content: Uint8Array, more: number): ArrayBuffer {
  type Make = new (length: number, options: { maxByteLength: number }) => ArrayBuffer
  const buffer = new (ArrayBuffer as unknown as Make)(content.length, {
    maxByteLength: content.length + more,
  })
  new Uint8Array(buffer).set(content)
  return buffer
}

/** A value in which no object is met twice, apart from what fast-check itself repeats. */
function anyTree(): fc.Arbitrary<unknown> {
  return fc.oneof(
    fc.anything({
      withBigInt: true,
      withBoxedValues: true,
      withDate: true,
      withMap: true,
      withNullPrototype: true,
      withSet: true,
      withSparseArray: true,
      withTypedArray: true,
      withUnicodeString: true,
      maxDepth: 5,
    }),
    fc.letrec((tie) => ({
      node: fc.oneof(
        { depthSize: 'small' },
        tie('leaf'),
        tie('list'),
        tie('record'),
        tie('map'),
        tie('error'),
      ),
      list: fc.array(tie('node')),
      record: fc.dictionary(
        fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('__proto__', 'constructor', 'a', 'b')),
        tie('node'),
      ),
      map: fc.array(fc.tuple(tie('node'), tie('node'))).map((entries) => new Map(entries)),
      error: fc.tuple(fc.string(), tie('node')).map(([message, cause]) => new TypeError(message, { cause })),
      leaf: anyLeaf(),
    })).node,
  )
}

function anyLeaf(): fc.Arbitrary<unknown> {
  return fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.string({ minLength: 0, maxLength: 300 }),
    fc.double(),
    fc.integer(),
    fc.bigInt(),
    fc.constantFrom(undefined, null, true, false, -0, NaN, '\ud800', 'ÿ', 'Ā'),
    fc.date({ noInvalidDate: false }),
    fc.uint8Array().map((bytes) => bytes.buffer),
    fc.uint8Array().map((bytes) => Buffer.from(bytes)),
    fc.webUrl().map((href) => new URL(href)),
    anyOfPlatform(),
    fc.constantFrom(/a/g, /\d+(?<n>x)/iu).map((pattern) => new RegExp(pattern)),
    fc.sparseArray(fc.integer()),
    fc.float64Array().map((numbers) => [...numbers]),
  )
}

/** Objects of classes that Node provides. */
function anyOfPlatform(): fc.Arbitrary<unknown> {
  const entries = fc.array(fc.tuple(fc.constantFrom('a', 'b', 'set-cookie'), fc.constantFrom('1', 'ü')))
  return fc.oneof(
    entries.map((list) => new URLSearchParams(list)),
    entries.map((list) => new Headers(list)),
    fc.tuple(fc.uint8Array(), fc.string()).map(([bytes, name]) => new File([bytes], name)),
    fc.tuple(entries, fc.uint8Array()).map(([list, bytes]) => {
      const data = new FormData()
      for (const [name, value] of list) data.append(name, value)
      data.append('file', new File([bytes], 'name'))
      return data
    }),
    fc.constantFrom('1.2.3.4', '4.3.2.1').map((address) => {
      const list = new BlockList()
      list.addAddress(address)
      return list
    }),
  )
}

/** Objects wired to each other at random. */
function anyGraph(): fc.Arbitrary<unknown> {
  const kind = fc.constantFrom('object', 'array', 'map', 'set', 'error', 'null')
  const wires = fc.array(fc.tuple(fc.nat(), fc.nat(), fc.oneof(anyLeaf(), fc.constant(wire))), {
    maxLength: 30,
  })
  return fc.tuple(fc.array(kind, { minLength: 1, maxLength: 12 }), wires).map(([kinds, links]) => {
    const objects = kinds.map(made)
    for (const [from, to, value] of links) {
      const target = value === wire ? objects[to % objects.length] : value
      connect(objects[from % objects.length], `k${to % 5}`, target)
    }
    return objects[0]
  })
}

const wire = Symbol('wire')

function made(kind: string): object {
  if (kind === 'array') return []
  if (kind === 'map') return new Map()
  if (kind === 'set') return new Set()
  if (kind === 'error') return new Error('graph')
  return kind === 'null' ? (Object.create(null) as object) : {}
}

function connect(from: object, key: string, to: unknown): void {
  if (Array.isArray(from)) from.push(to)
  else if (from instanceof Map) from.set(key, to)
  else if (from instanceof Set) from.add(to)
  else (from as Record<string, unknown>)[key] = to
}
