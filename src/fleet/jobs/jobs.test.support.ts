/**
 * What durable jobs promise, as tests that run on any engine.
 *
 * Hosts and callers are in this process, each with a connection of its own.
 */
import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { withTrace, zone } from '../../zone/index.ts'
import type { FleetChanges } from '../changes.ts'
import type { Fleet } from '../connect.ts'
import { newName } from '../engine/conformance.test.support.ts'
import { FleetError } from '../errors.ts'
import { type HostOptions, host } from '../host/host.ts'
import { ScoreError, user } from '../scores.test.support.ts'
import { caps } from './caps.test.support.ts'
import { controls } from './controls.test.support.ts'
import type { JobInfo } from './info.ts'
import { joins } from './joins.test.support.ts'
import { larges } from './large.test.support.ts'
import { lists } from './lists.test.support.ts'
import { substitutes } from './substituted.test.support.ts'
import { type Check, type Hosting, type Scores, type Setting, code, soon } from './setting.test.support.ts'

const MODULE = new URL('../scores.test.support.js', import.meta.url)
const SOON = { backoffMs: 1, backoffMsMax: 1 }

/** The changes up to one, which is the last of what is returned. */
async function until(changes: FleetChanges<JobInfo>, isLast: (info: JobInfo) => boolean): Promise<JobInfo[]> {
  const all: JobInfo[] = []
  for (;;) {
    const { value, done } = await changes.next()
    if (done === true) return all
    all.push(value)
    if (isLast(value)) return all
  }
}

/** The tests, with connections that `connect` makes. */
export function jobTests(kind: string, connect: () => Promise<Fleet>): void {
  const cpu = zone.create(`jobs ${kind}`, { workers: 2, graceMs: 100 })
  const folder = mkdtempSync(join(tmpdir(), 'jobs-'))
  after(async () => {
    await cpu.close()
    rmSync(folder, { recursive: true })
  })
  const check = (title: string, work: (setting: Setting) => Promise<void>): void => {
    test(`${kind}: ${title}`, async () => {
      const name = newName()
      const caller = await connect()
      const open: Fleet[] = [caller]
      const another = async (): Promise<Fleet> => {
        const fleet = await connect()
        open.push(fleet)
        return fleet
      }
      const begin = async (options: Partial<HostOptions> = {}): Promise<Hosting> => {
        const fleet = await another()
        const own = { name, module: MODULE, version: 'v1', zone: cpu, jobsMax: 2, leaseMs: 500, ...options }
        const hosting = await host(fleet, own)
        return {
          fleet,
          close: (timeoutMs) => hosting.close({ timeoutMs }),
          get jobsRunning() {
            return hosting.jobsRunning
          },
        }
      }
      try {
        const jobs = caller.jobs<Scores>(name)
        await work({ name, jobs, caller, connect: another, begin, file: () => join(folder, newName()) })
      } finally {
        for (const fleet of open.reverse()) await fleet.close()
      }
    })
  }
  results(check)
  spans(check)
  failures(check)
  ends(check)
  limits(check)
  losses(check)
  hosts(check)
  schedules(check)
  lists(check)
  controls(check)
  caps(check)
  joins(check)
  larges(check)
  substitutes(check)
}

function results(check: Check): void {
  check('a job waits for a host, and its key has one result, for all', async (setting) => {
    const { name, jobs, begin, connect } = setting
    assert.equal(await jobs.get('a/1 ä'), undefined)
    for (const is of [true, false]) assert.equal(await jobs.submit('a/1 ä', 'score', ['four']), is)
    assert.equal((await jobs.get('a/1 ä'))?.status, 'waiting')
    assert.equal(await jobs.count(), 1)
    const elsewhere = (await connect()).jobs<Scores>(name)
    const before = [jobs, elsewhere].map((each) => each.result('a/1 ä'))
    await begin()
    assert.deepEqual(await Promise.all(before), [4, 4])
    assert.equal(await jobs.result('a/1 ä'), 4)
    assert.equal((await jobs.get('a/1 ä'))?.status, 'done')
    assert.equal(await jobs.submit('a/1 ä', 'score', ['other']), false)
    for (const is of [true, false]) assert.equal(await jobs.forget('a/1 ä'), is)
    assert.equal(await jobs.submit('a/1 ä', 'score', ['other']), true)
    assert.equal(await jobs.result('a/1 ä'), 5)
  })

  check('a job has the baggage of who has submitted it, whose trace is a cause', async ({ jobs, begin }) => {
    await begin()
    const baggage = 'tenant=7'
    const trace = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', baggage }
    await user.run('Ann', () =>
      withTrace(trace, async () => {
        await jobs.submit('with baggage', 'traced', [])
        await withTrace({ traceparent: trace.traceparent }, () => jobs.submit('without', 'traced', []))
      }),
    )
    await jobs.submit('outside', 'traced', [])
    assert.deepEqual(await jobs.result('with baggage'), [{ baggage }, trace, undefined])
    const cause = { traceparent: trace.traceparent }
    assert.deepEqual(await jobs.result('without'), [undefined, cause, undefined])
    assert.deepEqual(await jobs.result('outside'), [undefined, undefined, undefined])
  })

  check('a result is kept for its time', async ({ jobs, begin }) => {
    await jobs.submit('short', 'nothing', [], { ttlMs: 1000 })
    const result = jobs.result('short')
    await begin()
    assert.equal(await result, undefined)
    while ((await jobs.get('short')) !== undefined) await soon()
    await assert.rejects(jobs.result('short'), code('JOB_UNKNOWN'))
    assert.equal(await jobs.submit('short', 'score', ['x']), true)
    assert.equal(await jobs.result('short'), 1)
  })

  check('jobs of a higher priority begin first', async ({ jobs, begin }) => {
    const changes = await jobs.watch()
    const submit = (key: string, priority: 'high' | 'normal' | 'low') =>
      jobs.submit(key, 'score', [key], { priority })
    for (const key of ['low', 'normal', 'high'] as const) await submit(key, key)
    await begin({ jobsMax: 1 })
    const seen = await until(changes, ({ key }) => key === 'low')
    // One that lasts is seen twice: that it runs, and its end.
    assert.deepEqual([...new Set(seen.map(({ key }) => key))], ['high', 'normal', 'low'])
    await changes.return()
    assert.deepEqual(await changes.next(), { value: undefined, done: true })
  })
}

function spans(check: Check): void {
  check('a job reports its progress, and reads its key and its attempt', async ({ jobs, begin, file }) => {
    await begin()
    await using changes = await jobs.watch()
    const path = file()
    await jobs.submit('r', 'report', [path])
    const hasBegun = ({ progress }: JobInfo): boolean => (progress as { at?: string })?.at === 'the begin'
    const [running] = (await until(changes, hasBegun)).slice(-1)
    assert.equal(running.status, 'running')
    assert.deepEqual((await jobs.get('r'))?.progress, { at: 'the begin' })
    writeFileSync(path, '')
    assert.deepEqual(await jobs.result('r'), ['r', 1])
    await until(changes, ({ status }) => status === 'done')
  })

  check('a job longer than its lease runs once, though its worker is busy', async ({ jobs, begin, file }) => {
    await begin({ leaseMs: 400 })
    await jobs.submit('long', 'busy', [file(), 1500])
    assert.equal(await jobs.result('long'), 1)
    const info = await jobs.get('long')
    assert.deepEqual([info?.failures, info?.hostsLost], [0, 0])
  })

  check('a delayed job begins no earlier', async ({ jobs, begin }) => {
    await begin()
    const begunMs = performance.now()
    await jobs.submit('later', 'score', ['x'], { delayMs: 300 })
    assert.equal(await jobs.result('later'), 1)
    // By the server's clock, which has whole milliseconds.
    assert.ok(performance.now() - begunMs >= 295)
  })
}

function failures(check: Check): void {
  check('an attempt that fails is repeated, with its number', async ({ jobs, begin }) => {
    await begin()
    await jobs.submit('t', 'third', [], { retry: SOON })
    assert.equal(await jobs.result('t'), 3)
    assert.equal((await jobs.get('t'))?.failures, 2)
  })

  check('a job that fails for good is a dead letter with its errors', async ({ jobs, begin }) => {
    await begin()
    await jobs.submit('bad', 'fail', ['LOW'], { retry: { attemptsMax: 2, ...SOON } })
    await assert.rejects(jobs.result('bad'), (error) => {
      assert.ok(error instanceof FleetError && error.code === 'JOB_DEAD')
      assert.ok(error.cause instanceof ScoreError)
      return true
    })
    const [letter, ...others] = await jobs.dead()
    assert.equal(others.length, 0)
    assert.deepEqual(
      [letter.key, letter.status, letter.failures, letter.name, letter.args],
      ['bad', 'dead', 2, 'fail', ['LOW']],
    )
    assert.deepEqual(
      letter.errors.map((error) => (error as ScoreError).code),
      ['LOW', 'LOW'],
    )
    assert.equal(await jobs.again('other'), false)
    assert.equal(await jobs.again('bad'), true)
    await assert.rejects(jobs.result('bad'), code('JOB_DEAD'))
    assert.equal(await jobs.forget('bad'), true)
    assert.deepEqual(await jobs.dead({ jobsMax: 5 }), [])
    assert.equal(await jobs.get('bad'), undefined)
  })

  check('long errors are cut', async ({ jobs, begin }) => {
    await begin()
    const once = { retry: { attemptsMax: 1 } }
    await jobs.submit('long', 'failLongly', [50_000], once)
    await assert.rejects(jobs.result('long'), ({ cause }: Error) => {
      assert.ok((cause as Error).message.length <= 500)
      return true
    })
  })

  check('a host whose module has no such function leaves the job to others', async ({ jobs, begin }) => {
    const old = new URL('data:text/javascript,export const score = () => 1')
    await begin({ module: old, version: 'old' })
    const keys = Array.from({ length: 6 }, (_, index) => `job ${index}`)
    for (const key of keys) await jobs.submit(key, 'echo', [key], { retry: { attemptsMax: 1 } })
    for (const key of keys) {
      while ((await jobs.get(key))?.errors.length !== 1) await soon()
      const { failures, errors } = (await jobs.get(key))!
      assert.equal(failures, 0)
      code('EXPORT_MISSING')(errors[0])
    }
    await begin()
    assert.deepEqual(await Promise.all(keys.map((key) => jobs.result(key))), keys)
  })

  check('an attempt ends by its time', async ({ jobs, begin }) => {
    await begin()
    await jobs.submit('w', 'wait', [], { timeoutMs: 50, retry: { attemptsMax: 1 } })
    await assert.rejects(jobs.result('w'), ({ cause }: Error) => code('TASK_TIMEOUT')(cause))
  })
}

function ends(check: Check): void {
  check('a job that waits is cancelled before it begins', async ({ jobs, begin }) => {
    assert.equal(await jobs.cancel('c'), false)
    await jobs.submit('c', 'score', ['x'])
    assert.equal(await jobs.cancel('c'), true)
    assert.equal(await jobs.cancel('c'), false)
    await begin()
    await assert.rejects(jobs.result('c'), code('JOB_CANCELLED'))
    assert.equal(await jobs.count(), 0)
  })

  check('the signal of a job that is cancelled is aborted', async ({ jobs, begin }) => {
    const hosting = await begin()
    await using changes = await jobs.watch()
    await jobs.submit('c', 'wait', [])
    const result = jobs.result('c')
    result.catch(() => {}) // it may fail before it is waited for
    await until(changes, ({ status }) => status === 'running')
    assert.equal(hosting.jobsRunning, 1)
    assert.equal(await jobs.cancel('c'), true)
    await assert.rejects(result, code('JOB_CANCELLED'))
    await hosting.close()
    assert.equal(hosting.jobsRunning, 0)
  })

  check('a cancelled job whose message is lost is found out', async ({ name, jobs, begin, caller }) => {
    const hosting = await begin({ leaseMs: 300 })
    await using changes = await jobs.watch()
    await jobs.submit('c', 'wait', [])
    await until(changes, ({ status }) => status === 'running')
    // As `cancel` does it, without the message.
    const records = await caller.engine.keyValue(`jobs_${name}`, { ttlMs: 0 })
    const { writeRecord, FRESH } = await import('./record.ts')
    await records.put('c', writeRecord({ ...FRESH, status: 'cancelled' }))
    await (await caller.engine.queue(`jobs_${name}`)).remove('c')
    await assert.rejects(jobs.result('c'), code('JOB_CANCELLED'))
    while (hosting.jobsRunning > 0) await soon()
  })

  check('who waits for a result may leave', async ({ jobs }) => {
    await jobs.submit('w', 'score', ['x'])
    await assert.rejects(jobs.result('w', { timeoutMs: 5 }), code('JOB_TIMEOUT'))
    const controller = new AbortController()
    const result = jobs.result('w', { signal: controller.signal })
    const why = new Error('left')
    controller.abort(why)
    await assert.rejects(result, (error) => error === why)
    await assert.rejects(jobs.result('w', { signal: controller.signal }), (error) => error === why)
    await assert.rejects(jobs.result('never'), code('JOB_UNKNOWN'))
    await assert.rejects(jobs.result('never', { timeoutMs: 60_000 }), code('JOB_UNKNOWN'))
  })
}

function limits(check: Check): void {
  check('a result that is waited for too long states what the job waits for', async ({ jobs, begin }) => {
    await jobs.submit('w', 'score', ['x'], { delayMs: 3_600_000 })
    await jobs.submit('n', 'nobody' as 'score', ['x'])
    const late = { timeoutMs: 1 }
    const isUnhosted = /within 1 ms: no host takes jobs of this zone .*jobsMax/
    while (!isUnhosted.test(String(await jobs.result('w', late).catch((error: unknown) => error))));
    await begin()
    for (;;) {
      const error = (await jobs.result('n', late).catch((caught: Error) => caught)) as Error
      if (/its last error: .*no function "nobody"/.test(error.message)) break
      assert.equal((error as { code?: unknown }).code, 'JOB_TIMEOUT')
    }
    const { dueAt } = (await jobs.get('w'))!
    assert.ok(
      dueAt !== undefined && Math.abs(dueAt.getTime() - Date.now() - 3_600_000) < 600_000,
      String(dueAt),
    )
  })

  check('the time of a job names the zone as its caller does', async ({ name, jobs, begin }) => {
    await begin()
    await jobs.submit('t', 'wait' as 'score', [] as never, { timeoutMs: 30, retry: { attemptsMax: 1 } })
    await assert.rejects(jobs.result('t'), (error: Error) => {
      const { code: own, facts } = error.cause as { code?: unknown; facts?: { zone: string } }
      assert.deepEqual([own, facts?.zone], ['TASK_TIMEOUT', name])
      return true
    })
  })

  check(
    'changes that nobody waits for report nothing when the connection closes',
    async ({ caller, name }) => {
      void caller.jobs(name).watch()
      void caller.store(name).watch()
      await caller.close()
    },
  )

  check('what is not a job is a dead letter', async ({ name, jobs, begin, caller }) => {
    const queue = await caller.engine.queue(`jobs_${name}`)
    await queue.add('noise', new Uint8Array([1, 2, 3]), 1)
    await queue.add('large', new Uint8Array(caller.engine.messageBytesMax - 512), 1)
    caller.engine.messages?.send(`corespun.jobs.${name}`, new Uint8Array([1]))
    await begin()
    for (const key of ['noise', 'large']) await assert.rejects(jobs.result(key), code('JOB_DEAD'))
    for (const letter of await jobs.dead()) {
      assert.deepEqual([letter.name, letter.args], ['', []])
      assert.match(String(letter.errors[0]), /not that of a job/)
    }
  })
}

function losses(check: Check): void {
  check('a record that cannot be read does not count', async ({ name, jobs, begin, caller }) => {
    await begin()
    const records = await caller.engine.keyValue(`jobs_${name}`, { ttlMs: 0 })
    await records.put('k', new Uint8Array([1, 2, 3]))
    assert.equal(await jobs.submit('k', 'score', ['x']), true)
    assert.equal(await jobs.result('k'), 1)
  })

  check('a reader of changes has an error when the connection ends', async ({ jobs, caller }) => {
    const changes = await jobs.watch()
    await Promise.all([assert.rejects(changes.next(), code('FLEET_CLOSED')), caller.close()])
    assert.equal((await changes.next()).done, true)
  })
}

function hosts(check: Check): void {
  check('jobs of a host that closes are finished, or left to another one', async (setting) => {
    const { jobs, begin, file } = setting
    const [path, first] = [file(), await begin()]
    await using changes = await jobs.watch()
    await jobs.submit('finished', 'report', [path])
    await until(changes, ({ status }) => status === 'running')
    const closed = first.close()
    writeFileSync(path, '')
    assert.deepEqual(await jobs.result('finished'), ['finished', 1])
    await closed
    const second = await begin()
    await jobs.submit('left', 'wait', [])
    await until(changes, ({ status }) => status === 'running')
    await second.close(0)
    const left = await jobs.get('left')
    assert.deepEqual([left?.status, left?.failures, left?.hostsLost], ['waiting', 0, 0])
    const third = await begin()
    await until(changes, ({ key, status }) => key === 'left' && status === 'running')
    await jobs.cancel('left')
    await third.close()
  })

  check(
    'a job is notified when its host begins to leave, whenever it asks',
    async ({ jobs, begin, file }) => {
      const [early, late, asks] = [file(), file(), file()]
      const hosting = await begin()
      await jobs.submit('early', 'left', [early])
      await jobs.submit('late', 'left', [late, asks])
      while (!existsSync(early) || !existsSync(late)) await soon()
      const closed = hosting.close(60_000)
      const why = 'AbortError: The host of the job is closing'
      assert.equal(await jobs.result('early'), why)
      writeFileSync(asks, '')
      assert.equal(await jobs.result('late'), why)
      await closed
    },
  )

  check('a job whose host is lost runs on another one, and not for ever', async ({ jobs, begin }) => {
    await using changes = await jobs.watch()
    const isRunning = ({ status }: JobInfo): boolean => status === 'running'
    await jobs.submit('lost', 'wait', [], { retry: { hostsLostMax: 1 } })
    for (const hostsLost of [0, 1]) {
      const hosting = await begin({ leaseMs: 300 })
      const seen = await until(changes, isRunning)
      assert.equal(seen.at(-1)?.hostsLost, hostsLost)
      await hosting.fleet.engine.close() // as a death: nothing is finished
    }
    await begin({ leaseMs: 300 })
    await assert.rejects(jobs.result('lost'), ({ cause }: Error) => code('HOST_LOST')(cause))
    assert.equal((await jobs.dead())[0].hostsLost, 2)
  })
}

function schedules(check: Check): void {
  check('a schedule adds a job each time, until it is cancelled', async ({ jobs, begin }) => {
    await using changes = await jobs.watch()
    const schedule = { everyMs: 1000 }
    for (const is of [true, false]) assert.equal(await jobs.submit('s', 'score', ['tick'], { schedule }), is)
    await begin()
    const { key } = (await until(changes, ({ key, status }) => key.startsWith('s@') && status === 'done')).at(
      -1,
    )!
    assert.match(key, /^s@\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    assert.equal(await jobs.result(key), 4)
    const info = (await jobs.get('s'))!
    assert.equal(info.status, 'scheduled')
    assert.ok(info.dueAt! > new Date(key.slice(2)))
    assert.equal(await jobs.cancel('s'), true)
    assert.equal(await jobs.get('s'), undefined)
    await jobs.submit('s', 'score', ['x'], { schedule: { cron: '0 3 * * *' } })
    const [{ dueAt }] = await until(changes, ({ key: of, status }) => of === 's' && status === 'scheduled')
    // Another one replaces it; the same one changes nothing.
    for (const is of [true, false])
      assert.equal(await jobs.submit('s', 'score', ['y'], { schedule, priority: 'high' }), is)
    assert.equal(await jobs.count(), 1)
    await until(changes, (info) => info.key === 's' && info.dueAt?.getTime() !== dueAt?.getTime())
    assert.equal(await jobs.cancel('s'), true)
  })
}
