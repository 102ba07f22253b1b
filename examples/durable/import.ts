/**
 * A nightly import of a million rows as durable runs: it continues at its batch, and its journal stays small.
 *
 * `node examples/durable/import.ts [--rows 1000000]` plays one night with a crash in its middle. The table is
 * a Map; a database takes a batch by `INSERT … ON CONFLICT DO UPDATE`, so that a second time does no harm.
 */
import assert from 'node:assert/strict'
import { parseArgs } from 'node:util'
import { checkpoint, child, durable, pause, runs, step } from 'corespun/durable'
import { connect } from 'corespun/fleet'

const OPTIONS = { rows: { type: 'string', default: '1000000' } } as const
const { values } = parseArgs({ options: OPTIONS, allowPositionals: true })
const ROWS = Number(values.rows)
const BATCH = 5000
const BATCHES_MAX = 20

const table = new Map<number, string>()
let batches = 0

async function copyBatch(night: number, from: number): Promise<number> {
  batches++
  const to = Math.min(from + BATCH, ROWS)
  for (let id = from; id < to; id++) table.set(id, `row ${id} of night ${night}`)
  return to
}

/** Each part of 20 batches is a journal of its own. */
const importRows = durable('import', function* ({ night, from }: { night: number; from: number }) {
  let done = from
  for (let n = 0; n < BATCHES_MAX && done < ROWS; n++) done = yield* step('copy', copyBatch, [night, done])
  if (done < ROWS) yield* checkpoint({ night, from: done })
  return done
})

/** It has no end: its journal is that of one night. */
const nightly = durable('nightly', function* (night: number) {
  const rows = yield* child(importRows, { night, from: 0 }, { key: `night ${night}` })
  yield* step('report', async () => console.log(`night ${night}: ${rows} rows`))
  yield* pause('1 day')
  yield* checkpoint(night + 1)
})

const definitions = [importRows, nightly] as const
const fleet = await connect('memory:imports')
const caller = await runs(fleet, { definitions, runsMax: 0 })
const run = await caller.start('nightly', 1, { key: 'customers' })

const first = await connect('memory:imports')
await runs(first, { definitions, leaseMs: 200 })
while (table.size < ROWS / 2) await new Promise(setImmediate)
await first.close()
const before = batches

const second = await connect('memory:imports')
const workers = await runs(second, { definitions, leaseMs: 200 })
while (!(await run.state()).steps.some(({ name }) => name === 'pause()')) await new Promise(setImmediate)
assert.equal(table.size, ROWS)
assert.ok(batches <= Math.ceil(ROWS / BATCH) + 1, `${batches} batches, ${before} of them before the crash`)
assert.ok((await caller.get('import', 'night 1').state()).steps.length <= BATCHES_MAX)
await run.cancel()

await workers.close()
await second.close()
await caller.close()
await fleet.close()
