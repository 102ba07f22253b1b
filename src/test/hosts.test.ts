/**
 * Jobs of a run: one end for each, whatever host dies, and what a host does with calls that fail.
 *
 * What jobs promise over a bad network, and with leaders that are alone, is in src/fleet/jobs/faults.test.ts.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NonRetryableError } from '../fleet/index.ts'
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
  }).then(() => {}))
