/**
 * When schedules are due.
 *
 * Times are numbers of the tests.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nextOf } from './schedule.ts'

test('an interval is counted from its begin, and missed times are skipped', async () => {
  const every = { everyMs: 1000, cron: '', timeZone: 'UTC' }
  assert.equal(await nextOf(every, 500, 500), 1500)
  assert.equal(await nextOf(every, 1500, 1500), 2500)
  assert.equal(await nextOf(every, 1500, 9700), 10_500)
})

test('a pattern of cron is due by the time of its zone, in summer and in winter', async () => {
  const berlin = { everyMs: 0, cron: '0 3 * * *', timeZone: 'Europe/Berlin' }
  const due = async (after: string): Promise<string> =>
    new Date(await nextOf(berlin, 0, Date.parse(after))).toISOString()
  assert.equal(await due('2026-01-10T12:00:00Z'), '2026-01-11T02:00:00.000Z')
  assert.equal(await due('2026-07-10T12:00:00Z'), '2026-07-11T01:00:00.000Z')
  await assert.rejects(nextOf({ ...berlin, cron: 'now' }, 0, 0), { code: 'FLEET_ARGUMENT' })
  await assert.rejects(nextOf({ ...berlin, cron: '0 0 30 2 *' }, 0, 0), { code: 'FLEET_ARGUMENT' })
})
