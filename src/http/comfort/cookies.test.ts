/**
 * Cookies as text: what is read of a request's, and what may be written into an answer's.
 *
 * Nothing is served here.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cookie, cookiesOf, deletedCookie } from './cookies.ts'

test('cookies are read', () => {
  const of = (text: string): object => {
    const headers = {
      get: (name: string) => (name === 'cookie' ? text : null),
    }
    return Object.fromEntries(cookiesOf({ headers } as never))
  }
  assert.deepEqual(of('a=1; b="two"; c=%C3%A4; a=3'), {
    a: '1',
    b: 'two',
    c: 'ä',
  })
  assert.deepEqual(of('x; =1; d=%E0%A4; e=a=b;'), { d: '%E0%A4', e: 'a=b' })
})

test('cookies are written with attributes that hold together', () => {
  assert.equal(cookie('a', 'b c;ä'), 'a=b%20c%3B%C3%A4; Path=/; HttpOnly; SameSite=Lax')
  assert.equal(
    cookie('__Host-s', 'x', {
      secure: true,
      sameSite: 'none',
      partitioned: true,
      maxAgeS: 60,
      httpOnly: false,
    }),
    '__Host-s=x; Max-Age=60; Path=/; Secure; SameSite=None; Partitioned',
  )
  assert.match(
    deletedCookie('a', { domain: 'x.example' }),
    /Max-Age=0; Expires=Thu, 01 Jan 1970.*Domain=x.exa/,
  )
  const refused: [string, string, object][] = [
    ['a b', '', {}],
    ['a', '\ud800', {}],
    ['a', '', { path: 'x' }],
    ['a', '', { path: '/;x' }],
    ['a', '', { domain: 'x;y' }],
    ['a', '', { sameSite: 'none' }],
    ['a', '', { sameSite: 'some' }],
    ['a', '', { maxAgeS: -1 }],
    ['a', '', { expires: new Date(NaN) }],
    ['a', '', { partitioned: true }],
    ['__Secure-a', '', {}],
    ['__Host-a', '', { secure: true, path: '/x' }],
    ['__Host-a', '', { secure: true, domain: 'x.example' }],
    ['a', 'x'.repeat(5000), {}],
  ]
  for (const [name, value, attributes] of refused)
    assert.throws(
      () => cookie(name, value, attributes),
      { code: 'HTTP_SETTING' },
      JSON.stringify([name, attributes]),
    )
})
