/**
 * Jobs of a zone, as callers see them: submitted by a key, found again by it from any process.
 *
 * A job is an item of a queue and a record (record.ts). Only what `result` and `watch` wait for is here.
 * Over 400 lines: one class, whose methods are what users call, each with its documentation.
 */
import { decode, encode } from '../../transport/index.ts'
import { currentTrace } from '../../zone/index.ts'
import type { ExportName, ExportValue } from '../../zone/internal.ts'
import type { Engine, Entry, Rank } from '../engine/engine.ts'
import { FleetChanges, unawaited } from '../changes.ts'
import { FleetError, checkSize, isDone, wrong } from '../errors.ts'
import {
  type EndState,
  type JobBulkOptions,
  type JobListOptions,
  type JobOptions,
  type SubmitManyOptions,
  type LiveState,
  bulkOptions,
  deadOptions,
  endState,
  jobOptions,
  listOptions,
  liveState,
  resultOptions,
  submitManyOptions,
} from '../job-settings.ts'
import { type FarOptions, VALUE_BYTES_MAX, checkExport, checkKey } from '../settings.ts'
import { written } from '../wire.ts'
import type { ExportArgs } from '../zone/far-zone.ts'
import { certainly, opened } from '../certainly.ts'
import { cancelled } from './cancelled.ts'
import { delayOf } from './delay.ts'
import { Ends } from './ends.ts'
import { type DeadJob, type JobInfo, argsOf, infoOf } from './info.ts'
import { thrownBy } from './frames.ts'
import { unknownOf } from './joins.ts'
import { Large, argsIn, referenceTo } from './large.ts'
import { QUEUE_KEY, isPausedBy, writePaused } from './gate.ts'
import {
  type JobCounts,
  type JobPage,
  type Room,
  counted,
  endPages,
  freshOf,
  inBulk,
  listed,
  livePages,
} from './listing.ts'
import {
  FRESH,
  type Job,
  RANK_OF,
  RECORD_BYTES,
  type Repeat,
  type EndedRecord,
  cancelSubject,
  hasEnded,
  isEndOf,
  lettersName,
  queueName,
  readJob,
  readLetter,
  readRecord,
  recordsName,
  writeJob,
} from './record.ts'
import { nextOf, replaced } from './schedule.ts'
import { substituted } from './substituted.ts'
import { Waited } from './waited.ts'
import { identityOf } from './wake.ts'
import { addedWithin } from './within.ts'

/** How long `submit` repeats what a server has not confirmed, as while it elects a leader. */
const SUBMIT_MS = 15_000
/** How many of `submitMany` are on their way at once. */
const SUBMITS_MAX = 256
/** Dead letters that are read at once. */
const LETTERS = 256

/** Large arguments that are submitted. */
interface Kept {
  readonly reference: string
  readonly after: readonly string[] | undefined
  /** Whether the job may replace what its key has. */
  readonly mayReplace: boolean
}

/** A job of {@link Jobs.submitMany}, as `submit` takes it. */
export type JobSubmission<Module> = {
  readonly [Name in ExportName<Module>]: {
    /** As of `submit`. */
    readonly key: string
    /** The export. */
    readonly name: Name
    /** Its arguments. */
    readonly args: ExportArgs<Module, Name>
    /** How it is run. */
    readonly options?: JobOptions | undefined
  }
}[ExportName<Module>]

/**
 * Jobs of a zone. `fleet.jobs(name)` makes it; it has no state that would have to be closed.
 *
 * A job runs at least once, on a host with `jobsMax`, and its key has one result. All methods fail with
 * `FLEET_TIMEOUT` when the server does not confirm and with `FLEET_CLOSED` after the end of the connection.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { type Jobs, connect, host } from 'corespun/fleet'
 *
 * await using fleet = await connect('memory:')
 * const module = new URL('data:text/javascript,export const double = (n) => n * 2')
 * await using hosting = await host(fleet, { name: 'math', module, version: 'v1', jobsMax: 2 })
 * const jobs: Jobs<{ double(n: number): number }> = fleet.jobs(hosting.name)
 * await jobs.submit('invoice-17', 'double', [21], { retry: { attemptsMax: 5 } })
 * assert.equal(await jobs.result('invoice-17'), 42)
 * assert.equal(await jobs.submit('invoice-17', 'double', [21]), false)
 * ```
 */
export class Jobs<Module> {
  /** The name of the zone. */
  readonly name: string
  readonly #engine: Engine
  readonly #room = opened(() => this.#open())
  readonly #ends: Ends
  readonly #large: Large
  readonly #valueBytesMax: number

  /** @internal */
  constructor(engine: Engine, name: string, valueBytesMax = VALUE_BYTES_MAX) {
    this.name = name
    this.#engine = engine
    this.#valueBytesMax = valueBytesMax
    this.#large = new Large({ engine, zone: name, valueBytesMax, certainly: (work) => this.#repeated(work) })
    this.#ends = new Ends(engine, name, async () => (await this.#room()).records)
  }

  async #open(): Promise<Room> {
    const forGood = { ttlMs: 0 }
    const [queue, records, letters] = await Promise.all([
      this.#engine.queue(queueName(this.name)),
      this.#engine.keyValue(recordsName(this.name), forGood),
      this.#engine.keyValue(lettersName(this.name), forGood),
    ])
    return { queue, records, letters }
  }

  /**
   * Have an export called once or more, by any host. Resolves when the servers have the job: true, or false
   * when the key is taken, by a job that waits or runs or by a result that is kept; nothing changes then. A
   * schedule replaces another one of its key, at once and counted anew: true, or false if they are the same.
   * What is not confirmed is repeated for 15 s, and calling it again is safe: false may then mean the job
   * that was added, unconfirmed, before.
   * @throws {FleetError} `FLEET_ARGUMENT`, `FLEET_TOO_LARGE`, `FLEET_PEER_MISSING` for a `schedule.cron`,
   *   `JOB_UNKNOWN` for a key in `after` that no job has.
   * @throws {TransportError} For arguments that cannot be encoded.
   */
  async submit<Name extends ExportName<Module>>(
    key: string,
    name: Name,
    args: ExportArgs<Module, Name>,
    options?: JobOptions,
  ): Promise<boolean> {
    const call = 'jobs.submit()'
    const trace = currentTrace()
    const { retry, repeat: asked, priority, delayMs, timeoutMs, ttlMs, ...rest } = jobOptions(options)
    const { limit, after, replace, client } = rest
    checkKey(call, key, asked !== undefined)
    checkExport(call, name)
    if (after?.includes(key)) throw wrong(`${call}: after`, 'keys of other jobs', after)
    if (!Array.isArray(args)) throw wrong(`${call}: args`, 'an array', args)
    const repeat: Repeat | undefined = asked && {
      ...asked,
      everyMs: asked.everyMs ?? 0,
      cron: asked.cron ?? '',
    }
    if (repeat !== undefined) await nextOf(repeat, 0, Date.now())
    const limits = { ...retry, delayMs, ttlMs, timeoutMs: timeoutMs ?? 0 }
    const rank = RANK_OF[priority]
    const { origin } = this.#ends
    const about = { name, args: encode(args), rank, limits, repeat, trace, origin, limit, after }
    const [submission, isFirst] = this.#ends.begin(key)
    let isAdded = false
    let times = 0
    const isPlain = !replace && repeat === undefined && after === undefined && client === undefined
    try {
      const job = { ...about, submission, replaces: replace, woken: undefined }
      const { bytes, reference } = this.#carried(job)
      if (reference !== undefined && client === undefined) {
        const mayReplace = replace || repeat !== undefined
        if (!(await this.#keep(key, about.args, { reference, after, mayReplace }))) return false
      }
      const submit = async (): Promise<boolean> => {
        times++
        const { queue, records } = await this.#room()
        if (isPlain && queue.addUnless !== undefined) {
          const on = isFirst ? this.#ends.watchFirst(key, submission) : undefined
          const isNew = await queue.addUnless(recordsName(this.name), key, bytes, rank, on)
          if (isNew !== undefined) return isNew
          if (on !== undefined) this.#ends.drop(key) // nothing is watched
        }
        // Its end may be reported before it is confirmed that it was added.
        await this.#ends.listen()
        if (!replace && hasEnded(readRecord((await records.get(key))?.bytes))) return false
        await this.#checkAfter(after)
        if (replace) return this.#replace(key, bytes, rank)
        if (client !== undefined) {
          const within = { queue, client, scheme: this.#engine.scheme, large: this.#large }
          return addedWithin(within, [key, bytes, rank], reference, about.args)
        }
        if (await queue.add(key, bytes, rank)) return true
        return repeat !== undefined && replaced(queue, this.#large, [key, bytes, rank])
      }
      isAdded = await this.#repeated(submit)
      // What was not confirmed may be added yet.
      if (!isAdded && times === 1 && reference !== undefined && client === undefined)
        await this.#large.drop(await this.#room(), key, reference)
      return isAdded
    } finally {
      if (!isAdded && isFirst) this.#ends.drop(key)
    }
  }

  get #bytesMax(): number {
    return this.#engine.messageBytesMax - RECORD_BYTES
  }

  /** What is not confirmed is repeated for a while. */
  #repeated<Value>(work: () => Promise<Value>): Promise<Value> {
    return certainly(this.#engine, work, (spentMs) => spentMs < SUBMIT_MS)
  }

  /** A job as its item has it: with a reference to its arguments where they are large. */
  #carried(job: Job & { readonly args: Uint8Array }): { bytes: Uint8Array; reference?: string } {
    const bytes = job.args.length > this.#bytesMax ? undefined : writeJob(job)
    if (bytes !== undefined && bytes.length <= this.#bytesMax) return { bytes }
    checkSize(job.args.length, this.#valueBytesMax)
    const reference = referenceTo(job.args, job.repeat !== undefined)
    const short = writeJob({ ...job, args: reference })
    checkSize(short.length, this.#bytesMax, 'max_payload')
    return { bytes: short, reference }
  }

  /** Write large arguments, unless their job would be refused. @returns False: its key is taken. */
  async #keep(key: string, args: Uint8Array, { reference, after, mayReplace }: Kept): Promise<boolean> {
    const { queue, records } = await this.#repeated(() => this.#room())
    const isTaken = async (): Promise<boolean> =>
      hasEnded(readRecord((await records.get(key))?.bytes)) || (await queue.find(key)) !== undefined
    if (!mayReplace && (await this.#repeated(isTaken))) return false
    await this.#repeated(() => this.#checkAfter(after))
    await this.#large.put(reference, key, args)
    return true
  }

  /** Add a job instead of the one that its key has; false for a schedule. */
  async #replace(key: string, bytes: Uint8Array, rank: Rank): Promise<boolean> {
    const isAdded = await substituted(await this.#room(), this.#large, [key, bytes, rank])
    // Whoever runs the one before finds that its record is another one's.
    if (isAdded) this.#engine.messages?.send(cancelSubject(this.name), written('cancel', key))
    return isAdded
  }

  /** @throws {FleetError} `JOB_UNKNOWN`. */
  async #checkAfter(after: readonly string[] = []): Promise<void> {
    const { queue, records } = await this.#room()
    const unknown = await unknownOf({ queue, records, certainly: (work) => work() }, after)
    if (unknown !== undefined) throw new FleetError('JOB_UNKNOWN', { zone: this.name, key: unknown })
  }

  /**
   * What the job returns, once it does; from any process.
   * @throws {FleetError} `JOB_DEAD` with the last error as its cause, `JOB_CANCELLED`, `JOB_UNKNOWN`; by
   *   `timeoutMs` `JOB_TIMEOUT`, and the job goes on. Of a result that is larger than a message
   *   `JOB_DATA_LOST`, and `FLEET_TOO_LARGE` above the `valueBytesMax` of this connection.
   */
  async result<Name extends ExportName<Module> = ExportName<Module>>(
    key: string,
    options?: FarOptions,
  ): Promise<ExportValue<Module, Name>> {
    checkKey('jobs.result()', key)
    const { name: zone } = this
    const waited = new Waited({
      key,
      clock: this.#engine.clock,
      ends: this.#ends,
      find: (goesOn) => this.#isWaiting(key, goesOn),
      read: (goesOn, finding) => this.#endOf(key, goesOn, finding),
      late: async (timeoutMs) => {
        const reason = await delayOf(this.#engine, zone, this.#room, key)
        return new FleetError('JOB_TIMEOUT', { zone, key, timeoutMs, reason })
      },
    })
    const checked = resultOptions(options)
    const begunMs = this.#engine.clock.nowMs()
    const { status, failures, hostsLost, value, errors } = await waited.end(checked)
    if (status === 'done') {
      const goOn = (): void => this.#goOn(key, checked, begunMs)
      const frame = typeof value === 'string' ? await this.#fetched(key, value, goOn) : value!
      if (frame !== undefined) return decode(frame) as never
      goOn()
      const { timeoutMs = Infinity } = checked
      const leftMs = timeoutMs - (this.#engine.clock.nowMs() - begunMs)
      if (leftMs === Infinity) return this.result(key, options)
      return this.result(key, { ...options, timeoutMs: Math.max(1, leftMs) })
    }
    if (status === 'cancelled') throw new FleetError('JOB_CANCELLED', { zone, key })
    const cause = thrownBy(errors.at(-1))
    throw new FleetError('JOB_DEAD', { zone, key, failures, hostsLost }, { cause })
  }

  #goOn(key: string, { signal, timeoutMs = Infinity }: FarOptions, begunMs: number): void {
    signal?.throwIfAborted()
    if (this.#engine.clock.nowMs() - begunMs > timeoutMs)
      throw new FleetError('JOB_TIMEOUT', { zone: this.name, key, timeoutMs })
  }

  /**
   * A large result; `undefined` when another job has the key meanwhile.
   * @throws {FleetError} `JOB_UNKNOWN`, `JOB_DATA_LOST`, and what `goOn` throws.
   */
  async #fetched(key: string, reference: string, goOn: () => void): Promise<Uint8Array | undefined> {
    const frame = await this.#large.get(reference, goOn)
    if (frame !== undefined) return frame
    const goesOn = (): boolean => false
    const record = await this.#endOf(key, goesOn, this.#isWaiting(key, goesOn))
    if (record?.value !== reference) return undefined
    throw new FleetError('JOB_DATA_LOST', { zone: this.name, key, what: 'result' })
  }

  /** Whether there is an item. */
  async #isWaiting(key: string, goesOn: () => boolean): Promise<boolean> {
    const { queue } = await certainly(this.#engine, () => this.#room(), goesOn)
    return (await certainly(this.#engine, () => queue.find(key), goesOn)) !== undefined
  }

  /**
   * The record of a job that has ended.
   * @param finding Whether it waits. An end is written before its item is removed, so what is read behind
   *   that is an end, or there is no such job.
   * @throws {FleetError} `JOB_UNKNOWN`.
   */
  async #endOf(
    key: string,
    goesOn: () => boolean,
    finding: Promise<boolean>,
  ): Promise<EndedRecord | undefined> {
    const { records } = await certainly(this.#engine, () => this.#room(), goesOn)
    const read = async (): Promise<ReturnType<typeof readRecord>> =>
      readRecord((await certainly(this.#engine, () => records.get(key), goesOn))?.bytes)
    const isWaiting = await finding
    let record = await read()
    // One that has replaced it may have come between the two.
    if (!hasEnded(record) && (isWaiting || (await this.#isWaiting(key, goesOn)))) return undefined
    if (!hasEnded(record)) record = await read()
    if (!hasEnded(record)) throw new FleetError('JOB_UNKNOWN', { zone: this.name, key })
    this.#ends.drop(key)
    return record
  }

  /** How far a job is; `undefined` for a key that is free. */
  async get(key: string): Promise<JobInfo | undefined> {
    checkKey('jobs.get()', key)
    const { queue, records } = await this.#room()
    const record = readRecord((await records.get(key))?.bytes)
    if (record !== undefined) return infoOf(key, record)
    const item = await queue.find(key)
    if (item === undefined) return undefined
    return infoOf(key, freshOf(item, readJob(item.bytes)))
  }

  /**
   * End a job before it ends by itself: one that waits never begins, and the signal of one that runs is
   * aborted. A schedule ends, and its key is free; jobs that it has added go on.
   * @returns false for a job that has ended, and for a key without one.
   */
  async cancel(key: string): Promise<boolean> {
    checkKey('jobs.cancel()', key)
    return this.#cancel(key)
  }

  /** @param state Of another one nothing is done. */
  async #cancel(key: string, state?: LiveState): Promise<boolean> {
    const { queue, records } = await this.#room()
    const of = { engine: this.#engine, zone: this.name, large: this.#large, queue, records }
    const job = await cancelled(of, key, state)
    if (job?.repeat !== undefined) this.#ends.drop(key)
    return job !== undefined
  }

  /**
   * `cancel` for all jobs of a state: what waits, also for a delay or another attempt; what runs; schedules.
   * A job that is submitted meanwhile may be among them.
   * @returns How many have ended by it.
   * @throws {FleetError} `FLEET_ARGUMENT`. What is done by then stays done, and calling it again is safe.
   * @example
   * ```ts
   * import assert from 'node:assert/strict'
   * import { connect } from 'corespun/fleet'
   *
   * await using fleet = await connect('memory:')
   * const jobs = fleet.jobs<{ double(n: number): number }>('math')
   * for (const key of ['a', 'b', 'c']) await jobs.submit(key, 'double', [1])
   * assert.equal(await jobs.cancelAll('waiting'), 3)
   * ```
   */
  async cancelAll(state: LiveState, options?: JobBulkOptions): Promise<number> {
    const call = 'jobs.cancelAll()'
    const [of, checked] = [liveState(call, state), bulkOptions(call, options)]
    const room = await this.#room()
    return inBulk(livePages(room, of), checked, (key) => this.#cancel(key, of))
  }

  /**
   * `submit` for many jobs: 256 are on their way at once, and engines confirm them together.
   * @returns As `submit`, for each of them, in their order.
   * @throws What the first that fails is rejected with, when those that were begun have ended; the signal's
   *   reason. What was added stays, and calling it again is safe, as for `submit`.
   */
  async submitMany(
    jobs: Iterable<JobSubmission<Module>> | AsyncIterable<JobSubmission<Module>>,
    options?: SubmitManyOptions,
  ): Promise<boolean[]> {
    const { signal } = submitManyOptions(jobs, options)
    const added: boolean[] = []
    let part: Promise<boolean>[] = []
    const confirm = async (): Promise<void> => {
      const outcomes = await Promise.allSettled(part)
      part = []
      for (const outcome of outcomes) {
        if (outcome.status === 'rejected') throw outcome.reason
        added.push(outcome.value)
      }
      signal?.throwIfAborted()
    }
    signal?.throwIfAborted()
    try {
      for await (const job of jobs) {
        const { key, name, args, options: own } = Object(job) as JobSubmission<Module>
        part.push(this.submit(key, name, args, own))
        if (part.length === SUBMITS_MAX) await confirm()
      }
    } finally {
      await confirm()
    }
    return added
  }

  /**
   * Hosts begin no job of this zone until `resume()`; those that run go on, and jobs may be submitted. A host
   * that has not received it may begin one yet, for the time of its `leaseMs` at most.
   * @returns false when it is paused already.
   */
  async pause(): Promise<boolean> {
    const { records } = await this.#room()
    return isDone(records.put(QUEUE_KEY, writePaused(), { revision: 0 }))
  }

  /** Hosts begin jobs again. @returns false when it is not paused. */
  async resume(): Promise<boolean> {
    const { records } = await this.#room()
    const entry = await records.get(QUEUE_KEY)
    return entry !== undefined && isDone(records.delete(QUEUE_KEY, entry.revision))
  }

  /** Whether `pause()` was called, and `resume()` not since. */
  async isPaused(): Promise<boolean> {
    return isPausedBy((await (await this.#room()).records.get(QUEUE_KEY))?.bytes)
  }

  /** How many jobs and schedules wait or run. */
  async count(): Promise<number> {
    return (await this.#room()).queue.count()
  }

  /**
   * Every change of a job from now on: that it runs (of one that takes more than a moment), its progress,
   * its failures and its end. A slow reader has the last state of each job, and `CHANGES_BEHIND` when it is
   * behind by 65,536 jobs. Leave the loop, or call `return()`, to end it.
   * @example
   * ```ts
   * import { connect } from 'corespun/fleet'
   *
   * await using fleet = await connect('memory:')
   * const jobs = fleet.jobs<{ double(n: number): number }>('math')
   * const changes = await jobs.watch() // await it, and then loop
   * await jobs.submit('a', 'double', [1])
   * await jobs.cancel('a')
   * for await (const { status } of changes) if (status === 'cancelled') break
   * ```
   */
  watch(): Promise<FleetChanges<JobInfo>> {
    return unawaited(this.#watch())
  }

  async #watch(): Promise<FleetChanges<JobInfo>> {
    const changes = new FleetChanges<JobInfo>(`jobs of the zone ${JSON.stringify(this.name)}`)
    const { records } = await this.#room()
    const changed = ({ key, bytes }: Entry): void => {
      const record = readRecord(bytes)
      if (record === undefined) return
      // Without its value, and of its message only what is shown: a slow reader keeps no results.
      const kept = {
        ...record,
        value: undefined,
        progress: record.progress && new Uint8Array(record.progress),
      }
      changes.push(key, () => infoOf(key, kept))
    }
    changes.begun(await records.watch(changed, { from: 'now', over: (why) => changes.fail(why) }))
    return changes
  }

  /**
   * A page of the jobs of a state, or of all; it may have fewer than `jobsMax`, and none, though there is a
   * `next`. A job that changes meanwhile may be in several pages, or in none. Only pages of what is done or
   * cancelled read results; without a `state` those follow the others.
   * @throws {FleetError} `FLEET_ARGUMENT`, also for an `after` of another list.
   * @example
   * ```ts
   * import assert from 'node:assert/strict'
   * import { type JobPage, connect } from 'corespun/fleet'
   *
   * await using fleet = await connect('memory:')
   * const jobs = fleet.jobs<{ double(n: number): number }>('math')
   * for (const key of ['a', 'b', 'c']) await jobs.submit(key, 'double', [1])
   * const keys: string[] = []
   * let page: JobPage | undefined
   * do {
   *   page = await jobs.list({ state: 'waiting', jobsMax: 2, after: page?.next })
   *   keys.push(...page.jobs.map(({ key }) => key))
   * } while (page.next !== undefined)
   * assert.deepEqual(keys, ['a', 'b', 'c'])
   * ```
   */
  async list(options?: JobListOptions): Promise<JobPage> {
    const checked = listOptions(options)
    return listed(await this.#room(), checked)
  }

  /**
   * How many jobs there are of each state, about, while jobs change. It reads what hosts have had and have
   * not ended, and of what waits or has ended only how many there are. A job that has replaced another counts
   * among those that have ended, too, until a host has had it.
   */
  async counts(): Promise<JobCounts> {
    return counted(await this.#room(), this.#engine, this.name)
  }

  /** The dead letters: jobs that have failed for good, with their errors. At most `jobsMax`, default 1000. */
  async dead(options?: { readonly jobsMax?: number }): Promise<DeadJob[]> {
    const { jobsMax } = deadOptions(options)
    const dead = new Map<string, DeadJob>()
    const { letters, records } = await this.#room()
    const read = async ({ key, bytes, revision }: Entry): Promise<DeadJob | undefined> => {
      const letter = readLetter(bytes)
      const record = letter && readRecord((await records.get(key))?.bytes)
      if (letter === undefined || record === undefined) return undefined
      if (hasEnded(record) && record.status !== 'dead') {
        // The letter of a host that was lost before it had written the end, which another one has.
        await isDone(letters.delete(key, revision))
        return undefined
      }
      const job = readJob(letter.job)
      return { ...infoOf(key, letter.record), name: job?.name ?? '', args: argsOf(job) }
    }
    let after: string | undefined
    do {
      const page = await letters.page({ after, itemsMax: Math.min(LETTERS, jobsMax - dead.size) })
      for (const job of await Promise.all(page.items.map(read))) if (job !== undefined) dead.set(job.key, job)
      after = page.next
    } while (after !== undefined && dead.size < jobsMax)
    return [...dead.values()]
  }

  /** Run a dead job anew, with all its attempts. @returns false for a key without a dead letter. */
  async again(key: string): Promise<boolean> {
    checkKey('jobs.again()', key)
    const { queue, records, letters } = await this.#room()
    const found = await letters.get(key)
    const letter = readLetter(found?.bytes)
    if (letter === undefined) return false
    const entry = await records.get(key)
    const { status } = readRecord(entry?.bytes) ?? FRESH
    const { addedMs } = letter.record
    // One of several calls does it. What fails on the way can be repeated, since the letter is last.
    const fresh = (): Promise<unknown> => records.delete(key, entry!.revision)
    if (status === 'dead' && !(await isDone(fresh()))) return false
    const isAgain = status !== 'done' && status !== 'cancelled'
    const rank = readJob(letter.job)?.rank ?? 1
    for (let isOver = !isAgain; !isOver;) {
      // Its host may not have ended its item yet: that one is replaced, and another one is left.
      const found = await queue.find(key)
      const isOther = found !== undefined && identityOf(found) !== addedMs
      isOver = isOther || (await queue.add(key, letter.job, rank, found))
    }
    await isDone(letters.delete(key, found!.revision))
    return isAgain
  }

  /**
   * `again` for all jobs that are dead when it begins.
   * @returns How many run anew.
   * @throws {FleetError} `FLEET_ARGUMENT`. What is done by then stays done, and calling it again is safe.
   */
  async againAll(options?: JobBulkOptions): Promise<number> {
    const checked = bulkOptions('jobs.againAll()', options)
    return inBulk(await endPages(await this.#room(), 'dead'), checked, (key) => this.again(key))
  }

  /** Forget how a job ended, so that its key is free. @returns false for one that has not, or is unknown. */
  async forget(key: string): Promise<boolean> {
    checkKey('jobs.forget()', key)
    const { queue, records, letters } = await this.#room()
    // Found before the record: that of the next job with the key is another one.
    const item = await queue.find(key)
    const entry = await records.get(key)
    const record = readRecord(entry?.bytes)
    const job = item && readJob(item.bytes)
    if (!isEndOf(record, item && identityOf(item, job), job)) return false
    const letter = await letters.get(key)
    if (letter !== undefined) await isDone(letters.delete(key, letter.revision))
    // Of a host that was lost behind the end: it would run again.
    if (item !== undefined) await queue.remove(key, item)
    this.#ends.drop(key)
    if (!(await isDone(records.delete(key, entry!.revision)))) return false
    const args = record.status === 'dead' ? argsIn(readLetter(letter?.bytes)?.job) : undefined
    for (const carried of [record.value, args]) await this.#large.delete(carried)
    return true
  }

  /**
   * `forget` for all jobs that have ended so when it begins.
   * @returns How many keys are free.
   * @throws {FleetError} `FLEET_ARGUMENT`. What is done by then stays done, and calling it again is safe.
   */
  async forgetAll(state: EndState, options?: JobBulkOptions): Promise<number> {
    const call = 'jobs.forgetAll()'
    const [of, checked] = [endState(call, state), bulkOptions(call, options)]
    return inBulk(await endPages(await this.#room(), of), checked, (key) => this.forget(key))
  }
}
