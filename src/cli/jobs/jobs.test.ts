/**
 * `corespun jobs`: its words, and each verb on an engine in memory.
 *
 * Engines of a file and of servers are in src/fleet/sqlite-jobs.test.ts and keeps.test.support.ts.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { durable, runs, step } from '../../durable/index.ts'
import { connect, host } from '../../fleet/index.ts'
import { zone } from '../../zone/index.ts'
import { type Command, areRefused, commandOn, memoryOf, signalsEnd } from '../fleet/engine.test.support.ts'
import type { CommandContext } from '../run/run.ts'
import { type JobsWords, readJobsArguments } from './jobs-arguments.ts'
import { jobs } from './jobs.ts'

const HALF = 'export function half(n) { if (n & 1) throw new Error(`${n} is odd`); return n / 2 }'
const MODULE = new URL(`data:text/javascript,${HALF}`)
type Module = { half(n: number): number }

/** A zone with a dead job and one that is done beside a queue of runs, and a way to run the command on it. */
async function with3(name: string, work: (run: Command) => Promise<void>): Promise<void> {
  const far = await connect(`memory:${name}`)
  const cpu = zone.create(name, { workers: 1 })
  await host(far, { name: 'halves', module: MODULE, version: 'v1', zone: cpu, jobsMax: 1 })
  const all = far.jobs<Module>('halves')
  for (const n of [1, 2]) {
    await all.submit(`n-${n}`, 'half', [n], { retry: { attemptsMax: 1 } })
    await all.result(`n-${n}`).catch(() => {})
  }
  await all.submit('later', 'half', [4], { delayMs: 3_600_000 })
  const trip = durable('trip', (days: number) => step('book', () => days))
  const trips = await runs(far, { definitions: [trip] })
  await (await trips.start('trip', 3)).result()
  try {
    await work(commandOn(name, readJobsArguments, jobs))
  } finally {
    await trips.close()
    await far.close()
    await cpu.close()
  }
}

test('jobs are counted, listed and shown, as text and as JSON', () =>
  with3('cli jobs shown', async (run) => {
    const counts = { waiting: 1, running: 0, scheduled: 0, dead: 1, ended: 1 }
    let zones: readonly [number, string, string]
    // An item is removed behind the end of its job.
    while (!(zones = await run('--json'))[1].includes('"waiting":1')) await setImmediate()
    assert.deepEqual(JSON.parse(zones[1]), { zone: 'halves', isPaused: false, ...counts })
    assert.match((await run())[1], /^ZONE +STATE +WAITING .*\nhalves +- +1 +0 +0 +1 +1\n$/)
    assert.match(
      (await run('list', 'halves'))[1],
      /^KEY .*\nlater +waiting +half +0 +\d{4}-.*\nn-1 +dead +half +1 +- +1 is odd\nn-2 +done +- +0 +- +-\n$/,
    )
    assert.match((await run('dead', 'halves'))[1], /\nn-1 +dead +half +1 +- +1 is odd\n$/)
    const [code, out, err] = await run('list', 'halves', '--limit', '1', '--json')
    assert.deepEqual(
      [code, JSON.parse(out).key, err],
      [0, 'later', 'corespun: there are more; --limit is 1\n'],
    )
    const [, dead] = await run('dead', 'halves', '--json')
    assert.deepEqual(JSON.parse(dead).errors, [{ name: 'Error', message: '1 is odd' }])
    const [, shown] = await run('show', 'halves', 'n-1')
    assert.match(shown, /status: 'dead'/)
    assert.doesNotMatch(shown, /undefined/)
    assert.equal(JSON.parse((await run('show', 'halves', 'n-2', '--json'))[1]).status, 'done')
    const missing = 'corespun: the zone "halves" has no job "x"\n'
    assert.deepEqual(await run('show', 'halves', 'x'), [1, '', missing])
  }))

test('dead jobs run anew, and those that ended are forgotten: by key and all of them', () =>
  with3('cli jobs changed', async (run) => {
    const untilDead = async (): Promise<void> => {
      while (!(await run('dead', 'halves'))[1].includes('n-1')) await setImmediate()
    }
    assert.deepEqual(await run('retry', 'halves', 'n-1'), [0, '1 job run anew\n', ''])
    await untilDead()
    const problem = 'corespun: "n-2" is not a dead job of the zone "halves"\n'
    assert.deepEqual(await run('retry', 'halves', 'n-2'), [1, '0 jobs run anew\n', problem])
    assert.deepEqual(await run('retry', 'halves', '--all'), [0, '1 job run anew\n', ''])
    await untilDead()
    const [code, , err] = await run('forget', 'halves', 'n-2', 'later')
    assert.deepEqual([code, err], [1, 'corespun: "later" is not a job of the zone "halves" that has ended\n'])
    assert.deepEqual(await run('forget', 'halves', '--state', 'dead'), [0, '1 job forgotten\n', ''])
    assert.deepEqual((await run('list', 'halves', '--state', 'done'))[1].split('\n').length, 2)
  }))

test('jobs that wait are cancelled: by key and all of them', () =>
  with3('cli jobs cancelled', async (run) => {
    const problem = 'corespun: "n-2" is not a job of the zone "halves" that waits or runs\n'
    assert.deepEqual(await run('cancel', 'halves', 'n-2'), [1, '0 jobs cancelled\n', problem])
    assert.deepEqual(await run('cancel', 'halves', '--state', 'waiting'), [0, '1 job cancelled\n', ''])
    assert.equal(JSON.parse((await run('show', 'halves', 'later', '--json'))[1]).status, 'cancelled')
  }))

test('a zone is paused and resumed', () =>
  with3('cli jobs paused', async (run) => {
    assert.deepEqual(await run('pause', 'halves'), [0, 'the zone "halves" is paused\n', ''])
    assert.deepEqual(await run('pause', 'halves'), [0, 'the zone "halves" is paused already\n', ''])
    assert.match((await run())[1], /\nhalves +paused /)
    assert.deepEqual(await run('resume', 'halves'), [0, 'the zone "halves" is not paused\n', ''])
  }))

test('a zone without a queue is named, and none is made', () =>
  with3('cli jobs missing', async (run) => {
    const none = 'corespun: the zone "trip" has no queue of jobs here\n'
    for (const verb of ['list', 'dead', 'pause']) assert.deepEqual(await run(verb, 'trip'), [1, '', none])
    assert.doesNotMatch((await run())[1], /trip/)
  }))

/** A queue, for as long as it is open. */
async function queueIn({ servers }: { readonly servers: string }) {
  const fleet = await connect(servers)
  await fleet.jobs('z').counts()
  return fleet
}

test('a signal ends a list', async () => {
  const connection = memoryOf('cli jobs ended')
  await using _queue = await queueIn(connection)
  const words = { connection, json: false, verb: 'list', zone: 'z', itemsMax: 5, state: undefined } as const
  await signalsEnd(words, jobs)
})

test('an error without a signal is that of the command', async () => {
  const connection = memoryOf('cli jobs refused')
  await using _queue = await queueIn(connection)
  const context = { onSignal: () => () => {} } as unknown as CommandContext
  const words = { connection, json: false, verb: 'show', zone: 'z', key: 'x'.repeat(201) } as const
  await assert.rejects(jobs(words, context), { code: 'FLEET_ARGUMENT' })
  const missing = { servers: 'sqlite:/no/such.db', options: {} }
  const problem = { code: 'CLI_USAGE', message: /sqlite:\/no\/such.db: no such file/ }
  await assert.rejects(jobs({ ...words, connection: missing }, context), problem)
})

test('words are read, and wrong ones are named', () => {
  assert.equal(readJobsArguments(['--help']), 'help')
  const { connection, ...words } = readJobsArguments([
    'nats://a',
    'list',
    'z',
    '--state',
    'running',
  ]) as Record<string, unknown>
  assert.equal((connection as { servers: string }).servers, 'nats://a')
  assert.deepEqual(words, { json: false, zone: 'z', verb: 'list', itemsMax: 100, state: 'running' })
  const { connection: database } = readJobsArguments(['postgresql://u@h/d', '--schema', 's']) as JobsWords
  assert.deepEqual(database, { servers: 'postgresql://u@h/d', options: { tls: undefined, schema: 's' } })
  areRefused(readJobsArguments, [
    ['', /name the engine/],
    ['memory:x list z', /the engine is sqlite:…, postgres:\/\/…, nats:\/\/… or tls:\/\/…, not "memory:x"/],
    ['sqlite:', /--sqlite needs a value/],
    ['postgres://u:hunter2@h/d --creds x', /--postgres and --creds exclude each other/],
    ['postgres://h/d --schema=', /--schema needs a value/],
    ['postgres://h/d --cert x', /--cert needs --key/],
    ['nats://h --schema x', /--schema is one of Postgres/],
    ['sqlite:a --creds x', /--sqlite and --creds exclude each other/],
    ['sqlite:a drop z', /takes list, dead, .* not "drop"/],
    ['sqlite:a list', /name the zone: corespun jobs sqlite:a list <zone>/],
    ['sqlite:a list z --state odd', /--state is one of waiting, .*, not "odd"/],
    ['sqlite:a list z --limit 0', /--limit takes a whole number/],
    ['sqlite:a list z more', /list takes a zone; unexpected "more"/],
    ['sqlite:a show z', /name the key/],
    ['sqlite:a show z a b', /takes one key; unexpected "b"/],
    ['sqlite:a retry z', /retry takes keys, or --all/],
    ['sqlite:a retry z a --all', /retry takes keys, or --all/],
    ['sqlite:a forget z', /forget takes keys, or --state/],
    ['sqlite:a cancel z', /cancel takes keys, or --state waiting/],
    ['sqlite:a cancel z --state done', /--state is one of waiting, running, scheduled/],
    ['sqlite:a forget z --state waiting', /--state is one of done, dead, cancelled/],
    ['sqlite:a pause z --stat x', /did you mean --state/],
  ])
})
