/**
 * `metrics()` shows the queues of durable jobs, and responds without those that do not reply.
 *
 * The engine in memory; what queues contain is tested with each engine.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../base/wait.test.support.ts'
import { createApp } from '../http/index.ts'
import { type MetricsOptions, metrics } from '../metrics/index.ts'
import { connect } from './index.ts'

test('the queues of jobs are among the metrics', async () => {
  const fleet = await connect('memory:')
  const jobs = fleet.jobs<{ send(name: string): string }>('letters')
  await jobs.submit('one', 'send', ['Ada'])
  await jobs.submit('two', 'send', ['Eve'])
  const silent = { queues: () => Promise.reject(new Error('no reply')) }
  const app = createApp({ routes: { '/metrics': metrics({ fleets: [silent, fleet] }) } })
  const text = await (await app.inject('/metrics')).text()
  assert.match(text, /^corespun_jobs\{corespun_zone="letters",corespun_job_state="waiting"\} 2$/m)
  assert.match(text, /^corespun_jobs\{corespun_zone="letters",corespun_job_state="dead"\} 0$/m)
  assert.match(text, /^corespun_jobs_age_seconds\{corespun_zone="letters"\} [\d.]+$/m)
  await fleet.close()
})

test('other options are refused', () => {
  assert.throws(() => metrics({ fleets: [7] as never }), { code: 'ZONE_ARGUMENT' })
  assert.throws(() => metrics({ fleet: [] } as never), { code: 'ZONE_ARGUMENT' })
})

test('of a zone in several fleets jobs are added, and the age is that of the oldest one', async () => {
  const fleetOf = (waitedMs: number) => ({
    queues: () =>
      Promise.resolve([
        { kind: 'jobs', zone: 'both', waiting: 1, taken: 0, dead: 2, waitedMs } as const,
        { kind: 'runs', zone: 'both', waiting: 1, taken: 3, dead: 0, waitedMs: waitedMs / 2 } as const,
      ]),
  })
  const fleets = [fleetOf(3000), fleetOf(7000), fleetOf(500)]
  const app = createApp({ routes: { '/metrics': metrics({ fleets }) } })
  const text = await (await app.inject('/metrics')).text()
  assert.match(text, /^corespun_jobs\{corespun_zone="both",corespun_job_state="dead"\} 6$/m)
  assert.match(text, /^corespun_jobs_age_seconds\{corespun_zone="both"\} 7$/m)
  assert.match(text, /^corespun_runs\{corespun_run_name="both",corespun_run_state="taken"\} 9$/m)
  assert.match(text, /^corespun_runs_age_seconds\{corespun_run_name="both"\} 3.5$/m)
})

test('scrapes that come together ask a fleet once, and one that fails is asked again', async () => {
  let asked = 0
  const fleet = {
    queues: () => {
      asked++
      return asked === 1 ? Promise.reject(new Error('away')) : Promise.resolve([])
    },
  }
  const app = createApp({ routes: { '/metrics': metrics({ fleets: [fleet] }) } })
  await Promise.all(Array.from({ length: 20 }, () => app.inject('/metrics')))
  assert.equal(asked, 1)
  await until(async () => {
    await app.inject('/metrics')
    return asked === 2
  })
})

test('without the option those of the connections of its thread are shown, each once', async () => {
  const shown = async (options?: MetricsOptions): Promise<string | undefined> => {
    const app = createApp({ routes: { '/metrics': metrics(options) } })
    const text = await (await app.inject('/metrics')).text()
    return /^corespun_jobs\{corespun_zone="found",corespun_job_state="waiting"\} (\d+)$/m.exec(text)?.[1]
  }
  const [fleet, other] = [await connect('memory:found'), await connect('memory:found')]
  await fleet.jobs<{ send(): void }>('found').submit('one', 'send', [])
  // Of scrapes within half a second the later ones show the same.
  await until(async () => (await shown()) === '1')
  assert.equal(await shown({ fleets: [] }), undefined)
  await fleet.close()
  assert.equal(await shown(), '1')
  await other.close()
  await until(async () => (await shown()) === undefined)
})
