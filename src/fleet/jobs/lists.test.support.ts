/**
 * What lists, counts and bulks of jobs promise, as tests that run on any engine.
 *
 * jobs.test.support.ts runs them; a page is as small as it can be where that matters.
 */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import type { JobListOptions } from '../job-settings.ts'
import { type Check, type Setting, code, soon } from './setting.test.support.ts'
import type { ListedJob } from './listing.ts'

type Jobs = Setting['jobs']
const ONCE = { retry: { attemptsMax: 1 } }

/** All pages. */
async function all(jobs: Jobs, options?: JobListOptions): Promise<ListedJob[]> {
  const found: ListedJob[] = []
  let after: string | undefined
  do {
    const page = await jobs.list({ ...options, after })
    found.push(...page.jobs)
    after = page.next
  } while (after !== undefined)
  return found
}

const keysOf = (jobs: readonly ListedJob[]): string[] => jobs.map(({ key }) => key).sort()

async function ended(jobs: Jobs, ...keys: string[]): Promise<void> {
  for (const key of keys) await jobs.result(key).catch(() => {})
}

export function lists(check: Check): void {
  check('jobs are listed by state, page by page, and counted', async ({ jobs, begin, file }) => {
    const path = file()
    assert.deepEqual(await jobs.list(), { jobs: [], next: undefined })
    assert.deepEqual(await jobs.counts(), { waiting: 0, running: 0, scheduled: 0, dead: 0, ended: 0 })
    await begin({ jobsMax: 2 })
    for (const key of ['done 1', 'done 2', 'done 3']) await jobs.submit(key, 'score', [key])
    for (const key of ['bad 1', 'bad 2']) await jobs.submit(key, 'fail', [key], ONCE)
    await ended(jobs, 'done 1', 'done 2', 'done 3', 'bad 1', 'bad 2')
    await jobs.submit('off', 'score', ['x'], { delayMs: 60_000 })
    await jobs.cancel('off')
    await jobs.submit('later', 'score', ['x'], { delayMs: 60_000 })
    await jobs.submit('plan', 'score', ['x'], { schedule: { everyMs: 3_600_000 } })
    await jobs.submit('held', 'report', [path])
    while ((await jobs.get('held'))?.status !== 'running') await soon()
    while ((await jobs.counts()).scheduled === 0) await soon()
    const expected = {
      waiting: ['later'],
      running: ['held'],
      scheduled: ['plan'],
      done: ['done 1', 'done 2', 'done 3'],
      dead: ['bad 1', 'bad 2'],
      cancelled: ['off'],
    } as const
    for (const [state, keys] of Object.entries(expected))
      for (const jobsMax of [1, 2, 100]) {
        const found = await all(jobs, { state: state as keyof typeof expected, jobsMax })
        assert.deepEqual(keysOf(found), keys, `${state} by ${jobsMax}`)
        assert.ok(found.every(({ status }) => status === state))
      }
    const every = Object.values(expected).flat().sort()
    for (const jobsMax of [2, 100]) assert.deepEqual(keysOf(await all(jobs, { jobsMax })), every)
    // The items of those that have ended are removed behind their end.
    while ((await jobs.count()) > 3) await soon()
    assert.deepEqual(await jobs.counts(), { waiting: 1, running: 1, scheduled: 1, dead: 2, ended: 4 })
    const [[bad], [held], [done]] = await Promise.all(
      (['dead', 'running', 'done'] as const).map((state) => all(jobs, { state, jobsMax: 1 })),
    )
    assert.deepEqual([bad.name, bad.failures, held.name, done.name], ['fail', 1, 'report', undefined])
    assert.deepEqual((await all(jobs, { state: 'waiting' }))[0].name, 'score')
    writeFileSync(path, '')
    await jobs.result('held')
  })

  check('jobs that no host has had are listed with when they are due', async ({ jobs }) => {
    for (const key of ['a', 'b', 'c']) await jobs.submit(key, 'score', [key], { delayMs: 5000 })
    const found = await all(jobs, { state: 'waiting', jobsMax: 1 })
    assert.deepEqual(keysOf(found), ['a', 'b', 'c'])
    assert.ok(found.every(({ dueAt }) => dueAt !== undefined && dueAt.getTime() > Date.UTC(2024, 0)))
    assert.deepEqual(await all(jobs, { state: 'running' }), [])
    assert.equal((await jobs.counts()).waiting, 3)
  })

  check('a dead job that runs anew waits, and has not ended', async ({ jobs, begin }) => {
    const hosting = await begin()
    await jobs.submit('bad', 'fail', ['LOW'], ONCE)
    await ended(jobs, 'bad')
    await hosting.close()
    assert.equal((await jobs.counts()).dead, 1)
    assert.equal(await jobs.again('bad'), true)
    // Over NATS a letter that was deleted a moment ago counts as dead yet.
    const { waiting, ended: endedCount } = await jobs.counts()
    assert.deepEqual([waiting, endedCount], [1, 0])
    assert.equal((await jobs.get('bad'))?.status, 'waiting')
  })

  planned(check)
  letters(check)
  bulks(check)
}

function planned(check: Check): void {
  check('schedules that no host has had are listed as such', async ({ jobs }) => {
    await jobs.submit('a', 'score', ['x'])
    await jobs.submit('plan', 'score', ['x'], { schedule: { everyMs: 3_600_000 } })
    await jobs.submit('daily', 'score', ['x'], { schedule: { cron: '0 3 * * *' } })
    const plans = await all(jobs, { state: 'scheduled', jobsMax: 2 })
    assert.deepEqual(keysOf(plans), ['daily', 'plan'])
    assert.deepEqual(keysOf(await all(jobs, { state: 'waiting' })), ['a'])
    const [daily, plan] = await Promise.all(['daily', 'plan'].map((key) => jobs.get(key)))
    assert.deepEqual([daily!.status, daily!.dueAt, plan!.status], ['scheduled', undefined, 'scheduled'])
    assert.ok(Number(plan!.dueAt) > Date.UTC(2024, 0))
  })
}

function letters(check: Check): void {
  check('dead letters are read up to those that are asked for', async ({ name, jobs, begin, caller }) => {
    await begin({ jobsMax: 2 })
    for (const key of ['bad 1', 'bad 2', 'bad 3']) await jobs.submit(key, 'fail', [key], ONCE)
    await ended(jobs, 'bad 1', 'bad 2', 'bad 3')
    assert.deepEqual(keysOf(await jobs.dead()), ['bad 1', 'bad 2', 'bad 3'])
    assert.equal((await jobs.dead({ jobsMax: 2 })).length, 2)
    // Behind a page of what cannot be read.
    const kept = await caller.engine.keyValue(`dead_${name}`, { ttlMs: 0 })
    const noise = Array.from({ length: 300 }, (_, index) => `a ${index}`)
    await Promise.all(noise.map((key) => kept.put(key, new Uint8Array([1, 2, 3]))))
    assert.deepEqual(keysOf(await jobs.dead()), ['bad 1', 'bad 2', 'bad 3'])
  })
}

function bulks(check: Check): void {
  check(
    'dead jobs run anew in bulk, and all that ended is forgotten in bulk',
    async ({ jobs, begin, file }) => {
      await begin({ jobsMax: 4 })
      const keys = Array.from({ length: 70 }, (_, index) => `bad ${index}`)
      await Promise.all(keys.map((key) => jobs.submit(key, 'fail', [key], ONCE)))
      await ended(jobs, ...keys)
      const path = file()
      await jobs.submit('held', 'report', [path])
      await jobs.submit('done', 'score', ['x'])
      await jobs.result('done')
      assert.equal(await jobs.againAll({ jobsMax: 3 }), 3)
      const areDead = async (): Promise<boolean> =>
        (await all(jobs, { state: 'dead' })).length === keys.length
      while (!(await areDead())) await soon()
      assert.equal(await jobs.againAll(), keys.length)
      while (!(await areDead())) await soon()
      assert.equal(await jobs.forgetAll('dead', { jobsMax: 2 }), 2)
      assert.equal(await jobs.forgetAll('dead'), keys.length - 2)
      assert.deepEqual(await all(jobs, { state: 'dead' }), [])
      assert.equal(await jobs.forgetAll('cancelled'), 0)
      assert.equal(await jobs.forgetAll('done'), 1)
      assert.equal(await jobs.get('done'), undefined)
      writeFileSync(path, '')
      assert.deepEqual(await jobs.result('held'), ['held', 1])
    },
  )

  check('jobs of a state are cancelled in bulk, and no others', async ({ jobs, begin, file }) => {
    await jobs.submit('early', 'score', ['x'], { schedule: { everyMs: 3_600_000 } })
    assert.deepEqual([await jobs.cancelAll('waiting'), await jobs.cancelAll('scheduled')], [0, 1])
    await begin({ jobsMax: 2 })
    const path = file()
    await jobs.submit('held', 'report', [path])
    await jobs.submit('plan', 'score', ['x'], { schedule: { everyMs: 3_600_000 } })
    while ((await jobs.get('held'))?.status !== 'running') await soon()
    const keys = Array.from({ length: 70 }, (_, index) => `later ${index}`)
    await Promise.all(keys.map((key) => jobs.submit(key, 'score', ['x'], { delayMs: 3_600_000 })))
    assert.equal(await jobs.cancelAll('waiting', { jobsMax: 2 }), 2)
    assert.equal(await jobs.cancelAll('waiting'), keys.length - 2)
    assert.deepEqual(keysOf(await all(jobs, { state: 'cancelled' })), keys.toSorted())
    assert.equal(await jobs.cancelAll('waiting'), 0)
    assert.equal(await jobs.cancelAll('scheduled'), 1)
    assert.equal(await jobs.cancelAll('running'), 1)
    await assert.rejects(jobs.result('held'), code('JOB_CANCELLED'))
    assert.deepEqual(await all(jobs, { state: 'running' }), [])
  })

  refusals(check)
}

function refusals(check: Check): void {
  check('lists and bulks end by their signal, and refuse what is wrong', async ({ jobs }) => {
    const signal = AbortSignal.abort(new Error('enough'))
    for (const call of [jobs.list({ signal }), jobs.againAll({ signal }), jobs.forgetAll('done', { signal })])
      await assert.rejects(call, /enough/)
    await jobs.submit('a', 'score', ['x'])
    await jobs.submit('b', 'score', ['x'])
    const { next } = await jobs.list({ state: 'waiting', jobsMax: 1 })
    for (const options of [
      { state: 'broken' as never },
      { jobsMax: 0 },
      { jobsMax: 1001 },
      { after: 'live' },
      { after: 'other:1' },
      { state: 'dead', after: next },
    ] as const)
      await assert.rejects(jobs.list(options), code('FLEET_ARGUMENT'))
    await assert.rejects(jobs.forgetAll('waiting' as never), code('FLEET_ARGUMENT'))
    await assert.rejects(jobs.cancelAll('done' as never), code('FLEET_ARGUMENT'))
    await assert.rejects(jobs.againAll({ jobsMax: 0 }), code('FLEET_ARGUMENT'))
  })
}
