/**
 * The short form of the stress test: workers die by the dozen while four threads submit.
 *
 * What it checks, of the program's one line: nothing crashed or hung, every promise settled in an allowed way
 * and with its own value, every task that counts its runs ran once, no thread and no file descriptor is left,
 * memory does not grow once it has warmed up.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { share } from '../../dist/base/part.test.support.js'
import { faultsOf } from './judge.mjs'

const KILLS = Number(process.env.CORESPUN_KILLS ?? share(60))
const PROGRAM = fileURLToPath(new URL('./kills.mjs', import.meta.url))

/** Run the program, for `kills` seconds more than a minute at most: one that takes longer hangs. */
async function run(kills, seed, fault = '') {
  const child = spawn(process.execPath, ['--expose-gc', PROGRAM, String(kills), String(seed)], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, CORESPUN_FAULT: fault },
  })
  let [out, err] = ['', '']
  child.stdout.on('data', (chunk) => (out += chunk))
  child.stderr.on('data', (chunk) => (err += chunk))
  const late = setTimeout(
    () => {
      err += 'it took too long and was ended'
      child.kill('SIGKILL')
    },
    (90 + kills) * 1000,
  )
  const [code, signal] = await new Promise((resolve) => child.once('close', (...how) => resolve(how)))
  clearTimeout(late)
  return { code, signal, out, err }
}

test(`${KILLS} workers die with tasks in flight: no crash, hang, leak or double end`, async (context) => {
  if (!existsSync('/proc/self/task')) return context.skip('this system has no /proc')
  const seed = process.env.CORESPUN_SEED ?? String(Date.now() % 1_000_000)
  context.diagnostic(`seed ${seed}: node test/stress/kills.mjs ${KILLS} ${seed}`)
  const { code, signal, out, err } = await run(KILLS, seed)
  assert.deepEqual([code, signal], [0, null], `seed ${seed}\n${out}${err}`)
  const result = JSON.parse(out)
  assert.deepEqual(faultsOf(result, KILLS, { memory: true }), [], `seed ${seed} ${out}${err}`)
  context.diagnostic(`${result.made} calls: ${JSON.stringify(result.ends)}; rss ${result.rss.join(' ')} MB`)
})

test('each fault of a run is reported', () => {
  const good = { died: 3, wrong: [], left: { threads: 0, fds: 0 }, rss: [90, 100, 100, 150, 159, 170] }
  assert.deepEqual(faultsOf(good, 3, { memory: true }), [])
  const bad = { died: 2, wrong: ['LOST'], left: { threads: 1, fds: 0 }, rss: [90, 100, 100, 161, 160, 170] }
  const faults = ['LOST', '2 workers died, not 3', '1 threads left', 'memory grew from 100 to 160 MB']
  assert.deepEqual(faultsOf(bad, 3, { memory: true }), faults)
  assert.deepEqual(faultsOf(bad, 3, { memory: false }), faults.slice(0, -1))
})

for (const [fault, expected] of [
  ['lost', 'LOST'],
  ['twice', 'RAN_WRONG'],
  ['value', 'WRONG_VALUE'],
]) {
  test(`planted: ${fault} is found`, async (context) => {
    if (!existsSync('/proc/self/task')) return context.skip('this system has no /proc')
    const { code, out, err } = await run(1, 7, fault)
    assert.equal(code, 0, err)
    assert.ok(JSON.parse(out).wrong.includes(expected), out)
  })
}
