/**
 * Addresses of fleets: what they name, what is refused, and that no message has a password.
 *
 * Rows are addresses and what they are read as.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { generator, seeds } from '../base/index.ts'
import { addressOf, identified, whereOf } from './address.ts'

const none = { user: undefined, password: undefined, token: undefined }
const bob = { ...none, user: 'bob', password: 'p' }

test('an address names servers, and a user or a token', () => {
  const rows: [string, readonly string[], object][] = [
    ['memory:', [''], none],
    ['memory:tests', ['tests'], none],
    ['sqlite:work.db', ['work.db'], none],
    ['sqlite:/var/a@b/w o r k.db', ['/var/a@b/w o r k.db'], none],
    ['sqlite:///var/work.db', ['///var/work.db'], none],
    ['postgres:', [''], none],
    ['postgres://h:5432/d?sslmode=require', ['h:5432/d?sslmode=require'], none],
    ['postgres://bob:p@/d?host=/run/postgresql', ['/d?host=/run/postgresql'], bob],
    ['postgres://bob@h/d', ['h/d'], { ...none, user: 'bob' }],
    ['nats://a', ['nats://a'], none],
    ['nats://a:4222, b:4223', ['nats://a:4222', 'nats://b:4223'], none],
    ['tls://a,tls://b', ['tls://a', 'tls://b'], none],
    ['nats://[::1]:4222', ['nats://[::1]:4222'], none],
    ['nats://bob:p@a', ['nats://a'], bob],
    ['nats://bob:p@a,nats://bob:p@b,c', ['nats://a', 'nats://b', 'nats://c'], bob],
    ['nats://bob:p%40%2C%3A@a', ['nats://a'], { ...bob, password: 'p@,:' }],
    ['nats://bob:p:q@a', ['nats://a'], { ...bob, password: 'p:q' }],
    ['nats://bob:p@q@a', ['nats://a'], { ...bob, password: 'p@q' }],
    ['nats://bob:@a', ['nats://a'], { ...bob, password: '' }],
    ['nats://s3cret@a', ['nats://a'], { ...none, token: 's3cret' }],
  ]
  for (const [address, servers, identity] of rows) {
    const { scheme, servers: found, ...rest } = addressOf(address)
    assert.deepEqual(
      [scheme, found, rest],
      [address.slice(0, address.indexOf(':')), servers, identity],
      address,
    )
  }
})

test('what is not an address is refused, without a password in the message', () => {
  for (const address of [
    5,
    '',
    'a:4222',
    'nats://',
    'sqlite:',
    'sqlite::memory:',
    'sqlite:file:work.db',
    'sqlite://work.db',
    'nats://a,',
    'http://bob:hunter2@a',
    'postgres:work',
    'postgres://bob:hunter2@a b',
    'postgres://a b?password=hunter2',
    'postgres://bob:hunter2%@a',
    'postgres://bob:12/hunter2@a/d',
    'nats://bob:hunter2@',
    'nats://bob:hunter2@a b',
    'nats://bob:hunter2,x@a',
    'nats://bob:hunter2%@a',
    'nats://bob:hunter2@a,eve:hunter2@b',
  ])
    assert.throws(
      () => addressOf(address),
      (error: Error & { code: string; facts: unknown }) => {
        assert.equal(error.code, 'FLEET_ARGUMENT', String(address))
        assert.doesNotMatch(error.message + JSON.stringify(error.facts), /hunter2/)
        return true
      },
      String(address),
    )
})

test('any password is read as it was written', () => {
  for (const seed of seeds(50)) {
    const random = generator(seed)
    const password = Array.from({ length: 1 + random() * 20 }, () =>
      String.fromCodePoint(1 + Math.floor(random() * 0x2ff)),
    ).join('')
    const address = `nats://bob:${encodeURIComponent(password)}@a:1`
    assert.deepEqual(addressOf(address), {
      scheme: 'nats',
      servers: ['nats://a:1'],
      ...none,
      user: 'bob',
      password,
    })
  }
})

test('options that name another user than the address are refused', () => {
  const own = { ...none, nkey: undefined, credentials: undefined }
  assert.deepEqual(identified(own, bob), { ...own, ...bob })
  assert.deepEqual(identified({ ...own, user: 'bob' }, bob), { ...own, ...bob })
  assert.deepEqual(identified({ ...own, token: 't' }, none), { ...own, token: 't' })
  for (const other of [
    { user: 'eve' },
    { password: 'q' },
    { token: 't' },
    { nkey: 'SU' },
    { credentials: 'c' },
  ])
    assert.throws(() => identified({ ...own, ...other }, bob), {
      code: 'FLEET_ARGUMENT',
      message: /without credentials/,
    })
})

test('connections lead to the same jobs unless the server, its schema or the user is another', () => {
  const all = [
    whereOf('memory:a'),
    whereOf('sqlite:a'),
    whereOf('postgres://h/d'),
    whereOf('postgres://h/d', { schema: 'other' }),
    whereOf('nats://a'),
    whereOf('nats://a', { user: 'bob', password: 'p' }),
    whereOf('nats://a', { nkey: 'SU1' }),
    whereOf('nats://a', { nkey: 'SU2' }),
  ]
  assert.equal(new Set(all).size, all.length)
  assert.equal(whereOf('postgres://h/d', { schema: 'corespun', name: 'one' }), whereOf('postgres://h/d'))
  assert.equal(whereOf('memory:a', { schema: 'other' }), whereOf('memory:a'))
  for (const [one, same] of [
    ['memory://a', 'memory:a'],
    ['sqlite:./a.db', 'sqlite:a.db'],
    [`sqlite:${process.cwd()}/a.db`, 'sqlite:a.db'],
    ['postgresql://h/d', 'postgres://h/d'],
    ['nats://b,a', 'nats://a,nats://b'],
  ])
    assert.equal(whereOf(one), whereOf(same))
  assert.equal(whereOf('nats://bob:p@a'), whereOf('nats://a', { user: 'bob', password: 'p' }))
})
