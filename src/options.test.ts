/**
 * Options as users meet them: every function that takes options refuses a misspelt one and ignores what a
 * program, or an attacker, puts on `Object.prototype`.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import * as arrow from './arrow/index.ts'
import * as fiber from './fiber/index.ts'
import * as http from './http/index.ts'
import { connect } from './fleet/index.ts'
import { store } from './store/index.ts'
import { Channel, Lock, RwLock, Semaphore } from './sync/index.ts'
import { encode, register, decode } from './transport/index.ts'
import { zone } from './zone/index.ts'

const here = zone.create('options', { workers: 1 })
after(() => here.close())
const used = store.create<unknown>('options')
const increment = arrow.lift((x: number) => x + 1)
const wrong = { tiemoutMs: 1 } as never

const CALLS: Readonly<Record<string, () => unknown>> = {
  'zone.create()': () => zone.create('never', wrong),
  'zone.getOrCreate()': () => zone.getOrCreate('never', wrong),
  'zone.execute()': () => here.execute(() => 1, [], wrong),
  'zone.broadcast()': () => here.broadcast(() => 1, [], wrong),
  'zone.broadcastSync()': () => here.broadcastSync(() => 1, [], wrong),
  'zone.map()': () => here.map([1], (x) => x, wrong),
  'zone.forEach()': () => here.forEach([1], (x) => x, wrong),
  'zone.reduce()': () => here.reduce([1], (x) => x, 0, wrong),
  'zone.ready()': () => here.ready(wrong),
  'zone.close()': () => here.close(wrong),
  'store.create()': () => store.create('never', wrong),
  'store.getOrCreate()': () => store.getOrCreate('never', wrong),
  'store.set()': () => used.set('k', 1, wrong),
  'store.update()': () => used.update('k', () => 1, wrong),
  'store.compareAndSet()': () => used.compareAndSet('k', 1, 2, wrong),
  'store.increment()': () => used.increment('n', 1, wrong),
  'store.getOrCompute()': () => used.getOrCompute('k', () => 1, wrong),
  'store.watch()': () => used.watch('k', wrong),
  'lock.guard()': () => new Lock().guard(() => 1, wrong),
  'lock.guardSync()': () => new Lock().guardSync(() => 1, wrong),
  'rwLock.read()': () => new RwLock().read(() => 1, wrong),
  'rwLock.writeSync()': () => new RwLock().writeSync(() => 1, wrong),
  'semaphore.guard()': () => new Semaphore({ permits: 1 }).guard(() => 1, wrong),
  'semaphore.tryGuard()': () => new Semaphore({ permits: 1 }).tryGuard(() => 1, wrong),
  'channel.put()': () => new Channel({ messagesMax: 1 }).put(1, wrong),
  'channel.takeSync()': () => new Channel({ messagesMax: 1 }).takeSync(wrong),
  'fork()': () => fiber.fork(() => 1, wrong),
  'forEach()': () => fiber.forEach([1], (x) => x, wrong),
  'new Scope()': () => new fiber.Scope(wrong),
  'stream()': () => increment.stream([1], wrong),
  'explain()': () => increment.explain(wrong),
  'encode()': () => encode(1, wrong),
  'decode()': () => decode(encode(1), wrong),
  'register()': () => register(class One {}, wrong),
  'serve()': () => http.serve(wrong),
  'createApp()': () => http.createApp(wrong),
  'accessLog()': () => http.accessLog(wrong),
  'requestId()': () => http.requestId(wrong),
  'cors()': () => http.cors(wrong),
  'rateLimit()': () => http.rateLimit(wrong),
  'files()': () => http.files('.', wrong),
  'jsonErrors()': () => http.jsonErrors(wrong),
  'events()': () => http.events([], wrong),
  'ndjson()': () => http.ndjson([], wrong),
  'chunks()': () => http.chunks([], wrong),
  'connect()': () => connect('memory:', wrong),
  'readForm()': () => http.readForm(new Request('http://x'), wrong),
}

test('every function that takes options refuses an unknown one, with its own name', async () => {
  for (const [name, call] of Object.entries(CALLS)) {
    const thrown: unknown = await Promise.resolve()
      .then(call)
      .then(String, (error: unknown) => error)
    assert.ok(thrown instanceof Error, `${name} returned ${String(thrown)}`)
    assert.ok(
      thrown.message.startsWith(`${name}: unknown option "tiemoutMs"; `),
      `${name}: ${thrown.message}`,
    )
  }
})

test('a near name is proposed, and a wrong value is shown with the function that received it', async () => {
  await assert.rejects(
    here.execute(() => 1, [], wrong),
    {
      message: 'zone.execute(): unknown option "tiemoutMs"; did you mean "timeoutMs"?',
    },
  )
  await assert.rejects(here.close({ timeoutMs: -1 }), {
    message: 'zone.close(): timeoutMs must be a number of milliseconds from 0 to 2147483647; received -1',
  })
  assert.throws(() => fiber.sleep(-1), {
    message: 'sleep(): ms must be a number of milliseconds from 0; received -1',
  })
})

test('a Proxy that throws is a wrong value as any other, named with its option', async () => {
  const throws = (): never => assert.fail('read')
  const { proxy: revoked, revoke } = Proxy.revocable({}, {})
  revoke()
  const { proxy: revokedFunction, revoke: revokeFunction } = Proxy.revocable(() => {}, {})
  revokeFunction()
  const hostile = new Proxy({}, { get: throws, getPrototypeOf: throws, has: throws, ownKeys: throws })
  for (const value of [revoked, revokedFunction, hostile] as never[]) {
    const is = (code: string, name: string) => ({
      code,
      message: new RegExp(`^${name} must be .*; received a Proxy that throws$`),
    })
    assert.throws(
      () => zone.create('never', { workers: value }),
      is('ZONE_ARGUMENT', 'zone\\.create\\(\\): workers'),
    )
    await assert.rejects(
      here.execute(() => 1, [], { signal: value }),
      is('ZONE_ARGUMENT', 'zone\\.execute\\(\\): signal'),
    )
    assert.throws(
      () => store.create('never', { bytesMax: value }),
      is('STORE_ARGUMENT', 'store\\.create\\(\\): bytesMax'),
    )
    await assert.rejects(
      http.serve({ routes: { '/': '' }, rooms: value }),
      is('HTTP_ARGUMENT', 'serve\\(\\): rooms'),
    )
    await assert.rejects(
      connect('memory:', { credentials: value }),
      is('FLEET_ARGUMENT', 'connect\\(\\): credentials'),
    )
    await assert.rejects(connect(value), {
      code: 'FLEET_ARGUMENT',
      message: /received "?a Proxy that throws/,
    })
  }
})

test('what has a conversion that throws, and an array as rooms, are refused by name', async () => {
  const address = Object.create(null) as never
  await assert.rejects(connect(address), { code: 'FLEET_ARGUMENT', message: /^connect\(\): the address/ })
  const served = http.serve({ routes: { '/': '' }, port: 0, quiet: true, rooms: [] as never })
  await assert.rejects(served, { code: 'HTTP_ARGUMENT', message: /^serve\(\): rooms/ })
})

test('properties of Object.prototype are not options, and calls of a zone work', async () => {
  const proto = Object.prototype as unknown as Record<string, unknown>
  for (const name of [
    'signal',
    'timeoutMs',
    'ordered',
    'settle',
    'error',
    'chunkMax',
    'name',
    'mode',
    'ttlMs',
    'priority',
    'tenant',
    'affinity',
    'order',
  ]) {
    proto[name] = 'polluted'
    try {
      assert.equal(await here.run((x: number) => x + 1, 1), 2, name)
      assert.deepEqual(await here.map([1, 2], (x) => x * 2, {}), [2, 4], name)
      if (name === 'priority' || name === 'tenant' || name === 'affinity' || name === 'order')
        assert.equal(await here.with({ timeoutMs: 60_000 }).run((x: number) => x + 1, 1), 2, name)
      const [settled] = await here.map([1], (x) => x, { settle: true })
      assert.deepEqual([settled?.status, settled?.index], ['fulfilled', 0], name)
      assert.equal((await here.execute((x: number) => x + 1, [1], {})).value, 2, name)
      assert.equal(await fiber.fork(() => 3, {}).join(), 3, name)
      used.set('k', 1, {})
      assert.equal(decode(encode(1, {}), {}), 1, name)
    } finally {
      delete proto[name]
    }
  }
})

test('a getter on Object.prototype that throws is named as what the parser met', async () => {
  const thrower = { get: () => assert.fail('met'), enumerable: true, configurable: true }
  Object.defineProperty(Object.prototype, 'polluted', thrower)
  try {
    const call = here.run(() => 'never')
    await assert.rejects(call, { code: 'FUNCTION_SYNTAX', message: /Object\.prototype .*\(polluted\)/ })
  } finally {
    delete (Object.prototype as { polluted?: unknown }).polluted
  }
})
