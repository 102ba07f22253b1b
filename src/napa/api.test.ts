/**
 * What the cases of napajs do not reach: refusals, metrics, the log, functions and names that are special.
 *
 * Zones that Corespun itself has made are used by their names.
 */
import assert from 'node:assert/strict'
import { channel } from 'node:diagnostics_channel'
import { after, mock, test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { until } from '../base/wait.test.support.ts'
import { metricsText, startMetrics } from '../metrics/internal.ts'
import { sum, read } from '../metrics/reading.test.support.ts'
import { zone } from '../zone/index.ts'
import api, * as napa from './index.ts'
import type { Unchecked } from './values.ts'

const { transport } = napa
const own = napa.zone.create('napa-own', { workers: 1 })
after(() => zone.get(own.id).close())

test('the API is the default export, and a global of each thread', async () => {
  assert.equal(api.zone, napa.zone)
  const here = (globalThis as Unchecked).napa
  assert.equal(here.store, napa.store)
  const found = await own.execute(() => [
    (globalThis as Unchecked).__in_napa,
    Object.keys(napa).includes('zone'),
  ])
  assert.deepEqual(found.value, [true, true])
})

test('a zone that Corespun has made runs the same calls', async () => {
  const plain = zone.create('napa-plain', { workers: 1 })
  const same = napa.zone.get('napa-plain')
  await same.broadcast((n: number) => void Object.assign(globalThis, { plainNapa: n }), [4])
  assert.equal((await same.execute(() => (globalThis as Unchecked).plainNapa)).value, 4)
  await plain.close()
})

test('node runs code, and what it returns is a copy', async () => {
  const sent = new Map([['a', new Uint8Array(2)]])
  const result = await napa.zone.node.execute((value: Unchecked): Unchecked => value, [sent])
  assert.deepEqual(result.value, sent)
  assert.notEqual(result.value, sent)
  assert.equal(result.value, result.value)
  assert.notEqual(transport.unmarshall(result.payload, result.transportContext), result.value)
  napa.zone.node.broadcastSync('var napaHere = { one: () => 1 }')
  assert.equal((await napa.zone.node.execute('global', 'napaHere.one', [])).value, 1)
  await assert.rejects(napa.zone.node.execute('', 'napaHere', []), { code: 'FUNCTION_EXPORT_KIND' })
})

test('code of a broadcast may declare the same names again, and require modules', async () => {
  await own.broadcast('let again = 1; const os = require("node:os"); var fromOs = os.type')
  await own.broadcast('let again = 2')
  assert.equal(typeof (await own.execute('', 'fromOs')).value, 'string')
})

test('modules: built-in ones, packages, and files beside the caller by their bare name', async () => {
  assert.equal((await own.execute('path', 'basename', ['/a/b'])).value, 'b')
  assert.equal((await own.execute('acorn', 'isIdentifierStart', [97])).value, true)
  assert.equal((await own.execute('worker.test.support', 'echo', [1])).value, 1)
})

test('a function keeps its file and line, recursion and async, and returns undefined', async () => {
  const fails = (): never => {
    throw new Error('here')
  }
  const error = await own.execute(fails).then(
    () => undefined,
    (reason: Error) => reason,
  )
  assert.match(String(error?.stack), /api\.test\.[jt]s:\d+/)
  const factorial = (n: number): number => (n < 2 ? 1 : n * factorial(n - 1))
  assert.equal((await own.execute(factorial, [5])).value, 120)
  const result = await own.execute(async () => {})
  assert.deepEqual([result.payload, result.value], ['undefined', undefined])
})

test('functions of one text are one function; a name without a function is refused', () => {
  const make = (): (() => number) => () => 0
  assert.equal(transport.saveFunction(make()), transport.saveFunction(make()))
  const fn = make()
  assert.equal(transport.loadFunction(transport.saveFunction(fn))(), 0)
  assert.throws(() => transport.loadFunction('999999'), { code: 'FUNCTION_UNKNOWN' })
  assert.throws(() => transport.saveFunction(Math.max), { code: 'FUNCTION_NATIVE' })
})

test('payloads are napajs JSON, and are refused without what they refer to', () => {
  assert.equal(transport.marshall({ a: [1, null], b: undefined }), '{"a":[1,null]}')
  assert.deepEqual(transport.unmarshall('{"_id":1}'), { _id: 1 })
  const context = transport.createTransportContext()
  const text = transport.marshall(new Date(0), context)
  assert.equal(transport.unmarshall(text), '1970-01-01T00:00:00.000Z')
  const bytes = transport.marshall(new Uint8Array(1), context)
  assert.equal(bytes, '{"_serialized":0}')
  const refused = { code: 'TRANSPORT_REFUSED' }
  assert.throws(() => transport.marshall(new Uint8Array(1)), refused)
  assert.throws(() => transport.unmarshall(bytes), refused)
  assert.throws(() => transport.unmarshall(bytes, transport.createTransportContext()), refused)
  assert.throws(() => transport.unmarshall('{"_cid":"none"}', context), { code: 'TRANSPORT_CLASS_UNKNOWN' })
  assert.throws(() => context.loadShared([9, 9]), refused)
})

test('classes need a name that no other class has', () => {
  class Nameless extends transport.AutoTransportable {}
  assert.throws(() => transport.register(Nameless), { code: 'TRANSPORT_REGISTRATION' })
  class First extends transport.AutoTransportable {}
  class Second extends transport.AutoTransportable {}
  transport.cid('napa.test.Name')(First)
  transport.register(First)
  assert.throws(() => transport.cid('napa.test.Name')(Second), { code: 'TRANSPORT_REGISTRATION' })
})

test('handles', () => {
  assert.equal(napa.memory.getTypeHash([1, 2]), 0)
  assert.equal(napa.memory.getTypeHash([1, 2, 3]), 3)
  assert.equal(napa.memory.isEmpty(napa.memory.EMPTY_HANDLE), true)
  assert.equal(napa.memory.crtAllocator.isNull(), false)
  assert.equal(napa.memory.defaultAllocator.record.handle[0], 2)
})

test('metrics are figures of the process, once it counts', async () => {
  const { get, MetricType } = napa.metric
  const rate = get('napa', 'calls', MetricType.Rate, ['client'])
  rate.increment(['early'])
  startMetrics()
  rate.increment(['a'])
  rate.decrement(['a'])
  // A worker counts from the moment when it has loaded what counts.
  const counts = (): number =>
    sum(read(metricsText(), false), 'corespun_napa_rate_total', { napa_name: 'far' })
  while (counts() === 0)
    await own.execute(() => napa.metric.get('napa', 'far', napa.metric.MetricType.Rate).set(2))
  const open = get('napa', 'open', MetricType.Number)
  open.set(5)
  open.increment()
  open.decrement()
  get('napa', 'ms', MetricType.Percentile).set(3)
  assert.equal(get('napa', 'open', MetricType.Rate), open)
  const samples = read(metricsText(), false)
  const calls = { napa_name: 'calls', napa_dimensions: 'client=a' }
  assert.equal(sum(samples, 'corespun_napa_rate_total', calls), 1)
  assert.equal(sum(samples, 'corespun_napa_number', { napa_section: 'napa', napa_name: 'open' }), 5)
  assert.equal(sum(samples, 'corespun_napa_percentile_count', { napa_name: 'ms' }), 1)
})

test('the log is the console, unless its provider is nop', async () => {
  const info = mock.method(console, 'info', () => {})
  const error = mock.method(console, 'error', () => {})
  napa.log('started')
  napa.log('init', 'started')
  napa.log.err('request', 'A1', 'failed')
  napa.runtime.setPlatformSettings({ loggingProvider: 'nop' })
  napa.log('nothing')
  const silent = napa.zone.create('napa-silent', { workers: 1 })
  const { value } = await silent.execute(() => process.env['CORESPUN_NAPA_LOG'])
  napa.runtime.setPlatformSettings({ loggingProvider: 'console' })
  napa.log.info('again')
  mock.restoreAll()
  assert.equal(value, 'nop')
  const lines = info.mock.calls.map(({ arguments: [line] }) => line)
  assert.deepEqual(lines, ['started', '[init] started', 'again'])
  assert.deepEqual(error.mock.calls[0].arguments, ['[request] [A1] failed'])
  napa.runtime.setPlatformSettings({})
  for (const wrong of [{ loggingProvider: './mine.napa' }, { metricProvider: './mine.napa' }])
    assert.throws(() => napa.runtime.setPlatformSettings(wrong), TypeError)
  await zone.get(silent.id).close()
})

test('a zone and a store go with their last references', async () => {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as () => void
  const closed: string[] = []
  channel('corespun:zone:closed').subscribe((event) => closed.push((event as { zone: string }).zone))
  const count = napa.store.count()
  await (async () => {
    const weak = napa.zone.create('napa-weak', { workers: 1 })
    assert.equal((await weak.execute(() => napa.zone.current.id)).value, 'napa-weak')
    napa.store.create('napa-weak').set('a', 1)
    napa.store.getOrCreate('napa-weak-too')
  })()
  await until(() => (gc(), closed.includes('napa-weak') && napa.store.count() <= count))
})

test('stores are counted', () => {
  const before = napa.store.count()
  assert.equal(napa.store.get('napa-absent'), undefined)
  assert.equal(before, napa.store.count())
  assert.throws(() => napa.store.get(''), { code: 'STORE_ARGUMENT' })
})
