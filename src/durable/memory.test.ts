/**
 * Durable runs on the engine in memory, and what is refused.
 *
 * The tests themselves are in runs.test.support.ts.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fork } from '../fiber/index.ts'
import { connect } from '../fleet/index.ts'
import { durable, id, now, pause, random, runs, signal, step } from './index.ts'
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
