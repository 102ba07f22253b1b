/**
 * Durable runs on the engine in memory, and what is refused.
 *
 * The tests themselves are in runs.test.support.ts.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../base/wait.test.support.ts'
import { Schedule, fork } from '../fiber/index.ts'
import { type Fleet, connect } from '../fleet/index.ts'
import type { Engine } from '../fleet/internal.ts'
import { RunError, durable, id, now, pause, random, runs, signal, step } from './index.ts'
import { boxesName, headsName, journalName, readHead, writeRecord } from './records.ts'
import { Runs } from './runs.ts'
import { runTests } from './runs.test.support.ts'

runTests('memory', (name) => connect(`memory:${name}`))

test('wrong arguments are refused by name', async () => {
  const one = durable('one', function* (wrong: 'name' | 'fn' | 'args' | 'zone' | 'pause' | 'signal') {
    if (wrong === 'name') yield* step('a/b', () => 1)
    if (wrong === 'fn') yield* step('a', 5 as never)
    if (wrong === 'args') yield* step('a', () => 1, 'x' as never)
    if (wrong === 'zone') yield* step('a', () => 1, [], { zone: {} as never })
    if (wrong === 'pause') yield* pause(-1)
    yield* signal('')
  })
  for (const name of ['', 'a b', 'x'.repeat(41), 5 as never])
    assert.throws(() => durable(name, one.body), { code: 'RUN_ARGUMENT' })
  assert.throws(() => durable('one', 5 as never), { code: 'RUN_ARGUMENT' })
  await using fleet = await connect('memory:wrong runs')
  for (const options of [
    {},
    { definitions: [one, one] },
    { definitions: [5] },
    { definitions: [one], leaseMs: 1 },
  ])
    await assert.rejects(runs(fleet, options as never), { code: 'RUN_ARGUMENT' })
  await using work = await runs(fleet, { definitions: [one] })
  for (const wrong of ['name', 'fn', 'args', 'zone', 'pause', 'signal'] as const)
    await assert.rejects((await work.start('one', wrong)).result(), { code: 'RUN_ARGUMENT' })
  await assert.rejects(work.start('two' as never, 'fn' as never), /must be one of one; received "two"/)
  await assert.rejects(work.start('one', 'fn', { key: '' }), { code: 'RUN_ARGUMENT' })
  await assert.rejects(work.list('one', { itemsMax: 0 }), { code: 'RUN_ARGUMENT' })
})

test('outside of a run nothing can be asked for', async () => {
  const operations = [step('a', () => 1), pause(1), signal('a'), now(), random(), id()]
  for (const operation of operations) await assert.rejects(fork(operation).join(), { code: 'RUN_REQUIRED' })
})

/** An engine that calls `see` before each operation on the journals of a definition; it may throw. */
function seen(of: Engine, definition: string, see: (operation: 'get' | 'put' | 'delete') => void): Engine {
  return {
    ...{ scheme: of.scheme, messages: of.messages, clock: of.clock, ended: of.ended },
    messageBytesMax: of.messageBytesMax,
    queue: (name) => of.queue(name),
    objects: (name, options) => of.objects(name, options),
    queues: () => of.queues(),
    valuesIn: (name) => of.valuesIn(name),
    close: () => of.close(),
    keyValue: async (name, options) => {
      const values = await of.keyValue(name, options)
      if (name !== journalName(definition)) return values
      return {
        get: async (key) => (see('get'), values.get(key)),
        put: async (key, bytes, how) => (see('put'), values.put(key, bytes, how)),
        delete: async (key, revision) => (see('delete'), values.delete(key, revision)),
        page: (paging) => values.page(paging),
        last: () => values.last(),
        watch: (on, how) => values.watch(on, how),
      }
    },
  }
}

test('each step costs one write, also the thousandth', async () => {
  await using fleet = await connect('memory:many steps')
  const operations: string[] = []
  const engine = seen(fleet.engine, 'many', (operation) => void operations.push(operation))
  const many = durable('many', function* (count: number) {
    for (let n = 0; n < count; n++) yield* step('step', (value: number) => value, [n])
    return count
  })
  const work = await Runs.open(engine, [many] as const, { runsMax: 1, leaseMs: 60_000, idleMs: 60_000 })
  assert.equal(await (await work.start('many', 1000)).result(), 1000)
  await work.close()
  assert.equal(operations.filter((operation) => operation === 'put').length, 1000)
  assert.deepEqual(new Set(operations.slice(-1000)), new Set(['put']))
})

test('a run is forgotten as a whole, also by a second call when the first one has died', async () => {
  await using fleet = await connect('memory:forgotten')
  let deletions = 0
  const engine = seen(fleet.engine, 'kept', (operation) => {
    if (operation === 'delete' && ++deletions === 3) throw new Error('died')
  })
  const kept = durable('kept', function* () {
    for (let n = 0; n < 5; n++) yield* step('step', () => n)
  })
  const work = await Runs.open(engine, [kept] as const, { runsMax: 1, leaseMs: 60_000, idleMs: 60_000 })
  const run = await work.start('kept', undefined)
  await run.result()
  await assert.rejects(run.forget(), /died/)
  assert.equal(await fleet.engine.valuesIn(journalName('kept')), 3)
  assert.equal(await run.forget(), true)
  assert.equal(await fleet.engine.valuesIn(journalName('kept')), 0)
  assert.equal(await fleet.engine.valuesIn(headsName('kept')), 0)
  await work.close()
})

test('a run of which something is damaged waits, shows why, and can be cancelled', async () => {
  const damage = {
    signals: async ({ engine }: Fleet, key: string) => {
      const boxes = await engine.keyValue(boxesName('damaged'), { ttlMs: 0 })
      await boxes.put(key, Buffer.from('damaged'))
    },
    // The error of an attempt that another follows.
    'step#1': async ({ engine }: Fleet, key: string) => {
      const heads = await engine.keyValue(headsName('damaged'), { ttlMs: 0 })
      const journals = await engine.keyValue(journalName('damaged'), { ttlMs: 0 })
      const { id } = readHead((await heads.get(key))?.bytes as Uint8Array)
      const failed = {
        kind: 'failed',
        key: 'step#1',
        atMs: 1,
        dueMs: 1,
        frame: Buffer.from('damaged'),
      } as const
      await journals.put(`${id}.0`, writeRecord('another', [failed]))
    },
  }
  const damaged = durable('damaged', function* () {
    return yield* step('step', () => 1, [], { retry: Schedule.recurs(1) })
  })
  await using fleet = await connect('memory:damaged')
  await using starting = await runs(fleet, { definitions: [damaged], runsMax: 0 })
  for (const key of ['signals', 'step#1'] as const) {
    await starting.start('damaged', undefined, { key })
    await damage[key](fleet, key)
  }
  await using work = await runs(fleet, { definitions: [damaged] })
  for (const record of ['signals', 'step#1']) {
    const run = work.get('damaged', record)
    await until(async () => (await run.state()).status === 'diverged')
    const { error } = await run.state()
    assert.ok(error instanceof RunError && error.code === 'RUN_UNREADABLE', String(error))
    assert.equal((error as RunError<'RUN_UNREADABLE'>).facts.record, record)
    assert.equal(await run.cancel({ now: true }), true)
  }
})

test('a function of a schedule that throws fails the step with that', async () => {
  const picky = durable('picky', function* () {
    const retry = Schedule.recurs(3).while(() => {
      throw new RangeError('mine')
    })
    yield* step('picky', () => Promise.reject(new Error('busy')), [], { retry })
  })
  await using fleet = await connect('memory:picky')
  await using work = await runs(fleet, { definitions: [picky] })
  await assert.rejects((await work.start('picky', undefined)).result({ timeoutMs: 20_000 }), /mine/)
})
