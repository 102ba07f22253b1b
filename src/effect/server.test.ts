/**
 * The server for Effects: handlers with services, their failures, the client's span, and its disconnect.
 *
 * Each test has a server of its own on a free port.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as Context from 'effect/Context'
import * as Effect from 'effect/Effect'
import * as Option from 'effect/Option'
import { settled, until } from '../base/wait.test.support.ts'
import { StatusError, traceContext, use } from '../http/index.ts'
import { handler, makeServer } from './index.ts'

class Names extends Context.Service<Names, { of(id: string): Effect.Effect<string, StatusError> }>()(
  'effect-test/Names',
) {}

const names = Names.of({
  of: (id) => (id === '0' ? Effect.fail(new StatusError(404, 'no such user')) : Effect.succeed(`user ${id}`)),
})
const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'

const parentOf = handler(() =>
  Effect.map(Effect.option(Effect.currentParentSpan), (span) =>
    Option.isSome(span) ? span.value.spanId : 'none',
  ),
)

function served<A>(
  body: (url: string) => Promise<A>,
  routes: Effect.Effect<object, never, Names>,
): Promise<A> {
  const program = Effect.gen(function* () {
    const server = yield* makeServer({ port: 0, quiet: true, routes: (yield* routes) as { '/': string } })
    return yield* Effect.promise(() => body(server.url))
  })
  const named = program.pipe(Effect.withSpan('build'), Effect.provideService(Names, names), Effect.scoped)
  return Effect.runPromise(named)
}

test('a handler has the services of its Effect, and its failure is that of any handler', async () => {
  const routes = Effect.gen(function* () {
    return {
      '/user/:id': yield* handler<'/user/:id', string, StatusError, Names>((request) =>
        Effect.flatMap(Names, (all) => all.of(request.params.id)),
      ),
      '/bug': yield* handler(() => Effect.die(new RangeError('a bug'))),
    }
  })
  await served(async (url) => {
    assert.equal(await (await fetch(`${url}/user/7`)).text(), 'user 7')
    assert.equal((await fetch(`${url}/user/0`)).status, 404)
    assert.equal((await fetch(`${url}/bug`)).status, 500)
  }, routes)
})

test('the span of the client is the parent, with traceContext and without', async () => {
  const routes = Effect.map(parentOf, (parent) => ({
    '/plain': parent,
    ...use({ '/traced': parent }, traceContext()),
  }))
  await served(async (url) => {
    for (const path of ['/plain', '/traced']) {
      assert.equal(await (await fetch(url + path, { headers: { traceparent } })).text(), 'b7ad6b7169203331')
      assert.equal(await (await fetch(url + path)).text(), 'none')
    }
  }, routes)
})

test('a client that disconnects interrupts the handler', async () => {
  const state = { begun: false, ended: false }
  const waits = handler(() =>
    Effect.sync(() => void (state.begun = true)).pipe(
      Effect.andThen(Effect.never),
      Effect.onInterrupt(() => Effect.sync(() => void (state.ended = true))),
    ),
  )
  await served(
    async (url) => {
      const client = new AbortController()
      const request = fetch(url, { signal: client.signal })
      await until(() => state.begun)
      client.abort()
      await assert.rejects(settled(request, 'the abort'), { name: 'AbortError' })
      await until(() => state.ended)
    },
    Effect.map(waits, (get) => ({ '/': get })),
  )
})

test('a port that is taken is a failure by its code', async () => {
  const routes = { '/': 'Hello' }
  const twice = Effect.gen(function* () {
    const server = yield* makeServer({ port: 0, quiet: true, routes })
    return yield* Effect.flip(makeServer({ port: Number(new URL(server.url).port), quiet: true, routes }))
  })
  const error = await Effect.runPromise(Effect.scoped(twice))
  assert.equal(error._tag, 'HTTP_PORT_TAKEN')
})
