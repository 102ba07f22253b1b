/**
 * Jobs in a file: under SIGKILL of the processes that have it (kills/kills.mjs), and by the command line.
 *
 * `npm run check:long -- sqlite` kills 200 times.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { connect } from 'corespun/fleet'
import { folderOf, runsHere } from '../../dist/fleet/engine/sqlite/node.test.support.js'
import { start, timeout, underKills } from './kills/kills.mjs'

const CORESPUN = fileURLToPath(new URL('../../lib/cli/main.js', import.meta.url))
const SMALL = { kills: 8, jobs: 400 }

if (runsHere(import.meta.url)) {
  const folder = folderOf('sqlite-kills')
  const fileOf = (name) => ({ address: `sqlite:${join(folder, name)}.db`, log: join(folder, `${name}.log`) })

  test('the one process of a file is killed again and again', { timeout }, (t) =>
    underKills(t, { ...fileOf('one'), isOne: true }, SMALL),
  )

  test('hosts and callers are killed while others continue', { timeout }, (t) =>
    underKills(t, fileOf('many'), SMALL),
  )

  test('corespun host runs jobs of a file, and another process has their results', async (t) => {
    const [file, module] = [join(folder, 'host.db'), join(folder, 'double.mjs')]
    writeFileSync(module, 'export const double = (n) => n * 2')
    const fleet = await connect(`sqlite:${file}`)
    t.after(() => fleet.close())
    const jobs = fleet.jobs('double')
    await jobs.submit('before', 'double', [4])
    const words = ['--sqlite', `sqlite:${file}`, '--jobs', '2', '--workers', '1']
    const host = await start(t, [CORESPUN, 'host', module, ...words])
    assert.equal(await jobs.result('before'), 8)
    await jobs.submit('behind', 'double', [5])
    assert.equal(await jobs.result('behind'), 10)
    host.child.kill('SIGTERM')
    assert.equal(await host.ended, 0)
    assert.ok(existsSync(file))
  })

  test('words of corespun host that do not go together are refused', () => {
    for (const [words, expected] of [
      [['m.mjs', '--sqlite', 'a.db'], /takes jobs alone: --jobs 4/],
      [['m.mjs', '--sqlite', 'a.db', '--jobs', '1', '--nats', 'nats://x'], /--sqlite and --nats exclude/],
      [['m.mjs', '--sqlite', ''], /--sqlite needs a value/],
      [['m.mjs'], /name a file, --sqlite work\.db, a database, .*, or servers/],
    ]) {
      const { status, stderr } = spawnSync(process.execPath, [CORESPUN, 'host', ...words], {
        encoding: 'utf8',
      })
      assert.equal(status, 2)
      assert.match(stderr, expected)
    }
  })
}
