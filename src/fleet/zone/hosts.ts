/**
 * The hosts of one zone, as a caller sees them: who they are, how busy, and whether they still run.
 *
 * Hosts are found by asking once, and report themselves when they come and leave. How busy one is comes with
 * each of its replies. A host that runs calls of this caller is asked once a second whether it does; so one
 * that dies is found out, and an idle fleet exchanges nothing.
 */
import { hostname } from 'node:os'
import type { End, Messages } from '../engine/engine.ts'
import { FleetError } from '../errors.ts'
import {
  PING_MS,
  type Parts,
  SILENCE_MS,
  cardSubject,
  hostSubject,
  readParts,
  surveySubject,
  written,
} from '../wire.ts'

/** How long hosts have to reply, and others once one has. */
const SURVEY_MS = 2000
const OTHERS_MS = 50
/** Hosts of one zone that a caller keeps in mind. */
const HOSTS_MAX = 10_000

/** A call that waits for a host. */
export interface Waiting {
  readonly id: string
  /** Its host has reported once that it does not run it. */
  isDoubted: boolean
  lost(why: FleetError): void
  /** End it, at its host too. */
  cancel(why: unknown): void
}

/** One host. */
export class Host {
  readonly id: string
  readonly subject: string
  version = ''
  isNear = false
  inFlightMax = 1
  /** How many calls run at once there: more of them wait, up to `inFlightMax`. */
  atOnce = 1
  /** Calls of others. */
  #others = 0
  readonly waiting = new Map<string, Waiting>()

  constructor(zone: string, id: string) {
    this.id = id
    this.subject = hostSubject(zone, id)
  }

  /** How many calls it runs, as it has reported. */
  set inFlight(count: unknown) {
    this.#others = Math.max(0, (Number(count) || 0) - this.waiting.size)
  }

  /** 1 and more: a call waits there. */
  get load(): number {
    return (this.#others + this.waiting.size) / this.atOnce
  }

  /** This caller alone has as many as it accepts. */
  get isFull(): boolean {
    return this.waiting.size >= this.inFlightMax
  }
}

export class Hosts {
  readonly #messages: Messages
  readonly #zone: string
  readonly #version: string | undefined
  readonly #hosts = new Map<string, Host>()
  /** Those that may be called; `undefined` after a change. */
  #usable: readonly Host[] | undefined
  readonly #pings = new Map<Host, End>()
  readonly #changed = new Set<() => void>()
  #listening: Promise<End> | undefined
  #survey: Promise<void> | undefined
  #endSurvey: End = () => {}
  #isClosed = false

  constructor(messages: Messages, zone: string, version: string | undefined) {
    this.#messages = messages
    this.#zone = zone
    this.#version = version
  }

  /** Those that may be called. */
  get usable(): readonly Host[] {
    if (this.#usable !== undefined) return this.#usable
    const all = [...this.#hosts.values()]
    const version = this.#version
    return (this.#usable = version === undefined ? all : all.filter((host) => host.version === version))
  }

  /** The one to call: on this machine if one there begins it at once, else the least busy. */
  pick(refused: ReadonlySet<Host> | undefined): Host | undefined {
    let best: Host | undefined
    for (const host of this.usable) {
      if (refused?.has(host) === true || host.isFull) continue
      const isNearer = host.isNear && host.load < 1
      const bestIsNearer = best !== undefined && best.isNear && best.load < 1
      if (best === undefined || (isNearer === bestIsNearer ? host.load < best.load : isNearer)) best = host
    }
    return best
  }

  /** Resolves when one is known. @throws {FleetError} `ZONE_NOWHERE`, or why nothing can be listened to. */
  async find(): Promise<void> {
    if (this.usable.length > 0) return
    this.#survey ??= this.#ask().finally(() => (this.#survey = undefined))
    await this.#survey
    if (this.usable.length > 0) return
    const versions = [...new Set([...this.#hosts.values()].map(({ version }) => version))]
    throw new FleetError('ZONE_NOWHERE', { zone: this.#zone, version: this.#version, versions })
  }

  async #ask(): Promise<void> {
    this.#listening ??= this.#messages.listen(cardSubject(this.#zone), ({ bytes }) =>
      this.#card(readParts(bytes)),
    )
    this.#listening.catch(() => (this.#listening = undefined))
    await this.#listening
    await this.#gather(this.#version)
    // No host has the version: the error lists those that exist.
    if (this.usable.length === 0 && this.#version !== undefined) {
      await this.#gather(undefined)
      if (this.#hosts.size > 0) await this.#pause(OTHERS_MS)
    }
  }

  /** Resolves with the first reply, or when nobody replies. */
  #gather(version: string | undefined): Promise<void> {
    this.#endSurvey()
    return new Promise((resolve) => {
      const stop = this.#messages.clock.after(SURVEY_MS, resolve)
      const end = this.#messages.ask(surveySubject(this.#zone, version), written('who'), (reply) => {
        const parts = reply && readParts(reply)
        this.#card(parts)
        // Others may stay.
        if (parts?.[6] === true) return
        stop()
        resolve()
      })
      // The others reply later, and are received as well.
      this.#endSurvey = end
    })
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => void this.#messages.clock.after(ms, resolve))
  }

  #card(parts: Parts | undefined): void {
    if (parts?.[0] !== 'card' || this.#isClosed) return
    const [, id, version, machine, inFlightMax, inFlight, isLeaving, atOnce] = parts
    if (typeof id !== 'string' || !/^[\w-]{1,64}$/.test(id)) return
    if (isLeaving === true) return this.drop(this.#hosts.get(id))
    if (!this.#hosts.has(id) && this.#hosts.size >= HOSTS_MAX) return
    const host = this.#hosts.get(id) ?? new Host(this.#zone, id)
    this.#hosts.set(id, host)
    host.version = String(version)
    host.isNear = machine === hostname()
    host.inFlightMax = Math.max(1, Number(inFlightMax) || 1)
    host.atOnce = Math.min(host.inFlightMax, Math.max(1, Number(atOnce) || host.inFlightMax))
    host.inFlight = inFlight
    this.#usable = undefined
    this.#notify()
  }

  /** A host takes no more calls; those that it runs go on. */
  drop(host: Host | undefined): void {
    if (host === undefined || this.#hosts.get(host.id) !== host) return
    this.#hosts.delete(host.id)
    this.#usable = undefined
    this.#notify()
  }

  /** A call waits for that host. */
  begin(host: Host, call: Waiting): void {
    host.waiting.set(call.id, call)
    if (!this.#pings.has(host)) this.#ping(host)
  }

  /** It does not any more; `inFlight` as the host has reported with its reply. */
  end(host: Host, call: Waiting, inFlight?: unknown): void {
    host.waiting.delete(call.id)
    if (inFlight !== undefined) host.inFlight = inFlight
    this.#notify()
  }

  /** Ask, again and again while calls wait, whether it runs them. Calls in a row have one timer. */
  #ping(host: Host): void {
    const { clock } = this.#messages
    let receivedMs = clock.nowMs()
    let endAsk: End = () => {}
    let endTimer: End = () => {}
    const ask = (): void => {
      endAsk()
      if (host.waiting.size === 0) return void this.#pings.delete(host)
      if (clock.nowMs() - receivedMs > SILENCE_MS) {
        this.#pings.delete(host)
        return this.#isGone(host, `it has not replied for ${SILENCE_MS} ms`)
      }
      endTimer = clock.after(PING_MS, ask)
      endAsk = this.#messages.ask(host.subject, written('ping', [...host.waiting.keys()]), (reply) => {
        if (reply === undefined) return this.#isGone(host, 'it has ended')
        const [kind, unknown, inFlight] = readParts(reply) ?? []
        if (kind !== 'pong') return
        receivedMs = clock.nowMs()
        host.inFlight = inFlight
        if (Array.isArray(unknown)) this.#doubt(host, unknown)
      })
    }
    endTimer = clock.after(PING_MS, ask)
    this.#pings.set(host, () => {
      endAsk()
      endTimer()
    })
  }

  /** The host does not run these calls: their replies were lost, if they do not come before the next time. */
  #doubt(host: Host, unknown: readonly unknown[]): void {
    const ids = new Set(unknown)
    for (const call of [...host.waiting.values()]) {
      if (!ids.has(call.id)) call.isDoubted = false
      else if (call.isDoubted) call.lost(this.#error(host, 'its reply was lost'))
      else call.isDoubted = true
    }
  }

  #isGone(host: Host, reason: string): void {
    this.drop(host)
    for (const call of [...host.waiting.values()]) call.lost(this.#error(host, reason))
  }

  #error(host: Host, reason: string): FleetError {
    return new FleetError('HOST_LOST', { zone: this.#zone, host: host.id, reason })
  }

  /** Resolves when something has changed that a refused call may wait for, or soon. */
  change(mostMs: number): Promise<void> {
    return new Promise((resolve) => {
      const settle = (): void => {
        stop()
        this.#changed.delete(settle)
        resolve()
      }
      const stop = this.#messages.clock.after(mostMs, settle)
      this.#changed.add(settle)
    })
  }

  #notify(): void {
    for (const settle of this.#changed) settle()
  }

  close(): void {
    this.#isClosed = true
    this.#endSurvey()
    this.#listening?.then((end) => end()).catch(() => {})
    for (const end of this.#pings.values()) end()
    this.#pings.clear()
  }
}
