/**
 * The short form of the stress test of isolated zones: their processes are killed while tasks are in flight.
 *
 * What it checks, of the program's one line: every promise settled in an allowed way and with its own value,
 * and no thread, no file descriptor and no process is left.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { share } from '../../dist/base/part.test.support.js'
import { faultsOf } from './judge.mjs'
import { run, skip } from './run.mjs'

const KILLS = Number(process.env.CORESPUN_PROCESS_KILLS ?? share(15))

test(
  `${KILLS} processes are killed with tasks in flight: no hang, leak or double end`,
  { skip },
  async (context) => {
    const seed = process.env.CORESPUN_SEED ?? String(Date.now() % 1_000_000)
    context.diagnostic(`seed ${seed}: node test/stress/processes.mjs ${KILLS} ${seed}`)
    const { code, signal, hung, out, shown } = await run('processes.mjs', [KILLS, seed], 120 + KILLS * 10)
    assert.deepEqual({ code, signal, hung }, { code: 0, signal: null, hung: false }, `seed ${seed}\n${shown}`)
    const result = JSON.parse(out)
    assert.deepEqual(faultsOf(result, KILLS, { memory: true }), [], `seed ${seed} ${shown}`)
    context.diagnostic(`${result.made} calls: ${JSON.stringify(result.ends)}`)
  },
)
