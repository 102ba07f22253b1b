/**
 * Random schedules on zones.
 *
 * `npm run test:all` runs as many of 1,000 as fit into its share of time; CORESPUN_SCHEDULES runs so many,
 * however long that takes (`npm run check:long`). A failure names the schedule, which is replayed by its
 * seed. That each check can fail is shown by planted.test.mjs.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { share } from '../../dist/base/part.test.support.js'
import { run, skip } from './run.mjs'

const WHOLE = Number(process.env.CORESPUN_SCHEDULES ?? 0)
const SECONDS = share(40)
/** Growth of the process over a thousand schedules that is noise: V8 and the allocator keep what they had. */
const GROWTH_MB_MAX = 60

const title = WHOLE > 0 ? `${WHOLE} random schedules` : `random schedules for ${SECONDS} s`
test(`${title}: each call settles once, nothing is left, memory is back`, { skip }, async (context) => {
  const seed = Number(process.env.CORESPUN_SEED ?? Date.now() % 1_000_000)
  context.diagnostic(`seed ${seed}: node --expose-gc test/stress/schedules.mjs ${WHOLE || 1000} ${seed}`)
  const args = WHOLE > 0 ? [WHOLE, seed] : [1000, seed, SECONDS]
  const secondsMax = WHOLE > 0 ? 60 + 3 * WHOLE : SECONDS + 90
  const { code, signal, hung, out, shown } = await run('schedules.mjs', args, secondsMax)
  assert.deepEqual({ code, signal, hung }, { code: 0, signal: null, hung: false }, shown)
  const { ran, calls, ends, rss } = JSON.parse(out)
  context.diagnostic(`${ran} schedules, ${calls} calls: ${JSON.stringify(ends)}`)
  assert.ok(ran === WHOLE || (WHOLE === 0 && ran > 0), shown)
  const tenth = Math.ceil(rss.length / 10)
  const grown = Math.min(...rss.slice(-tenth)) - Math.max(...rss.slice(0, tenth))
  assert.ok(grown <= GROWTH_MB_MAX, `${grown} MB more at the end than at the start: ${rss.join(' ')}`)
  if (ran < 50) return
  // All that the schedules are made of has happened.
  for (const end of ['done', 'E_OWN', 'WORKER_DIED', 'TASK_TIMEOUT', 'AbortError', 'ZONE_CLOSED'])
    assert.ok(ends[end] > 0, `nothing ended with ${end}: ${shown}`)
})
