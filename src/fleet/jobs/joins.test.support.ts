/**
 * What jobs that wait for others promise, as tests that run on any engine.
 *
 * jobs.test.support.ts runs them.
 */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { type Check, code, soon } from './setting.test.support.ts'

const keysOf = (count: number): string[] => Array.from({ length: count }, (_, index) => `part ${index}`)

export function joins(check: Check): void {
  outcomes(check)
  waits(check)
}

function outcomes(check: Check): void {
  check('a job begins when all that it waits for have ended, and has their values', async (setting) => {
    const { jobs, begin } = setting
    const after = keysOf(100)
    await jobs.submitMany(after.map((key) => ({ key, name: 'echo', args: [key] }) as const))
    await jobs.submit('all', 'joined', [], { after: [...after, after[0]] })
    assert.equal((await jobs.get('all'))?.status, 'waiting')
    await begin()
    const expected = after.map((key) => [key, 'done', key, undefined])
    assert.deepEqual(await jobs.result('all'), expected)
    // All have ended by now.
    await jobs.submit('late', 'joined', [], { after: after.slice(0, 2) })
    assert.deepEqual(await jobs.result('late'), expected.slice(0, 2))
  })

  check('a job has how those have ended that it waits for, whatever that is', async ({ jobs, begin }) => {
    await jobs.submit('dead', 'fail', ['LOW'], { retry: { attemptsMax: 1 } })
    for (const key of ['cancelled', 'forgotten', 'done']) await jobs.submit(key, 'score', ['four'])
    const after = ['dead', 'cancelled', 'forgotten', 'done']
    await jobs.submit('all', 'joined', [], { after })
    await jobs.cancel('cancelled')
    await jobs.cancel('forgotten')
    await jobs.forget('forgotten')
    await begin()
    assert.deepEqual(await jobs.result('all'), [
      ['dead', 'dead', undefined, 'no score: LOW'],
      ['cancelled', 'cancelled', undefined, undefined],
      ['forgotten', 'unknown', undefined, undefined],
      ['done', 'done', 4, undefined],
    ])
  })

  check('what a job waits for has to be there, and to be keys', async ({ jobs }) => {
    await jobs.submit('one', 'score', ['x'])
    const submit = (after: unknown, schedule?: { everyMs: number }): Promise<boolean> =>
      jobs.submit('all', 'joined', [], { after: after as string[], schedule })
    await assert.rejects(submit(['one', 'other']), code('JOB_UNKNOWN'))
    for (const after of [[], 'one', [5], [''], ['all'], keysOf(10_001)])
      await assert.rejects(submit(after), code('FLEET_ARGUMENT'))
    await assert.rejects(submit(['one'], { everyMs: 1000 }), code('FLEET_ARGUMENT'))
    assert.equal(await jobs.get('all'), undefined)
  })
}

function waits(check: Check): void {
  check('a job that waits for others takes no slot of a host', async ({ jobs, begin, file }) => {
    const path = file()
    await begin({ jobsMax: 1 })
    await jobs.submit('first', 'report', [path])
    // More than one host has slots, and each waits for the one before.
    for (const index of [1, 2, 3, 4])
      await jobs.submit(`${index}`, 'joined', [], { after: [index === 1 ? 'first' : `${index - 1}`] })
    while ((await jobs.get('first'))?.status !== 'running') await soon()
    writeFileSync(path, '')
    const last = (await jobs.result('4')) as [string, string, unknown][]
    assert.deepEqual([last[0][0], last[0][1]], ['3', 'done'])
  })

  check('a job that waits for others is cancelled, and outlives its host', async ({ jobs, begin, file }) => {
    const path = file()
    const one = await begin({ leaseMs: 300 })
    await jobs.submit('first', 'report', [path])
    while ((await jobs.get('first'))?.status !== 'running') await soon()
    await jobs.submit('cancelled', 'joined', [], { after: ['first'] })
    await jobs.submit('joined', 'joined', [], { after: ['first'] })
    assert.equal(await jobs.cancel('cancelled'), true)
    await one.fleet.engine.close() // as a death: nothing is finished
    await begin({ leaseMs: 300 })
    writeFileSync(path, '')
    assert.deepEqual(await jobs.result('joined'), [['first', 'done', ['first', 2], undefined]])
    await assert.rejects(jobs.result('cancelled'), code('JOB_CANCELLED'))
  })
}
