/**
 * One job at a host, from its lease to its end there.
 *
 * The lease is extended from the host's main thread, which never runs a job, so a job may be longer than it.
 * Whatever is lost, the record decides: of all hosts that have run a job one writes its end, by revision, and
 * only then is the item done. So no job is lost, and no key has two results. A host that comes back so late
 * that the key was forgotten and submitted again finds another item, and writes nothing.
 *
 * ```text
 *  lease ─▶ read the record ─▶ ended, or another item ─▶ drop: the item is done
 *                │
 *                ├─▶ unreadable, or lost by too many hosts ─▶ bury: a dead letter, and its end
 *                ├─▶ a schedule: adds what is due ─▶ again, when the next is due
 *                ├─▶ not due yet, others have not ended, or its limit is reached ─▶ again
 *                ▼
 *             called ─▶ running: begun by the zone; status and progress are written
 *                │         │
 *                ▼         ▼
 *              outcome: value ─▶ end, with the value
 *                       error ─▶ attempts left: waiting ─▶ again, after a pause
 *                                none left, or one that is not retried: bury
 *                       no such function here ─▶ waiting ─▶ again; later an error as others
 *                       this host leaves ─▶ waiting ─▶ again, at once
 * ```
 *
 * Each write is by revision. One that finds an end which another host has written becomes drop.
 * Over 400 lines: one class, whose methods are the ways of one job and share its record and its leases.
 */
import { TIMER_MS_MAX, meters } from '../../base/index.ts'
import type { TraceContext } from '../../zone/index.ts'
import type { End, Engine, KeyValue, Lease, Queue } from '../engine/engine.ts'
import { FleetError, hasCode, isDone, mayPass } from '../errors.ts'
import type { Carried } from '../wire.ts'
import type { EndedFrame } from '../worker/current.ts'
import { cancelled } from './cancelled.ts'
import { publish } from './events.ts'
import type { Slots } from './gate.ts'
import type { Joins } from './joins.ts'
import { type Large, referenceTo } from './large.ts'
import type { Limiter } from './limiter.ts'
import { boundedFrame, frameOf, isMissing } from './frames.ts'
import { backoff, missingPause } from './pauses.ts'
import {
  ERRORS_MAX,
  FRESH,
  type Job,
  type JobRecord,
  NOBODY,
  RECORD_BYTES,
  type Repeat,
  type EndedRecord,
  hasEnded,
  isEndOf,
  readJob,
  readRecord,
  sendEnd,
  writeJob,
  writeLetter,
  writeRecord,
} from './record.ts'
import { nextOf } from './schedule.ts'
import { identityOf } from './wake.ts'

/** What is run. */
export interface JobTask {
  readonly key: string
  readonly attempt: number
  readonly name: string
  readonly args: Uint8Array
  readonly timeoutMs: number | undefined
  readonly trace: TraceContext | undefined
  readonly signal: AbortSignal
  /** Those that it has waited for. */
  readonly ended: readonly EndedFrame[] | undefined
  /** Called when it begins, where that may be later than it was passed on; `undefined`: at once. */
  readonly begun: (() => void) | undefined
  progress(frame: Uint8Array): void
}

/** A frame, whether it is that of an error, and of that whether no attempt may follow. */
export type JobOutcome = readonly [isError: boolean, frame: Uint8Array, isFinal?: boolean]

/** What attempts need of their host. */
export interface JobHost {
  readonly engine: Engine
  readonly zone: string
  readonly id: string
  readonly leaseMs: number
  readonly queue: Queue
  readonly records: KeyValue
  readonly letters: KeyValue
  /** Whether what is run now begins at once. */
  isFree(): boolean
  /** How many may be under way at once. */
  readonly slots: Slots
  /** How many may run on all hosts. */
  readonly limiter: Limiter
  /** Which of them wait for others. */
  readonly joins: Joins
  readonly large: Large
  /** Never rejects. */
  run(task: JobTask): Promise<JobOutcome>
  /** Repeat it until it is confirmed, or until the host has left its jobs. */
  certainly<Value>(work: () => Promise<Value>): Promise<Value>
}

/** A job that cannot be read. */
const NAMELESS = { ...NOBODY, name: '' }
/** The record of a running job and its progress is written this long after it has begun or reported, ms. */
const REPORT_MS = 100
/** Fewest spans of a lease that a result is kept. */
const LEASES_KEPT = 2
/** How often a lease is extended in its span. */
const EXTENSIONS = 3
/** A job that waits for others comes again by itself after so many leases. */
const LOOK_LEASES = 2
/** A large result is written again when its record is written so long after it. */
const KEPT_MS = 30_000

export class Attempt {
  readonly #host: JobHost
  readonly #key: string
  /** The one that counts is the last. Those that were returned are not here. */
  readonly #leases: Lease[] = []
  #lease: Lease
  #lentMs = 0
  /** When its job was added, in ms since 1970: its record is the one with this. */
  #identity: number
  /** Whether it runs instead of what its key has had. */
  #replaces = false
  /** Those that it has waited for. */
  #ended: readonly EndedFrame[] | undefined
  /** Ends its slot of a limit. */
  #endSlot: End = () => {}
  readonly #controller = new AbortController()
  #record: JobRecord = FRESH
  /** Where its end is reported, and what it calls. */
  #from: Pick<Job, 'origin' | 'submission' | 'args' | 'name'> = NAMELESS
  #revision = 0
  /** For a schedule the time of the last job that it has added. */
  #lastMs = 0
  #progress: Uint8Array | undefined
  #endExtending: End = () => {}
  /** Of an engine without messages, by which a cancellation is reported. */
  #watching: Promise<End> | undefined
  #endLater: End | undefined
  #writing: Promise<void> = Promise.resolve()
  /** It is with the zone. */
  #isCalled = false
  /** The zone has begun it. */
  #isRunning = false
  #isLeaving = false
  /** Writes a large result again, before its record, and when it was written last. */
  #kept: (() => Promise<void>) | undefined
  #keptMs = 0
  /** Somebody else has ended the job. */
  #isEnded = false

  constructor(host: JobHost, lease: Lease) {
    this.#host = host
    this.#key = lease.id
    this.#lease = lease
    this.#identity = lease.addedMs
    this.adopt(lease)
  }

  /** Whether the zone runs it now. */
  get isRunning(): boolean {
    return this.#isRunning
  }

  /** Resolves when this host has done with the job; rejects never. */
  async run(): Promise<void> {
    this.#extend()
    const { slots } = this.#host
    const entering = slots.enter()
    const isIn = entering === true || (await entering)
    try {
      if (isIn) await this.#begin(entering === true)
    } catch (error) {
      // The connection has ended, or the host leaves what a server does not confirm: to another host.
      if (!mayPass(error) && !hasCode(error, 'FLEET_CLOSED', 'FLEET_FILE_CORRUPT')) throw error
    } finally {
      this.#endExtending()
      this.#endLater?.()
      void this.#watching?.then(
        (end) => end(),
        () => {},
      )
      // One that has come meanwhile, or all of them where the end is not confirmed.
      this.#again(0)
      if (isIn) slots.leave()
    }
  }

  /** The lease was lost, and the item has come here again; false for another item with the same key. */
  adopt(lease: Lease): boolean {
    if (lease.addedMs !== this.#lease.addedMs) return false
    this.#leases.push(lease)
    this.#lease = lease
    this.#lentMs = this.#host.engine.clock.nowMs()
    return true
  }

  /** Read whether somebody has ended the job: the message that it is cancelled may be lost or forged. */
  async check(): Promise<void> {
    const entry = await this.#host.records.get(this.#key).catch(() => undefined)
    const record = readRecord(entry?.bytes)
    const isReplaced = record !== undefined && record.addedMs > this.#identity
    if (isReplaced || this.#isEnd(record)) this.#cancel()
  }

  #isEnd(record: JobRecord | undefined): record is EndedRecord {
    return isEndOf(record, this.#identity, { replaces: this.#replaces })
  }

  #cancel(): void {
    this.#isEnded = true
    this.#controller.abort(new FleetError('JOB_CANCELLED', { zone: this.#host.zone, key: this.#key }))
  }

  /** The host closes: the job is left to another one. */
  leave(why: unknown): void {
    this.#isLeaving = true
    this.#controller.abort(why)
  }

  #extend(): void {
    const { engine, leaseMs } = this.#host
    this.#endExtending = engine.clock.after(leaseMs / EXTENSIONS, () => {
      this.#lease.extend()
      this.#extend()
      if (this.#isCalled) void this.check()
    })
  }

  async #begin(isAtOnce: boolean): Promise<void> {
    const job = readJob(this.#lease.bytes)
    this.#from = job ?? NAMELESS
    this.#identity = identityOf(this.#lease, job)
    this.#replaces = job?.replaces === true
    // Before a first attempt too: the key may have ended as it was submitted, a cancelled item may still be
    // there, and a server that was killed may have lost the count.
    await this.#read(isAtOnce ? this.#lease.value : undefined)
    if (this.#isEnded || hasEnded(this.#record)) return this.#drop()
    if (job === undefined) return this.#bury(frameOf(unreadable()))
    if (job.repeat !== undefined) return this.#repeat(job, job.repeat)
    const { delayMs, hostsLostMax } = job.limits
    const waitMs = Math.max(delayMs, this.#record.dueMs) - this.#ageMs()
    if (waitMs > 0) return this.#again(waitMs)
    if (this.#record.status === 'running') {
      const lost = this.#withError(frameOf(this.#lost('it was lost while it ran the job')))
      this.#record = { ...lost, hostsLost: lost.hostsLost + 1 }
      if (this.#record.hostsLost > hostsLostMax) return this.#bury()
    }
    if (job.after !== undefined && !(await this.#joined(job, job.after))) return
    await this.#limited(job)
  }

  /** False: it waits for others, or is a dead letter. */
  async #joined({ woken }: Job, after: readonly string[]): Promise<boolean> {
    const mayWait = woken === undefined && this.#lease.attempt > 1
    try {
      this.#ended = await this.#host.joins.ended(this.#key, after, mayWait)
    } catch (error) {
      if (!hasCode(error, 'FLEET_TOO_LARGE')) throw error
      await this.#bury(frameOf(error))
      return false
    }
    if (this.#ended === undefined) await this.#park(LOOK_LEASES * this.#host.leaseMs)
    return this.#ended !== undefined
  }

  async #limited(job: Job): Promise<void> {
    const { limit } = job
    if (limit === undefined) return this.#attempt(job)
    const turn = job.woken?.turn ?? 0
    const entered = await this.#host.limiter.enter({
      key: this.#key,
      limit,
      turn,
      isFirst: this.#lease.attempt === 1 && turn === 0,
      serverMs: () => this.#lease.addedMs + this.#lease.ageMs(),
      lost: (why) => this.leave(why),
    })
    if (typeof entered !== 'function') return this.#park(entered.waitMs)
    this.#endSlot = () => void entered()
    try {
      await this.#attempt(job)
    } finally {
      this.#endSlot()
    }
  }

  /** It waits for what another job ends, whose host wakes it. */
  async #park(waitMs: number): Promise<void> {
    // The loss that was found counts once.
    const isLost = this.#record.status === 'running'
    if (isLost && !(await this.#write({ ...this.#record, status: 'waiting' }))) return this.#drop()
    this.#again(waitMs)
  }

  /** How long ago its job was added, by the server's clock. */
  #ageMs(): number {
    return this.#lease.ageMs() + this.#lease.addedMs - this.#identity
  }

  async #attempt({ name, args, limits, trace }: Job): Promise<void> {
    const { failures, hostsLost } = this.#record
    let isFree = this.#host.isFree()
    // One that may kill its host is counted before, but not the first time: most jobs need no such record.
    // One that waits for the zone kills nobody.
    const isRepeated = this.#lease.attempt > 1
    if (isRepeated && isFree) {
      if (!(await this.#write(this.#runningRecord()))) return this.#drop()
      // Another may have begun meanwhile.
      isFree = this.#host.isFree()
      if (!isFree && !(await this.#write({ ...this.#record, status: 'waiting' }))) return this.#drop()
    }
    // Its slot was lost meanwhile.
    if (this.#isLeaving) return this.#leave()
    const frameOfArgs = typeof args === 'string' ? await this.#large(limits, args) : args
    if (frameOfArgs === undefined) return
    this.#isCalled = true
    if (isFree) this.#begun(false)
    const [isError, frame, isFinal = false] = await this.#host.run({
      key: this.#key,
      attempt: failures + hostsLost + 1,
      name,
      args: frameOfArgs,
      timeoutMs: limits.timeoutMs || undefined,
      trace,
      signal: this.#controller.signal,
      ended: this.#ended,
      begun: isFree ? undefined : () => this.#begun(isRepeated),
      progress: (progress) => {
        this.#progress = progress
        this.#reportLater()
      },
    })
    this.#isCalled = false
    this.#isRunning = false
    this.#endSlot()
    await this.#writing
    if (this.#isEnded) return this.#drop()
    if (isError && this.#isLeaving && !isFinal) return this.#leave()
    if (isError && isMissing(frame, this.#host.zone, name)) return this.#missing(limits, frame)
    if (isError) return this.#failed(limits, frame, isFinal)
    await this.#done(limits, frame)
  }

  async #done(limits: Job['limits'], frame: Uint8Array): Promise<void> {
    // Longer than the item may be lent, if this host is lost now: another one has to find the end.
    const ttlMs = Math.max(limits.ttlMs, LEASES_KEPT * this.#host.leaseMs)
    const progress = this.#progress
    let value: Carried = frame
    if (frame.length > this.#bytesMax) {
      value = referenceTo(frame)
      try {
        await this.#keep(value, frame, ttlMs)
      } catch (error) {
        unlessFinal(error)
        return this.#bury(frameOf(error))
      }
    }
    await this.#end({ ...this.#record, status: 'done', value, progress, errors: [] }, ttlMs)
    // Another end was written before this one. What is not confirmed may be written yet.
    if (hasEnded(this.#record) && this.#record.value !== value) await this.#host.large.delete(value)
  }

  /** Write a large result, and again while its record is not confirmed: it ends by itself. */
  async #keep(reference: string, frame: Uint8Array, ttlMs: number): Promise<void> {
    const { engine, large } = this.#host
    const write = async (): Promise<void> => {
      await large.put(reference, this.#key, frame, ttlMs)
      this.#keptMs = engine.clock.nowMs()
    }
    await write()
    this.#kept = async () => {
      if (engine.clock.nowMs() - this.#keptMs > KEPT_MS) await write()
    }
  }

  /** Large arguments; `undefined`: they cannot be had, and that was recorded. */
  async #large(limits: Job['limits'], reference: string): Promise<Uint8Array | undefined> {
    let frame
    try {
      frame = await this.#host.large.get(reference)
    } catch (error) {
      unlessFinal(error)
      await this.#failed(limits, frameOf(error))
      return undefined
    }
    if (frame !== undefined) return frame
    // Whoever has ended the job has removed them.
    await this.#read()
    if (this.#isEnded || hasEnded(this.#record)) await this.#drop()
    else await this.#failed(limits, frameOf(this.#withoutArgs()))
    return undefined
  }

  #withoutArgs(): FleetError {
    return new FleetError('JOB_DATA_LOST', { zone: this.#host.zone, key: this.#key, what: 'arguments' })
  }

  get #bytesMax(): number {
    return this.#host.engine.messageBytesMax - RECORD_BYTES
  }

  async #failed(limits: Job['limits'], frame: Uint8Array, isFinal = false): Promise<void> {
    const failures = this.#record.failures + 1
    this.#record = { ...this.#withError(frame), failures }
    if (isFinal || failures >= limits.attemptsMax) return this.#bury()
    return this.#later(backoff(this.#key, limits, failures))
  }

  /** Nothing has run. For a while other hosts may have the function, as during a rollout. */
  #missing(limits: Job['limits'], frame: Uint8Array): Promise<void> {
    const ageMs = Math.max(1, this.#ageMs())
    const { missingMs } = this.#record
    if (missingMs === 0) this.#record = { ...this.#withError(frame), missingMs: ageMs }
    const waitMs = missingPause(this.#key, limits, ageMs - this.#record.missingMs)
    return waitMs === undefined ? this.#failed(limits, frame) : this.#later(waitMs)
  }

  /** Run it again, here or elsewhere. */
  async #later(waitMs: number): Promise<void> {
    const dueMs = this.#ageMs() + waitMs
    const isWritten = await this.#write({ ...this.#record, status: 'waiting', dueMs, progress: undefined })
    return isWritten ? this.#again(waitMs) : this.#drop()
  }

  /** To another host, at once; of what was not recorded nothing has to be. */
  async #leave(): Promise<void> {
    const record: JobRecord = { ...this.#record, status: 'waiting', dueMs: 0 }
    if (this.#revision > 0 && !(await this.#write(record))) return this.#drop()
    this.#again(0)
  }

  /** Into the dead letters. */
  async #bury(frame?: Uint8Array): Promise<void> {
    const { letters, certainly } = this.#host
    const record = {
      ...(frame === undefined ? this.#record : this.#withError(frame)),
      status: 'dead',
    } as const
    const job = readJob(this.#lease.bytes)
    // What runs anew is another one.
    const bytes = job?.woken === undefined ? this.#lease.bytes : writeJob({ ...job, woken: undefined })
    // One that is larger is not one of ours.
    const own = bytes.length > this.#bytesMax ? new Uint8Array() : bytes
    const letter = writeLetter({ job: own, record: { ...record, addedMs: this.#identity } })
    const revision = await certainly(() => letters.put(this.#key, letter))
    await this.#end(record)
    if (this.#record === record) this.#died(record)
    if (this.#record.status === 'dead') return
    // It has ended otherwise. A letter that is not this one stays.
    await isDone(certainly(() => letters.delete(this.#key, revision)))
  }

  #died({ failures, hostsLost, errors }: JobRecord): void {
    const { name } = this.#from
    publish.jobDead({ zone: this.#host.zone, key: this.#key, name, failures, hostsLost }, errors)
  }

  async #end(record: EndedRecord, ttlMs?: number): Promise<void> {
    const { engine, zone } = this.#host
    if (await this.#write(record, ttlMs, true)) {
      sendEnd(engine, zone, this.#from, { key: this.#key, record })
      meters.ended?.('jobsEnded', zone, this.#from.name, record.status)
    }
    await this.#drop()
  }

  /** A schedule adds a job each time it is due; missed times become one. */
  async #repeat(job: Job, repeat: Repeat): Promise<void> {
    const lease = this.#lease
    const { addedMs } = lease
    const { certainly, records } = this.#host
    const nowMs = addedMs + lease.ageMs()
    const isKnown = this.#record.status === 'scheduled'
    let dueMs
    try {
      const firstMs = isKnown ? this.#record.dueMs : await nextOf(repeat, addedMs, addedMs)
      dueMs = firstMs <= nowMs ? await nextOf(repeat, firstMs, nowMs) : firstMs
      const idOf = (ms: number): string => `${this.#key}@${new Date(ms).toISOString()}`
      const more = firstMs <= nowMs ? await this.#overlapping(repeat, idOf(this.#lastMs)) : undefined
      if (more !== undefined) {
        await this.#add({ ...job, ...more }, idOf(firstMs))
        this.#lastMs = firstMs
      }
    } catch (error) {
      if (!hasCode(error, 'FLEET_ARGUMENT', 'FLEET_PEER_MISSING')) unlessFinal(error)
      return this.#bury(frameOf(error))
    }
    if (isKnown && dueMs === this.#record.dueMs) return this.#again(dueMs - nowMs)
    const record: JobRecord = { ...FRESH, status: 'scheduled', dueMs, missingMs: this.#lastMs }
    if (!(await this.#write(record))) return this.#drop()
    if (isKnown || (await certainly(() => this.#isWaiting()))) return this.#again(dueMs - nowMs)
    // It was cancelled before it had a record, which nobody else would delete.
    await isDone(certainly(() => records.delete(this.#key, this.#revision)))
    await this.#drop()
  }

  /** What a job of a schedule has beside; `undefined`: this time is left out. */
  async #overlapping({ overlaps = true }: Repeat, last: string): Promise<Partial<Job> | undefined> {
    const { queue, certainly } = this.#host
    const found = overlaps === true ? undefined : await certainly(() => queue.find(last))
    if (found === undefined) return {}
    if (overlaps === false) return undefined
    if (overlaps === 'cancel') {
      await certainly(() => cancelled(this.#host, last))
      return {}
    }
    // One that waits for another one is the next already.
    const [before] = readJob(found.bytes)?.after ?? []
    const isNext = before !== undefined && (await certainly(() => queue.find(before))) !== undefined
    return isNext ? undefined : { after: [last] }
  }

  /** A job of a schedule, with arguments of its own. */
  async #add(job: Job, id: string): Promise<void> {
    const { queue, certainly, large } = this.#host
    let { args } = job
    if (typeof args === 'string') {
      const frame = await large.get(args)
      if (frame === undefined) throw this.#withoutArgs()
      args = referenceTo(frame)
      await large.put(args, id, frame)
    }
    const bytes = writeJob({ ...job, repeat: undefined, args })
    const isAdded = await certainly(() => queue.add(id, bytes, job.rank))
    if (!isAdded && typeof args === 'string') await certainly(() => large.drop(this.#host, id, args))
  }

  #runningRecord(): JobRecord {
    return { ...this.#record, status: 'running', progress: this.#progress }
  }

  /** @param isReported Now, and not after a moment. */
  #begun(isReported: boolean): void {
    if (this.#isRunning || !this.#isCalled) return
    this.#isRunning = true
    if (isReported) this.#writing = this.#report()
    else this.#reportLater()
  }

  #reportLater(): void {
    this.#endLater ??= this.#host.engine.clock.after(REPORT_MS, () => {
      this.#endLater = undefined
      if (this.#isRunning) this.#writing = this.#report()
    })
  }

  async #report(): Promise<void> {
    try {
      const before = this.#writing
      await before
      this.#watching ??= this.#watch()
      if (this.#isRunning && !(await this.#write(this.#runningRecord()))) this.#cancel()
    } catch {
      // The connection has ended, as whoever writes the end finds out.
    }
  }

  /** A cancellation before it is found by the first report. */
  #watch(): Promise<End> | undefined {
    const { engine, records } = this.#host
    if (engine.messages !== undefined) return undefined
    const watching = records.watch(() => void (this.#isCalled && this.check()), {
      from: 'now',
      key: this.#key,
    })
    watching.catch(() => {}) // the lease is extended, and looks too
    return watching
  }

  /** @param known What came with the item. */
  async #read(known?: Lease['value']): Promise<void> {
    const { certainly, records } = this.#host
    const entry = known === undefined ? await certainly(() => records.get(this.#key)) : known
    const record = readRecord(entry?.bytes)
    const isOurs = this.#isEnd(record) || record?.addedMs === this.#identity
    this.#revision = entry?.revision ?? 0
    this.#record = isOurs ? record : FRESH
    // Also of the schedule that this one has replaced.
    if (record?.status === 'scheduled') this.#lastMs = record.missingMs
    // Another item's record, or none though this one was lent before: it may be the next with this key, or
    // come late, behind its end.
    const mayBeOver = record === undefined ? this.#lease.attempt > 1 : !isOurs
    if (mayBeOver) this.#isEnded = !(await certainly(() => this.#isWaiting()))
  }

  /** False: the job has ended, here or elsewhere. What another host has written meanwhile is replaced. */
  async #write(record: JobRecord, ttlMs?: number, isEnd = false): Promise<boolean> {
    const { certainly, records } = this.#host
    const bytes = writeRecord({ ...record, addedMs: this.#identity })
    for (;;) {
      try {
        const revision = await certainly(() => this.#put(bytes, ttlMs, isEnd))
        if (revision === undefined) return false
        this.#revision = revision
        this.#record = record
        return true
      } catch (error) {
        if (!hasCode(error, 'FLEET_CONFLICT')) throw error
      }
      const entry = await certainly(() => records.get(this.#key))
      const found = readRecord(entry?.bytes)
      if (this.#isEnd(found)) {
        this.#record = found
        return false
      }
      const isOurs = found?.addedMs === this.#identity || (await certainly(() => this.#isWaiting()))
      if (!isOurs) return false
      this.#revision = entry?.revision ?? 0
    }
  }

  /** `undefined`: it was ended elsewhere, and forgotten since. */
  async #put(bytes: Uint8Array, ttlMs: number | undefined, isEnd: boolean): Promise<number | undefined> {
    const { engine, leaseMs, records } = this.#host
    const isLate = engine.clock.nowMs() - this.#lentMs > leaseMs / 2
    await this.#kept?.()
    // Nothing that was written before keeps a late one from writing.
    if (this.#revision === 0 && isLate && !(await this.#isWaiting())) return undefined
    return records.put(this.#key, bytes, {
      revision: this.#revision,
      ...(ttlMs !== undefined && { ttlMs }),
      done: isEnd ? this.#lease : undefined,
    })
  }

  /** Whether the item still waits, and not another one that has its key. */
  async #isWaiting(): Promise<boolean> {
    const found = await this.#host.queue.find(this.#key)
    return found !== undefined && identityOf(found) === this.#identity
  }

  #withError(frame: Uint8Array): JobRecord {
    return { ...this.#record, errors: [...this.#record.errors, boundedFrame(frame)].slice(-ERRORS_MAX) }
  }

  #lost(reason: string): FleetError {
    const { zone, id } = this.#host
    return new FleetError('HOST_LOST', { zone, host: id, reason })
  }

  #again(delayMs: number): void {
    for (const lease of this.#leases.splice(0)) lease.again(Math.min(delayMs, TIMER_MS_MAX))
  }

  async #drop(): Promise<void> {
    // What is not confirmed is lent again, and dropped by its record then.
    await Promise.all(this.#leases.splice(0).map((lease) => lease.done().catch(() => {})))
    // A dead letter has them, and what replaces a job has its own.
    const { status } = this.#record
    if (status === 'done' || status === 'cancelled') await this.#host.large.delete(this.#from.args)
  }
}

/** What passes, and what the end of the connection is, is not of the job. */
function unlessFinal(error: unknown): void {
  if (mayPass(error) || hasCode(error, 'FLEET_CLOSED')) throw error
}

function unreadable(): FleetError {
  return new FleetError('FLEET_ENGINE', {
    operation: 'reading a job',
    reason: 'its item is not that of a job',
  })
}
