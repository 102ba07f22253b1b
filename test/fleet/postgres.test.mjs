/**
 * Jobs in Postgres by the command line: a host that waits for its server, hosts that are killed, and lists of
 * what is left.
 *
 * Without a server these are skipped.
 */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { connect } from 'corespun/fleet'
import { program as CORESPUN } from '../cli/corespun.mjs'
import { SKIP, startServer } from '../../dist/fleet/engine/postgres/server.test.support.js'

const JOBS = 60

test('hosts of a database are killed, and each key has one result', { skip: SKIP }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'postgres-host-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const module = join(folder, 'double.mjs')
  writeFileSync(module, 'export const double = (n) => n * 2')
  const server = await startServer()
  t.after(() => server[Symbol.asyncDispose]())
  const fleet = await connect(server.url(), { schema: 'shop' })
  t.after(() => fleet.close())
  /** @param {(why: string) => unknown} [waits] Called with what a host writes that waits for the server. */
  const begin = async (waits) => {
    const words = ['host', module, '--postgres', server.url(), '--schema', 'shop', '--jobs', '2']
    const more = ['--workers', '1', '--lease', '1s']
    const child = spawn(process.execPath, [CORESPUN, ...words, ...more], {
      stdio: ['ignore', 'pipe', waits === undefined ? 'inherit' : 'pipe'],
    })
    if (waits !== undefined)
      void once(createInterface({ input: child.stderr }), 'line').then(([why]) => waits(why))
    const ended = once(child, 'close').then(([code, signal]) => code ?? signal)
    t.after(() => child.kill('SIGKILL'))
    await Promise.race([
      once(createInterface({ input: child.stdout }), 'line'),
      ended.then((code) => assert.fail(`it ended with ${code}`)),
    ])
    return { child, ended }
  }
  const jobs = fleet.jobs('double')
  const keys = Array.from({ length: JOBS }, (_, index) => `job-${index}`)
  await jobs.submitMany(keys.map((key, index) => ({ key, name: 'double', args: [index] })))
  await server.kill()
  const first = await begin((why) => {
    assert.match(why, /^corespun: cannot connect to .*; waiting for it$/)
    return server.start()
  })
  await Promise.race(keys.map((key) => jobs.result(key)))
  first.child.kill('SIGKILL')
  const second = await begin()
  const results = await Promise.all(keys.map((key) => jobs.result(key)))
  assert.deepEqual(
    results,
    keys.map((_, index) => 2 * index),
  )
  second.child.kill('SIGTERM')
  assert.equal(await second.ended, 0)

  const run = (...words) => spawnSync(process.execPath, [CORESPUN, ...words], { encoding: 'utf8' })
  const zones = run('jobs', server.url(), '--schema', 'shop', '--json')
  assert.equal(zones.status, 0, zones.stderr)
  const counts = { waiting: 0, running: 0, scheduled: 0, dead: 0, ended: JOBS }
  assert.deepEqual(JSON.parse(zones.stdout), { zone: 'double', isPaused: false, ...counts })
  const alone = run('host', module, '--postgres', server.url())
  assert.equal(alone.status, 2)
  assert.match(alone.stderr, /with --postgres a host takes jobs alone/)
})
