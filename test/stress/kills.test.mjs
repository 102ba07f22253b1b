/**
 * The short form of the stress test: workers die by the dozen while four threads submit.
 *
 * What it checks, of the program's one line: nothing crashed or hung, every promise settled in an allowed way
 * and with its own value, every task that counts its runs ran once, no thread and no file descriptor is left,
 * memory does not grow once it has warmed up.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { share } from '../../dist/base/part.test.support.js'
import { faultsOf } from './judge.mjs'
import { run, skip } from './run.mjs'

const KILLS = Number(process.env.CORESPUN_KILLS ?? share(60))

const title = `${KILLS} workers die with tasks in flight: no crash, hang, leak or double end`
test(title, { skip }, async (context) => {
  const seed = process.env.CORESPUN_SEED ?? String(Date.now() % 1_000_000)
  context.diagnostic(`seed ${seed}: node test/stress/kills.mjs ${KILLS} ${seed}`)
  const { code, signal, hung, out, shown } = await run('kills.mjs', [KILLS, seed], 90 + KILLS)
  const how = { code, signal, hung }
  assert.deepEqual(how, { code: 0, signal: null, hung: false }, `seed ${seed}\n${shown}`)
  const result = JSON.parse(out)
  assert.deepEqual(faultsOf(result, KILLS, { memory: true }), [], `seed ${seed} ${shown}`)
  context.diagnostic(`${result.made} calls: ${JSON.stringify(result.ends)}; rss ${result.rss.join(' ')} MB`)
})
