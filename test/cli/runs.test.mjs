/**
 * `corespun runs` as a process, on a file: what one does with a run that has failed, and with one that waits.
 *
 * Each verb on an engine in memory is in src/cli/runs/runs.test.ts. A few processes take some seconds.
 */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { durable, runs as open, signal, step } from 'corespun/durable'
import { connect } from 'corespun/fleet'
import { folderOf, runsHere } from '../../dist/fleet/engine/sqlite/node.test.support.js'
import { corespun } from './corespun.mjs'

const timeout = 120_000

if (runsHere(import.meta.url)) {
  const cwd = folderOf('corespun-runs')
  const file = join(cwd, 'work.db')

  /** `corespun runs sqlite:work.db ...` */
  const runs = (...words) => corespun(['runs', 'sqlite:work.db', ...words], '', { cwd })

  test('a file that does not exist is named, and not made', { timeout }, async () => {
    const { err, code } = await runs('list', 'bill')
    assert.match(err, /^corespun: sqlite:work\.db: no such file; .* \(corespun runs --help shows how\)\n$/)
    assert.deepEqual([code, existsSync(file)], [2, false])
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
