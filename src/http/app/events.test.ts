/**
 * Incorrect sources of streamed responses, and sources that handlers return directly.
 *
 * Nothing that a source does may end the process or leave a client waiting.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compute, until } from '../../base/wait.test.support.ts'
import { onServer } from '../cores.test.support.ts'
import { createApp } from '../server.ts'
import { events, ndjson, chunks, type BodySource } from './events.ts'
import { use, type Middleware } from './middleware.ts'

type Step = () => unknown

/** A source whose `next` is given. */
function sourceOf(next: Step, kind: 'asyncIterator' | 'iterator' = 'asyncIterator'): BodySource<unknown> {
  return { [Symbol[kind]]: () => ({ next }) } as unknown as BodySource<unknown>
}

const fail: Step = () => {
  throw new Error('of the source')
}
const BROKEN: Readonly<Record<string, BodySource<unknown>>> = {
  'undefined at once': sourceOf(() => undefined, 'iterator'),
  'undefined later': sourceOf(async () => undefined),
  'null later': sourceOf(async () => null),
  'a number': sourceOf(() => 7),
  'a getter that throws': sourceOf(async () => ({
    get done() {
      return fail()
    },
  })),
  'a value that throws': sourceOf(() => ({
    done: false,
    get value() {
      return fail()
    },
  })),
  'an error': sourceOf(fail),
  'a rejection': sourceOf(async () => fail()),
  'no function': { [Symbol.iterator]: () => ({}) } as unknown as BodySource<unknown>,
}

onServer('a source that is not iterable fails its response and nothing else', async (start) => {
  const failed: unknown[] = []
  const routes = Object.fromEntries(
    Object.keys(BROKEN).map((name, index) => [`/${index}`, () => ndjson(BROKEN[name])]),
  )
  const server = await start({
    routes: { ...routes, '/events': () => events(BROKEN['undefined later']), '/fine': 'fine' },
    error: (cause) => void failed.push(cause),
  })
  for (const [index, name] of Object.keys(BROKEN).entries()) {
    const response = await fetch(`${server.url}/${index}`, { signal: AbortSignal.timeout(5000) })
    assert.equal(response.status, 500, name)
    await response.text()
  }
  // Its response had begun, so it is cut.
  await assert.rejects(
    fetch(`${server.url}/events`).then((response) => response.text()),
    TypeError,
  )
  assert.equal(await (await fetch(`${server.url}/fine`)).text(), 'fine')
  assert.equal(failed.length, Object.keys(BROKEN).length + 1)
})

test('promises among the values of an iterable are awaited, and one that rejects closes it', async () => {
  assert.equal(await events([Promise.resolve(1)]).text(), ':\n\ndata: 1\n\n')
  assert.equal(await ndjson([Promise.resolve({ a: 1 }), { b: 2 }]).text(), '{"a":1}\n{"b":2}\n')
  assert.equal(await chunks([Promise.resolve('x') as never, 'y']).text(), 'xy')
  let isClosed = false
  function* values(): Generator<unknown> {
    try {
      yield 1
      yield Promise.reject(new Error('of the value'))
    } finally {
      isClosed = true
    }
  }
  await assert.rejects(ndjson(values).text(), /of the value/)
  assert.equal(isClosed, true)
})

onServer('values that a handler yields are streamed as its response', async (start) => {
  let isClosed = false
  async function* endless(): AsyncGenerator<string> {
    try {
      for (;;) yield 'more '.repeat(10_000)
    } finally {
      isClosed = true
    }
  }
  const routes = {
    '/later': async function* () {
      yield 'a'
      yield 'ä'
    },
    '/now': function* () {
      yield 'b'
      yield Buffer.from('c')
    },
    '/iterable': () => ({ [Symbol.asyncIterator]: () => chunks(['d']).body!.values() }),
    '/class': () => new Blob(['e']).stream().pipeThrough(new TextDecoderStream()).values(),
    '/endless': endless,
    '/objects': function* () {
      yield { a: 1 }
    },
    '/data': () => ({ a: [1, 2], next: 'x' }),
    '/empty': () => ({}),
    '/json': () => ({ toJSON: () => 'json', [Symbol.asyncIterator]: endless }),
  }
  const pass: Middleware = (_, next) => next()
  for (const given of [routes, use(routes, pass)]) {
    const server = await start({ routes: given })
    const get = async (path: string): Promise<[number, string, string | null]> => {
      const response = await fetch(server.url + path)
      return [response.status, await response.text(), response.headers.get('content-type')]
    }
    const text = 'text/plain;charset=UTF-8'
    assert.deepEqual(await get('/later'), [200, 'aä', text])
    assert.deepEqual(await get('/now'), [200, 'bc', text])
    assert.deepEqual(await get('/iterable'), [200, 'd', text])
    assert.deepEqual(await get('/class'), [200, 'e', text])
    assert.equal((await get('/objects'))[0], 500)
    assert.deepEqual(await get('/data'), [200, '{"a":[1,2],"next":"x"}', 'application/json'])
    assert.deepEqual(await get('/empty'), [200, '{}', 'application/json'])
    assert.deepEqual(await get('/json'), [200, '"json"', 'application/json'])
    isClosed = false
    const reader = (await fetch(`${server.url}/endless`)).body!.getReader()
    await reader.read()
    await reader.cancel()
    await until(() => isClosed, 'the end of the iterator')
  }
})

onServer('a response whose source computes leaves the event loop its turns', async (start) => {
  const sources: Record<string, (body: () => AsyncGenerator<Uint8Array>) => Response> = {
    generator: (body) => new Response(body() as never),
    stream: (body) => {
      const pieces = body()
      return new Response(
        new ReadableStream<Uint8Array>({
          async pull(controller) {
            const { done, value } = await pieces.next()
            if (done) controller.close()
            else controller.enqueue(value)
          },
        }),
      )
    },
    chunks: (body) => chunks(body()),
  }
  const body = async function* (): AsyncGenerator<Uint8Array> {
    let isOver = false
    setTimeout(() => (isOver = true), 10)
    for (let count = 0; !isOver; count++) {
      assert.ok(count < 10_000, 'no timer had its turn')
      compute(0.1)
      yield new Uint8Array(10)
    }
  }
  const server = await start({ routes: { '/:name': ({ params }) => sources[params.name](body) } })
  for (const name of Object.keys(sources)) {
    const response = await fetch(`${server.url}/${name}`)
    assert.ok((await response.arrayBuffer()).byteLength > 0, name)
  }
})

onServer('a source that waits is cancelled when its client leaves', async (start) => {
  let [pulled, cancelled] = [0, 0]
  const silent = (): Response =>
    new Response(
      new ReadableStream({
        pull(controller) {
          if (pulled++ % 2 === 0) controller.enqueue(new Uint8Array(1))
          else return new Promise(() => {})
        },
        cancel: () => void cancelled++,
      }),
    )
  const server = await start({ routes: { '/': silent } })
  for (const count of [1, 2]) {
    const controller = new AbortController()
    const response = await fetch(server.url, { signal: controller.signal })
    await response.body!.getReader().read()
    controller.abort()
    await until(() => cancelled === count)
  }
})

onServer('a source is closed once, and not after it has ended or failed itself', async (start) => {
  const sent = { done: false, value: 'x'.repeat(100_000) }
  /** What the third `next()` returns, and how often `return()` is called. */
  const cases: Readonly<Record<string, readonly [Step, number]>> = {
    'a client that disconnects': [async () => sent, 1],
    'a chunk that cannot be sent': [async () => ({ done: false, value: 7 }), 1],
    'a result that is not an object': [async () => 7, 0],
    'a rejection': [async () => fail(), 0],
    'an error': [fail, 0],
    'the end': [async () => ({ done: true }), 0],
  }
  const closed = new Map<string, number>()
  const source = (name: string): object => {
    let count = 0
    const next: Step = () => ((count += 1) < 3 ? Promise.resolve(sent) : cases[name][0]())
    const close = async (): Promise<object> => {
      closed.set(name, (closed.get(name) ?? 0) + 1)
      return { done: true }
    }
    return { [Symbol.asyncIterator]: () => ({ next, return: close }) }
  }
  const server = await start({
    routes: { '/:name': ({ params }) => source(decodeURIComponent(params.name)), '/fine': 'fine' },
    error: () => undefined,
  })
  for (const [name, [, count]] of Object.entries(cases)) {
    const response = await fetch(`${server.url}/${encodeURIComponent(name)}`)
    if (name === 'a client that disconnects') await response.body!.cancel()
    else await response.text().catch(() => {})
    while ((closed.get(name) ?? 0) < count) await new Promise((resolve) => setImmediate(resolve))
    assert.equal(await (await fetch(`${server.url}/fine`)).text(), 'fine')
    assert.equal(closed.get(name) ?? 0, count, name)
  }
})

test('fields of an event are what the standard reads, or an error that names them', async () => {
  const event = { data: 1, event: 'e', id: '', retryMs: 0 }
  assert.equal(await events([event]).text(), ':\n\nevent: e\nid: \nretry: 0\ndata: 1\n\n')
  assert.match(await events([{ data: 1, retryMs: 2 ** 31 - 1 }]).text(), /^retry: 2147483647$/m)
  const refused: [string, unknown][] = [
    ...[NaN, 1e21, -5, 1.5, 2 ** 31, '5', null].map((retryMs) => ['retryMs', retryMs] as [string, unknown]),
    ...[false, 7, null, {}, 'a\nb', 'a\rb', 'a\0b'].map((event) => ['event', event] as [string, unknown]),
    ...[7, true, null, 'a\nb'].map((id) => ['id', id] as [string, unknown]),
  ]
  for (const [name, value] of refused) {
    const response = events([{ data: 1, [name]: value }])
    await assert.rejects(response.text(), { name: 'TypeError', message: new RegExp(`^events: ${name} `) })
  }
  const app = createApp({
    routes: { '/': () => events([{ data: 1, event: false }]) },
    error: () => undefined,
  })
  await assert.rejects(async () => (await app.inject('/')).text())
})
