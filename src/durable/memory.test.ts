/**
 * Durable runs on the engine in memory, and what is refused.
 *
 * The tests themselves are in runs.test.support.ts.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fork } from '../fiber/index.ts'
import { connect } from '../fleet/index.ts'
import type { Engine } from '../fleet/internal.ts'
import { durable, id, now, pause, random, runs, signal, step } from './index.ts'
import { journalName } from './records.ts'
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

test('each step costs one write, also the thousandth', async () => {
  await using fleet = await connect('memory:many steps')
  const operations: string[] = []
  const { engine: of } = fleet
  const engine: Engine = {
    ...{ scheme: of.scheme, messages: of.messages, clock: of.clock, ended: of.ended },
    messageBytesMax: of.messageBytesMax,
    queue: (name) => of.queue(name),
    objects: (name, options) => of.objects(name, options),
    queues: () => of.queues(),
    valuesIn: (name) => of.valuesIn(name),
    close: () => of.close(),
    keyValue: async (name, options) => {
      const values = await of.keyValue(name, options)
      if (name !== journalName('many')) return values
      return {
        get: (key) => (operations.push('get'), values.get(key)),
        put: (key, bytes, how) => (operations.push('put'), values.put(key, bytes, how)),
        delete: (key, revision) => values.delete(key, revision),
        page: (paging) => values.page(paging),
        last: () => values.last(),
        watch: (on, how) => values.watch(on, how),
      }
    },
  }
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
