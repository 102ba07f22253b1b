/**
 * The owner's part in zones: start workers, watch them, replace them.
 *
 * A Node worker dies with the thread that made it, and only that thread learns why it ended. So one thread
 * makes the workers of a zone and all others send it a request through their bridge. The core decides that
 * a worker is needed (mail); this file makes it. While this thread is blocked, new workers
 * wait for it and running ones do not.
 *
 * ```text
 *  mail spawn: a new thread, or one that was kept ready (spare, prepared by reload, first of a gradual zone)
 *        │
 *        ▼      message            released by the core (shrink, reload, close): in `leaving`
 *   starting ─────────▶ ready ─────────────────────────────────────────▶ exit, released
 *        │                │  an error nobody caught, while it serves
 *        │                │  ───────▶ retiring ───────▶ left: another has its slot ──▶ exit, or
 *        │                │           (zoneRetire)      (in `left`, until endMs)        terminated
 *        │ exit           │ exit: crash, terminate, graceMs over
 *        ▼                ▼
 *   failedStarts + 1    workerGone: its tasks end by WORKER_DIED ──▶ the core asks for another: mail spawn
 *        │
 *        └── FAILED_STARTS_MAX in a row ──▶ the zone is broken: calls end by ZONE_START_FAILED
 * ```
 *
 * A zone whose last worker has exited, and which gets no other, is forgotten.
 * Over 400 lines: one class, a worker from start to end.
 */
import { Mail, Status, native } from '../../native/index.ts'
import { MAIN_MODULE } from '../../transport/internal.ts'
import { ZoneError } from '../errors.ts'
import { stringOf } from '../call/portable.ts'
import { threads } from '../../base/index.ts'
import { type Bridge, valueOf } from '../../bridge/index.ts'
import { MAIN_ID } from '../api/node-zone.ts'
import type { ZoneSettings } from '../ground/settings.ts'
import { SpareWorker, dropSpares } from './spare.ts'
import { endWithin } from '../call/reasons.ts'
import { stackless } from '../call/stacks.ts'
import { isOfSetup, watchHooks } from './hook-times.ts'
import type { PreparedNote, PreparedWorker } from './prepare.ts'
import type { ReloadOwner } from './reload.ts'
import type { HeapNote } from './recycle.ts'
import { publish } from '../ground/events.ts'
import { linkEnded } from './process.ts'
import { becameReady, startWorker } from './start.ts'
import { type WorkerStart, type WorkerThread, deathReason, exitReason, revivedError } from './thread.ts'
import { type Mark, currentZoneId } from '../ground/current.ts'
import {
  type LeavingNote,
  type LeftNote,
  type ReleasedNote,
  dropListeners,
  noteOf,
  report,
  resetMarks,
} from '../ground/uncaught.ts'

/** Interval at which a zone that needs more workers is checked, in ms. */
const GROW_MS = 2

/**
 * The replacement of a worker starts this long before the worker is terminated, in ms: a start takes up to
 * this where all cores are busy. A task that listens to its signal ends in the first tenth of `graceMs` and
 * costs no thread.
 */
const AHEAD_MS = 250
const AHEAD_SHARE = 0.9

/** Workers of a zone that may end in a row before they were ready; then the zone is broken. */
const FAILED_STARTS_MAX = 3

interface WatchedWorker {
  readonly thread: WorkerThread
  readonly name: string
  ready: boolean
  uncaught: Uncaught | undefined
  reason: string
  /** Terminates it if it does not end: another worker has its slot. */
  left: NodeJS.Timeout | undefined
  /** What it has marked as its own, until it has ended. */
  marks: readonly Mark[]
  /** Called when it has ended, or left. */
  exited: (() => void) | undefined
}

/** What ended a worker; a thrown `undefined` does too. */
interface Uncaught {
  readonly thrown: unknown
}

interface EndedWorker {
  readonly worker: string
  readonly reason: string
  readonly uncaught: Uncaught | undefined
  /** `undefined`: it could not be started. */
  readonly ended: WatchedWorker | undefined
  readonly wasReleased: boolean
}

class ZoneWorkers {
  readonly workers = new Map<number, WatchedWorker>()
  /** Workers that the core has released; they are not replaced. */
  readonly leaving = new Set<number>()
  /** Workers that were replaced, and finish what they serve. */
  readonly left = new Set<WatchedWorker>()
  failedStarts = 0
  graceMs = 0
  growing: NodeJS.Timeout | undefined
  /** Until the next check for tasks that run on after they were cancelled. */
  overdue: NodeJS.Timeout | undefined
  shrinking: NodeJS.Timeout | undefined
  /** Takes the slot of a worker that is about to be terminated. */
  spare: SpareWorker | undefined
  /** Take the slots of the workers that leave for them, by slot. */
  readonly prepared = new Map<number, PreparedWorker>()
  /** All that were prepared and have no slot, until they have ended. */
  readonly unseated = new Set<PreparedWorker>()
  /** Calls of `reload` that have not ended. */
  reloads = 0
  broken = false
  closing = false
  /** Of a weak zone that closes; its end is published here. */
  ends: readonly NodeJS.Timeout[] | undefined
}

/** The first worker of a zone whose others start later, if its thread runs already. */
export interface FirstWorker {
  readonly spare: SpareWorker | undefined
  /** Environment data that this thread has set since it started that thread. */
  readonly environment: NonNullable<WorkerStart['environment']>
}

/** A zone of which one worker has started. */
interface Gradual {
  first: FirstWorker | undefined
  readonly held: { readonly zoneNumber: number; readonly slot: number }[]
}

export class Owner {
  readonly #bridge: Bridge
  readonly #zones = new Map<number, ZoneWorkers>()
  /** By the zones' names, which are chosen before their numbers. */
  readonly #gradual = new Map<string, Gradual>()

  constructor(bridge: Bridge) {
    this.#bridge = bridge
    bridge.onMail(Mail.spawn, (zoneNumber, slot) => this.#spawn(zoneNumber, slot))
    bridge.onMail(Mail.cancelled, (zoneNumber, atOnce) => this.#cancelled(zoneNumber, atOnce === 1))
    bridge.onMail(Mail.closeNow, (zoneNumber) => this.#closeNow(zoneNumber))
    bridge.onMail(Mail.grow, (zoneNumber) => this.#grow(zoneNumber))
    bridge.onMail(Mail.linkEnded, linkEnded)
    bridge.onMail(Mail.reload, (zoneNumber) => void this.#reload(zoneNumber))
    bridge.onMail(Mail.spent, (zoneNumber, slot) => void this.#spent(zoneNumber, slot))
    bridge.onMail(Mail.unused, (zoneNumber) => this.#unused(zoneNumber))
  }

  /** Terminate a worker by its name; another replaces it. Returns false if this thread did not start it. */
  end(name: string, reason: string): boolean {
    for (const { workers } of this.#zones.values()) {
      for (const worker of workers.values()) {
        if (worker.name !== name) continue
        worker.reason = reason
        void worker.thread.terminate()
        return true
      }
    }
    return false
  }

  /**
   * Start one worker of a zone that is about to be created, and the others when the returned function is
   * called. A zone that closes before ends without them.
   */
  beginWithOne(zoneId: string, first: FirstWorker): () => void {
    const gradual: Gradual = { first, held: [] }
    this.#gradual.set(zoneId, gradual)
    return () => {
      this.#gradual.delete(zoneId)
      for (const { zoneNumber, slot } of gradual.held.splice(0)) this.#spawn(zoneNumber, slot)
    }
  }

  #workersOf(zoneNumber: number): ZoneWorkers {
    let zone = this.#zones.get(zoneNumber)
    if (zone === undefined) this.#zones.set(zoneNumber, (zone = new ZoneWorkers()))
    return zone
  }

  #spawn(zoneNumber: number, slot: number): void {
    const start = startOf(zoneNumber)
    if (start === undefined) return
    if (start.zoneId === MAIN_ID) return void this.#joinMain(zoneNumber, { ...start, slot })
    const name = `${start.zoneId}/${slot}`
    const zone = this.#workersOf(zoneNumber)
    zone.graceMs = start.settings.graceMs
    const gradual = this.#gradual.get(start.zoneId)
    // Where the only one has ended, this is its replacement.
    if (gradual !== undefined && zone.workers.size > 0) return void gradual.held.push({ zoneNumber, slot })
    const data = { ...start, slot }
    try {
      const prepared = zone.prepared.get(slot)
      zone.prepared.delete(slot)
      const taken = prepared?.take(data)
      if (taken !== undefined) return this.#watch(data, name, taken, prepared?.done)
      const spare = zone.spare?.take(data) ?? this.#begun(gradual, data)
      zone.spare = undefined
      this.#watch(data, name, spare ?? startWorker(data, name, start.settings))
    } catch (error) {
      this.#exited(zoneNumber, slot, name, `it could not be started: ${(error as Error).message}`, {
        thrown: error,
      })
    }
  }

  /** This thread is the worker of `zone.main`, if it is the main one. */
  async #joinMain(zoneNumber: number, start: WorkerStart): Promise<void> {
    // The main thread of a process that is a worker runs its tasks, and no others.
    const worker = currentZoneId()
    const isFree = threads().isMainThread && worker === undefined
    if (isFree) return (await import('../worker/main-thread.ts')).joinMain(start)
    const reason =
      worker === undefined
        ? 'the main thread has not used a zone; use one there first, for example by zone.create()'
        : `the main thread of this process is a worker of zone ${worker}; call zone.get() with that name`
    const failed = stackless(() => new ZoneError('ZONE_START_FAILED', { zone: start.zoneId, reason }))
    native.zoneFail(zoneNumber, this.#frame(failed))
    // A later call finds the main thread, if it has used a zone by then.
    native.workerGone(zoneNumber, start.slot, Status.died, this.#frame(failed))
    native.zoneForget(zoneNumber)
  }

  /** The thread of a zone's first worker that was started before the zone. */
  #begun(gradual: Gradual | undefined, start: WorkerStart): WorkerThread | undefined {
    const first = gradual?.first
    if (gradual === undefined || first === undefined) return undefined
    gradual.first = undefined
    const environment = [[MAIN_MODULE, process.argv[1] ?? ''] as const, ...first.environment]
    return first.spare?.take({ ...start, environment })
  }

  /** @param setUp Of a thread whose setup began before: whoever has prepared it watches that. */
  #watch(
    { zoneNumber, slot, zoneId, settings }: WorkerStart,
    name: string,
    thread: WorkerThread,
    setUp?: Promise<void>,
  ): void {
    const zone = this.#workersOf(zoneNumber)
    publish.workerStarted(name)
    const worker: WatchedWorker = {
      thread,
      name,
      ready: false,
      uncaught: undefined,
      reason: '',
      left: undefined,
      marks: [],
      exited: undefined,
    }
    zone.workers.set(slot, worker)
    const setupFailed = (error: unknown): void => {
      worker.uncaught = { thrown: error }
      worker.reason ||= stringOf((error as Error).message)
    }
    setUp?.catch((error: unknown) => isOfSetup(error) && setupFailed(error))
    const takesHook = watchHooks({
      zone: zoneId,
      worker: name,
      settings,
      thread,
      setupFailed,
      teardownFailed: (error) => this.#report(zoneNumber, name, error, true),
    })
    thread.on('message', (message) => {
      if (takesHook(message)) return
      const note = noteOf(message)
      if (note !== undefined) return this.#report(zoneNumber, name, valueOf(note, 0, note.length), false)
      if (this.#leaves(zoneNumber, slot, worker, message)) return
      if (worker.ready || (message as Partial<PreparedNote> | null)?.corespunPrepared === true) return
      worker.ready = true
      zone.failedStarts = 0
      becameReady(name, zone.workers.values())
    })
    thread.on('error', (error) => {
      worker.uncaught = { thrown: revivedError(error) }
      worker.reason ||= deathReason(error)
    })
    thread.once('exit', (code, signal) => {
      clearTimeout(worker.left)
      resetMarks(worker.marks)
      if (!zone.left.delete(worker))
        this.#exited(zoneNumber, slot, name, worker.reason || exitReason(code, signal), worker.uncaught)
      else if (worker.uncaught !== undefined && this.#zones.get(zoneNumber) === zone)
        this.#report(zoneNumber, name, worker.uncaught.thrown, true)
    })
    thread.unref()
  }

  /** What a worker posts on its way out; false for other messages. */
  #leaves(zoneNumber: number, slot: number, worker: WatchedWorker, message: unknown): boolean {
    const {
      corespunLeaving: frame,
      corespunLeftMs: endMs,
      corespunHeapFull: isFull,
      corespunReleased: isReleased,
      marks = [],
    } = Object(message) as Partial<LeavingNote & LeftNote & HeapNote & ReleasedNote>
    if (isFull === true) void this.#heapFull(zoneNumber, slot)
    if (isReleased === true && !this.#workersOf(zoneNumber).leaving.has(slot))
      worker.reason ||= 'it was replaced'
    if (isFull === true || isReleased === true) return true
    if (frame !== undefined || endMs !== undefined) worker.marks = marks
    if (frame !== undefined) {
      const thrown = valueOf(frame, 0, frame.length)
      worker.uncaught = { thrown }
      worker.reason = deathReason(thrown)
      native.zoneRetire(zoneNumber, slot)
    }
    if (endMs === undefined) return frame !== undefined
    this.#workersOf(zoneNumber).left.add(worker)
    worker.left = setTimeout(() => void worker.thread.terminate(), endMs).unref()
    const { name, uncaught, reason } = worker
    worker.uncaught = undefined
    this.#exited(zoneNumber, slot, name, reason || 'it was replaced, and finishes its requests', uncaught)
    return true
  }

  #exited(
    zoneNumber: number,
    slot: number,
    worker: string,
    reason: string,
    uncaught: Uncaught | undefined,
  ): void {
    const zone = this.#workersOf(zoneNumber)
    const ended = zone.workers.get(slot)
    zone.workers.delete(slot)
    const wasReleased = zone.leaving.delete(slot)
    publish.workerEnded(worker, reason, uncaught?.thrown)
    const free = (): void =>
      this.#slotFree(zoneNumber, slot, { worker, reason, uncaught, ended, wasReleased })
    const isLast = zone.workers.size === 0 && zone.unseated.size > 0 && native.zoneEnding(zoneNumber) === 1
    if (!isLast) return free()
    // `close` waits for the teardown of those that were prepared, too.
    dropSpares(zone)
    void Promise.all(Array.from(zone.unseated, (each) => each.ended)).then(free)
  }

  /** The slot of a worker that has ended is free. */
  #slotFree(
    zoneNumber: number,
    slot: number,
    { worker, reason, uncaught, ended, wasReleased }: EndedWorker,
  ): void {
    const zone = this.#workersOf(zoneNumber)
    const id = native.zoneId(zoneNumber) ?? ''
    const wasReady = ended?.ready === true
    const options = uncaught?.thrown === undefined ? undefined : { cause: uncaught.thrown }
    const status = zone.closing ? Status.closed : Status.died
    const facts = { zone: id, worker, reason }
    const died = this.#frame(stackless(() => new ZoneError('WORKER_DIED', facts, options)))
    const lost = native.workerGone(zoneNumber, slot, status, died)
    if (uncaught !== undefined && lost === 0 && wasReady)
      this.#report(zoneNumber, worker, uncaught.thrown, true)
    // A worker that had begun a task was ready, even if it died before its message arrived.
    if (!zone.closing && !wasReleased && !wasReady && lost === 0) zone.failedStarts++
    if (zone.failedStarts >= FAILED_STARTS_MAX) {
      zone.broken = true
      const broken = isOfSetup(uncaught?.thrown)
        ? uncaught.thrown
        : stackless(() => new ZoneError('ZONE_START_FAILED', { zone: id, reason }, options))
      native.zoneFail(zoneNumber, this.#frame(broken))
    }
    const more = wasReleased
      ? native.zoneOver(zoneNumber) === 0
      : !zone.broken && native.workerAdd(zoneNumber) === 1
    if (!more) dropSpares(zone)
    ended?.exited?.()
    if (!more && zone.workers.size === 0) {
      clearTimeout(zone.overdue)
      this.#zones.delete(zoneNumber)
      for (const { slot } of this.#gradual.get(id)?.held ?? [])
        native.workerGone(zoneNumber, slot, Status.closed, died)
      this.#gradual.delete(id)
      native.zoneForget(zoneNumber)
      // A zone that closes may have a successor of its name.
      if (!native.zoneIds().split('\0').includes(id)) dropListeners(id)
      zone.ends?.forEach(clearTimeout)
      if (zone.ends !== undefined) publish.zoneClosed(id)
    }
  }

  /** An error in a worker that no caller of a task receives. */
  #report(zoneNumber: number, worker: string, error: unknown, ended: boolean): void {
    native.zoneError(zoneNumber)
    report(native.zoneId(zoneNumber) ?? '', error, { worker, reason: deathReason(error), ended })
  }

  /** Tasks wait and no worker is free. */
  #grow(zoneNumber: number): void {
    const zone = this.#workersOf(zoneNumber)
    clearTimeout(zone.growing)
    const became = zone.broken ? 0 : native.zoneGrow(zoneNumber)
    if (became === 0) return void (zone.growing = undefined)
    zone.growing = setTimeout(() => this.#grow(zoneNumber), GROW_MS).unref()
    if (zone.shrinking === undefined) this.#shrink(zoneNumber)
  }

  /** Release idle workers, and check again when the next may be due; no timer where none is superfluous. */
  #shrink(zoneNumber: number): void {
    const zone = this.#workersOf(zoneNumber)
    const text = native.zoneSettings(zoneNumber)
    zone.shrinking = undefined
    if (text === undefined) return
    const { idleMs } = JSON.parse(text) as ZoneSettings
    const shrunk = native.zoneShrink(zoneNumber, idleMs)
    const [nextMs = 0, ...slots] = new Uint32Array(shrunk.buffer)
    for (const slot of slots) {
      zone.leaving.add(slot)
      zone.prepared.get(slot)?.retire()
      zone.prepared.delete(slot)
    }
    if (nextMs > 0) zone.shrinking = setTimeout(() => this.#shrink(zoneNumber), nextMs).unref()
  }

  /** An error as a frame; with its cause as text if the cause cannot travel. */
  #frame(error: Error): Uint8Array {
    try {
      return this.#bridge.frame(error)
    } catch {
      return this.#bridge.frame(Object.assign(error, { cause: stringOf(error.cause) }))
    }
  }

  /** Loaded when a zone is reloaded. */
  async #reload(zoneNumber: number): Promise<void> {
    const { reload } = await import('./reload.ts')
    reload(zoneNumber, this.#partOf(zoneNumber))
  }

  #partOf(zoneNumber: number): ReloadOwner {
    return {
      zoneOf: () => this.#zones.get(zoneNumber),
      startOf: () => startOf(zoneNumber),
      frame: (error) => this.#frame(error),
      report: (worker, error) => this.#report(zoneNumber, worker, error, true),
    }
  }

  /** A worker begins the last of its tasks. */
  async #spent(zoneNumber: number, slot: number): Promise<void> {
    const { prepareNext } = await import('./recycle.ts')
    const zone = this.#zones.get(zoneNumber)
    if (zone !== undefined) prepareNext(slot, this.#partOf(zoneNumber), zone)
  }

  async #heapFull(zoneNumber: number, slot: number): Promise<void> {
    const { recycle } = await import('./recycle.ts')
    const zone = this.#zones.get(zoneNumber)
    if (zone !== undefined) await recycle(zoneNumber, slot, this.#partOf(zoneNumber), zone)
  }

  /** A running task was cancelled: it has `graceMs`, even if the caller's thread ends meanwhile. */
  #cancelled(zoneNumber: number, atOnce: boolean): void {
    const zone = this.#zones.get(zoneNumber)
    if (zone === undefined) return
    if (atOnce) return this.#endOverdue(zoneNumber)
    const earlyMs = zone.graceMs - aheadMs(zone)
    zone.overdue ??= setTimeout(() => this.#endOverdue(zoneNumber), earlyMs).unref()
  }

  /** Terminate the workers whose cancelled tasks run too long, and check again when the next is due. */
  #endOverdue(zoneNumber: number): void {
    const zone = this.#zones.get(zoneNumber)
    if (zone === undefined) return
    clearTimeout(zone.overdue)
    zone.overdue = undefined
    const [nextMs = 0, ...slots] = new Uint32Array(native.zoneOverdue(zoneNumber, zone.graceMs).buffer)
    // Without a grace the replacement starts beside the end of its predecessor, which takes some ms as well.
    if (slots.length > 0) this.#prepareSpare(zoneNumber, zone)
    for (const slot of slots) {
      const worker = zone.workers.get(slot)
      if (worker === undefined) continue
      worker.reason = 'its task ran on for longer than graceMs after it was cancelled'
      void worker.thread.terminate()
    }
    if (nextMs > 0) {
      const earlyMs = nextMs - aheadMs(zone)
      if (earlyMs <= 0) this.#prepareSpare(zoneNumber, zone)
      const checkMs = earlyMs > 0 ? earlyMs : nextMs
      zone.overdue = setTimeout(() => this.#endOverdue(zoneNumber), checkMs).unref()
    } else if (slots.length === 0) {
      // The task that it was started for has ended by itself.
      zone.spare?.retire()
      zone.spare = undefined
    }
  }

  #prepareSpare(zoneNumber: number, zone: ZoneWorkers): void {
    const start = zone.spare === undefined && !zone.closing && !zone.broken ? startOf(zoneNumber) : undefined
    if (start === undefined) return
    try {
      zone.spare = new SpareWorker((slots) => startWorker({ slots }, `${start.zoneId}/spare`, start.settings))
    } catch {
      // The replacement is then started when it is due, and reports what is wrong.
    }
  }

  /** A weak zone without references closes. */
  #unused(zoneNumber: number): void {
    const start = startOf(zoneNumber)
    if (start === undefined || native.zoneUnused(zoneNumber) === 0) return
    const zone = this.#workersOf(zoneNumber)
    const isOver = zone.workers.size === 0 && native.zoneOver(zoneNumber) === 1
    native.zoneForget(zoneNumber)
    if (isOver) {
      this.#zones.delete(zoneNumber)
      return publish.zoneClosed(start.zoneId)
    }
    zone.ends = endWithin(zoneNumber, start.settings.closeMs, start.settings.graceMs)
    for (const timer of zone.ends) timer.unref()
  }

  #closeNow(zoneNumber: number): void {
    const zone = this.#workersOf(zoneNumber)
    zone.closing = true
    dropSpares(zone)
    for (const worker of [...zone.workers.values(), ...zone.left]) void worker.thread.terminate()
    for (const prepared of zone.unseated) prepared.terminate()
  }
}

function aheadMs({ graceMs }: ZoneWorkers): number {
  return Math.min(AHEAD_MS, Math.floor(graceMs * AHEAD_SHARE))
}

/** The start data of a zone's workers; `undefined` when the zone has ended. */
function startOf(zoneNumber: number): Omit<WorkerStart, 'slot'> | undefined {
  const text = native.zoneSettings(zoneNumber)
  const zoneId = native.zoneId(zoneNumber)
  if (text === undefined || zoneId === undefined) return undefined
  return { zoneNumber, zoneId, settings: JSON.parse(text) as ZoneSettings }
}
