/**
 * What the thread that owns zones does for them: start workers, watch them, replace them.
 *
 * A Node worker dies with the thread that made it, and only that thread hears why it ended; so one thread
 * makes the workers of a zone and all others ask it through its port. The core decides *that* a worker is
 * needed (mail); this file knows *how*. If this thread is blocked, new workers wait for it; running ones do
 * not.
 */
import { types } from 'node:util'
import { type MessagePort, Worker } from 'node:worker_threads'
import { Mail, Status, native } from '../../native/index.ts'
import { ZoneError } from '../errors.ts'
import { textOf } from '../call/portable.ts'
import { type Port, valueOf } from '../../bridge/index.ts'
import type { Settings } from '../api/settings.ts'
import { Spare } from './spare.ts'
import { stackless } from '../call/stacks.ts'
import { tell } from './tell.ts'
import { forgetListeners, noteOf, report } from '../worker/uncaught.ts'

/** How often a zone that wants more workers is looked at, in ms. */
const GROW_MS = 2

/**
 * How long before a worker is to be ended, in ms, the one that will replace it is started: a start takes up
 * to this where all cores are busy. A task that listens to its signal ends in the first tenth of `graceMs`,
 * and costs no thread.
 */
const AHEAD_MS = 250
const AHEAD_SHARE = 0.9

/** Workers of a zone that may end in a row before they were ready; then the zone is broken. */
const FAILED_STARTS_MAX = 3

/** What a worker is told at its start. */
export interface WorkerBirth {
  readonly zoneNumber: number
  /** Absent where it comes later, as the one message on `slots`: see spare.ts. */
  readonly slot?: number
  readonly slots?: MessagePort
  readonly zoneId: string
  readonly settings: Settings
}

interface Kept {
  readonly thread: Worker
  readonly name: string
  ready: boolean
  why: unknown
  reason: string
}

/** The workers of one zone. */
class Crew {
  readonly workers = new Map<number, Kept>()
  /** Those that were let go, and are not replaced. */
  readonly leaving = new Set<number>()
  failedStarts = 0
  /** Of the zone's settings. */
  graceMs = 0
  growing: NodeJS.Timeout | undefined
  /** Until the next look for tasks that go on after their callers have given up. */
  ending: NodeJS.Timeout | undefined
  shrinking: NodeJS.Timeout | undefined
  /** For the place of a worker that is about to be ended. */
  spare: Spare | undefined
  broken = false
  closing = false
}

export class Owner {
  readonly #port: Port
  readonly #crews = new Map<number, Crew>()

  constructor(port: Port) {
    this.#port = port
    port.onMail(Mail.spawn, (zoneNumber, slot) => this.#spawn(zoneNumber, slot))
    port.onMail(Mail.givenUp, (zoneNumber, atOnce) => this.#givenUp(zoneNumber, atOnce === 1))
    port.onMail(Mail.closeNow, (zoneNumber) => this.#closeNow(zoneNumber))
    port.onMail(Mail.grow, (zoneNumber) => this.#grow(zoneNumber))
  }

  #crew(zoneNumber: number): Crew {
    let crew = this.#crews.get(zoneNumber)
    if (crew === undefined) this.#crews.set(zoneNumber, (crew = new Crew()))
    return crew
  }

  #spawn(zoneNumber: number, slot: number): void {
    const birth = birthIn(zoneNumber)
    if (birth === undefined) return
    const name = `${birth.zoneId}/${slot}`
    const crew = this.#crew(zoneNumber)
    crew.graceMs = birth.settings.graceMs
    try {
      const spare = crew.spare?.take(slot)
      crew.spare = undefined
      this.#watch(zoneNumber, slot, name, spare ?? start({ ...birth, slot }, name))
    } catch (error) {
      this.#gone(zoneNumber, slot, name, `it could not be started: ${(error as Error).message}`, error)
    }
  }

  #watch(zoneNumber: number, slot: number, name: string, thread: Worker): void {
    const crew = this.#crew(zoneNumber)
    tell.workerStarted(name)
    const kept: Kept = { thread, name, ready: false, why: undefined, reason: '' }
    crew.workers.set(slot, kept)
    thread.on('message', (message) => {
      const note = noteOf(message)
      if (note !== undefined) return this.#reported(zoneNumber, name, valueOf(note, 0, note.length), false)
      if (kept.ready) return
      kept.ready = true
      crew.failedStarts = 0
      tell.workerReady(name)
    })
    thread.on('error', (error) => {
      kept.why = revived(error)
      kept.reason ||= reasonOf(error)
    })
    thread.once('exit', (code) => {
      this.#gone(zoneNumber, slot, name, kept.reason || `it exited with code ${code}`, kept.why)
    })
    thread.unref()
  }

  /** A worker has ended, for whatever reason. */
  #gone(zoneNumber: number, slot: number, worker: string, reason: string, why: unknown): void {
    const crew = this.#crew(zoneNumber)
    const zone = native.zoneId(zoneNumber) ?? ''
    const wasReady = crew.workers.get(slot)?.ready === true
    crew.workers.delete(slot)
    const letGo = crew.leaving.delete(slot)
    tell.workerEnded(worker, reason, why)
    const options = why === undefined ? undefined : { cause: why }
    const status = crew.closing ? Status.closed : Status.died
    const died = this.#frame(stackless(() => new ZoneError('WORKER_DIED', { zone, worker, reason }, options)))
    const lost = native.workerGone(zoneNumber, slot, status, died)
    if (why !== undefined && lost === 0 && wasReady) this.#reported(zoneNumber, worker, why, true)
    // One that had begun a task was ready, even if it died before its word of that got here.
    if (!crew.closing && !letGo && !wasReady && lost === 0) crew.failedStarts++
    if (crew.failedStarts >= FAILED_STARTS_MAX) {
      crew.broken = true
      const broken = stackless(() => new ZoneError('ZONE_BROKEN', { zone, reason }, options))
      native.zoneFail(zoneNumber, this.#frame(broken))
    }
    const more = letGo ? native.zoneOver(zoneNumber) === 0 : this.#replace(zoneNumber, crew)
    if (!more && crew.workers.size === 0) {
      clearTimeout(crew.ending)
      crew.spare?.retire()
      this.#crews.delete(zoneNumber)
      forgetListeners(zone)
      native.zoneForget(zoneNumber)
    }
  }

  /** An error in a worker that no caller of a task receives. */
  #reported(zoneNumber: number, worker: string, error: unknown, ended: boolean): void {
    native.zoneError(zoneNumber)
    report(native.zoneId(zoneNumber) ?? '', error, { worker, reason: reasonOf(error), ended })
  }

  #replace(zoneNumber: number, crew: Crew): boolean {
    return !crew.broken && native.workerAdd(zoneNumber) === 1
  }

  /** Tasks wait and nobody is free. */
  #grow(zoneNumber: number): void {
    const crew = this.#crew(zoneNumber)
    clearTimeout(crew.growing)
    const became = crew.broken ? 0 : native.zoneGrow(zoneNumber)
    if (became === 0) return void (crew.growing = undefined)
    crew.growing = setTimeout(() => this.#grow(zoneNumber), GROW_MS).unref()
    if (crew.shrinking === undefined) this.#shrink(zoneNumber)
  }

  /** Let idle workers go, and look again when the next may be due; no timer when there are none too many. */
  #shrink(zoneNumber: number): void {
    const crew = this.#crew(zoneNumber)
    const text = native.zoneSettings(zoneNumber)
    crew.shrinking = undefined
    if (text === undefined) return
    const { idleMs } = JSON.parse(text) as Settings
    const shrunk = native.zoneShrink(zoneNumber, idleMs)
    const [nextMs = 0, ...slots] = new Uint32Array(shrunk.buffer)
    for (const slot of slots) crew.leaving.add(slot)
    if (nextMs > 0) crew.shrinking = setTimeout(() => this.#shrink(zoneNumber), nextMs).unref()
  }

  /** An error as a frame; without its cause if that cannot be carried. */
  #frame(error: Error): Uint8Array {
    try {
      return this.#port.frame(error)
    } catch {
      return this.#port.frame(Object.assign(error, { cause: textOf(error.cause) }))
    }
  }

  /** A caller has given up a task that runs: it has `graceMs`, whatever becomes of that caller's thread. */
  #givenUp(zoneNumber: number, atOnce: boolean): void {
    const crew = this.#crews.get(zoneNumber)
    if (crew === undefined) return
    if (atOnce) return this.#endOverdue(zoneNumber)
    const earlyMs = crew.graceMs - aheadMs(crew)
    crew.ending ??= setTimeout(() => this.#endOverdue(zoneNumber), earlyMs).unref()
  }

  /** End the workers whose tasks go on too long after that, and look again when the next is due. */
  #endOverdue(zoneNumber: number): void {
    const crew = this.#crews.get(zoneNumber)
    if (crew === undefined) return
    clearTimeout(crew.ending)
    crew.ending = undefined
    const [nextMs = 0, ...slots] = new Uint32Array(native.zoneOverdue(zoneNumber, crew.graceMs).buffer)
    for (const slot of slots) {
      const kept = crew.workers.get(slot)
      if (kept === undefined) continue
      kept.reason = 'it went on after its caller had given up, longer than graceMs'
      void kept.thread.terminate()
    }
    if (nextMs > 0) {
      const earlyMs = nextMs - aheadMs(crew)
      if (earlyMs <= 0) this.#prepare(zoneNumber, crew)
      const lookMs = earlyMs > 0 ? earlyMs : nextMs
      crew.ending = setTimeout(() => this.#endOverdue(zoneNumber), lookMs).unref()
    } else if (slots.length === 0) {
      // Whatever it was started for has ended by itself.
      crew.spare?.retire()
      crew.spare = undefined
    }
  }

  /** Start the thread that will replace a worker of this zone. */
  #prepare(zoneNumber: number, crew: Crew): void {
    const birth = crew.spare === undefined && !crew.closing && !crew.broken ? birthIn(zoneNumber) : undefined
    if (birth === undefined) return
    try {
      crew.spare = new Spare((slots) => start({ ...birth, slots }, `${birth.zoneId}/spare`))
    } catch {
      // Then the replacement is started when it is due, and tells what is wrong.
    }
  }

  /** End a worker by its name, which another replaces. False: it is not one of this thread's. */
  end(name: string, reason: string): boolean {
    for (const { workers } of this.#crews.values()) {
      for (const kept of workers.values()) {
        if (kept.name !== name) continue
        kept.reason = reason
        void kept.thread.terminate()
        return true
      }
    }
    return false
  }

  #closeNow(zoneNumber: number): void {
    const crew = this.#crew(zoneNumber)
    crew.closing = true
    crew.spare?.retire()
    for (const kept of crew.workers.values()) void kept.thread.terminate()
  }
}

function aheadMs({ graceMs }: Crew): number {
  return Math.min(AHEAD_MS, Math.floor(graceMs * AHEAD_SHARE))
}

/** What workers of a zone are told; `undefined` when it is over. */
function birthIn(zoneNumber: number): Omit<WorkerBirth, 'slot' | 'slots'> | undefined {
  const text = native.zoneSettings(zoneNumber)
  const zoneId = native.zoneId(zoneNumber)
  if (text === undefined || zoneId === undefined) return undefined
  return { zoneNumber, zoneId, settings: JSON.parse(text) as Settings }
}

function start(birth: WorkerBirth, name: string): Worker {
  const { settings } = birth
  return new Worker(new URL('../worker/worker.js', import.meta.url), {
    name,
    workerData: { corespun: birth },
    transferList: birth.slots === undefined ? [] : [birth.slots],
    ...execArgvOf(settings),
    ...(settings.env === null ? {} : { env: { ...settings.env } }),
    ...(settings.heapMbMax === null
      ? {}
      : { resourceLimits: { maxOldGenerationSizeMb: settings.heapMbMax } }),
  })
}

/** Options of Node that say how modules are found and what is warned of; those with a value of their own. */
const PASSED_ON = new RegExp(
  '^(--import|--require|-r|--(no-)?experimental-|--conditions|-C|--no-|--trace-|' +
    '--disable-warning|--enable-source)',
)
const WITH_VALUE = /^(--import|--require|-r|--experimental-loader|--conditions|-C|--disable-warning)$/

/**
 * Node lets workers inherit its options; under --input-type it then refuses to start any from a file. There
 * the workers get the options that matter for modules, since an explicit list may not have all that a process
 * may.
 */
function execArgvOf(settings: Settings): { execArgv?: string[] } {
  if (settings.execArgv !== null) return { execArgv: [...settings.execArgv] }
  const given = process.execArgv
  if (!given.some((option) => option.startsWith('--input-type'))) return {}
  const ofPrevious = (index: number): boolean => WITH_VALUE.test(given[index - 1] ?? '')
  return { execArgv: given.filter((option, index) => PASSED_ON.test(option) || ofPrevious(index)) }
}

/** Node hands a worker's error over as an object that only looks like an error. */
function revived(given: unknown): unknown {
  if (types.isNativeError(given) || !(given instanceof Error)) return given
  const error: Error = given
  const { message, stack, cause, ...own } = error
  const real = Object.setPrototypeOf(
    new Error(textOf(message)),
    Object.getPrototypeOf(error) as object,
  ) as Error
  const hidden = 'cause' in error ? { stack, cause: revived(cause) } : { stack }
  for (const [key, value] of Object.entries(hidden)) {
    Object.defineProperty(real, key, { value, configurable: true, writable: true })
  }
  return Object.assign(real, own)
}

function reasonOf(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code
  if (code === 'ERR_WORKER_OUT_OF_MEMORY') return 'its heap was exhausted'
  return `an error was not caught: ${textOf(error instanceof Error ? error.message : error)}`
}
