/**
 * `Headers`, `Request` and `Response` compared with Node's own: the same calls have the same results.
 *
 * Scripts of calls run on both; each intended difference has its own case.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inspect } from 'node:util'
import fc from 'fast-check'
import { Headers as OwnHeaders, Response as OwnResponse, createApp } from '../index.ts'

const names = fc.constantFrom(
  'a',
  'A',
  'b-c',
  'Set-Cookie',
  'set-cookie',
  'content-type',
  'bad name',
  '',
  'é',
)
const values = fc.constantFrom('1', ' 2 ', '', '\t3', 'é', 'a, b', 'x\r\ny', '\0', 'ü\u0100', '4\n')
const steps = fc.array(
  fc.tuple(fc.constantFrom('append', 'set', 'delete', 'get', 'has', 'all', 'cookies'), names, values),
  { maxLength: 12 },
)

/** What came of a call: its value, or that it threw a TypeError. */
function outcome(call: () => unknown): unknown {
  try {
    return call()
  } catch (error) {
    return (error as Error).name
  }
}

function run(headers: Headers, script: readonly (readonly [string, string, string])[]): unknown[] {
  return script.map(([verb, name, value]) => {
    if (verb === 'all') return [...headers]
    if (verb === 'cookies') return headers.getSetCookie()
    if (verb === 'append' || verb === 'set') return outcome(() => headers[verb](name, value))
    return outcome(() => headers[verb as 'get'](name))
  })
}

test('any script of calls on Headers has the same result as on those of Node', () => {
  fc.assert(
    fc.property(steps, (script) => {
      assert.deepEqual(run(new OwnHeaders(), script), run(new Headers(), script))
    }),
    { numRuns: 3000 },
  )
})

test('Headers are made from what those of Node are made from', () => {
  const inits: unknown[] = [
    undefined,
    {},
    { A: '1', b: 2 },
    [
      ['a', '1'],
      ['a', '2'],
    ],
    new Headers({ x: 'y' }),
    new OwnHeaders({ x: 'y' }),
    new Map([['m', 'n']]),
    [['a']],
    [['a', 'b', 'c']],
    null,
    3,
    { [Symbol('s')]: '1' },
  ]
  for (const init of inits) {
    const made = outcome(() => [...new OwnHeaders(init as never)])
    assert.deepEqual(
      made,
      outcome(() => [...new Headers(init as never)]),
      inspect(init),
    )
  }
  const own = new OwnHeaders({ a: '1' })
  assert.deepEqual([...new Headers(own)], [['a', '1']])
  assert.ok(own instanceof Headers && new Headers() instanceof OwnHeaders)
  const seen: string[] = []
  own.forEach((value, name) => seen.push(name, value))
  assert.deepEqual([seen, [...own.keys()], [...own.values()]], [['a', '1'], ['a'], ['1']])
})

type Make = (Class: typeof Response) => Response

const RESPONSES: readonly Make[] = [
  (Class) => new Class(),
  (Class) => new Class('text'),
  (Class) => new Class('text', { status: 404, statusText: 'No', headers: { a: 'b' } }),
  (Class) => new Class(new Uint8Array([104, 105])),
  (Class) => new Class(new Uint8Array([104, 105]).buffer),
  (Class) => new Class(new DataView(new Uint8Array([104, 105]).buffer)),
  (Class) => new Class(new URLSearchParams({ a: 'b c' })),
  (Class) => new Class(new Blob(['blob'], { type: 'x/y' })),
  (Class) => new Class(new Blob(['streamed']).stream()),
  (Class) => new Class('typed', { headers: { 'Content-Type': 'text/html' } }),
  (Class) => new Class(null, { status: 204 }),
  (Class) => Class.json({ a: 1 }),
  (Class) => Class.json([1], { status: 201, headers: { 'content-type': 'x/json' } }),
  (Class) => Class.redirect('http://x/y', 307),
  (Class) => new Class(new Class('again').body, { headers: new Class('h').headers }),
  (Class) => new Class('cloned').clone(),
  (Class) => new Class('\ud800 lone'),
  (Class) => new Class(new Class(new Class('thrice').body).body),
]

async function facts(response: Response): Promise<unknown> {
  const { status, statusText, ok, type, url, redirected, bodyUsed } = response
  const headers = [...response.headers]
  const text = await response.clone().text()
  const bytes = [...new Uint8Array(await response.arrayBuffer())]
  return {
    status,
    statusText,
    ok,
    type,
    url,
    redirected,
    bodyUsed,
    headers,
    text,
    bytes,
    used: response.bodyUsed,
  }
}

test('a Response is what that of Node is, however it is made', async () => {
  for (const make of RESPONSES) {
    const [own, node] = [make(OwnResponse), make(Response)]
    assert.ok(own instanceof Response && node instanceof OwnResponse)
    assert.deepEqual(await facts(own), await facts(node), String(make))
  }
})

test('what a Response refuses it refuses with the same class of error', () => {
  const refused: readonly Make[] = [
    (Class) => new Class('', { status: 99 }),
    (Class) => new Class('', { status: 600 }),
    (Class) => new Class('body', { status: 204 }),
    (Class) => new Class('', { headers: { 'a b': '1' } }),
    (Class) => new Class('', { headers: { a: '1\r\nb: 2' } }),
    (Class) => new Class('', { statusText: 'a\r\nb' }),
    (Class) => Class.json(undefined),
    (Class) => Class.redirect('http://x/', 200 as 301),
  ]
  for (const make of refused) {
    const own = outcome(() => make(OwnResponse))
    assert.equal(
      own,
      outcome(() => make(Response)),
      String(make),
    )
  }
})

test('a body that was read cannot be read again, cloned or sent', async () => {
  const response = new OwnResponse('once')
  assert.equal(await response.text(), 'once')
  assert.equal(response.bodyUsed, true)
  await assert.rejects(response.text(), TypeError)
  assert.throws(() => response.clone(), TypeError)
  const app = createApp({
    fetch: () => response as Response,
    error: (cause) => new Response(String((cause as Error).name)),
  })
  assert.equal(await (await app.inject('/')).text(), 'TypeError')
})

test('a class that extends Response is one', async () => {
  class Page extends OwnResponse {
    readonly kind = 'page'
  }
  const page = new Page('<p>')
  assert.ok(page instanceof Page && page instanceof Response && page.kind === 'page')
  assert.equal(new Response('') instanceof Page, false)
  const app = createApp({ fetch: () => page })
  assert.equal(await (await app.inject('/')).text(), '<p>')
})

test('a Request shows what that of Node shows', async () => {
  const shown = [
    'method',
    'url',
    'cache',
    'credentials',
    'destination',
    'integrity',
    'keepalive',
    'mode',
    'redirect',
    'referrer',
    'referrerPolicy',
    'duplex',
    'bodyUsed',
  ] as const
  const init = { method: 'POST', body: 'x', headers: { host: 'h.example', a: '1' } }
  const node = new Request('http://h.example/p?q', init)
  let own: unknown
  const app = createApp({
    fetch: async (request) => {
      assert.ok(request instanceof Request && request.headers instanceof Headers)
      own = [...shown.map((name) => request[name]), [...request.headers], request.signal.aborted]
      assert.match(inspect(request), /^Request \{/)
      const copy = request.clone()
      assert.equal((await copy.text()) + (await request.text()), 'xx')
      assert.throws(() => request.clone(), TypeError)
      return new Response('')
    },
    error: (cause) => new Response(String(cause)),
  })
  assert.equal(await (await app.inject(node)).text(), '')
  const headers = [
    ['a', '1'],
    ['content-type', 'text/plain;charset=UTF-8'],
    ['host', 'h.example'],
  ]
  assert.deepEqual(own, [...shown.map((name) => (name === 'bodyUsed' ? false : node[name])), headers, false])
})

test('Headers read their init, their arguments and their iterators as the standard does', () => {
  const log: string[] = []
  const traced = new Proxy(
    { a: '1', [Symbol('hidden')]: 'x' },
    {
      ownKeys: (target) => (log.push('ownKeys'), Reflect.ownKeys(target)),
      getOwnPropertyDescriptor: (target, key) => {
        log.push(`descriptor ${typeof key}`)
        const found = Reflect.getOwnPropertyDescriptor(target, key)!
        return typeof key === 'symbol' ? { ...found, enumerable: true } : found
      },
      get: (target, key) => (log.push(`get ${String(key)}`), Reflect.get(target, key) as string),
    },
  )
  assert.throws(() => new OwnHeaders(traced), TypeError)
  assert.deepEqual(log.slice(-4), ['ownKeys', 'descriptor string', 'get a', 'descriptor symbol'])
  assert.equal(new OwnHeaders([['a', undefined as never]]).get('a'), 'undefined')
  const own = new OwnHeaders({ a: '1' })
  Object.assign(own, {
    *[Symbol.iterator]() {
      yield ['b', '2']
    },
  })
  assert.deepEqual([...new OwnHeaders(own).keys()], ['b'])
  const headers = new OwnHeaders() as unknown as Record<string, () => unknown>
  for (const method of ['append', 'set', 'get', 'has', 'delete'])
    assert.throws(() => headers[method](), TypeError)
  const prototype = Object.getPrototypeOf(new OwnHeaders().entries()) as object
  assert.equal(Object.getPrototypeOf(prototype), Object.getPrototypeOf(Object.getPrototypeOf([].values())))
  assert.equal(Object.prototype.toString.call(new OwnHeaders().keys()), '[object Headers Iterator]')
})

test('the body of a string is a byte stream, and blobs have a serialized type', async () => {
  for (const source of ['abc', new TextEncoder().encode('abc')]) {
    const reader = new OwnResponse(source).body!.getReader({ mode: 'byob' })
    const { value } = await reader.read(new Uint8Array(8))
    assert.equal(new TextDecoder().decode(value), 'abc')
    assert.equal((await reader.read(new Uint8Array(8))).done, true)
  }
  const headers = { 'content-type': 'application/json; charset=utf-8' }
  assert.equal((await new OwnResponse('x', { headers }).blob()).type, 'application/json;charset=utf-8')
})

test('Headers read a record with the same operations, in the same order, as those of Node', () => {
  const hidden = { enumerable: false, configurable: true, value: 'h' }
  const shown = { enumerable: true, configurable: true, get: (): string => 'got' }
  const records: (() => object)[] = [
    () => ({}),
    () => ({ a: 'b' }),
    () => ({ a: 'b', c: 'd' }),
    () => ({ c: 'd', a: 'b', 1: 'e' }),
    () => ({ a: 'b', 'bad name': 'c', d: 'e' }),
    () => ({ a: 'b', c: '\u0100', d: 'e' }),
    () => ({ a: 'b', '\u0100': 'c', d: 'e' }),
    () => ({ a: undefined, b: null, c: 1 }),
    () => Object.defineProperty({ a: 'b', c: 'd' }, 'a', hidden),
    () => Object.defineProperty({ a: 'b' }, 'c', shown),
    () => Object.create({ inherited: '1' }, { own: shown }) as object,
    () => Object.defineProperty({ a: 'b' }, Symbol('hidden'), hidden),
    () => ({ a: 'b', [Symbol('shown')]: 'c' }),
    () => ({ a: Symbol('value') }),
  ]
  for (const make of records) {
    const [own, node] = [OwnHeaders, Headers].map((Class) => {
      const log: string[] = []
      const traced = new Proxy(make(), {
        ownKeys: (target) => (log.push('ownKeys'), Reflect.ownKeys(target)),
        getOwnPropertyDescriptor: (target, key) => {
          log.push(`descriptor ${String(key)}`)
          return Reflect.getOwnPropertyDescriptor(target, key)
        },
        has: (target, key) => (log.push(`has ${String(key)}`), Reflect.has(target, key)),
        get: (target, key) => (log.push(`get ${String(key)}`), Reflect.get(target, key) as unknown),
      })
      return [outcome(() => [...new Class(traced)]), log]
    })
    assert.deepEqual(own, node, String(make))
  }
})
