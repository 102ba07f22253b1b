/**
 * What a job promises that replaces what its key has had, as tests that run on any engine.
 *
 * jobs.test.support.ts runs them.
 */
import assert from 'node:assert/strict'
import { type Check, code, soon } from './setting.test.support.ts'

export function substitutes(check: Check): void {
  check('of jobs that replace each other while they wait the last one runs', async ({ jobs, begin }) => {
    await begin()
    const debounced = { replace: true, delayMs: 150 }
    for (const text of ['a', 'bb', 'ccc'])
      assert.equal(await jobs.submit('k', 'echo', [text], debounced), true)
    assert.equal(await jobs.result('k'), 'ccc')
    // And again, when that has ended.
    for (const text of ['d', 'ee']) assert.equal(await jobs.submit('k', 'echo', [text], debounced), true)
    assert.equal(await jobs.result('k'), 'ee')
    assert.equal(await jobs.submit('k', 'echo', ['f']), false)
    // The result is there before its host is done with it.
    while ((await jobs.count()) > 0) await soon()
  })

  check('a job that runs is ended by the one that replaces it, and its value dropped', async (setting) => {
    const { jobs, begin } = setting
    await begin({ leaseMs: 300 })
    await jobs.submit('k', 'wait', [])
    while ((await jobs.get('k'))?.status !== 'running') await soon()
    assert.equal(await jobs.submit('k', 'score', ['four'], { replace: true }), true)
    assert.equal(await jobs.result('k'), 4)
  })

  check('a dead job is replaced with its letter, a cancelled one too, a schedule is not', async (setting) => {
    const { jobs, begin } = setting
    await begin()
    await jobs.submit('k', 'block', ['blocked'])
    await assert.rejects(jobs.result('k'), code('JOB_DEAD'))
    await jobs.submit('k', 'score', ['four'], { replace: true })
    assert.equal(await jobs.result('k'), 4)
    assert.deepEqual(await jobs.dead(), [])
    await jobs.submit('k', 'score', ['x'], { replace: true, delayMs: 3_600_000 })
    assert.equal(await jobs.cancel('k'), true)
    await assert.rejects(jobs.result('k'), code('JOB_CANCELLED'))
    await jobs.submit('k', 'score', ['xx'], { replace: true })
    assert.equal(await jobs.result('k'), 2)
    const schedule = { everyMs: 3_600_000 }
    await jobs.submit('s', 'score', ['x'], { schedule })
    assert.equal(await jobs.submit('s', 'score', ['x'], { replace: true }), false)
    const client = { query: async () => ({ rows: [] }) }
    for (const other of [{ schedule }, { client }])
      await assert.rejects(
        jobs.submit('s', 'score', ['x'], { replace: true, ...other }),
        code('FLEET_ARGUMENT'),
      )
  })
}
