/**
 * Durable runs in a file, also under SIGKILL of the processes that have them.
 *
 * The other tests are in runs.test.support.ts. CORESPUN_KILLS is how often processes are killed.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as rest } from 'node:timers/promises'
import { connect } from '../fleet/index.ts'
import { folderOf, runsHere } from '../fleet/engine/sqlite/node.test.support.ts'
import { runs } from './index.ts'
import { PROCESS, STEPS, definition } from './process.test.support.ts'
import { checkRows } from './rows.test.support.ts'
import { runTests } from './runs.test.support.ts'

const KILLS = Number(process.env['CORESPUN_KILLS'] ?? 6)
const RUNS = 4 * KILLS

if (runsHere(import.meta.url)) {
  const folder = folderOf('durable')
  runTests('sqlite', (name) => connect(`sqlite:${join(folder, `${name}.db`)}`))

  test('sqlite: SQL reads runs and their steps', async () => {
    const file = join(folder, 'rows.db')
    const fleet = await connect(`sqlite:${file}`)
    const db = new (process.getBuiltinModule('node:sqlite').DatabaseSync)(file)
    try {
      await checkRows(fleet, 0, (sql) => db.prepare(sql).all())
    } finally {
      db.close()
      await fleet.close()
    }
  })

  test('sqlite: processes are killed, and no step behind which a run has continued runs again', async (t) => {
    const [file, log] = [join(folder, 'killed.db'), join(folder, 'killed.log')]
    const begin = async () => {
      const child = spawn(process.execPath, [PROCESS, file, log], { stdio: ['ignore', 'pipe', 'inherit'] })
      const ended = once(child, 'close')
      t.after(async () => {
        child.kill('SIGKILL')
        await ended
      })
      await Promise.race([once(child.stdout, 'data'), ended.then(() => assert.fail('it has ended'))])
      return { child, ended }
    }
    const running = await Promise.all([begin(), begin()])
    const fleet = await connect(`sqlite:${file}`)
    t.after(() => fleet.close())
    const work = await runs(fleet, { definitions: [definition(() => {})], runsMax: 0, leaseMs: 300 })
    const keys = Array.from({ length: RUNS }, (_, index) => `run${index}`)
    const results = keys.map(async (key) => (await work.start('work', key, { key })).result())
    for (let kill = 0; kill < KILLS; kill++) {
      await rest(Math.random() * 150)
      const { child, ended } = running[kill % 2]
      child.kill('SIGKILL')
      await ended
      running[kill % 2] = await begin()
    }
    assert.deepEqual(
      await Promise.all(results),
      keys.map((key) => `${key} has ended`),
    )
    const recorded = new Set<string>()
    // The last line of a process that was killed may be a part.
    for (const line of readFileSync(log, 'utf8').split('\n')) {
      const what = line.slice(2)
      if (line.startsWith('=')) recorded.add(what)
      else if (line.startsWith('+')) assert.ok(!recorded.has(what), `${what} has run again`)
    }
    assert.ok(recorded.size >= RUNS * STEPS)
    for (const key of keys) {
      const { steps } = await work.get('work', key).state()
      assert.equal(new Set(steps.map(({ path, name }) => path + name)).size, STEPS + 1)
    }
    await work.close()
  })
}
