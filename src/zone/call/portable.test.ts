/**
 * Errors with parts that cannot travel: what arrives is the error without those parts.
 *
 * Each case is thrown by a task, so it goes the whole way: worker, frame, caller.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { TransportError, encode, decode } from '../../transport/index.ts'
import { ZoneError, zone } from '../index.ts'
import { portable } from './portable.ts'

const here = zone.create('portable', { workers: 1 })
after(() => here.close())

/** What `error` is for its caller when it does not travel whole. */
function arrived(error: Error): Error & Record<string, unknown> {
  assert.throws(() => encode(error, { mode: 'process' }), 'the case is one that cannot travel')
  const sent = portable(error, new TransportError('TRANSPORT_DEPTH', { depthMax: 1 }))
  return decode(encode(sent, { mode: 'process' }), { mode: 'process' }) as never
}

test('a field that cannot travel is left out; class, message, cause and other fields stay', async () => {
  const failing = (): never => {
    const cause = new TypeError('below')
    throw Object.assign(new RangeError('no', { cause }), { code: 'E_X', status: 404, socket: Symbol('s') })
  }
  const error = (await here.run(failing).catch((reason: unknown) => reason)) as RangeError & {
    status: number
  }
  assert.ok(error instanceof RangeError)
  assert.deepEqual(
    [error.name, error.message, { ...error }],
    ['RangeError', 'no', { code: 'E_X', status: 404 }],
  )
  assert.ok(error.cause instanceof TypeError)
  assert.equal(error.cause.message, 'below')
  assert.match(String(error.stack), /RangeError: no\n.*failing/)
})

test('a class nobody registered keeps its name and the class below it, a registered one its class', () => {
  class Refused extends TypeError {}
  const refused = arrived(Object.assign(new Refused('x'), { left: 1, socket: Symbol('s') }))
  assert.deepEqual(
    [refused instanceof TypeError, refused.name, { ...refused }],
    [true, 'Refused', { left: 1 }],
  )
  const full = new ZoneError('ZONE_FULL', { zone: 'z', tasksMax: 3 })
  const zoned = arrived(Object.assign(full, { socket: Symbol('s') }))
  assert.ok(zoned instanceof ZoneError)
  assert.deepEqual(
    [zoned.name, zoned.code, zoned.facts],
    ['ZoneError', 'ZONE_FULL', { zone: 'z', tasksMax: 3 }],
  )
  const dom = arrived(Object.assign(new DOMException('stopped', 'AbortError'), { socket: Symbol('s') }))
  assert.deepEqual([dom instanceof DOMException, dom.name, dom.message], [true, 'AbortError', 'stopped'])
  const named = new Error('own')
  Object.defineProperty(named, 'name', { value: 'Special' })
  assert.equal(arrived(Object.assign(named, { socket: Symbol('s') })).name, 'Special')
})

test('causes and the errors of an AggregateError are reduced in the same way', () => {
  const bad = (message: string): Error =>
    Object.assign(new EvalError(message), { at: 1, socket: Symbol('s') })
  const outer = arrived(new Error('outer', { cause: bad('cause') }))
  const cause = outer.cause as Error
  assert.deepEqual([cause instanceof EvalError, cause.message, { ...cause }], [true, 'cause', { at: 1 }])
  const all = arrived(new AggregateError([new TypeError('fine'), bad('inner')], 'all'))
  assert.ok(all instanceof AggregateError)
  assert.deepEqual(
    all.errors.map((each: Error) => [each.name, each.message]),
    [
      ['TypeError', 'fine'],
      ['EvalError', 'inner'],
    ],
  )
  const mixed = arrived(new AggregateError([bad('inner'), 'text', new WeakMap()], 'mixed'))
  assert.deepEqual((mixed.errors as unknown[]).map(String), [
    'EvalError: inner',
    'text',
    'WeakMap { <items unknown> }',
  ])
  assert.equal(arrived(new Error('no cause', { cause: Symbol('s') })).cause, undefined)
})

test('what reads itself, or will not be read, ends all the same', () => {
  const loop = Object.assign(new RangeError('loop'), { socket: Symbol('s') })
  loop.cause = loop
  const looped = arrived(loop)
  assert.deepEqual([looped.name, looped.message], ['RangeError', 'loop'])
  const hostile = new RangeError('hostile')
  Object.defineProperty(hostile, 'never', {
    enumerable: true,
    get: () => {
      throw new Error('not read')
    },
  })
  const read = arrived(Object.assign(hostile, { status: 5 }))
  assert.deepEqual([read instanceof RangeError, { ...read }], [true, { status: 5 }])
})
