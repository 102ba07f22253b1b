/**
 * What `new Headers(init)` makes of every kind of `init`: sequences, records, and whatever else.
 *
 * The oracle is the `Headers` of Node, result and operations on the object. Excepted are rows in which Node
 * reads properties that are not enumerable, which the standard does not.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CorespunHeaders as Own } from './headers.ts'
import type { HeadersInit } from '../message/standard.ts'

const Theirs = globalThis.Headers
const sym = Symbol('s')
const hidden = (value: unknown): PropertyDescriptor => ({ value, enumerable: false, configurable: true })
function bad(): never {
  throw new RangeError('mine')
}

/** Everything but an object, and objects that Headers reads. */
const INITS: Record<string, () => unknown> = {
  none: () => undefined,
  null: () => null,
  number: () => 1,
  string: () => 'a',
  bool: () => true,
  symbol: () => sym,
  bigint: () => 1n,
  fn: () => () => {},
  fnRecord: () => Object.assign(() => {}, { a: '1' }),
  emptyArr: () => [],
  date: () => new Date(0),
  regexp: () => /x/,
  map: () => new Map([['a', '1']]),
  set: () => new Set([['a', '1']]),
  urlsp: () => new URLSearchParams('a=1&b=2'),
  formdata: () => {
    const form = new FormData()
    form.append('a', '1')
    return form
  },
  boxedString: () => new String('ab'),
  boxedNumber: () => new Number(4),
  pairs1: () => [['a']],
  pairs3: () => [['a', 'b', 'c']],
  pairStr: () => ['ab'],
  pairStr3: () => ['abc'],
  pairNull: () => [null],
  pairUndef: () => [undefined],
  pairNum: () => [1],
  pairObj: () => [{}],
  pairBoxed: () => [new String('ab')],
  pairSet: () => [new Set(['a', 'b'])],
  pairVals: () => [
    ['a', null],
    ['b', undefined],
    ['c', 1],
    ['d', {}],
    ['e', [1, 2]],
  ],
  pairSymVal: () => [['a', sym]],
  pairSymName: () => [[sym, 'a']],
  nonLatin: () => ({ a: '\u0100' }),
  latin: () => ({ a: '\u00ff' }),
  nonLatinName: () => ({ '\u0100': 'a' }),
  latinName: () => ({ '\u00ff': 'a' }),
  emptyName: () => ({ '': 'a' }),
  nul: () => ({ a: 'a\0b' }),
  cr: () => ({ a: 'a\rb' }),
  lf: () => ({ a: 'a\nb' }),
  trim: () => ({ a: ' \t\r\n a \n' }),
  recVals: () => ({ a: null, b: undefined, c: 1, d: {}, e: [1, 2], f: true, g: 1n }),
  recSym: () => ({ a: sym }),
  recSymKey: () => ({ a: '1', [sym]: '2' }),
  recSymKeyHidden: () => Object.defineProperty({ a: '1' }, sym, hidden('2')),
  recSymOnly: () => ({ [sym]: '2' }),
  recSymBadName: () => ({ 'a b': '1', [sym]: '2' }),
  getter: () => ({
    get a() {
      return bad()
    },
  }),
  hiddenGetter: () => Object.defineProperty({ b: '1' }, 'a', { get: bad, enumerable: false }),
  inherited: () => Object.create({ a: '1' }),
  nullProto: () => Object.assign(Object.create(null), { a: '1' }),
  cls: () =>
    new (class {
      a = '1'
      get b() {
        return '2'
      }
    })(),
  toStr: () => ({ a: { toString: bad } }),
  toStrVal: () => ({ a: { toString: () => 'x', valueOf: () => 'y' } }),
  toPrim: () => ({ a: { [Symbol.toPrimitive]: (hint: string) => hint } }),
  noPrim: () => ({ a: Object.create(null) }),
  iterNull: () => ({ [Symbol.iterator]: null, a: '1' }),
  iterUndef: () => ({ [Symbol.iterator]: undefined, a: '1' }),
  iterNum: () => ({ [Symbol.iterator]: 1 }),
  iterBadObj: () => ({ [Symbol.iterator]: {} }),
  iterNoObj: () => ({ [Symbol.iterator]: () => 1 }),
  iterNoNext: () => ({ [Symbol.iterator]: () => ({}) }),
  iterGen: () => ({
    *[Symbol.iterator]() {
      yield ['a', '1']
    },
  }),
  iterThrow: () => ({
    get [Symbol.iterator]() {
      return bad()
    },
  }),
  iterNextThrow: () => ({ [Symbol.iterator]: () => ({ next: bad }) }),
  iterHiddenUndef: () =>
    Object.defineProperty({ a: '1' }, Symbol.iterator, { value: undefined, enumerable: false }),
  iterHiddenNull: () =>
    Object.defineProperty({ a: '1' }, Symbol.iterator, { value: null, enumerable: false }),
  ownKeysThrow: () => new Proxy({}, { ownKeys: bad }),
  gopdThrow: () => new Proxy({ a: 1 }, { getOwnPropertyDescriptor: bad }),
  getThrow: () => new Proxy({ a: 1 }, { get: (t, k) => (k === 'a' ? bad() : Reflect.get(t, k)) }),
  gopdUndef: () =>
    new Proxy(
      { a: '1', b: '2' },
      {
        getOwnPropertyDescriptor: (t, k) => (k === 'a' ? undefined : Reflect.getOwnPropertyDescriptor(t, k)),
      },
    ),
  gopdHidden: () =>
    new Proxy(
      { a: '1', b: '2' },
      {
        getOwnPropertyDescriptor: (t, k) => ({
          ...Reflect.getOwnPropertyDescriptor(t, k),
          configurable: true,
          enumerable: k !== 'a',
        }),
      },
    ),
  dupKeys: () =>
    new Proxy(
      {},
      {
        ownKeys: () => ['a', 'a'],
        getOwnPropertyDescriptor: () => ({ value: '1', configurable: true, enumerable: true }),
        get: (_, k) => (k === 'a' ? '1' : undefined),
      },
    ),
  revoked: () => {
    const made = Proxy.revocable({}, {})
    made.revoke()
    return made.proxy
  },
  caseDup: () => ({ A: '1', a: '2' }),
  order: () => ({ b: '1', 2: 'x', a: '2', 1: 'y' }),
  setcookie: () => ({ 'Set-Cookie': 'a=1', 'set-cookie': 'b=2' }),
  native: () => new Theirs({ a: '1', b: '2' }),
  ours: () => new Own({ a: '1', b: '2' }),
  nativeSub: () => new (class extends Theirs {})({ a: '1' }),
  nativeOwnIter: () =>
    Object.defineProperty(new Theirs({ a: '1' }), Symbol.iterator, {
      *value() {
        yield ['q', '1']
      },
    }),
  nativeIterUndef: () => Object.defineProperty(new Theirs({ a: '1' }), Symbol.iterator, { value: undefined }),
  nativeProxy: () => new Proxy(new Theirs({ a: '1' }), {}),
  typed: () => new Uint8Array([1, 2]),
  typed2: () => [new Uint8Array([1, 2])],
  badFirst: () => ({
    'in valid': 'x',
    get b() {
      return bad()
    },
  }),
  badValueLater: () => ({
    a: '\u0100',
    get b() {
      return bad()
    },
  }),
  badPairLater: () => [['in valid', 'x'], ['a']],
  symLater: () => ({ 'in valid': 'x', b: sym }),
  symKeyLater: () => ({
    get a() {
      return bad()
    },
    [sym]: '1',
  }),
  hugeIdx: () => ['', ''],
  wm: () => new WeakMap(),
  promise: () => Promise.resolve(),
  err: () => new Error('x'),
  response: () => new Response(),
  url: () => new URL('http://a/'),
}

/** By the standard; Node differs. */
const STANDARD: Record<string, string> = {
  fn: '[]',
  fnRecord: '[["a","1"]]',
  regexp: '[]',
  err: '[]',
  recSymKeyHidden: '[["a","1"]]',
  hiddenGetter: '[["b","1"]]',
  iterHiddenUndef: '[["a","1"]]',
  iterHiddenNull: '[["a","1"]]',
  nativeIterUndef: '[]',
}
/** The same result, by other operations: a method that is not a function is refused when it is read. */
const OPERATIONS_DIFFER = new Set(['iterNum', 'iterBadObj'])

function outcome(Class: typeof Headers, init: unknown): string {
  try {
    return JSON.stringify([...new Class(init as HeadersInit)])
  } catch (error) {
    return (error as Error).constructor.name
  }
}

/** A proxy of an object that notes each operation. */
function traced(init: unknown, log: string[]): unknown {
  if (init === null || typeof init !== 'object') return init
  const traps = new Proxy(
    {},
    {
      get:
        (_, trap) =>
        (...given: [object, unknown]) => {
          log.push(`${String(trap)} ${typeof given[1] === 'object' ? '' : String(given[1])}`)
          return (Reflect as unknown as Record<string, (...given: unknown[]) => unknown>)[String(trap)](
            ...given,
          )
        },
    },
  )
  return new Proxy(init, traps)
}

for (const [name, make] of Object.entries(INITS)) {
  test(`Headers of ${name}`, () => {
    assert.equal(outcome(Own, make()), STANDARD[name] ?? outcome(Theirs, make()))
    const [own, node] = [Own, Theirs].map((Class) => {
      const log: string[] = []
      return [outcome(Class, traced(make(), log)), log]
    })
    if (name in STANDARD) return
    assert.deepEqual(OPERATIONS_DIFFER.has(name) ? own[0] : own, OPERATIONS_DIFFER.has(name) ? node[0] : node)
  })
}

test('a symbol is neither a name nor a value', () => {
  const headers = new Own()
  assert.throws(() => headers.append('a', sym as never), TypeError)
  assert.throws(() => headers.set(sym as never, 'a'), TypeError)
})
