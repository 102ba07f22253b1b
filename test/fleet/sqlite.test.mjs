/**
 * Jobs in a file under SIGKILL of the processes that have it: none is lost, and a key has one result.
 *
 * CORESPUN_KILLS and CORESPUN_JOBS are how many; `npm run check:long -- sqlite` kills 200 times.
 */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { connect } from 'corespun/fleet'
import { folderOf, runsHere } from '../../dist/fleet/engine/sqlite/node.test.support.js'

const PROCESS = fileURLToPath(new URL('sqlite/process.mjs', import.meta.url))
const CORESPUN = fileURLToPath(new URL('../../lib/cli/main.js', import.meta.url))
const KILLS = Number(process.env.CORESPUN_KILLS ?? 8)
const JOBS = Number(process.env.CORESPUN_JOBS ?? 400)

if (runsHere(import.meta.url)) {
  const folder = folderOf('sqlite-kills')

  /** A process; resolves when it has the file. */
  async function start(t, ...words) {
    const child = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'inherit'] })
    const ended = once(child, 'close').then(([code, signal]) => code ?? signal)
    t.after(async () => {
      child.kill('SIGKILL')
      await ended
    })
    const lines = createInterface({ input: child.stdout })
    await Promise.race([once(lines, 'line'), ended.then((code) => assert.fail(`it ended with ${code}`))])
    return { child, ended }
  }

  /** What callers have received: every key that was confirmed has a result, and each of them one alone. */
  function check(log, jobs) {
    const results = new Map()
    const confirmed = new Set()
    // The last line of a process that was killed may be a part.
    for (const line of readFileSync(log, 'utf8').split('\n').slice(0, -1)) {
      const [kind, key] = line.split(' ')
      if (kind === '+') confirmed.add(key)
      else if (!results.has(key)) results.set(key, line)
      else assert.equal(line, results.get(key))
    }
    assert.equal(results.size, jobs)
    assert.equal(confirmed.size, jobs)
  }

  test('the one process of a file is killed again and again', { timeout: 3_600_000 }, async (t) => {
    const [file, log] = [join(folder, 'one.db'), join(folder, 'one.log')]
    const words = [PROCESS, file, log, 'host,caller', '0', String(JOBS)]
    for (let kill = 0; kill < KILLS; kill++) {
      const { child, ended } = await start(t, ...words)
      await Promise.race([setTimeout(Math.random() * 150), ended])
      child.kill('SIGKILL')
      await ended
    }
    const { ended } = await start(t, ...words)
    assert.equal(await ended, 0)
    check(log, JOBS)
  })

  test('hosts and callers are killed while others continue', { timeout: 3_600_000 }, async (t) => {
    const [file, log] = [join(folder, 'many.db'), join(folder, 'many.log')]
    const half = String(JOBS >> 1)
    const roles = [['host'], ['host'], ['caller', '0', half], ['caller', half, String(JOBS)]]
    const begin = (role) => start(t, PROCESS, file, log, ...role)
    const running = await Promise.all(roles.map(begin))
    for (let kill = 0; kill < KILLS; kill++) {
      await setTimeout(Math.random() * 300)
      const at = kill % roles.length
      running[at].child.kill('SIGKILL')
      await running[at].ended
      running[at] = await begin(roles[at])
    }
    assert.deepEqual(await Promise.all(running.slice(2).map(({ ended }) => ended)), [0, 0])
    check(log, JOBS)
  })

  test('corespun host runs jobs of a file, and another process has their results', async (t) => {
    const [file, module] = [join(folder, 'host.db'), join(folder, 'double.mjs')]
    writeFileSync(module, 'export const double = (n) => n * 2')
    const fleet = await connect(`sqlite:${file}`)
    t.after(() => fleet.close())
    const jobs = fleet.jobs('double')
    await jobs.submit('before', 'double', [4])
    const host = await start(t, CORESPUN, 'host', module, '--sqlite', file, '--jobs', '2', '--workers', '1')
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
