/**
 * A first value and a later one of the same content arrive the same, or are refused with the same words.
 *
 * The first is written as JSON, by V8's serializer or by plain loops, the later one by shapes. Values are of
 * a seed, so that each can be made twice, and of what one of those ways would change: objects under another
 * prototype or name, arrays with holes and fields, proxies, getters, shared and deep objects.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createContext, runInContext } from 'node:vm'
import { share } from '../../base/part.test.support.ts'
import { decode, encode } from '../codec.ts'
import { randomFrom } from '../hostile.test.support.ts'
import { assertSame } from '../same.test.support.ts'
import { setFirstLeaves } from './kinds.ts'
import '../tables.test.support.ts'

const VALUES = 9000
/** Random objects of one value. */
const OBJECTS_MAX = 40
/** Leaves that most values are made of: the first ones of the list. */
const COMMON = 18

class Unregistered {
  a = 1
}
class SubDate extends Date {}
class SubMap extends Map<unknown, unknown> {}
class SubSet extends Set<unknown> {}
class SubArray extends Array<unknown> {}

const realm = createContext({})

function asPlain(object: object): object {
  return Object.setPrototypeOf(object, Object.prototype) as object
}

/** With the name of a plain object as well. */
function named(object: object): object {
  return asPlain(Object.defineProperty(object, Symbol.toStringTag, { value: 'Object', enumerable: true }))
}

function detached(): Uint8Array {
  const bytes = new Uint8Array(8)
  structuredClone(bytes.buffer, { transfer: [bytes.buffer] })
  return bytes
}

function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}

function strictly(target: object, key: PropertyKey): unknown {
  return key in target ? Reflect.get(target, key) : assert.fail(`no ${String(key)}`)
}

function error(made: Error): Error {
  return Object.assign(made, { stack: 'the same' })
}

const boxed = [5, 'x', true, 5n, Symbol('s')]
const leaves: (() => unknown)[] = [
  ...[1, -0, Number.NaN, 1.5, 2 ** 31, '', 'a', '\ud800x', 'ж'.repeat(70), null, undefined, true].map(
    (value) => () => value,
  ),
  ...[1n, -(2n ** 200n)].map((value) => () => value),
  ...[0, Number.NaN, 8.64e15, -1].map((time) => () => new Date(time)),
  ...['x'.repeat(8192), 'ж'.repeat(8193), Symbol('s'), Unregistered, Math, globalThis, process.env].map(
    (value) => () => value,
  ),
  ...boxed.flatMap((value) => [
    () => Object(value) as object,
    () => asPlain(Object(value) as object),
    () => named(Object(value) as object),
  ]),
  ...[
    () => new Date(2),
    () => new Map([[1, 1n]]),
    () => new Set([1n]),
    () => [1, 2n],
    () => /x/gy,
    () => error(new Error('e')),
    () => new Uint8Array(2),
    () => new ArrayBuffer(2),
    () => new SharedArrayBuffer(2),
    () => new DataView(new ArrayBuffer(1)),
    () => Promise.resolve(),
    () => new Unregistered(),
    () => [1].values(),
    () => (): number => 1,
  ].flatMap((make: () => object): (() => unknown)[] => [
    make,
    () => asPlain(make()),
    () => named(make()),
    () => Object.setPrototypeOf(make(), Array.prototype) as object,
    () => Object.setPrototypeOf(make(), Map.prototype) as object,
    () => new Proxy(make(), {}),
  ]),
  ...['({ a: 1n, at: new Date(3) })', '[1n, -0]', 'new Map([[1, { a: 1n }]])', 'new (class A {})()'].map(
    (text) => () => runInContext(text, realm) as unknown,
  ),
  ...[() => new SubDate(5), () => new SubMap([[1, 1]]), () => new SubSet([1]), () => SubArray.from([1n])],
  ...[() => Object.create(null) as object, () => new URL('http://a/b'), () => Buffer.from('abc'), detached],
  () => Object.assign(Object.create(Date.prototype) as object, { a: 1 }),
  () => new Proxy({ a: 1 }, { get: () => 2n }),
  () => new Proxy({}, { ownKeys: () => assert.fail('keys') }),
  () => new Proxy({ a: 1 }, { has: () => assert.fail('has') }),
  () => new Proxy({ a: 1 }, { get: strictly }),
  () => new Proxy([1], { get: strictly }),
  () => ({ toJSON: () => 1 }),
  () => Object.defineProperty({ a: 1n }, 'toJSON', { value: () => 1 }),
  revoked,
]
const keys = ['a', 'b', 'c', '__proto__', 'constructor', 'length', '0', '-0', '4294967295', '\ud800', 'then']

/** What makes the value of a seed. */
class Maker {
  readonly random: (below: number) => number
  readonly made: object[] = []
  readonly #kinds: readonly ((depth: number) => unknown)[]

  constructor(seed: number) {
    this.random = randomFrom(seed)
    this.#kinds = [...containers(this), ...oddities(this)]
  }

  set(object: object, key: string | symbol, value: unknown): void {
    if (!Object.isExtensible(object)) return
    Object.defineProperty(object, key, { value, enumerable: true, writable: true, configurable: true })
  }

  times(below: number, run: (index: number) => void): void {
    for (let count = this.random(below), index = 0; index < count; index++) run(index)
  }

  kept<Made extends object>(object: Made): Made {
    this.made.push(object)
    return object
  }

  node(above: number): unknown {
    const { made, random } = this
    const depth = above + 1
    if (depth > 6 || made.length > OBJECTS_MAX || random(10) < 4)
      return leaves[random(random(3) > 0 ? COMMON : leaves.length)]()
    if (made.length > 0 && random(8) === 0) return made[random(made.length)]
    return this.#kinds[random(this.#kinds.length)](depth)
  }
}

/** The value of a seed; another one with the same content at each call. */
function valueOf(seed: number): unknown {
  const maker = new Maker(seed)
  const { made, random } = maker
  const value = maker.node(0)
  if (random(6) === 0 && made.length > 0) maker.set(made[0], 'cycle', made[random(made.length)])
  return [value]
}

function containers(maker: Maker): ((depth: number) => unknown)[] {
  const { random } = maker
  return [
    (depth: number) => {
      const object = maker.kept({})
      maker.times(6, () =>
        maker.set(object, keys[random(random(3) > 0 ? 3 : keys.length)], maker.node(depth)),
      )
      return object
    },
    (depth: number) => {
      const array: unknown[] = maker.kept([])
      maker.times(6, () => array.push(maker.node(depth)))
      return array
    },
    (depth: number) => {
      const map = maker.kept(new Map())
      maker.times(4, () => map.set(maker.node(depth), maker.node(depth)))
      return map
    },
    (depth: number) => {
      const added = maker.kept(new Set())
      maker.times(4, () => added.add(maker.node(depth)))
      return added
    },
  ]
}

function oddities(maker: Maker): ((depth: number) => unknown)[] {
  const { random } = maker
  return [
    (depth: number) => {
      const holes: unknown[] = maker.kept([])
      maker.times(6, (index) => random(3) > 0 && (holes[index] = maker.node(depth)))
      maker.times(4, () => maker.set(holes, ['x', 'index', '4294967295', '01'][random(4)], maker.node(depth)))
      if (random(4) === 0) holes.length += random(4)
      return holes
    },
    (depth: number) => {
      const object = maker.kept([{}, [], new Map(), new Set(), new Date(0)][random(5)])
      maker.set(object, Symbol('s'), 1)
      Object.defineProperty(object, 'hidden', { value: new Unregistered() })
      if (random(2) === 0) maker.set(object, 'extra', maker.node(depth))
      if (random(3) === 0) Object.defineProperty(object, 'get', { get: () => 5n, enumerable: true })
      if (random(9) === 0) maker.set(object, Symbol.toStringTag, ['Object', 'X', 'Array'][random(3)])
      return [Object.freeze, Object.seal, <Same>(same: Same) => same][random(3)](object)
    },
    (depth: number) => {
      let inner: unknown = maker.node(depth)
      const levels = random(10) === 0 ? 150 + random(100) : random(5)
      for (let level = 0; level < levels; level++) inner = random(2) === 0 ? [inner] : { inner }
      return inner
    },
    (depth: number) => {
      const value = maker.node(depth)
      const fails = random(9) === 0
      return {
        get read() {
          return fails ? assert.fail('of the getter') : value
        },
      }
    },
  ]
}

function outcome(value: unknown, leavesMax: number): { arrived?: unknown; error?: string } {
  setFirstLeaves(leavesMax)
  try {
    return { arrived: decode(encode(value, { mode: 'process' }), { mode: 'process' }) }
  } catch (thrown) {
    const { name, code, message } = thrown as Error & { code?: string }
    return { error: `${name} ${code}: ${message}` }
  } finally {
    setFirstLeaves(0)
  }
}

function check(make: () => unknown, what: string): void {
  const [first, later] = [outcome(make(), Infinity), outcome(make(), 0)]
  assert.equal(first.error, later.error, what)
  try {
    assertSame(first.arrived, later.arrived)
  } catch (difference) {
    throw new Error(`${what}: ${(difference as Error).message}`, { cause: difference })
  }
}

test('a first value arrives, or is refused, as a later one', () => {
  for (const [index, leaf] of leaves.entries())
    for (const wrap of [
      (inner: unknown) => [inner],
      (inner: unknown) => ({ at: new Date(1), inner }),
      (inner: unknown) => new Map([[inner, inner]]),
    ])
      check(() => wrap(leaf()), `leaf ${index}`)
  for (let seed = 1; seed <= share(VALUES); seed++) check(() => valueOf(seed), `seed ${seed}`)
})
