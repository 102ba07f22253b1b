/**
 * The loop of a worker: take, run, complete.
 *
 * One call into the core per task ends one and takes the next. The core decides when timers and I/O have
 * a turn, and calls again at once if there is more. A task that returns a promise leaves the loop and comes
 * back through `#settled`. Broadcasts run alone. Over 400 lines: one class, one way of a task.
 */
import { promiseOf, whenSettled } from '../../base/index.ts'
import { Ended, FOUND, HEADER_BYTES, NO_TOKEN, Status, Step, Work, native } from '../../native/index.ts'
import { functionByNumber, isRefusal } from '../../transport/internal.ts'
import { type CpuAccount, type CpuMeter, TIME_BYTES } from '../ground/cpu.ts'
import { readArguments } from '../context/frame.ts'
import { ZoneError } from '../errors.ts'
import type { ZoneSettings } from '../ground/settings.ts'
import type { Bridge } from '../../bridge/index.ts'
import { portable } from '../call/portable.ts'
import { cancelReason } from '../call/reasons.ts'
import { hideOwnFrames } from '../call/stacks.ts'
import {
  Task,
  type TaskTracker,
  broadcastTask,
  isInBroadcast,
  overlappingTracker,
  singleTracker,
  useTracker,
} from '../ground/task.ts'
import type { SentSettings } from '../stream/carried/sent.ts'
import { endWaits } from '../stream/waits.ts'
import { here } from '../ground/current.ts'

const EMPTY = new Uint8Array(0)

type TaskFunction = (this: Task, ...args: unknown[]) => unknown

interface Started {
  readonly serial: number
  readonly task: Task
}

export interface DispatcherEvents {
  /** Once: all broadcasts that were made before have run. */
  ready(): void
  leave(): void
  /** An error, as a frame, belongs to no task in flight. */
  report(error: Uint8Array): void
  /** Called between tasks, after each turn. */
  readonly measure?: (() => void) | undefined
}

export class Dispatcher {
  readonly #bridge: Bridge
  readonly #zone: string
  readonly #worker: string
  readonly #events: DispatcherEvents
  readonly #streams: SentSettings
  #tracker: TaskTracker
  /** The tracker, as long as no two tasks have overlapped: spares a closure, and following promises. */
  #single: ReturnType<typeof singleTracker> | undefined
  readonly #functions: (TaskFunction | undefined)[] = []
  /** Tasks in progress that have returned a promise, by token. */
  readonly #started = new Map<number, Started>()
  #isRunning = false
  #broadcasting = false
  #isReady = false

  constructor(
    bridge: Bridge,
    zone: string,
    worker: string,
    settings: ZoneSettings,
    events: DispatcherEvents,
  ) {
    this.#bridge = bridge
    this.#zone = zone
    this.#worker = worker
    this.#events = events
    const { graceMs, isolation } = settings
    this.#streams = { ahead: settings, graceMs, isOutside: isolation === 'process' }
    this.#single = settings.tasksPerWorkerMax === 1 ? singleTracker() : undefined
    this.#tracker = this.#single ?? overlappingTracker()
    useTracker(this.#tracker)
  }

  /** Run the available tasks, for one turn. */
  readonly run = (): void => {
    if (this.#isRunning) return
    this.#isRunning = true
    const { carrier } = here
    try {
      if (carrier === undefined) this.#turn()
      else carrier.turn(() => this.#turn())
    } finally {
      this.#isRunning = false
    }
    this.#events.measure?.()
  }

  /**
   * A task is about to call its own zone.
   * @throws {ZoneError} `ZONE_DEADLOCK` where a broadcast is: it holds this worker up.
   */
  readonly beforeFork = (): void => {
    if (this.#broadcasting && isInBroadcast())
      throw new ZoneError('ZONE_DEADLOCK', { zone: this.#zone, call: 'a call from its own broadcast' })
  }

  /** Another task begins beside the one that runs: from now on each is followed through its promises. */
  #overlap(): void {
    this.#tracker = overlappingTracker(this.#single?.current())
    this.#single = undefined
    useTracker(this.#tracker)
  }

  /** Run the task that `help` has found, in the middle of another one. */
  readonly runFound = (): void => {
    const { words, given } = this.#bridge
    const token = words[Work.token]
    const status = this.#status
    const isInTurn = this.#isInTurn
    this.#isInTurn = false
    const length = this.#start(token)
    this.#isInTurn = isInTurn
    if (length !== ELSEWHERE) {
      given[Ended.token] = token
      given[Ended.status] = this.#status
      given[Ended.length] = length
      native.complete()
    }
    this.#status = status
  }

  /**
   * An error was not caught. The task in flight that it belongs to fails with it, if others are in flight,
   * and the worker goes on; one that belongs to none of several is reported. Returns false where nobody else
   * would be hurt: then it ends the worker, which is replaced.
   * @param serves Whether the worker serves beside its tasks, which its end would hurt.
   */
  uncaught(error: unknown, task: Task | undefined, serves: boolean): boolean {
    const started = [...this.#started]
    const guilty = started.find(([, each]) => each.task === task)
    if (started.length < (guilty === undefined || serves ? 1 : 2) || this.#broadcasting) return false
    // One task at a time is not followed through its promises: an error beside it is taken to be its own.
    if (guilty === undefined) this.#events.report(this.frame(error))
    else {
      endWaits(guilty[1].task)
      this.#settled(guilty[0], guilty[1].task, Status.failed, error)
    }
    return true
  }

  /** An error as a frame of its own. */
  frame(error: unknown): Uint8Array {
    hideOwnFrames(error)
    this.#status = Status.failed
    const length = this.#write(error)
    const { out, writer } = this.#bridge
    return length >= 0 ? out.slice(HEADER_BYTES, HEADER_BYTES + length) : (writer.overflow ?? EMPTY)
  }

  /** A task was cancelled; `why` is the number of the reason. */
  abandon(token: number, serial: number, why: number): void {
    const started = this.#started.get(token)
    if (started?.serial === serial) started.task.abandon(cancelReason(why, this.#zone))
  }

  #turn(): void {
    const { words, given } = this.#bridge
    given[Ended.token] = NO_TOKEN
    for (;;) {
      native.step()
      const kind = words[FOUND]
      given[Ended.token] = NO_TOKEN
      if (kind === Step.hadTurn) return
      if (kind === Step.nothing) return this.#caughtUp()
      if (kind === Step.leave) {
        this.#caughtUp()
        return this.#events.leave()
      }
      if (kind === Step.broadcast) return this.#broadcast()
      if (!this.#isReady) this.#caughtUp()
      const token = words[Work.token]
      const length = this.#start(token)
      given[Ended.token] = length === ELSEWHERE ? NO_TOKEN : token
      given[Ended.status] = this.#status
      given[Ended.length] = length
    }
  }

  /** Nothing is left to replay: the worker is as good as those that were there before. */
  #caughtUp(): void {
    if (this.#isReady || this.#broadcasting) return
    this.#isReady = true
    this.#events.ready()
  }

  #status: number = Status.done
  /** Tasks begin one after the other, not in the middle of another one. */
  #isInTurn = true
  /** The caller of the task that is being started blocks until it has ended. */
  #joined = false

  /**
   * Run the task in the inbound scratch. Returns the length of its result in the out scratch, or ELSEWHERE.
   */
  #start(token: number): number {
    const { words, inbound } = this.#bridge
    const length = words[Work.length]
    const serial = words[Work.serial]
    const joined = words[Work.joined] === 1
    let result: unknown
    let promise: Promise<unknown> | undefined
    this.#status = Status.done
    const task = new Task(this.#zone, this.#worker, words[Work.depth], words[Work.waited])
    const number = words[Work.fn]
    const fn = this.#functions[number]
    try {
      const large = words[Work.large] === 1
      if (fn !== undefined) here.labels?.prepare(`${this.#zone} ${fn.name}`)
      const bytes = large ? native.taskBytes(token) : inbound
      const from = large ? 0 : HEADER_BYTES
      this.#joined = joined
      result =
        fn === undefined
          ? this.#first(number, task, bytes.subarray(from, from + length))
          : this.#call(fn, task, length === 0 ? undefined : readArguments(bytes, from, from + length, task))
      promise = promiseOf(result)
      if (promise !== undefined && joined && fn !== undefined) throw this.#refuseAsync(fn.name, promise)
    } catch (error) {
      this.#tracker.ended(task)
      return this.#finish(token, Status.failed, error, task, serial)
    }
    if (promise !== undefined) {
      this.#started.set(token, { serial, task })
      const settling = promise
      if (fn === undefined || here.labels === undefined) this.#watch(settling, token, task)
      else here.labels.follow(() => this.#watch(settling, token, task))
      return ELSEWHERE
    }
    this.#tracker.ended(task)
    return this.#finish(token, Status.done, result, task, joined ? NO_STREAMS : serial)
  }

  #watch(promise: Promise<unknown>, token: number, task: Task): void {
    whenSettled(
      promise,
      (value) => this.#settled(token, task, Status.done, value),
      (error) => this.#settled(token, task, Status.failed, error),
    )
  }

  /** The task's caller blocks, perhaps in a thread that this promise waits for. */
  #refuseAsync(name: string, promise: Promise<unknown>): ZoneError {
    promise.catch(() => {})
    return new ZoneError('JOIN_ASYNC', { zone: this.#zone, name })
  }

  #firstCall(fn: TaskFunction, task: Task, args: unknown[] | undefined, joined: boolean): unknown {
    const result = this.#call(fn, task, args)
    const promise = joined ? promiseOf(result) : undefined
    if (promise !== undefined) throw this.#refuseAsync(fn.name, promise)
    return result
  }

  #call(fn: TaskFunction, task: Task, args: unknown[] | undefined): unknown {
    const { labels } = here
    if (labels === undefined) return this.#carried(fn, task, args)
    return labels.run(`${this.#zone} ${fn.name}`, () => this.#carried(fn, task, args))
  }

  #carried(fn: TaskFunction, task: Task, args: unknown[] | undefined): unknown {
    const { carrier } = here
    if (carrier === undefined) return this.#tracked(fn, task, args)
    const { tracing, meter } = carrier
    const isEntering = carrier.isToEnter(task.record)
    if (!isEntering && tracing === undefined && meter === undefined) return this.#tracked(fn, task, args)
    const tracked = (): unknown => this.#tracked(fn, task, args)
    const measured = meter === undefined ? tracked : this.#measured(meter, task, tracked)
    const trace = task.record?.carried?.trace
    const traced = (): unknown => tracing?.run(task, fn.name, trace, measured)
    const body = tracing === undefined ? measured : traced
    return isEntering ? carrier.enter(task.record, this.#isInTurn, body) : body()
  }

  /** `body` at the cost of its task. */
  #measured<R>(meter: CpuMeter, task: Task, body: () => R): () => R {
    const isAlone = this.#single !== undefined && this.#single.current() === undefined
    return () => meter.task(task.record?.cpu, isAlone, body)
  }

  #tracked(fn: TaskFunction, task: Task, args: unknown[] | undefined): unknown {
    if (this.#single !== undefined) {
      if (this.#single.current() === undefined) {
        this.#single.set(task)
        return invoke(fn, task, args)
      }
      this.#overlap()
    }
    return this.#tracker.run(task, () => invoke(fn, task, args))
  }

  /**
   * The function of a number that this worker has not run yet: compiled, or imported, first. Its arguments
   * are read behind that, since its module may register their classes; until then they are in a copy, as
   * the next task overwrites the frame.
   */
  #first(number: number, task: Task, frame: Uint8Array): unknown {
    const joined = this.#joined
    const found = functionByNumber(number) as TaskFunction | Promise<TaskFunction>
    const begin = (fn: TaskFunction, bytes: Uint8Array): unknown => {
      this.#functions[number] = fn
      native.functionReady(number)
      return this.#firstCall(fn, task, argumentsOf(bytes, task), joined)
    }
    if (typeof found === 'function') return begin(found, frame)
    const kept = frame.slice()
    return found.then(
      (fn) => begin(fn, kept),
      (error: unknown) => {
        try {
          argumentsOf(kept, task) // what they hold, such as moved buffers, arrives and is let go
        } catch {
          // Without the module its classes are unknown.
        }
        throw error
      },
    )
  }

  #settled(token: number, task: Task, status: number, value: unknown): void {
    // It may have failed already by an error that it left behind.
    const started = this.#started.get(token)
    if (started?.task !== task) return
    this.#started.delete(token)
    this.#tracker.ended(task)
    const length = this.#finish(token, status, value, task, started.serial)
    if (length !== ELSEWHERE) {
      const { given } = this.#bridge
      given[Ended.token] = token
      given[Ended.status] = this.#status
      given[Ended.length] = length
      native.complete()
    }
    this.run()
  }

  /** Write a result or error; what does not fit the scratch goes at once. */
  #finish(token: number, status: number, value: unknown, task: Task, serial: number): number {
    const cpu = task.record?.cpu
    const length =
      cpu === undefined
        ? this.#result(token, status, value, task, serial)
        : cpu.meter.charge(cpu, () => this.#result(token, status, value, task, serial))
    if (length === ELSEWHERE) return length
    if (cpu !== undefined) return this.#withTimes(cpu, token, length, task)
    if (length >= 0) return length
    native.completeLarge(token, this.#status, this.#bridge.writer.overflow ?? EMPTY)
    return ELSEWHERE
  }

  /** The result that was written, with the times of its task behind it. */
  #withTimes(cpu: CpuAccount, token: number, length: number, { waited }: Task): number {
    cpu.meter.end(cpu)
    const { out, writer } = this.#bridge
    const end = HEADER_BYTES + length
    if (length >= 0 && end + TIME_BYTES < out.length) return cpu.send(out, HEADER_BYTES, length, waited)
    const frame = length >= 0 ? out.subarray(HEADER_BYTES, end) : (writer.overflow ?? EMPTY)
    const bytes = new Uint8Array(frame.length + TIME_BYTES)
    bytes.set(frame)
    cpu.send(bytes, 0, frame.length, waited)
    native.completeLarge(token, this.#status, bytes)
    return ELSEWHERE
  }

  /** The length of what was written; ELSEWHERE if it is a stream, OVERFLOWN if it did not fit. */
  #result(token: number, status: number, value: unknown, task: Task, serial: number): number {
    this.#status = status
    if (status === Status.done && value === undefined) return 0
    if (status === Status.failed) hideOwnFrames(value)
    let length: number
    try {
      length = this.#bridge.write(value)
    } catch (error) {
      if (status === Status.done && serial !== NO_STREAMS && isRefusal(error))
        return this.#stream(token, { serial, task }, value, error)
      length = this.#writeInstead(value, error)
    }
    return length >= 0 ? length : OVERFLOWN
  }

  #write(value: unknown): number {
    try {
      return this.#bridge.write(value)
    } catch (error) {
      return this.#writeInstead(value, error)
    }
  }

  /** Write the `error` that a value cannot be written, or what is left of an error that cannot. */
  #writeInstead(value: unknown, error: unknown): number {
    const sent = this.#status === Status.failed ? portable(value, error) : error
    this.#status = Status.failed
    return this.#writeError(sent)
  }

  /**
   * A result was refused: what of it is a stream is sent while the task goes on, by code that is loaded now.
   * Without a stream the task fails with the refusal.
   */
  #stream(token: number, started: Started, value: unknown, refusal: unknown): number {
    const { task } = started
    this.#started.set(token, started)
    const notify = (to: number, from: number): number => native.taskStreams(token, to, from)
    const send = async (): Promise<void> => {
      const { sendStreams } = await import('../stream/carried/sent.ts')
      // It may have failed meanwhile by an error that it left behind, and another task have its token.
      if (this.#started.get(token)?.task !== task) return
      await sendStreams(task, value, refusal, this.#streams, notify)
    }
    whenSettled(
      this.#within(task, send),
      () => this.#settled(token, task, Status.done, undefined),
      (error) => this.#settled(token, task, Status.failed, error),
    )
    return ELSEWHERE
  }

  /** Run `body` as a part of a task that had ended. */
  #within<R>(task: Task, body: () => R): R {
    const { carrier } = here
    if (carrier === undefined) return this.#trackedWithin(task, body)
    const { tracing, meter } = carrier
    const plain = (): R => this.#trackedWithin(task, body)
    const tracked = meter === undefined ? plain : this.#measured(meter, task, plain)
    const traced = tracing === undefined ? tracked : (): R => tracing.within(task, tracked)
    return carrier.isToEnter(task.record) ? carrier.enter(task.record, false, traced) : traced()
  }

  #trackedWithin<R>(task: Task, body: () => R): R {
    if (this.#single?.current() === undefined) {
      this.#single?.set(task)
      if (this.#single !== undefined) return body()
    } else this.#overlap()
    return this.#tracker.run(task, body)
  }

  #writeError(error: unknown): number {
    try {
      return this.#bridge.write(error)
    } catch (why) {
      return this.#bridge.write(portable(error, why))
    }
  }

  #broadcast(): void {
    const { words, inbound } = this.#bridge
    const [number, length, depth] = [words[Work.fn], words[Work.length], words[Work.depth]]
    const large = words[Work.large] === 1
    const bytes = large ? native.taskBytes(NO_TOKEN) : inbound.slice(HEADER_BYTES, HEADER_BYTES + length)
    this.#broadcasting = true
    this.#joined = false
    const task = broadcastTask(this.#zone, this.#worker, depth)
    const ended = (): void => {
      this.#broadcasting = false
      this.#tracker.ended(task)
      // What it has started and not waited for is not waited for by the broadcast either.
      task.depth = undefined
    }
    const done = (): void => {
      ended()
      native.broadcastDone(Status.done, EMPTY)
      this.run()
    }
    const failed = (error: unknown): void => {
      ended()
      native.broadcastDone(Status.failed, this.frame(error))
      this.run()
    }
    try {
      const result = this.#first(number, task, bytes.subarray(0, length))
      const promise = promiseOf(result)
      if (promise !== undefined) whenSettled(promise, done, failed)
      else this.#afterTurn(done)
    } catch (error) {
      this.#afterTurn(() => failed(error))
    }
  }

  /** `done` runs the loop again, which this turn is still in. */
  #afterTurn(body: () => void): void {
    queueMicrotask(body)
  }
}

/** No inline result: delivered elsewhere or still pending. */
const ELSEWHERE = -1
/** The result is in `overflow`. */
const OVERFLOWN = -2
/** Instead of a serial: the task's caller blocks, so its result has no streams. */
const NO_STREAMS = -1

function argumentsOf(frame: Uint8Array, task: Task): unknown[] | undefined {
  return frame.length === 0 ? undefined : readArguments(frame, 0, frame.length, task)
}

function invoke(fn: TaskFunction, task: Task, args: unknown[] | undefined): unknown {
  return args === undefined ? fn.call(task) : fn.apply(task, args)
}
