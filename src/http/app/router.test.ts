/**
 * The router beside the obvious one: every pattern tried on every path, segment by segment.
 *
 * Patterns and paths are made from few words, so that they meet often.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { paramsOf, Router } from './router.ts'
import type { HttpRequest, Params } from '../index.ts'
import { createApp } from '../index.ts'

const words = fc.constantFrom('a', 'b', 'c', '')
const segments = fc.oneof(words, fc.constantFrom(':x', ':y', ':z'))
const patterns = fc
  .tuple(fc.array(segments, { minLength: 1, maxLength: 4 }), fc.constantFrom('', '/*', '/*rest'))
  .map(([list, end]) => `/${list.join('/')}${end}`)
const paths = fc
  .array(fc.constantFrom('a', 'b', 'c', 'd', '', 'a%20b'), { minLength: 1, maxLength: 5 })
  .map((list) => `/${list.join('/')}`)

/** What each segment is worth: fixed before named before the rest, from the left. */
function rank(segment: string): number {
  return segment.startsWith('*') ? 2 : segment.startsWith(':') ? 1 : 0
}

function matches(pattern: string, path: string): Record<string, string> | undefined {
  const [expected, given] = [pattern.slice(1).split('/'), path.slice(1).split('/')]
  const params: Record<string, string> = {}
  for (const [at, segment] of expected.entries()) {
    if (segment.startsWith('*')) {
      if (given.length <= at) return undefined
      params[segment === '*' ? '*' : segment.slice(1)] = decodeURIComponent(given.slice(at).join('/'))
      return params
    }
    if (given[at] === undefined) return undefined
    if (segment.startsWith(':')) {
      if (given[at] === '') return undefined
      params[segment.slice(1)] = decodeURIComponent(given[at])
    } else if (segment !== given[at]) return undefined
  }
  return given.length === expected.length ? params : undefined
}

/** Of two patterns that match, the one that is more exact from the left. */
function before(one: string, other: string): number {
  const [left, right] = [one, other].map((pattern) => pattern.slice(1).split('/').map(rank))
  for (let at = 0; at < Math.max(left.length, right.length); at += 1) {
    const order = (left[at] ?? 3) - (right[at] ?? 3)
    if (order !== 0) return order
  }
  return 0
}

test('any patterns on any paths: the same result as a linear search', () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(patterns, { maxLength: 8 }),
      fc.array(paths, { maxLength: 20 }),
      (list, asked) => {
        const router = new Router<string>()
        const added: string[] = []
        for (const pattern of list) {
          try {
            router.add(pattern, 'GET', pattern)
            added.push(pattern)
          } catch (error) {
            const { code } = error as { code: string }
            const same = (one: string): string => one.replaceAll(/:\w+/g, ':').replace(/\*\w*$/, '*')
            if (code === 'HTTP_ROUTE_CONFLICT')
              assert.ok(added.some((other) => same(other) === same(pattern)))
            else assert.ok(/:(\w).*:\1/.test(pattern) && code === 'HTTP_ROUTE', pattern)
          }
        }
        for (const path of asked) {
          const expected = added.filter((pattern) => matches(pattern, path) !== undefined).sort(before)[0]
          const values: string[] = []
          const found = router.find(path, values)
          assert.equal(found?.pattern, expected, path)
          if (found !== undefined) assert.deepEqual(paramsOf(found.names, values), matches(expected, path))
        }
      },
    ),
    { numRuns: 2000 },
  )
})

test('the error of an invalid pattern contains the reason', () => {
  const bad = [
    'a',
    '',
    '/a?',
    '/{b}',
    '/:',
    '/:1',
    '/*/a',
    '/a*',
    '/:a/:a',
    '/a/../b',
    '/:__proto__',
    '/a#b',
    '/(x)',
  ]
  for (const pattern of bad) {
    assert.throws(() => new Router().add(pattern, 'GET', 0), { code: 'HTTP_ROUTE' }, pattern)
  }
})

test('routes that match the same requests are an error at the start', () => {
  const conflict = { code: 'HTTP_ROUTE_CONFLICT' }
  assert.throws(() => createApp({ routes: { '/u/:a': 'x', '/u/:b': 'y' } }), conflict)
  assert.throws(() => createApp({ routes: { '/f/*': 'x', '/f/*rest': 'y' } }), conflict)
  assert.throws(() => createApp({ routes: { '/caf%c3%a9': 'x', '/café': 'y' } }), conflict)
})

test('a path of hundreds of segments is found, and one that is not is not looked for twice', () => {
  const router = new Router<number>()
  const deep = '/:a/x'.repeat(1).concat('/b'.repeat(200))
  router.add(deep, 'GET', 1)
  assert.equal(router.find(`/q/x${'/b'.repeat(200)}`, [])?.pattern, deep)
  assert.equal(router.find(`/q/x${'/b'.repeat(2000)}`, []), undefined)
})

test('parameters have the types of their pattern', () => {
  const params: Params<'/user/:id/files/*rest'> = { id: '1', rest: 'a/b' }
  assert.deepEqual(params, { id: '1', rest: 'a/b' })
  createApp({
    routes: {
      '/user/:id': (request) => {
        const id: string = request.params.id
        // @ts-expect-error the pattern has no such name
        void request.params.name
        return id
      },
      '/post/:slug': {
        // @ts-expect-error the pattern has no such name
        GET: (request) => request.params.id as string,
        POST: (request) => request.params.slug,
      },
    },
  })
  const anything = (request: HttpRequest): string => request.params.whatever ?? ''
  assert.equal(typeof anything, 'function')
})
