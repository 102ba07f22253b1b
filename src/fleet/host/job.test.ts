/**
 * From when the time of a job counts, at a zone that is played: what a real one does takes luck to see.
 *
 * The test announces that the job begins, as its worker would.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BroadcastChannel } from 'node:worker_threads'
import { decode, encode } from '../../transport/index.ts'
import type { RemoteZone } from '../../zone/internal.ts'
import type { JobTask } from '../jobs/attempt.ts'
import { REPORTS, type JobFacts } from '../worker/current.ts'
import { JobRunner } from './job.ts'

/** One job at a zone that never ends it. */
function played(task: Partial<JobTask>) {
  const begun: { facts: JobFacts; timeoutMs: number | undefined }[] = []
  const stopped: unknown[] = []
  const zone = {
    id: 'played',
    begin: (_: unknown, given: unknown[], _end: unknown, _fail: unknown, limits: { timeoutMs?: number }) => {
      begun.push({ facts: given[2] as JobFacts, timeoutMs: limits.timeoutMs })
      return (why: unknown) => stopped.push(why)
    },
  }
  const runner = new JobRunner(zone as unknown as RemoteZone, { url: 'u', zone: 'z' })
  const outcome = runner.run({
    key: 'k',
    attempt: 1,
    name: 'f',
    args: encode([]),
    timeoutMs: 1,
    trace: undefined,
    ended: undefined,
    signal: new AbortController().signal,
    begun: undefined,
    progress: () => {},
    ...task,
  })
  return { runner, outcome, zoneCall: begun[0], stopped }
}

test('the zone limits a job that it begins at once', () => {
  const { runner, zoneCall } = played({})
  assert.deepEqual([zoneCall.timeoutMs, zoneCall.facts.isAnnounced], [1, false])
  runner.close()
})

test('the time of a job that may wait for the zone counts from when it begins', async () => {
  let begunCount = 0
  const { runner, outcome, zoneCall, stopped } = played({ begun: () => begunCount++ })
  assert.deepEqual([zoneCall.timeoutMs, zoneCall.facts.isAnnounced, begunCount], [undefined, true, 0])
  const worker = new BroadcastChannel(REPORTS)
  worker.postMessage([zoneCall.facts.run, undefined])
  const [isError, frame] = await outcome
  const { code, facts } = decode(frame) as { code: string; facts: { started: boolean } }
  assert.deepEqual([isError, code, facts.started, begunCount], [true, 'TASK_TIMEOUT', true, 1])
  assert.equal((stopped[0] as DOMException).name, 'TimeoutError')
  worker.close()
  runner.close()
})
