/**
 * Jobs of a run: one end for each, whatever host dies, and what a host does with calls that fail.
 *
 * What jobs promise over a bad network, and with leaders that are alone, is in src/fleet/jobs/faults.test.ts.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FarCopy, NonRetryableError, currentJob } from '../fleet/index.ts'
import { type World, check, exactlyOnce } from './index.ts'

type Mails = { send(to: string): string; fail(): never; refuse(): never }

test('a job has one end when hosts die, and one that is not idempotent is found', async () => {
  const mails =
    (isIdempotent: boolean) =>
    async ({ connect, host, spawn, sleep, random }: World) => {
      const sent: string[] = []
      const send = async (to: string): Promise<string> => {
        if (!isIdempotent || !sent.includes(to)) sent.push(to)
        await sleep(random() * 100)
        return `sent to ${to}`
      }
      const machine = () =>
        spawn(async () => {
          await host(connect(), { name: 'mails', module: { send }, jobsMax: 2, leaseMs: 600 })
          await new Promise(() => {})
        }, 'machine')
      const jobs = connect().jobs<Mails>('mails')
      const first = machine()
      const keys = ['ada', 'bob']
      for (const key of keys) await jobs.submit(key, 'send', [key], { retry: { hostsLostMax: 9 } })
      await sleep(random() * 100)
      first.kill()
      machine()
      for (const key of keys) assert.equal(await jobs.result(key), `sent to ${key}`)
      exactlyOnce(sent, keys)
    }
  await check({ seeds: 60, stall: 0 }, mails(true))
  await assert.rejects(check({ seeds: 200, stall: 0 }, mails(false)), { code: 'CHECK_FAILED' })
})

test('writes of a task whose leader is alone are committed later, or never', async () => {
  const seen = new Set<string>()
  await check({ seeds: 60, stall: 0 }, async ({ connect, cut, sleep, spawn }) => {
    const writer = spawn(async () => {
      const prices = connect().store<number>('prices')
      await prices.set('a', 1)
      await sleep(1000)
      await assert.rejects(prices.set('a', 2), { code: 'FLEET_TIMEOUT' })
    }, 'writer')
    const prices = connect().store<number>('prices')
    await sleep(500)
    const heal = cut(writer, 'commits')
    await writer.join()
    assert.equal((await prices.get('a'))?.value, 1)
    heal()
    heal()
    seen.add(String((await prices.get('a'))?.value))
  })
  assert.deepEqual([...seen].sort(), ['1', '2'])
})

test('tasks have copies of a store of their own, and so do those that replace them', () =>
  check({ seeds: 60 }, async ({ connect, random, sleep, spawn, zone }) => {
    const prices = connect().store<number>('prices')
    await prices.set('tea', 250)
    const replica = () =>
      spawn(async () => {
        await using copy = await connect().store<number>('prices').copy()
        const thread = zone.create(`of ${copy.name}`, { workers: 1 })
        assert.equal(await thread.run(() => FarCopy.get<number>('prices').get('tea')), 250)
        assert.ok(FarCopy.get('prices').ageMs < 60_000)
        await sleep(random() * 100)
      }, 'replica')
    const [first, second] = [replica(), replica()]
    await sleep(random() * 50)
    first.kill()
    await Promise.all([second.join(), replica().join()])
    assert.throws(() => FarCopy.get('prices'), { code: 'STORE_UNKNOWN' })
    await using own = await prices.copy()
    assert.equal(await spawn(() => FarCopy.get('prices').size).join(), own.size)
  }))

test('functions of jobs have the job that they are', () =>
  check({ seeds: 20, stall: 0 }, async ({ connect, host, sleep }) => {
    const seen: unknown[] = []
    const send = async (to: string): Promise<string> => {
      const job = currentJob()!
      seen.push([job.key, job.attempt, job.ended.map(({ value }) => value)])
      job.progress(0.5)
      while (to === 'slow' && !job.leaving.aborted) await sleep(50)
      return to
    }
    const fleet = connect()
    const jobs = fleet.jobs<Mails>('mails')
    const hosting = await host(fleet, { name: 'mails', module: { send } })
    await jobs.submit('first', 'send', ['fast'])
    await jobs.submit('then', 'send', ['slow'], { after: ['first'] })
    while ((await jobs.get('then'))?.progress !== 0.5) await sleep(50)
    await hosting.close()
    assert.equal(await jobs.result('then'), 'slow')
    assert.deepEqual(seen, [
      ['first', 1, []],
      ['then', 1, ['fast']],
    ])
    assert.equal(currentJob(), undefined)
  }))

test('calls that fail are retried, or dead at once; a host that closes leaves its jobs', () =>
  check({ seeds: 30, stall: 0, leaks: true }, async ({ connect, host, sleep }) => {
    const calls: string[] = []
    const module = {
      fail: () => {
        calls.push('fail')
        throw new RangeError('its own')
      },
      refuse: () => {
        calls.push('refuse')
        throw new NonRetryableError('never')
      },
      send: async (to: string) => {
        calls.push(to)
        await sleep(to === 'slow' ? 60_000 : 1)
        return to
      },
    }
    const fleet = connect()
    const jobs = fleet.jobs<Mails>('mails')
    const options = { name: 'mails', module, leaseMs: 1000 }
    const hosting = await host(fleet, options)
    const retry = { attemptsMax: 2, backoffMs: 10 }
    await jobs.submit('fails', 'fail', [], { retry })
    await jobs.submit('refuses', 'refuse', [], { retry })
    await jobs.submit('missing', 'none' as 'send', ['x'], { retry })
    for (const key of ['fails', 'refuses', 'missing'])
      await assert.rejects(jobs.result(key, { timeoutMs: 600_000 }), { code: 'JOB_DEAD' })
    assert.deepEqual(calls, ['fail', 'refuse', 'fail'])
    await jobs.submit('late', 'send', ['slow'], { timeoutMs: 500, retry: { attemptsMax: 1 } })
    await assert.rejects(jobs.result('late'), { code: 'JOB_DEAD' })
    await jobs.submit('slow', 'send', ['slow'])
    while (hosting.jobsRunning === 0) await sleep(10)
    await hosting.close({ timeoutMs: 100 })
    const next = await host(connect(), options)
    assert.equal(await jobs.result('slow', { timeoutMs: 600_000 }), 'slow')
    await sleep(60_000)
    await next.close()
    await assert.rejects(host(fleet, { ...options, jobsMax: 0 }), { code: 'CHECK_ARGUMENT' })
  }))
