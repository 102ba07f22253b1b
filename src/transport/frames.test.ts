/**
 * Frames that lie on somebody's disk: each was written once by some release and must be read by all later
 * ones.
 *
 * frames/v1.json holds them in base64 by name. A new kind of value gets a new name below and is added by
 * running this test with CORESPUN_KEEP_FRAMES=1; what is there is never written again. frames/harm.json holds
 * bytes that once did harm.
 */
import assert from 'node:assert/strict'
import { Blob, File } from 'node:buffer'
import { readFileSync, writeFileSync } from 'node:fs'
import { BlockList } from 'node:net'
import { test } from 'node:test'
import { register, registerHandle } from './classes/classes.ts'
import { decode, encode } from './codec.ts'
import { readHostile } from './hostile.test.support.ts'
import { assertSame } from './same.test.support.ts'
import './tables.test.support.ts'

const KEPT = new URL('../../src/transport/frames/v1.json', import.meta.url)
const HARM = new URL('../../src/transport/frames/harm.json', import.meta.url)

class Point {
  x: number
  y: number
  constructor(x: number, y: number) {
    this.x = x
    this.y = y
  }
}
register(Point, { cid: 'frames.Point', version: 7 })
class Hooked {
  text: string
  constructor(text: string) {
    this.text = text
  }
}
register(Hooked, { cid: 'frames.Hooked', save: ({ text }) => text, load: (text: string) => new Hooked(text) })

class Unregistered extends Error {}
class Failure extends RangeError {}
register(Failure, { cid: 'frames.Failure', version: 2 })
class Door {}
const door = new Door()
registerHandle({
  tag: 'frames.door',
  is: Door,
  save: () => 'the door',
  load: () => door,
  isSelfContained: true,
})
const Growing = ArrayBuffer as unknown as new (length: number, options: object) => ArrayBuffer

/** An error as it is behind the first hop: of the class of the language, under its own name. */
function arrived(error: Error): Error {
  const far = withStack(error instanceof TypeError ? new TypeError(error.message) : new Error(error.message))
  Object.defineProperty(far, 'stack', { value: error.stack })
  const name = error instanceof Unregistered ? 'Unregistered' : error.name
  return Object.defineProperty(far, 'name', { value: name, writable: true, configurable: true })
}

const withStack = <Thrown extends Error>(error: Thrown, extra: object = {}) =>
  Object.assign(
    Object.defineProperty(error, 'stack', { value: `${error.name}: kept`, writable: true }),
    extra,
  )

const buffer = Uint8Array.from({ length: 32 }, (_, index) => index * 7).buffer
const shared = { shared: true }
const cyclic: Record<string, unknown> = { name: 'cycle', shared }
cyclic.list = [cyclic, shared, new Map<unknown, unknown>([[cyclic, new Set([cyclic])]])]
const bare = Object.assign(Object.create(null) as object, { a: 1 })
const sparse: unknown[] = [1, , 3]
sparse[5_000_000] = 'far'

const blocked = new BlockList()
blocked.addSubnet('10.0.0.0', 8)
const form = new FormData()
form.append('field', 'value')
form.append('file', new File(['content'], 'name', { lastModified: 5 }))

const values: Record<string, unknown> = {
  integers: [0, 1, 127, 128, -1, 32_767, -32_768, 32_768, 2_147_483_647, -2_147_483_648],
  numbers: [-0, 0.5, NaN, Infinity, -Infinity, 5e-324, 1.7976931348623157e308, 2 ** 31, -(2 ** 53)],
  constants: [undefined, null, true, false],
  bigints: [0n, 1n, -1n, 255n, -256n, 2n ** 200n, -(3n ** 150n)],
  texts: ['', 'a', 'x'.repeat(63), 'y'.repeat(64), 'é ÿ', 'Ж Ā', '日本語', '😀', '\ud800', '\0'],
  longTexts: ['l'.repeat(32_769), 'ж'.repeat(200), 'end'],
  object: { a: 1, b: 'two', c: { a: 3, b: 'four', c: null }, 'key with spaces': [], ключ: true, 10: 'ten' },
  objects: Array.from({ length: 5 }, (_, id) => ({ id, name: `name ${id}`, inner: { id } })),
  manyKeys: Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`key${index}`, index])),
  protoKey: JSON.parse('{"__proto__": {"a": 1}, "b": 2}') as unknown,
  nullPrototype: bare,
  holes: [, 1, , , 'x', ,],
  sparse,
  fractions: [0.1, 0.2, 0.3, -1.5, 1e100],
  longArray: Array.from({ length: 1000 }, (_, index) => index * 3),
  dates: [new Date(0), new Date(1_763_694_000_123), new Date(NaN)],
  patterns: [/a+/giu, /\//, Object.assign(/x/g, { lastIndex: 3 })],
  map: new Map<unknown, unknown>([
    ['a', 1],
    [{ key: 1 }, new Map([[2, 'b']])],
  ]),
  set: new Set<unknown>([1, 'a', { b: 1 }]),
  buffers: {
    buffer,
    bytes: new Uint8Array(buffer, 4, 8),
    doubles: new Float64Array(buffer, 8, 2),
    view: new DataView(buffer, 1, 3),
  },
  views: [
    new Int8Array([-1]),
    new Uint8ClampedArray([255]),
    new Int16Array([-2]),
    new Uint16Array([65_535]),
    new Int32Array([-3]),
    new Uint32Array([7]),
    new Float32Array([0.5]),
    new BigInt64Array([-5n]),
    new BigUint64Array([5n]),
  ],
  nodeBuffer: [Buffer.from('pooled'), Buffer.alloc(4, 9)],
  url: new URL('https://example.org/a?b=c#d'),
  boxed: [Object(1), Object('s'), Object(true), Object(2n)],
  graph: cyclic,
  error: withStack(new Error('plain')),
  errors: withStack(new AggregateError([withStack(new TypeError('first')), 'second'], 'all'), {
    code: 'E_ALL',
    details: { a: [1] },
  }),
  cause: withStack(new RangeError('outer', { cause: { why: 'inner' } })),
  classes: [new Point(1, 2), new Point(0.5, -0), new Hooked('saved'), { point: new Point(3, 4) }],
  namedErrors: [
    withStack(new Unregistered('of a class nobody registered')),
    Object.defineProperty(withStack(new TypeError('renamed')), 'name', { value: 'Renamed' }),
  ].map(arrived),
  classErrors: [withStack(new Failure('of a registered class'), { code: 'E_FAILED' })],
  domException: withStack(new DOMException('stopped', 'AbortError')),
  growing: new Growing(10, { maxByteLength: 100 }),
  hugeText: 'h'.repeat(65_536),
  handle: [door, { door }],
  platform: [
    new URLSearchParams('a=1&b=%20'),
    new Headers([
      ['set-cookie', 'a=1'],
      ['set-cookie', 'b=2'],
    ]),
    new Blob(['text'], { type: 'a/b' }),
    new File(['content'], 'name', { lastModified: 5 }),
    blocked,
    form,
  ],
}

/** Kinds that need a newer Node than the oldest supported one: name, global, value. */
const youngerValues: readonly (readonly [string, string, () => unknown])[] = [
  ['float16', 'Float16Array', () => new (globalOf('Float16Array'))([1.5, -2, 0.25])],
  [
    'temporal',
    'Temporal',
    () => {
      type Temporal = Record<string, { from(text: string): object }>
      const made = (globalThis as { Temporal?: Temporal }).Temporal as Temporal
      return [made['Instant'].from('2026-11-22T15:00:00.5Z'), made['Duration'].from('PT5S')]
    },
  ],
  [
    'suppressed',
    'SuppressedError',
    () =>
      withStack(
        new (globalOf('SuppressedError'))(
          withStack(new Error('first')),
          'second',
          'both',
        ) as unknown as Error,
      ),
  ],
]

function globalOf(name: string): new (...parts: unknown[]) => object {
  return (globalThis as Record<string, unknown>)[name] as new (...parts: unknown[]) => object
}

const isThere = (name: string) =>
  youngerValues.every(([young, made]) => young !== name || globalOf(made) !== undefined)
for (const [name, , make] of youngerValues) if (isThere(name)) values[name] = make()

const kept = JSON.parse(readFileSync(KEPT, 'utf8')) as Record<string, string>
if (process.env.CORESPUN_KEEP_FRAMES === '1') {
  for (const [name, value] of Object.entries(values))
    kept[name] ??= Buffer.from(encode(value)).toString('base64')
  writeFileSync(KEPT, `${JSON.stringify(kept, undefined, 1)}\n`)
}

test('every frame ever kept is read as the value it was written from', () => {
  assert.deepEqual(Object.keys(kept).filter(isThere).sort(), Object.keys(values).sort())
  for (const [name, frame] of Object.entries(kept)) {
    if (!isThere(name)) continue
    assertSame(decode(Buffer.from(frame, 'base64')), values[name])
  }
})

test('bytes that once did harm do none', () => {
  // Resizable buffers that reserved 3 GB; integers chosen to collide; more keys than code should be made for.
  const frames = JSON.parse(readFileSync(HARM, 'utf8')) as string[]
  assert.ok(frames.length >= 3)
  const areRead = frames.map((frame) => readHostile(Buffer.from(frame, 'hex')))
  assert.deepEqual(areRead.slice(0, 3), [false, true, false])
})
