/**
 * `corespun jobs` and `corespun runs` as processes, on a file: what one does with a job that is dead, with a
 * paused zone, with a run that has failed, and with one that waits.
 *
 * Each verb on an engine in memory is in src/cli/jobs and src/cli/runs. Twenty processes take some seconds.
 */
import assert from 'node:assert/strict'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { durable, runs as open, signal, step } from 'corespun/durable'
import { connect } from 'corespun/fleet'
import { folderOf, runsHere } from '../../dist/fleet/engine/sqlite/node.test.support.js'
import { corespun, start, until } from './corespun.mjs'

const MODULE = `
import { existsSync } from 'node:fs'
export const send = (n) => {
  if (!existsSync('mended')) throw new RangeError('no server for ' + n)
  return 'sent ' + n
}
`
const timeout = 120_000

if (runsHere(import.meta.url)) {
  const cwd = folderOf('corespun-jobs')
  writeFileSync(join(cwd, 'mails.mjs'), MODULE)
  const file = join(cwd, 'work.db')

  /** `corespun jobs sqlite:work.db ...` */
  async function jobs(...words) {
    const { out, err, code } = await corespun(['jobs', 'sqlite:work.db', ...words], '', { cwd })
    return {
      out,
      err,
      code,
      all: () =>
        out
          .trimEnd()
          .split('\n')
          .map((line) => JSON.parse(line)),
    }
  }

  /** `corespun runs sqlite:work.db ...` */
  const runs = (...words) => corespun(['runs', 'sqlite:work.db', ...words], '', { cwd })

  test('a file that does not exist is named, and not made', { timeout }, async () => {
    for (const [command, name] of [
      [jobs, 'jobs'],
      [runs, 'runs'],
    ]) {
      const { err, code } = await command('list', 'x')
      const expected = `corespun: sqlite:work.db: no such file; .* \\(corespun ${name} --help shows how\\)\n$`
      assert.match(err, new RegExp(`^${expected}`))
      assert.deepEqual([code, existsSync(file)], [2, false])
    }
  })

  test('a dead job is listed, shown and run anew; a paused zone begins none', { timeout }, async (t) => {
    const fleet = await connect(`sqlite:${file}`)
    t.after(() => fleet.close())
    const mails = fleet.jobs('mails')
    const host = start(['host', 'mails.mjs', '--sqlite', 'work.db', '--jobs', '2', '-w', '1'], { cwd })
    t.after(() => host.child.kill('SIGKILL'))
    await until(host.child.stdout, () => host.out.startsWith('hosting mails '))
    for (const n of [1, 2]) {
      await mails.submit(`mail-${n}`, 'send', [n], { retry: { attemptsMax: 1 } })
      await assert.rejects(mails.result(`mail-${n}`), { code: 'JOB_DEAD' })
    }

    const dead = await jobs('dead', 'mails', '--json')
    assert.deepEqual(
      dead.all().map(({ key, status, name, errors }) => [key, status, name, errors[0].message]),
      [1, 2].map((n) => [`mail-${n}`, 'dead', 'send', `no server for ${n}`]),
    )
    assert.match((await jobs('show', 'mails', 'mail-1')).out, /status: 'dead'[^]*RangeError: no server for 1/)
    const missing = await jobs('show', 'mails', 'mail-3')
    assert.deepEqual([missing.code, missing.err], [1, 'corespun: the zone "mails" has no job "mail-3"\n'])

    writeFileSync(join(cwd, 'mended'), '')
    assert.equal((await jobs('pause', 'mails')).out, 'the zone "mails" is paused\n')
    assert.equal((await jobs('retry', 'mails', 'mail-1')).out, '1 job run anew\n')
    const [counts] = (await jobs('--json')).all()
    assert.deepEqual([counts.zone, counts.isPaused, counts.waiting, counts.dead], ['mails', true, 1, 1])
    assert.deepEqual(
      (await jobs('list', 'mails', '--state', 'waiting', '--json')).all().map(({ key }) => key),
      ['mail-1'],
    )
    assert.equal((await jobs('resume', 'mails')).out, 'the zone "mails" is not paused\n')
    assert.equal(await mails.result('mail-1'), 'sent 1')

    const both = await jobs('retry', 'mails', 'mail-1', 'mail-2')
    const problem = 'corespun: "mail-1" is not a dead job of the zone "mails"\n'
    assert.deepEqual([both.code, both.out, both.err], [1, '1 job run anew\n', problem])
    assert.equal(await mails.result('mail-2'), 'sent 2')
    assert.equal((await jobs('forget', 'mails', '--state', 'done')).out, '2 jobs forgotten\n')
    assert.match((await jobs()).out, /^ZONE .*\nmails +- +0 +0 +0 +0 +0\n$/)
    host.child.kill('SIGTERM')
    assert.equal((await host.ended).code, 0)
  })

  test('servers that nobody reaches are named', { timeout }, async () => {
    const { err, code } = await corespun(['jobs', 'nats://127.0.0.1:1', 'list', 'mails'])
    assert.match(err, /^corespun: cannot connect to nats:\/\/127\.0\.0\.1:1: /)
    assert.equal(code, 2)
  })

  test('a run is shown, signalled and run again from the command line', { timeout }, async (t) => {
    let isBroken = true
    const bill = durable('bill', function* (cents) {
      const letter = yield* signal('letter')
      yield* step('charge', () => {
        if (isBroken) throw new RangeError('no bank')
      })
      return { cents, letter }
    })
    const fleet = await connect(`sqlite:${file}`)
    t.after(() => fleet.close())
    const work = await open(fleet, { definitions: [bill] })
    t.after(() => work.close())
    const run = await work.start('bill', 250, { key: 'bill-1' })
    const sent = await runs('signal', 'bill', 'bill-1', 'letter', '{"by":"Ann"}')
    assert.deepEqual([sent.code, sent.out], [0, 'the signal "letter" is kept for "bill-1"\n'])
    await assert.rejects(run.result(), /no bank/)
    const { status, error } = JSON.parse((await runs('show', 'bill', 'bill-1', '--json')).out)
    assert.deepEqual([status, error.message], ['failed', 'no bank'])
    isBroken = false
    assert.equal((await runs('retry', 'bill', 'bill-1')).out, '1 run run anew\n')
    assert.deepEqual(await run.result(), { cents: 250, letter: { by: 'Ann' } })
    assert.match((await runs('list', 'bill', '--state', 'done')).out, /\nbill-1 +done /)
    assert.match((await runs('--help')).out, /^corespun runs: /)
  })
}
