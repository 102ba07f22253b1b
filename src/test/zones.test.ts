/**
 * Deaths of workers in a run: the same errors as those of zones, and each kind is played by some seed.
 *
 * The oracle of an error is the real zone, whose worker ends in that way.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { zone } from '../zone/index.ts'
import type { ZoneError, ZoneOptions } from '../zone/index.ts'
import { type WorkerDeath, check } from './index.ts'

const never = (): Promise<never> => new Promise(() => {})

const ENDS: Record<WorkerDeath, [body: () => unknown, settings?: ZoneOptions]> = {
  exit: [() => process.exit(1)],
  memory: [
    () => {
      const kept: unknown[] = []
      for (;;) kept.push(Array.from({ length: 1000 }, () => ({})))
    },
    { heapMbMax: 24 },
  ],
  signal: [() => process.kill(process.pid, 'SIGKILL') && new Promise(() => {}), { isolation: 'process' }],
}

/** What a program can distinguish. */
async function errorOf(call: Promise<unknown>): Promise<unknown> {
  const { code, facts, message, cause } = (await call.catch((error: unknown) => error)) as ZoneError
  const { name, message: why, code: which } = Object(cause) as Error & { readonly code?: string }
  return { code, facts, message, cause: { name, why, which } }
}

for (const [how, [body, settings]] of Object.entries(ENDS))
  // Windows has no workers that are processes.
  test(
    `a worker that dies by ${how} is reported as that of a zone`,
    {
      skip: how === 'signal' && process.platform === 'win32',
    },
    async () => {
      await using own = zone.create('reported', { workers: 1, ...settings })
      const expected = await errorOf(own.run(body))
      await check({ seeds: 10 }, async ({ zone, spawn, step }) => {
        const seeded = zone.create('reported', { workers: 1 })
        const call = spawn(() => errorOf(seeded.run(never)))
        while (!seeded.killWorker(how as WorkerDeath)) await step()
        assert.deepEqual(await call.join(), expected)
      })
    },
  )

test('a seed chooses how workers die', async () => {
  const reasons = new Set<string>()
  await check({ seeds: 60 }, async ({ zone, step }) => {
    const weak = zone.create('weak', { workers: 1, deaths: 0.5 })
    await weak
      .run(async () => step())
      .catch(({ facts }: ZoneError<'WORKER_DIED'>) => reasons.add(facts.reason))
  })
  assert.equal(reasons.size, 3)
  const misnamed = check({ seeds: 1 }, ({ zone }) => zone.create('one').killWorker('heap' as 'memory'))
  await assert.rejects(misnamed, { message: /killWorker\(\) must be 'exit', 'memory' or 'signal'/ })
})

test('the workers of a zone end with the task that has created it, and so do calls that wait', () =>
  check({ seeds: 100 }, async ({ random, spawn, step, zone }) => {
    let own: ReturnType<typeof zone.create> | undefined
    const service = spawn(async () => {
      own = zone.create('own', { workers: 1 })
      await never()
    }, 'service')
    while (own === undefined) await step()
    const { run } = own
    const calls = [1, 2].map(() => spawn(() => run(never)))
    const ends = Promise.allSettled(calls.map((call) => call.join()))
    for (let count = Math.floor(random() * 8); count > 0; count--) await step()
    service.kill()
    for (const end of await ends)
      assert.equal(((end as PromiseRejectedResult).reason as ZoneError).code, 'ZONE_OWNER_DIED')
  }))
