/**
 * What a pause, an error that is not retried and many submissions promise, as tests that run on any engine.
 *
 * jobs.test.support.ts runs them.
 */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { FleetError } from '../errors.ts'
import type { JobSubmission } from './jobs.ts'
import { type Check, type Scores, code, soon } from './setting.test.support.ts'

export function controls(check: Check): void {
  pauses(check)
  submissions(check)
  check('of several calls that cancel a job at once, one has', async ({ name, jobs, connect }) => {
    const elsewhere = (await connect()).jobs<Scores>(name)
    const keys = Array.from({ length: 20 }, (_, index) => `job ${index}`)
    await jobs.submitMany(keys.map((key) => ({ key, name: 'score', args: ['x'] })))
    const cancelled = await Promise.all(
      keys.map((key) => Promise.all([jobs, elsewhere, jobs].map((each) => each.cancel(key)))),
    )
    for (const each of cancelled) assert.deepEqual(each.toSorted(), [false, false, true])
    assert.equal(await jobs.count(), 0)
    await assert.rejects(jobs.result('job 0'), code('JOB_CANCELLED'))
  })
  check('an error that is not retried makes a dead letter at the first attempt', async ({ jobs, begin }) => {
    await begin()
    await jobs.submit('k', 'block', ['the card is blocked'], { retry: { attemptsMax: 5 } })
    await assert.rejects(jobs.result('k'), (error) => {
      assert.ok(error instanceof FleetError && error.code === 'JOB_DEAD')
      assert.equal((error.cause as Error).message, 'the card is blocked')
      return true
    })
    const [letter] = await jobs.dead()
    assert.deepEqual([letter.key, letter.failures, letter.hostsLost], ['k', 1, 0])
  })
}

function pauses(check: Check): void {
  check('a paused queue begins no job until it is resumed, and those that run go on', async (setting) => {
    const { name, jobs, begin, connect, file } = setting
    const elsewhere = (await connect()).jobs<Scores>(name)
    const hosting = await begin({ jobsMax: 2 })
    const path = file()
    await jobs.submit('held', 'report', [path])
    while ((await jobs.get('held'))?.status !== 'running') await soon()
    assert.deepEqual([await jobs.isPaused(), await jobs.resume()], [false, false])
    assert.deepEqual(
      [await elsewhere.pause(), await jobs.pause(), await jobs.isPaused()],
      [true, false, true],
    )
    // Until the host has received it.
    for (let count = 0; ; count++) {
      await jobs.submit(`probe ${count}`, 'score', ['x'])
      const isBegun = await jobs.result(`probe ${count}`, { timeoutMs: 1500 }).then(
        () => true,
        () => false,
      )
      if (!isBegun) break
    }
    const waiting = await jobs.count()
    await jobs.submit('waits', 'score', ['four'])
    // One that comes while it is paused takes nothing either.
    const other = await begin({ jobsMax: 2 })
    writeFileSync(path, '')
    assert.deepEqual(await jobs.result('held'), ['held', 1])
    while ((await jobs.count()) > waiting) await soon()
    assert.equal((await jobs.get('waits'))?.status, 'waiting')
    assert.deepEqual(await jobs.list({ state: 'done', jobsMax: 1 }).then((page) => page.jobs.length), 1)
    assert.equal(await elsewhere.resume(), true)
    assert.equal(await jobs.result('waits'), 4)
    await Promise.all([hosting.close(), other.close()])
  })

  check('a host has no more jobs at once behind a pause than before', async ({ jobs, begin, file }) => {
    const hosting = await begin({ jobsMax: 1, leaseMs: 400 })
    const [first, second] = [file(), file()]
    await jobs.submit('first', 'report', [first])
    while ((await jobs.get('first'))?.status !== 'running') await soon()
    await jobs.pause()
    await jobs.resume()
    await jobs.submit('second', 'report', [second])
    writeFileSync(second, '')
    await assert.rejects(jobs.result('second', { timeoutMs: 600 }), code('JOB_TIMEOUT'))
    writeFileSync(first, '')
    assert.deepEqual(await jobs.result('second'), ['second', 1])
    // One that waits for another to end is left to others when its host closes.
    const third = file()
    await jobs.submit('third', 'report', [third])
    while ((await jobs.get('third'))?.status !== 'running') await soon()
    await jobs.pause()
    await jobs.resume()
    await jobs.submit('fourth', 'score', ['four'])
    const closing = hosting.close()
    writeFileSync(third, '')
    await closing
    await begin()
    assert.equal(await jobs.result('fourth'), 4)
  })
}

function submissions(check: Check): void {
  check('many jobs are submitted in one call, each once', async ({ jobs, begin }) => {
    const job = (index: number): JobSubmission<Scores> => ({ key: `${index}`, name: 'score', args: ['four'] })
    const all = Array.from({ length: 600 }, (_, index) => job(index))
    await jobs.submit('7', 'score', ['other'])
    const added = await jobs.submitMany(all)
    assert.deepEqual([added.length, added.indexOf(false), added.lastIndexOf(false)], [600, 7, 7])
    async function* later(): AsyncGenerator<JobSubmission<Scores>> {
      yield job(599)
      yield { ...job(600), options: { priority: 'high' } }
    }
    assert.deepEqual(await jobs.submitMany(later()), [false, true])
    assert.equal(await jobs.count(), 601)
    await begin({ jobsMax: 8 })
    assert.deepEqual([await jobs.result('600'), await jobs.result('7')], [4, 5])
  })

  check('what of many jobs is wrong is refused, and the others are submitted', async ({ jobs }) => {
    const one = { key: 'one', name: 'score', args: ['x'] } as const
    await assert.rejects(jobs.submitMany(one as never), code('FLEET_ARGUMENT'))
    await assert.rejects(jobs.submitMany([one, { ...one, key: '' }]), code('FLEET_ARGUMENT'))
    assert.equal((await jobs.get('one'))?.status, 'waiting')
    const controller = new AbortController()
    function* aborting(): Generator<JobSubmission<Scores>> {
      for (let index = 0; index < 300; index++) {
        if (index === 10) controller.abort(new Error('enough'))
        yield { ...one, key: `many ${index}` }
      }
    }
    await assert.rejects(jobs.submitMany(aborting(), { signal: controller.signal }), /enough/)
    assert.equal(await jobs.count(), 257)
    const { signal } = controller
    await assert.rejects(jobs.submitMany([{ ...one, key: 'never' }], { signal }), /enough/)
    assert.equal(await jobs.get('never'), undefined)
  })
}
