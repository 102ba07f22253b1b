/**
 * `npm run example:fleet -- --fault …`, small: partitions, full disks and wrong clocks.
 *
 * Needs CORESPUN_NATS_SERVER, which `npm test -- fleet` sets; partitions and disks need namespaces of
 * networks and mounts (test/fleet/example/apart.mjs).
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { SKIP } from '../../dist/fleet/engine/nats/server.test.support.js'
import { whyNotApart } from './example/apart.mjs'
import { showFleet } from './example/main.mjs'

const MODULE = new URL('./example/main.mjs', import.meta.url).href
/** Longer than that of the suite: servers are cut off for longer than their elections. */
const timeout = 600_000
const skipApart = SKIP || ((await whyNotApart()) ?? false)

/** What it prints; nothing is lost, and no key has two results. */
async function shown(t, ...words) {
  const lines = []
  t.mock.method(console, 'log', (line) => lines.push(line))
  const code = await showFleet(words)
  t.mock.restoreAll()
  const text = lines.join('\n')
  assert.equal(code, 0, text)
  const [, verb, accepted, lost, two, again] =
    /^(.*); accepted (\d+), lost (\d+), two results (\d+), run twice (\d+), longest gap [\d.]+ s$/.exec(
      lines.at(-1),
    )
  assert.deepEqual([accepted, lost, two], [words[1], '0', '0'])
  return { verb, again: Number(again), text }
}

test('jobs survive partitions of the leader and of a host', { skip: skipApart, timeout }, async (t) => {
  const { verb, again } = await shown(t, '--jobs', '300', '--fault', 'partition', '--kills', '3')
  assert.equal(verb, 'cut off 2 servers and 1 hosts')
  assert.ok(again > 0, 'a job of the host that was cut off ran elsewhere too')
})

test('jobs survive full disks of one server and of all', { skip: skipApart, timeout }, async (t) => {
  const { verb, text } = await shown(t, '--jobs', '100', '--fault', 'disk', '--kills', '2')
  assert.equal(verb, 'filled the disks of 2 servers and 0 hosts')
  assert.match(text, /submit: FLEET_TIMEOUT: /)
})

test('clocks that are a minute wrong change nothing', { skip: SKIP }, async (t) => {
  const { again, text } = await shown(t, '--jobs', '60', '--fault', 'skew', '--kills', '0')
  assert.equal(again, 0)
  assert.match(text, /deadlines, delays, schedules, locks and ages are right/)
})

for (const signal of ['SIGTERM', 'SIGKILL'])
  test(`a run that is ended by ${signal} leaves nothing`, { skip: skipApart }, async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'corespun-ended-'))
    t.after(() => rmSync(folder, { recursive: true, force: true }))
    const code = `import(${JSON.stringify(MODULE)}).then((main) => main.showFleet(process.argv.slice(1)))`
    const words = ['-e', code, '--', '--fault', 'partition']
    // Hosts that are killed leave their control sockets, which whoever looks next removes: test/cli/observe.
    const env = { ...process.env, TMPDIR: folder, CORESPUN_OBSERVE: 'off' }
    const child = spawn(process.execPath, words, { env, stdio: ['ignore', 'pipe', 'inherit'] })
    const ended = once(child, 'close')
    for await (const line of createInterface({ input: child.stdout }))
      if (line.startsWith('three servers')) break
    assert.notEqual(processesWith(folder).length, 0)
    child.kill(signal)
    await ended
    while (processesWith(folder).length > 0) await setTimeout(10)
    // An empty folder may stay, which nobody is left to remove.
    assert.deepEqual(readdirSync(folder, { recursive: true }).slice(signal === 'SIGKILL' ? 1 : 0), [])
  })

/** Processes whose environment has a text. */
function processesWith(text) {
  return readdirSync('/proc').filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/environ`, 'utf8').includes(text)
    } catch {
      return false // it has ended
    }
  })
}
