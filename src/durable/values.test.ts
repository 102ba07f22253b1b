/**
 * Values as they are kept: JSON where that reads back as the same value, and a frame otherwise.
 *
 * So are the heads and records that have them.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runInNewContext } from 'node:vm'
import { readHead, readRecord, writeHead, writeRecord } from './records.ts'
import { freshHead } from './rooms.ts'
import { bytesIn, isJson, isSame, keptOf, valueOf } from './values.ts'

const shared = { a: 1 }
const holed: unknown[] = [1, 2]
holed[3] = 4
const beside = Object.assign([1, , 3], { extra: 2 }) // oxlint-disable-line no-sparse-arrays
const circle: unknown[] = []
circle.push(circle)
class Point {
  readonly x = 1
}

const JSONS: readonly unknown[] = [
  ...[
    null,
    true,
    0,
    -1.5,
    2 ** 53,
    5e-324,
    '',
    'é\u2028\u0001"\\',
    'a pair 😀',
    [],
    {},
    [[], {}],
    [null, 1, 'a'],
  ],
  { a: { b: [1, { c: null }] }, 'b"\n': 2, 7: 'seven' },
  JSON.parse('{"__proto__":{"a":1},"toJSON":1}'),
]
const hidden = (of: object): object => Object.defineProperty(of, 'toJSON', { value: () => 'another' })
const FRAMES: readonly unknown[] = [
  ...[NaN, Infinity, -0, 1n, [undefined], { a: undefined }, holed, beside, [shared, shared], circle],
  ...[new Date(0), new Map([[1, 2]]), new Uint8Array(3), /a/, new Error('no'), Object.create(null), [-0]],
  ...['a\0', '\ud800 alone', { 'a\0': 1 }, Array(5000).fill(''), Array(9).fill('x'.repeat(4000))],
  ...[hidden({ a: 1 }), hidden([1]), hidden({ a: hidden({}) })],
  ...[runInNewContext('({ a: 1 })'), runInNewContext('[1]'), 'x'.repeat(40_000), Array(5000).fill(1)],
]

test('what JSON has is text, and reads back as it was', () => {
  for (const value of JSONS) {
    const kept = keptOf(value)
    assert.equal(typeof kept, 'string')
    assert.deepEqual(valueOf(kept), value)
    assert.ok(bytesIn(kept) >= Buffer.byteLength(JSON.stringify(value)))
    assert.ok(isSame(kept, keptOf(structuredClone(value))))
  }
  assert.equal(valueOf(keptOf(undefined)), undefined)
  assert.equal(bytesIn(keptOf(undefined)), 0)
})

test('what it would change is a frame, and so is what is large', () => {
  for (const [index, value] of FRAMES.entries()) assert.ok(keptOf(value) instanceof Uint8Array, String(index))
  assert.throws(() => keptOf(new Point()), { name: 'TransportError' })
  const two = valueOf(keptOf([shared, shared])) as object[]
  assert.equal(two[0], two[1])
  assert.ok(Object.is(valueOf(keptOf(-0)), -0))
  assert.ok(!isSame(keptOf(-0), keptOf(0)))
})

test('a head and a record are JSON, unless a frame in them is large, and read back as they were', () => {
  const large = 'x'.repeat(40_000)
  for (const value of [...JSONS, ...FRAMES, undefined, large]) {
    const frame = keptOf(value)
    const head = { ...freshHead(value, 17, { rank: 0, ttlMs: 1000 }), dueMs: Infinity, awaits: ['é"'], frame }
    const bytes = writeHead(head)
    const read = readHead(bytes)
    assert.deepEqual(writeHead(read), bytes)
    assert.ok(isSame(read.input as string, frame) && isSame(read.frame ?? '', frame))
    assert.deepEqual([read.dueMs, read.awaits, read.rank], [Infinity, ['é"'], 0])
    const entry = { kind: 'done', key: 'a"#1', atMs: 1, signal: 's', frame } as const
    const record = writeRecord('me', [entry, { kind: 'held', key: '', atMs: 2 }])
    const { writer, entries } = readRecord(record)
    assert.deepEqual([writer, entries.length, entries[0].key], ['me', 2, 'a"#1'])
    assert.ok(isSame(entries[0].frame ?? '', frame))
    const isSmall = typeof frame === 'string' || frame.length < 1000
    assert.deepEqual([bytes[0] === 0x7b, record[0] === 0x7b], [isSmall, isSmall])
  }
  assert.equal(readHead(writeHead({ ...freshHead(1, 17, {}), input: undefined })).input, undefined)
  for (const text of ['{"run":9}', '{"format":9,"steps":[]}', '{"run":1,'])
    for (const read of [readHead, readRecord]) assert.throws(() => read(Buffer.from(text)))
})

test('a view is not walked, and a text takes no more than what is counted of it', () => {
  let isRead = false
  const ownKeys = (of: object): (string | symbol)[] => ((isRead = true), Reflect.ownKeys(of))
  assert.ok(!isJson(new Proxy(new Uint8Array(9), { ownKeys })))
  assert.ok(!isJson(new Proxy(Array(5000).fill(1), { ownKeys })))
  assert.ok(!isRead)
  for (const text of ['x', 'é', '語', '😀']) {
    const kept = keptOf(`${'x'.repeat(30_000)}${text}`)
    const entry = { kind: 'done', key: 's#1', atMs: 1, frame: kept } as const
    const large = { ...entry, frame: new Uint8Array(5000) }
    const counted = 30 * (bytesIn(kept) + 256) + 6000
    assert.ok(writeRecord('me', [...Array.from({ length: 30 }, () => entry), large]).length <= counted, text)
  }
})
