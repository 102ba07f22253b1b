/**
 * The counterparts of napajs's 195 tests, written anew after its documentation and what its own tests expect.
 *
 * Those that cannot run are named with the reason. napajs skips 16 of its own; most of these run here.
 */
import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import { store } from '../store/index.ts'
import { zone } from '../zone/index.ts'
import * as napa from './index.ts'
import { type Case, HOME, LATE_ZONE, OTHER } from './cases.test.support.ts'
import { FOLDER, MODULE_CASES, TIMER_CASES } from './module-cases.test.support.ts'
import { MEMORY_CASES, STORE_CASES, SYNC_CASES, TRANSPORT_CASES } from './value-cases.test.support.ts'
import { ZONE_CASES } from './zone-cases.test.support.ts'

/** By napajs's test files, with the number of tests that these have. */
const AREAS: readonly (readonly [name: string, count: number, cases: readonly Case[]])[] = [
  ['zone', 95, ZONE_CASES],
  ['module', 32, MODULE_CASES],
  ['store', 26, STORE_CASES],
  ['transport', 22, TRANSPORT_CASES],
  ['memory', 8, MEMORY_CASES],
  ['timers', 7, TIMER_CASES],
  ['sync', 5, SYNC_CASES],
]
const NEEDING_MAX = 27

const kept: napa.zone.Zone[] = []
before(() => {
  for (const id of [HOME, OTHER, LATE_ZONE]) kept.push(napa.zone.create(id))
})
after(async () => {
  // What a worker of HOME has made goes with it.
  for (const id of ['napa-made', HOME, OTHER, LATE_ZONE]) await zone.get(id).close({ timeoutMs: 100 })
  for (const id of ['napa-store1', 'napa-store2']) store.get(id).close()
  rmSync(FOLDER, { recursive: true })
})

test('there are 195, of which at most 27 cannot run', () => {
  for (const [name, count, cases] of AREAS) assert.equal(cases.length, count, name)
  const all = AREAS.flatMap(([, , cases]) => cases)
  assert.ok(all.every(({ run, needs }) => (run === undefined) !== (needs === undefined)))
  const needing = all.filter(({ needs }) => needs !== undefined)
  assert.equal(all.length, 195)
  assert.ok(needing.length <= NEEDING_MAX)
})

for (const [area, , cases] of AREAS)
  describe(area, () => {
    for (const { name, run, needs } of cases)
      test(name, { skip: needs ?? false }, async () => {
        await run?.()
      })
  })
