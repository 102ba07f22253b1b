/**
 * A host: a module of this machine, offered to a fleet, run by a local zone.
 *
 * It listens to three subjects: who hosts the zone, who hosts this version of it, and its own, for calls. It
 * sends nothing unasked except when it comes and when it leaves. What it accepts is bounded by `inFlightMax`,
 * and a call that comes twice runs once. While calls run, one timer checks whether their callers still ask
 * for them: a call that nobody asks for is ended. Over 400 lines: one class, from its begin to its end.
 */
import { randomUUID } from 'node:crypto'
import { statSync } from 'node:fs'
import { hostname } from 'node:os'
import { type AnyZone, ZoneError, zone as zones } from '../../zone/index.ts'
import { type RemoteZone, isZone } from '../../zone/internal.ts'
import { flushed } from '../certainly.ts'
import type { Fleet } from '../connect.ts'
import { FleetError, wrong } from '../errors.ts'
import { type End, type Engine, type Message, type Messages, messagesOf } from '../engine/engine.ts'
import { checkName, closeOptions, hostSettings } from '../settings.ts'
import {
  type Parts,
  PING_MS,
  PRESENCE,
  Payloads,
  SILENCE_MS,
  cardSubject,
  hostSubject,
  readParts,
  readTrace,
  surveySubject,
  written,
} from '../wire.ts'
import { publish } from '../jobs/events.ts'
import type { JobTaker } from '../jobs/taker.ts'
import { capacityOf, tasksPerWorker } from './capacity.ts'
import type { JobRunner } from './job.ts'
import { Polling } from './polling.ts'
import { type FleetHostInfo, presence } from '../presence.ts'
import { Recent } from './recent.ts'
import { Running, inTrace, reasonIn } from './running.ts'
import { errorFrame } from '../worker/task.ts'
import { Transit } from './transit.ts'
import { urlOf, versionOf } from '../version.ts'

/** What a host offers. */
export interface HostOptions {
  /** The name that callers use: 1 to 64 letters, digits, _ and -. */
  readonly name: string
  /** The module whose exports may be called, as a URL or an absolute path. */
  readonly module: string | URL
  /**
   * The zone that runs the calls. Default: one of the host's own, with a worker per core, each of which runs
   * as many tasks at once as `jobsMax` needs.
   */
  readonly zone?: AnyZone | undefined
  /** Most calls accepted at once; more are refused with `ZONE_FULL`. Default 64. */
  readonly inFlightMax?: number
  /**
   * Most durable jobs that run here at once; 0: it takes none. A `zone` that runs fewer tasks at once gets as
   * many jobs as it begins: its workers times `tasksPerWorkerMax`. Default 0.
   */
  readonly jobsMax?: number
  /**
   * How long after the loss of this host its jobs begin elsewhere, in ms, from 100; jobs may be longer. It
   * holds for all hosts of the zone: the last one that begins decides. Default 10,000.
   */
  readonly leaseMs?: number
  /** The module's version. Default: `versionOf(module)`. */
  readonly version?: string | undefined
}

/** How many past calls are remembered at least, so that a message that comes twice runs once. */
const PAST_MIN = 4096
/** The end of calls that still run when a host is closed. */
const CLOSE_MS = 10_000
/**
 * A call that its caller has not asked for at this number of checks, one each PING_MS, has no caller any
 * more. The caller notices a host that is cut off within SILENCE_MS and one ping, and has left the call by
 * then. Checks are counted, and not time: a host that was stopped itself reads first what has arrived.
 */
const CHECKS_MAX = SILENCE_MS / PING_MS + 2

/**
 * Offer a module to a fleet. Resolves when it can be called.
 * @throws {FleetError} `FLEET_ARGUMENT`, `FLEET_CLOSED`, and `FLEET_DENIED` for a connection that may not;
 *   `FLEET_MESSAGES` without `jobsMax` over an engine that has no messages.
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { connect, host } from 'corespun/fleet'
 *
 * await using fleet = await connect('memory:')
 * // Mostly new URL('./scores.js', import.meta.url), whose version is computed.
 * const module = new URL('data:text/javascript,export const score = (text) => text.length')
 * await using hosting = await host(fleet, { name: 'scores', module, version: 'v1' })
 * assert.equal(await fleet.zone<{ score(text: string): number }>('scores').run('score', ['abc']), 3)
 * ```
 */
export async function host(fleet: Fleet, options: HostOptions): Promise<FleetHost> {
  const { name, module, zone, inFlightMax, version, jobsMax, leaseMs } = hostSettings(options)
  checkName('host()', name)
  if (module === undefined) throw wrong('host(): module', 'a URL or an absolute path', module)
  if (zone !== undefined && !isZone(zone)) throw wrong('host(): zone', 'a zone of this process', zone)
  if (jobsMax === 0) messagesOf(fleet.engine, 'host() without jobsMax')
  const url = urlOf(module)
  checkFile(url)
  const id = randomUUID()
  const isOwn = zone === undefined
  const own = isOwn
    ? zones.create(`fleet ${name} ${id.slice(0, 8)}`, { tasksPerWorkerMax: tasksPerWorker(jobsMax) })
    : undefined
  const offer = {
    id,
    name,
    url,
    version: version ?? versionOf(url),
    zone: (own ?? zone) as RemoteZone,
    inFlightMax,
    jobsMax,
    leaseMs,
  }
  const made = new FleetHost(fleet, offer, own)
  try {
    await made.open()
  } catch (error) {
    await made.close()
    throw error
  }
  return made
}

/** Jobs of a module that is missing would fail at each attempt, and for good. */
function checkFile(url: string): void {
  if (!url.startsWith('file:')) return
  let isFile = false
  try {
    isFile = statSync(new URL(url), { throwIfNoEntry: false })?.isFile() === true
  } catch {
    // It may not be looked at, so it cannot be loaded either.
  }
  if (!isFile) throw wrong('host(): module', 'a file that exists', url)
}

interface Offer {
  readonly id: string
  readonly name: string
  readonly url: string
  readonly version: string
  readonly zone: RemoteZone
  readonly inFlightMax: number
  readonly jobsMax: number
  readonly leaseMs: number
}

/**
 * A module that a fleet may call here. {@link host} makes it.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { type FleetHost, connect, host } from 'corespun/fleet'
 *
 * await using fleet = await connect('memory:')
 * const module = new URL('data:text/javascript,export const one = () => 1')
 * const hosting: FleetHost = await host(fleet, { name: 'one', module, version: 'v1' })
 * assert.deepEqual([hosting.name, hosting.version, hosting.inFlight], ['one', 'v1', 0])
 * await hosting.close()
 * ```
 */
export class FleetHost {
  readonly #fleet: Fleet
  readonly #engine: Engine
  readonly #messages: Messages | undefined
  readonly #offer: Offer
  readonly #own: AnyZone | undefined
  readonly #payloads: Payloads
  readonly #running = new Map<string, Running>()
  readonly #past = new Recent(PAST_MIN)
  readonly #transit = new Transit()
  readonly #polling = new Polling()
  readonly #ends: End[] = []
  readonly #begunMs: number
  /** How many tasks the zone runs at once. */
  readonly #capacity: number
  #endPresence: End = () => {}
  #jobs: JobTaker | undefined
  #runner: JobRunner | undefined
  #isLeaving = false
  #isChecking = false
  #idle: () => void = () => {}
  #closed: Promise<void> | undefined

  /** @internal */
  constructor(fleet: Fleet, offer: Offer, own: AnyZone | undefined) {
    this.#fleet = fleet
    this.#engine = fleet.engine
    this.#messages = fleet.engine.messages
    this.#offer = offer
    this.#own = own
    this.#payloads = fleet.payloads
    this.#capacity = capacityOf(offer.zone)
    this.#begunMs = fleet.engine.clock.nowMs()
    fleet.hosts.add(this)
  }

  /** Who it is in the fleet; unique. */
  get id(): string {
    return this.#offer.id
  }

  /** The name of the zone. */
  get name(): string {
    return this.#offer.name
  }

  /** The version of the module. */
  get version(): string {
    return this.#offer.version
  }

  /** How many calls run. */
  get inFlight(): number {
    return this.#running.size
  }

  /** How many jobs run. */
  get jobsRunning(): number {
    return this.#jobs?.running ?? 0
  }

  /** @internal */
  async open(): Promise<void> {
    if (this.#messages !== undefined) await this.#listen(this.#messages)
    if (this.#offer.jobsMax > 0) this.#jobs = await this.#takeJobs()
  }

  async #listen(messages: Messages): Promise<void> {
    const { id, name, version } = this.#offer
    const survey = ({ reply }: Message): void => reply(this.#card())
    // Its own subject first: who has received of it may call it.
    this.#ends.push(await messages.listen(hostSubject(name, id), (message) => this.#asked(message)))
    this.#ends.push(await messages.listen(surveySubject(name, version), survey))
    this.#ends.push(await messages.listen(surveySubject(name), survey))
    const present = ({ reply }: Message): void => reply(presence(this.#present()))
    this.#endPresence = await messages.listen(PRESENCE, present)
    messages.send(cardSubject(name), this.#card())
  }

  async #takeJobs(): Promise<JobTaker> {
    const { id, name, url, zone, leaseMs } = this.#offer
    const capacity = this.#capacity
    const [{ JobTaker }, { JobRunner }] = await Promise.all([import('../jobs/taker.ts'), import('./job.ts')])
    const runner = (this.#runner = new JobRunner(zone, { url, zone: name }))
    // A zone that others use too may have tasks of theirs.
    const isAlone = this.#own !== undefined || capacity === Infinity
    const isFree = (): boolean => isAlone && this.inFlight + runner.size < capacity
    const jobsMax = Math.min(this.#offer.jobsMax, capacity)
    const { valueBytesMax } = this.#fleet
    const own = { engine: this.#engine, zone: name, id, jobsMax, leaseMs, valueBytesMax, isFree }
    return JobTaker.open({ ...own, run: (job) => runner.run(job) })
  }

  #present(): FleetHostInfo {
    const { id, name, version, inFlightMax, jobsMax } = this.#offer
    return {
      id,
      zone: name,
      version,
      machine: hostname(),
      pid: process.pid,
      upMs: Math.round(this.#engine.clock.nowMs() - this.#begunMs),
      inFlight: this.inFlight,
      inFlightMax,
      jobsRunning: this.jobsRunning,
      jobsMax,
      isLeaving: this.#isLeaving,
    }
  }

  #card(): Uint8Array {
    const { id, version, inFlightMax } = this.#offer
    const atOnce = Math.min(inFlightMax, this.#capacity)
    return written('card', id, version, hostname(), inFlightMax, this.inFlight, this.#isLeaving, atOnce)
  }

  #asked(message: Message): void {
    const parts = readParts(message.bytes)
    switch (parts?.[0]) {
      case 'run':
        return this.#run(message, parts)
      case 'ping':
        return this.#ping(message, parts[1])
      case 'cancel':
        return this.#running.get(String(parts[1]))?.cancel(reasonIn(parts[2]))
      case 'more':
        return this.#running.get(String(parts[1]))?.more(parts[2])
    }
  }

  #run(message: Message, parts: Parts): void {
    const [, call, version, name, caller, sentMs, timeoutMs, credit, carried, trace] = parts
    const { inFlightMax, zone, url, name: zoneName } = this.#offer
    const id = String(call)
    if (!this.#past.add(id)) return
    const isOther = version !== '' && version !== this.#offer.version
    if (this.#isLeaving || isOther) return message.reply(written('leaving'))
    if (this.inFlight >= inFlightMax) return message.reply(written('full', this.inFlight))
    const waitedMs = this.#transit.waitedMs(String(caller), Number(sentMs), this.#engine.clock.nowMs())
    const leftMs = Number(timeoutMs) === 0 ? undefined : Math.ceil(Number(timeoutMs) - waitedMs)
    if (leftMs !== undefined && !(leftMs > 0)) {
      const late = new ZoneError('TASK_TIMEOUT', {
        zone: zoneName,
        timeoutMs: Number(timeoutMs),
        started: false,
      })
      return message.reply(written('error', errorFrame(late), this.inFlight))
    }
    const offered = {
      zone,
      payloads: this.#payloads,
      clock: this.#engine.clock,
      target: { url, zone: zoneName },
      inFlight: () => this.inFlight,
    }
    const begunMs = this.#polling.begun()
    const running = new Running(id, offered, message, credit, () => {
      this.#polling.ended(begunMs)
      this.#running.delete(id)
      if (this.#running.size === 0) this.#idle()
    })
    this.#running.set(id, running)
    if (!this.#isChecking) this.#check()
    inTrace(readTrace(trace), () => running.run(String(name), carried, leftMs))
  }

  /** End calls that nobody asks for, again and again while calls run. Calls in a row have one timer. */
  #check(): void {
    this.#isChecking = this.#running.size > 0
    if (!this.#isChecking) return
    const facts = { zone: this.name, silentMs: SILENCE_MS }
    for (const running of this.#running.values())
      if (++running.silence === CHECKS_MAX) running.cancel(new FleetError('CALLER_LOST', facts))
    this.#engine.clock.after(PING_MS, () => this.#check())
  }

  /** Which of the caller's calls do not run here. */
  #ping(message: Message, calls: unknown): void {
    const asked: readonly unknown[] = Array.isArray(calls) ? calls : []
    const unknown = asked.filter((call) => {
      const running = this.#running.get(String(call))
      if (running !== undefined) running.silence = 0
      return running === undefined
    })
    message.reply(written('pong', unknown, this.inFlight))
  }

  /**
   * Accept no more calls and jobs, finish those that run, and leave the fleet. A call that has not ended
   * after `timeoutMs`, default 10,000, is cancelled; a job is left to another host.
   * A second call is the same as the first.
   */
  async close(options: { readonly timeoutMs?: number | undefined } = {}): Promise<void> {
    const { timeoutMs = CLOSE_MS } = closeOptions('host.close()', options)
    this.#closed ??= this.#close(timeoutMs)
    await this.#closed
  }

  /** `close()`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #close(timeoutMs: number): Promise<void> {
    const begunMs = performance.now()
    const { name: zone, id: host } = this
    publish.hostClosing({ zone, host, calls: this.inFlight, jobs: this.jobsRunning, timeoutMs })
    await this.#leave(timeoutMs)
    publish.hostClosed({ zone, host, ms: performance.now() - begunMs })
  }

  async #leave(timeoutMs: number): Promise<void> {
    this.#isLeaving = true
    const [calls, survey, surveyAll] = this.#ends
    survey?.()
    surveyAll?.()
    this.#runner?.leave()
    const jobs = this.#jobs?.close(timeoutMs, this.#closes())
    try {
      this.#messages?.send(cardSubject(this.name), this.#card())
      await this.#flushed()
    } catch {
      // The connection has ended, and nobody receives.
    }
    if (this.#running.size > 0) await this.#finished(timeoutMs)
    await jobs
    // A caller whose question finds nobody takes its call for lost: values are on their way before.
    await this.#flushed()
    calls?.()
    this.#endPresence()
    // Calls that are on their way have to be replied to: their callers ask another host then.
    await this.#flushed()
    this.#runner?.close()
    this.#fleet.hosts.delete(this)
    await this.#own?.close()
  }

  async #flushed(): Promise<void> {
    if (this.#messages !== undefined) await flushed(this.#messages)
  }

  #closes(): FleetError {
    const { id, name } = this.#offer
    return new FleetError('HOST_LOST', { zone: name, host: id, reason: 'it closes, and had not finished' })
  }

  async #finished(timeoutMs: number): Promise<void> {
    const idle = new Promise<void>((resolve) => (this.#idle = resolve))
    const why = this.#closes()
    const cancel = this.#engine.clock.after(timeoutMs, () => {
      for (const running of this.#running.values()) running.cancel(why)
    })
    await idle
    cancel()
  }
}
