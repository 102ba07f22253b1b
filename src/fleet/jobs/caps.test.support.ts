/**
 * What limits of jobs promise, as tests that run on any engine.
 *
 * jobs.test.support.ts runs them.
 */
import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import type { JobLimitOptions } from '../job-settings.ts'
import { type Check, code, soon } from './setting.test.support.ts'

const ONE = { per: 'one tenant', concurrency: 1 }
const OTHER = { per: 'another tenant', concurrency: 1 }

export function caps(check: Check): void {
  slots(check)
  losses(check)
  refusals(check)
}

function slots(check: Check): void {
  check('of one tenant so many jobs run at once, on all hosts, and all of them run', async (setting) => {
    const { jobs, begin, file } = setting
    const folder = file()
    mkdirSync(folder)
    const keys = Array.from({ length: 12 }, (_, index) => `job ${index}`)
    for (const key of keys) await jobs.submit(key, 'together', [folder], { limit: ONE })
    await Promise.all([begin({ jobsMax: 2 }), begin({ jobsMax: 2 })])
    for (const key of keys) assert.equal(await jobs.result(key), 1, key)
  })

  check('a tenant whose jobs wait holds up no other one', async ({ jobs, begin, file }) => {
    const path = file()
    await begin({ jobsMax: 2 })
    await jobs.submit('long', 'report', [path], { limit: ONE })
    while ((await jobs.get('long'))?.status !== 'running') await soon()
    const keys = Array.from({ length: 10 }, (_, index) => `waits ${index}`)
    for (const key of keys) await jobs.submit(key, 'score', ['four'], { limit: ONE })
    await jobs.submit('other', 'score', ['x'], { limit: OTHER })
    await jobs.submit('free', 'score', ['xx'])
    assert.deepEqual([await jobs.result('other'), await jobs.result('free')], [1, 2])
    // What has a result may count a moment longer.
    while ((await jobs.counts()).waiting !== keys.length) await soon()
    // Also one that waits for its limit is cancelled, and runs anew.
    assert.equal(await jobs.cancel('waits 0'), true)
    writeFileSync(path, '')
    for (const key of keys.slice(1)) assert.equal(await jobs.result(key), 4)
    await assert.rejects(jobs.result('waits 0'), code('JOB_CANCELLED'))
  })

  check('no more jobs begin in a span than a rate allows, and all of them do', async ({ jobs, begin }) => {
    await begin({ jobsMax: 2 })
    const limit: JobLimitOptions = { rate: { jobs: 2, perMs: 200 } }
    const begunMs = performance.now()
    for (let index = 0; index < 5; index++) await jobs.submit(`${index}`, 'score', ['x'], { limit })
    for (let index = 0; index < 5; index++) assert.equal(await jobs.result(`${index}`), 1)
    // The fifth begins two spans after the first; the clock of a server has whole milliseconds.
    assert.ok(performance.now() - begunMs > 390)
  })
}

function losses(check: Check): void {
  check('a job that fails, and one whose host is lost, have no slot while they wait', async (setting) => {
    const { jobs, begin, file } = setting
    const path = file()
    const lost = await begin({ leaseMs: 300 })
    await jobs.submit('lost', 'report', [path], { limit: ONE })
    while ((await jobs.get('lost'))?.status !== 'running') await soon()
    await jobs.submit('next', 'third', [], { limit: ONE, retry: { backoffMs: 1 } })
    await lost.fleet.engine.close() // as a death: nothing is finished
    await begin({ leaseMs: 300 })
    writeFileSync(path, '')
    assert.deepEqual(await jobs.result('lost'), ['lost', 2])
    assert.equal(await jobs.result('next'), 3)
  })

  check('the next job of a tenant begins when one is cancelled', async ({ jobs, begin }) => {
    await begin()
    await jobs.submit('first', 'wait', [], { limit: ONE })
    while ((await jobs.get('first'))?.status !== 'running') await soon()
    await jobs.submit('dead', 'block', ['blocked'], { limit: ONE })
    await jobs.cancel('first')
    await assert.rejects(jobs.result('dead'), code('JOB_DEAD'))
    assert.equal(await jobs.again('dead'), true)
    await assert.rejects(jobs.result('dead'), code('JOB_DEAD'))
  })
}

function refusals(check: Check): void {
  check('a limit of another kind is refused', async ({ jobs }) => {
    for (const limit of [
      {},
      { concurrency: 0 },
      { concurrency: 1001 },
      { per: '', concurrency: 1 },
      { rate: { jobs: 1 } },
      { rate: { jobs: 1001, perMs: 1000 } },
      { rate: { jobs: 1, perMs: 99 } },
      { concurrency: 1, pers: 'x' },
      5,
    ])
      await assert.rejects(
        jobs.submit('k', 'score', ['x'], { limit: limit as never }),
        code('FLEET_ARGUMENT'),
        JSON.stringify(limit),
      )
  })
}
