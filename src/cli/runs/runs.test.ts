/**
 * `corespun runs`: its words, and each verb on an engine in memory.
 *
 * test/cli/jobs.test.mjs has the command as a process, on a file.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../base/wait.test.support.ts'
import { type Runs, durable, runs as open, pause, signal, step } from '../../durable/index.ts'
import { connect } from '../../fleet/index.ts'
import { type Command, areRefused, commandOn, memoryOf, signalsEnd } from '../fleet/engine.test.support.ts'
import { type RunsWords, readRunsArguments } from './runs-arguments.ts'
import { runs } from './runs.ts'

const state = { isBroken: true }
const bill = durable('bill', function* (cents: number) {
  const paid = yield* step('charge', () => {
    if (cents === 13 && state.isBroken) throw new RangeError('no bank')
    return cents
  })
  if (cents === 3) yield* step('mail \u001b[31m\nAnn', () => 'sent')
  if (cents === 3) yield* pause(1e17)
  const isApproved = cents === 1 ? yield* signal<boolean>('approved') : true
  return cents === 2 ? 2n : { paid, isApproved }
})
type Work = Runs<readonly [typeof bill]>

/** Runs, and a way to run the command on them. */
async function withRuns(name: string, body: (run: Command, work: Work) => Promise<void>): Promise<void> {
  const fleet = await connect(`memory:${name}`)
  const work: Work = await open(fleet, { definitions: [bill], leaseMs: 200, release: 'r1' })
  try {
    await body(commandOn(name, readRunsArguments, runs), work)
  } finally {
    await work.close()
    await fleet.close()
  }
}

test('runs are counted, listed and shown, as text and as JSON', () =>
  withRuns('cli runs shown', async (run, work) => {
    await (await work.start('bill', 5, { key: 'five' })).result()
    await (await work.start('bill', 2, { key: 'two' })).result()
    await assert.rejects((await work.start('bill', 13, { key: 'bad' })).result(), RangeError)
    const waiting = await work.start('bill', 1, { key: 'one' })
    await until(async () => (await waiting.state()).awaits.length === 1)
    while (!(await run('--json'))[1].includes('"taken":1')) await new Promise(setImmediate)
    assert.match((await run())[1], /^NAME +WAITING +TAKEN\nbill +0 +1\n$/)
    const [, list] = await run('list', 'bill')
    assert.match(list, /^KEY +STATE +STARTED +ENDED +RELEASE\n/)
    for (const line of [/^five +done +20\S+ +20\S+ +r1$/m, /^bad +failed /m, /^one +running +20\S+ +- +r1$/m])
      assert.match(list, line)
    const [, failed] = await run('list', 'bill', '--state', 'failed', '--json')
    assert.equal(JSON.parse(failed).key, 'bad')
    const [code, out, err] = await run('list', 'bill', '--limit', '2', '--json')
    assert.deepEqual(
      [code, out.trim().split('\n').length, err],
      [0, 2, 'corespun: there are more; --limit is 2\n'],
    )
    assert.match(
      (await run('show', 'bill', 'one'))[1],
      /^bill one: running, .*of release r1.*\nwaits for the signals "approved"\n.*\ncharge#1 +done .*\nsig/,
    )
    assert.match(
      (await run('show', 'bill', 'bad'))[1],
      /ended .*\nerror: .*no bank\nSTEP .*\ncharge#1 +failed .* 1 +- .*no bank\n$/,
    )
    assert.match((await run('show', 'bill', 'five'))[1], /\nvalue: \{ paid: 5, isApproved: true \}\n/)
    const shown = JSON.parse((await run('show', 'bill', 'bad', '--json'))[1])
    assert.deepEqual(
      [shown.status, shown.error.message, shown.steps[0].error.name],
      ['failed', 'no bank', 'RangeError'],
    )
    assert.deepEqual(JSON.parse((await run('show', 'bill', 'five', '--json'))[1]).value.paid, 5)
    assert.equal(JSON.parse((await run('show', 'bill', 'two', '--json'))[1]).value, '2n')
    assert.deepEqual(await run('show', 'bill', 'x'), [
      1,
      '',
      'corespun: the run "x" of "bill" does not exist; check its key, or start it\n',
    ])
    const none = 'corespun: no run of "other" was ever started here\n'
    assert.deepEqual(await run('list', 'other'), [1, '', none])
  }))

test('a name that terminals obey is a line, and a pause behind all dates has the last one', () =>
  withRuns('cli runs strange', async (run, work) => {
    const strange = await work.start('bill', 3, { key: 'strange' })
    await until(async () => (await strange.state()).steps.length === 3)
    const [code, out] = await run('show', 'bill', 'strange')
    assert.deepEqual([code, out.includes('\u001b')], [0, false])
    assert.match(out, /\nmail \S+ Ann#1 +done .*\npause\(\)#1 +waiting .* \+275760-09-13T00:00:00\S+ +-\n$/)
  }))

test('runs are signalled, run again, copied, cancelled and forgotten', () =>
  withRuns('cli runs changed', async (run, work) => {
    const one = await work.start('bill', 1, { key: 'one' })
    const kept = 'the signal "approved" is kept for "one"\n'
    assert.deepEqual(await run('signal', 'bill', 'one', 'approved', 'false'), [0, kept, ''])
    assert.deepEqual(await one.result(), { paid: 1, isApproved: false })
    const [ended, , problem] = await run('signal', 'bill', 'one', 'approved')
    assert.deepEqual([ended, /has ended \(done\)/.test(problem)], [1, true])
    assert.deepEqual(await run('fork', 'bill', 'one', '--from', 'signal(approved)', '--as', 'copy'), [
      0,
      'copy\n',
      '',
    ])
    assert.deepEqual(await work.get('bill', 'copy').result(), { paid: 1, isApproved: false })
    const [, key] = await run('fork', 'bill', 'one', '--from', 'charge#1')
    assert.deepEqual(await run('cancel', 'bill', key.trim(), 'one', '--now'), [
      1,
      '1 run cancelled\n',
      'corespun: "one" is not a run of "bill" that can be cancelled\n',
    ])
    await assert.rejects((await work.start('bill', 13, { key: 'bad' })).result(), RangeError)
    state.isBroken = false
    const [code, out, err] = await run('retry', 'bill', 'bad', 'one', '--from', 'charge')
    assert.deepEqual([code, out], [1, '1 run run anew\n'])
    assert.match(err, /^corespun: the run "one" of "bill" cannot be run again so: it is done/)
    assert.deepEqual(await work.get('bill', 'bad').result(), { paid: 13, isApproved: true })
    assert.deepEqual(await run('forget', 'bill', 'bad', 'one'), [0, '2 runs forgotten\n', ''])
    assert.equal((await run('retry', 'bill', 'one'))[0], 1)
  }))

test('a signal ends a list', () =>
  withRuns('cli runs ended', async (_, work) => {
    await (await work.start('bill', 5, { key: 'five' })).result()
    const connection = memoryOf('cli runs ended')
    const of = { verb: 'list', name: 'bill', itemsMax: 5, state: undefined } as const
    await signalsEnd({ connection, json: false, ...of }, runs)
  }))

test('words are read, and wrong ones are named', () => {
  assert.equal(readRunsArguments(['--help']), 'help')
  const { connection, ...words } = readRunsArguments([
    ...['nats://a', 'signal', 'bill', 'k', 'approved', '{"by":"Ann"}'],
  ]) as RunsWords & { connection: unknown }
  assert.equal(connection.servers, 'nats://a')
  const of = { json: false, verb: 'signal', name: 'bill', key: 'k', signal: 'approved', value: { by: 'Ann' } }
  assert.deepEqual(words, of)
  areRefused(readRunsArguments, [
    ['', /name the engine/],
    ['memory:x list z', /the engine is sqlite:…/],
    ['sqlite:a drop z', /takes list, show, .* not "drop"/],
    ['sqlite:a list', /name the definition of durable\(\): corespun runs sqlite:a list <name>/],
    ['sqlite:a list z --state odd', /--state is one of running, .*, not "odd"/],
    ['sqlite:a list z more', /list takes a name; unexpected "more"/],
    ['sqlite:a show z', /name the key of the run/],
    ['sqlite:a show z a b', /show takes one key; unexpected "b"/],
    ['sqlite:a signal z a', /name the signal/],
    ['sqlite:a signal z a s 1 2', /signal takes a name and a value; unexpected "2"/],
    ['sqlite:a signal z a s {', /the value of a signal is JSON, .* not "{": /],
    ['sqlite:a fork z a', /fork needs --from/],
    ['sqlite:a cancel z a --nwo', /did you mean --now/],
  ])
})
