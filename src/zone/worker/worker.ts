/**
 * A zone's worker, and the main module of one that is a thread: set up, attach to the zone, run its tasks.
 *
 * Sends the owner a message when it is ready, so that a worker which cannot even start is not replaced again
 * and again. What differs in a process is its {@link Host}; that of a thread is here, so that a thread loads
 * one file.
 */
import {
  type MessagePort,
  type Serializable,
  parentPort,
  setEnvironmentData,
  workerData,
} from 'node:worker_threads'
import { Mail, native } from '../../native/index.ts'
import { rehearse } from '../../transport/internal.ts'
// oxlint-disable-next-line import/no-unassigned-import -- before any task
import './handles.ts'
import { installTypeScript } from './loader/index.ts'
import type { SpareStart, WorkerStart } from '../owner/thread.ts'
import { useJoiner } from '../call/join.ts'
import { thisBridge } from '../../bridge/index.ts'
import { Dispatcher } from './dispatcher.ts'
import { currentTask } from '../ground/task.ts'
import type { ErrorNote, LeavingNote, LeftNote, ReleasedNote } from '../ground/uncaught.ts'
import { type Mark, type Served, here, setCurrent } from '../ground/current.ts'
import { sendOutputAtOnce } from './output.ts'
import { watchHeap } from './heap.ts'
import { type HookNote, type HookWorker, runSetup, runTeardown } from './run-hooks.ts'
import type { PreparedNote } from '../owner/prepare.ts'
import type { SpareMessage } from '../owner/spare.ts'
import { listen } from '../api/zones.ts'

/** What a worker runs in. */
export interface Host {
  /** Send the owner a message. */
  post(message: unknown): void
  /** End the worker, after what was posted. */
  exit(code: number): void
  /** End the worker by an error that belongs to no task. */
  fail(error: unknown): void
  /** The zone and the slot, in this process, that the worker attaches to. */
  seat(start: WorkerStart): readonly [zoneNumber: number, slot: number]
  /** Receive the slot of a worker that has started without one. */
  receiveSlot(received: (given: SpareMessage) => void): void
}

/** Start the worker. Called once. */
export function begin(start: WorkerStart | Pick<SpareStart, 'prepares'>, host: Host): void {
  here.isUnnamed = true
  installTypeScript()
  process.on('uncaughtExceptionMonitor', cutCycles)
  new RunningWorker(host).start(start)
}

class RunningWorker {
  readonly #host: Host
  readonly #bridge = thisBridge()
  /** The worker as its `setup` and `teardown` need it, if its zone has one of them. */
  #hooked: HookWorker | undefined
  /** An error was not caught, and its owner was asked to let it leave. */
  #isLeaving = false

  constructor(host: Host) {
    this.#host = host
  }

  start(start: WorkerStart | Pick<SpareStart, 'prepares'>): void {
    if ('zoneNumber' in start) return this.#setUp(start, this.#join)
    const { prepares } = start
    if (prepares === undefined)
      return this.#host.receiveSlot((given) =>
        given === null ? this.#leave() : this.#setUp(given, this.#join),
      )
    const prepared = new Promise<void>((resolve) => this.#setUp(prepares, () => resolve()))
    this.#host.receiveSlot(
      (given) => void prepared.then(() => (given === null ? this.#leave() : this.#join(given))),
    )
    void prepared.then(() => this.#host.post({ corespunPrepared: true } satisfies PreparedNote))
  }

  /** Run the setup, if the zone has one, and then `begun`. A worker whose setup fails ends. */
  #setUp(given: WorkerStart, begun: (given: WorkerStart) => void): void {
    const { zoneId, slot, settings, environment = [] } = given
    for (const [key, value] of environment) setEnvironmentData(key, value as Serializable)
    if (settings.nice > 0) native.renice(settings.nice)
    if (settings.setup === null && settings.teardown === null) return begun(given)
    const post = (note: HookNote): void => this.#host.post(note)
    const hooked = { zone: zoneId, worker: `${zoneId}/${slot}`, settings, post }
    this.#hooked = hooked
    if (settings.setup === null) return begun(given)
    void runSetup(hooked, settings.setup).then((hasSetUp) => {
      if (hasSetUp) begun(given)
      else this.#host.exit(1)
    })
  }

  /** Become a worker of the zone. */
  readonly #join = (start: WorkerStart): void => {
    const { slot, zoneId, settings } = start
    const bridge = this.#bridge
    const { workerTasksMax, workerHeapMbMax } = settings
    const leave = (): void =>
      this.#release(start.zoneNumber, workerTasksMax !== null || workerHeapMbMax !== null)
    const measure =
      workerHeapMbMax === null ? undefined : watchHeap(workerHeapMbMax, (note) => this.#host.post(note))
    const events = { ready: this.#ready, leave, report: this.#report, measure }
    const dispatcher = new Dispatcher(bridge, zoneId, `${zoneId}/${slot}`, settings, events)
    process.on('uncaughtException', (error) => {
      // Listeners of user code come first.
      if (process.listenerCount('uncaughtException') > 1) return
      this.#uncaught(error, dispatcher)
    })
    setCurrent(zoneId, `${zoneId}/${slot}`, dispatcher.beforeFork)
    listen()
    bridge.onMail(Mail.abort, (token, serial, why) => dispatcher.abandon(token, serial, why))
    bridge.runTasks = dispatcher.run
    if (settings.executor === 'work-stealing') {
      useJoiner({ bridge, zone: zoneId, handle: native.zoneOpen(zoneId), runFound: dispatcher.runFound })
    }
    if (native.attach(...this.#host.seat(start)) === 1) dispatcher.run()
    else this.#leave()
  }

  #uncaught(error: unknown, dispatcher: Dispatcher): void {
    const served = [...here.served]
    const isOfServed = served.filter((each) => each.strayed(error)).length > 0
    if (dispatcher.uncaught(error, isOfServed ? undefined : currentTask(), served.length > 0)) return
    if (served.length === 0) return this.#host.fail(error)
    const frame = dispatcher.frame(error)
    if (this.#isLeaving || !served.every((each) => each.mayLeave())) return this.#report(frame)
    this.#isLeaving = true
    this.#host.post({ corespunLeaving: frame, marks: marksOf(served) } satisfies LeavingNote)
  }

  /**
   * The zone has released this worker: what it serves ends first, unless the zone ends too.
   * @param isRecycled Perhaps because others replace its workers.
   */
  #release(zoneNumber: number, isRecycled: boolean): void {
    const served = [...here.served]
    if (isRecycled && native.zoneClosing(zoneNumber) === 0)
      this.#host.post({ corespunReleased: true } satisfies ReleasedNote)
    if (served.length === 0 || native.zoneClosing(zoneNumber) === 1) return this.#leave()
    this.#bridge.runTasks = undefined
    useJoiner(undefined)
    native.detach()
    const finished = served.map((each) => each.finish())
    const corespunLeftMs = Math.max(...served.map((each) => each.finishMs))
    this.#host.post({ corespunLeftMs, marks: marksOf(served) } satisfies LeftNote)
    void Promise.allSettled(finished).then(this.#leave)
  }

  /** A worker that ends before this counts as a failed start. */
  readonly #ready = (): void => {
    this.#host.post('ready')
    // Behind the tasks that wait already.
    setImmediate(rehearse)
  }

  /** Report an error that belongs to no task; the worker goes on. */
  readonly #report = (error: Uint8Array): void => {
    this.#host.post({ corespunError: error } satisfies ErrorNote)
  }

  /** It ends, by itself; resources that user code left open must not keep it alive. */
  readonly #leave = (): void => {
    this.#bridge.runTasks = undefined
    const left = this.#hooked
    if (left === undefined) return void setImmediate(() => this.#host.exit(0))
    this.#hooked = undefined
    void runTeardown(left).then((error) => {
      if (error !== undefined) this.#report(error)
      setImmediate(() => this.#host.exit(0))
    })
  }
}

function marksOf(served: readonly Served[]): Mark[] {
  return served.flatMap(({ mark }) => mark ?? [])
}

/** Node 20 follows the causes of an uncaught error to their end, and forever if they form a cycle. */
function cutCycles(uncaught: unknown): void {
  const seen = new Set<unknown>()
  try {
    for (let error = uncaught; error instanceof Error && Object.hasOwn(error, 'cause'); error = error.cause) {
      seen.add(error)
      if (seen.has(error.cause)) Object.defineProperty(error, 'cause', { value: undefined })
    }
  } catch {
    // An error that cannot be read or changed stays as it is.
  }
}

if (parentPort !== null) {
  const { corespun: start } = workerData as { corespun: WorkerStart | SpareStart }
  sendOutputAtOnce()
  begin(start, threadHost(parentPort, 'slots' in start ? start.slots : undefined))
}

function threadHost(parent: MessagePort, slots: MessagePort | undefined): Host {
  return {
    post: (message) => parent.postMessage(message),
    exit: (code) => process.exit(code),
    fail(error) {
      // As without a listener: the error ends the worker, and the owner receives it.
      throw error
    },
    seat: ({ zoneNumber, slot }) => [zoneNumber, slot],
    receiveSlot(received) {
      slots?.once('message', (given: SpareMessage) => {
        slots.close()
        received(given)
      })
    },
  }
}
