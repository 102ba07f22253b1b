/**
 * The contract between JavaScript and the native core: what is passed wrongly is refused.
 *
 * The numbers and functions that both sides have need no test: the core's build prints them
 * (crates/node/build.rs).
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { thisBridge, thisScratch } from './bridge/index.ts'
import { native } from './native/index.ts'

const BINDING = readFileSync(new URL('../src/native/binding.ts', import.meta.url), 'utf8')
/** Each function and the types of its parameters, as the core's build has printed them. */
const CALLS = Array.from(
  BINDING.matchAll(/^ {2}(\w+)\(([^]*?)\): [^,]+?$/gm),
  ([, name, text]): readonly [string, string[]] => [
    name,
    Array.from(text.matchAll(/\w+: ([^,\n]+)/g), ([, type]) => type),
  ],
)

test('the core exports the functions of Binding', () => {
  assert.deepEqual(Object.keys(native).sort(), CALLS.map(([name]) => name).sort())
})

/** For each type that JavaScript passes: a value of it that names nothing, and values of other types. */
const ARGUMENTS: Record<string, { readonly unknown: () => unknown; readonly wrong: readonly unknown[] }> = {
  number: { unknown: () => 0x7ffffffe, wrong: [undefined, null, '1', 1n, {}, Symbol('1')] },
  boolean: { unknown: () => false, wrong: [undefined, 1, 'true', {}] },
  string: { unknown: () => 'unknown', wrong: [undefined, 1, new String('text'), ['a']] },
  Uint8Array: {
    unknown: () => new Uint8Array(6),
    wrong: [
      undefined,
      [1],
      new ArrayBuffer(8),
      new Uint16Array(4),
      new DataView(new ArrayBuffer(8)),
      'bytes',
    ],
  },
  ArrayBuffer: { unknown: () => new ArrayBuffer(8), wrong: [undefined, new Uint8Array(8), 1] },
  SharedArrayBuffer: { unknown: () => new SharedArrayBuffer(8), wrong: [undefined, new ArrayBuffer(8), 1] },
  '() => void': { unknown: () => () => {}, wrong: [undefined, {}, 'call'] },
  // Values of every class are accepted: one that is not a function has no call site.
  Function: { unknown: () => 'not a function', wrong: [] },
}

const called = (name: string, args: readonly unknown[]): unknown =>
  (native as unknown as Record<string, (...args: readonly unknown[]) => unknown>)[name](...args)
const unknowns = (types: string[]): unknown[] => types.map((type) => ARGUMENTS[type].unknown())

function refuses(name: string, args: readonly unknown[]): void {
  assert.throws(
    () => called(name, args),
    ({ code }: { code?: unknown }) => code === 'NATIVE_ARGUMENT',
    `${name}(${inspect(args)})`,
  )
}

/** Whatever the arguments are: a result, or an error with a code. */
function answers(name: string, args: readonly unknown[]): void {
  try {
    called(name, args)
  } catch (error) {
    const { code } = error as { code?: unknown }
    assert.match(String(code), /^(NATIVE|BUFFER)_/, `${name}(${inspect(args)}): ${String(error)}`)
  }
}

test('an argument of another type, and a missing one, is refused by a code', () => {
  thisScratch()
  let count = 0
  for (const [name, types] of CALLS) {
    const required = types.filter((type) => ARGUMENTS[type].wrong.length > 0)
    if (required.length > 0) refuses(name, [])
    for (const [index, type] of types.entries())
      for (const wrong of ARGUMENTS[type].wrong) {
        refuses(name, unknowns(types).with(index, wrong))
        count += 1
      }
  }
  assert.ok(count > 500, `${count} calls`)
})

/** Those that act on whatever they receive: they make something, change this thread or advance a clock. */
const ACT = new Set([
  'renice',
  'memoryMake',
  'memoryCounts',
  'storeMake',
  'syncMake',
  'storeAdvance',
  'storeSeededAt',
  'signalMake',
  'linkOpen',
  'linkBegin',
])

test('numbers out of range, further arguments and detached buffers: a result or an error with a code', () => {
  thisScratch()
  const numbers = [0xffffffff, -1, 2 ** 53, 0.5, Number.NaN, Infinity, -Infinity]
  const detached = new Uint8Array(8)
  structuredClone(detached.buffer, { transfer: [detached.buffer] })
  for (const [name, types] of CALLS.filter(([name]) => !ACT.has(name))) {
    answers(name, [...unknowns(types), 1, 'more'])
    for (const [index, type] of types.entries()) {
      if (type === 'number') for (const number of numbers) answers(name, unknowns(types).with(index, number))
      if (type === 'Uint8Array') answers(name, unknowns(types).with(index, detached))
      if (type === 'ArrayBuffer') answers(name, unknowns(types).with(index, detached.buffer))
    }
  }
})

test('words of the scratch buffers that name nothing are refused by a code', () => {
  const [bridge, scratch] = [thisBridge(), thisScratch()]
  const hot = CALLS.filter(([, types]) => types.length === 0).map(([name]) => name)
  const refused = new Set<string>()
  for (const word of [0xffffffff, 0x7fffffff, bridge.out.length, 9]) {
    for (const name of hot.filter((name) => !ACT.has(name))) {
      bridge.given.fill(word, 0, 16)
      scratch.given.fill(word, 0, 16)
      try {
        called(name, [])
      } catch (error) {
        assert.equal((error as { code?: unknown }).code, 'NATIVE_ARGUMENT', name)
        refused.add(name)
      }
    }
  }
  const reads =
    'submit step complete joinFork help storeGet storeView storeRead storeSet storeStep storeRemove storeHas'
  const others = 'semaphoreTry semaphoreRelease channelPut channelTake channelFetch counterDo'
  assert.deepEqual(
    [...refused].filter((name) => `${reads} ${others}`.split(' ').includes(name)).sort(),
    `${reads} ${others}`.split(' ').sort(),
  )
})
