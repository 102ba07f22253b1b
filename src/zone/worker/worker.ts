/**
 * The main module of a zone's worker: attach to the zone, then run its tasks.
 *
 * Sends the owner a message when it is ready, so that a worker which cannot even start is not replaced again
 * and again. The main thread loads it with the first call to `zone.main`; then nothing begins by itself.
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
// oxlint-disable-next-line import/no-unassigned-import -- its handles must be registered before any task
import '../../store/index.ts'
// oxlint-disable-next-line import/no-unassigned-import -- as above
import '../../sync/index.ts'
// What `map` runs is loaded before it is needed: see docs/design/zones.md, Limits, about files left open.
// oxlint-disable-next-line import/no-unassigned-import -- as above
import '../parallel/chunks.ts'
import { installTypeScript } from './loader/index.ts'
import type { SpareStart, WorkerStart } from '../owner/thread.ts'
import { useJoiner } from '../call/join.ts'
import { thisBridge } from '../../bridge/index.ts'
import { Dispatcher } from './dispatcher.ts'
import { currentTask } from '../call/task.ts'
import type { ErrorNote } from './uncaught.ts'
import { setCurrent } from './current.ts'
import { type HookNote, type HookWorker, runSetup, runTeardown } from './hooks.ts'
import type { PreparedNote } from '../owner/reload.ts'
import type { SpareMessage } from '../owner/spare.ts'
import { listen } from '../api/zones.ts'

const parent = parentPort as MessagePort

/** The worker as its `setup` and `teardown` need it, if its zone has one of them. */
let hooked: HookWorker | undefined

const bridge = thisBridge()
if (parentPort !== null) begin((workerData as { corespun: WorkerStart | SpareStart }).corespun)

function begin(start: WorkerStart | SpareStart): void {
  installTypeScript()
  process.on('uncaughtExceptionMonitor', cutCycles)
  if (!('slots' in start)) return setUp(start, join)
  if (start.prepares === undefined)
    return receiveSlot(start.slots, (given) => (given === null ? leave() : setUp(given, join)))
  const { slots, prepares } = start
  const prepared = new Promise<void>((resolve) => setUp(prepares, () => resolve()))
  receiveSlot(slots, (given) => void prepared.then(() => (given === null ? leave() : join(given))))
  void prepared.then(() => parent.postMessage({ corespunPrepared: true } satisfies PreparedNote))
}

/** The main thread runs the tasks of `zone.main`, beside its program. */
export function joinMain({ zoneNumber, slot, zoneId, settings }: WorkerStart): void {
  const events = { ready: nothing, leave: nothing, report: nothing }
  const dispatcher = new Dispatcher(bridge, zoneId, `${zoneId}/${slot}`, settings, events)
  bridge.onMail(Mail.abort, (token, serial, why) => dispatcher.abandon(token, serial, why))
  bridge.isBesideProgram = true
  bridge.notesDepth = true
  bridge.runTasks = dispatcher.run
  if (native.attach(zoneNumber, slot) === 1) dispatcher.run()
}

function nothing(): void {}

function receiveSlot(slots: MessagePort, begin: (given: SpareMessage) => void): void {
  slots.once('message', (given: SpareMessage) => {
    slots.close()
    begin(given)
  })
}

/** Run the setup, if the zone has one, and then `begin`. A thread whose setup fails ends. */
function setUp(given: WorkerStart, begin: (given: WorkerStart) => void): void {
  const { zoneId, slot, settings, environment = [] } = given
  for (const [key, value] of environment) setEnvironmentData(key, value as Serializable)
  if (settings.nice > 0) native.renice(settings.nice)
  if (settings.setup === null && settings.teardown === null) return begin(given)
  const post = (note: HookNote): void => parent.postMessage(note)
  hooked = { zone: zoneId, worker: `${zoneId}/${slot}`, settings, post }
  if (settings.setup === null) return begin(given)
  void runSetup(hooked, settings.setup).then((hasSetUp) => {
    if (hasSetUp) begin(given)
    else process.exit(1)
  })
}

/** Become a worker of the zone. */
function join({ zoneNumber, slot, zoneId, settings }: WorkerStart): void {
  const events = { ready, leave, report }
  const dispatcher = new Dispatcher(bridge, zoneId, `${zoneId}/${slot}`, settings, events)
  process.on('uncaughtException', (error) => {
    // Listeners of user code come first.
    if (process.listenerCount('uncaughtException') > 1) return
    // As without a listener: the error ends the worker, and the owner receives it.
    if (!dispatcher.uncaught(error, currentTask())) throw error
  })
  setCurrent(zoneId, dispatcher.beforeFork)
  listen()
  bridge.onMail(Mail.abort, (token, serial, why) => dispatcher.abandon(token, serial, why))
  bridge.runTasks = dispatcher.run
  if (settings.executor === 'work-stealing') {
    useJoiner({ bridge, zone: zoneId, handle: native.zoneOpen(zoneId), runFound: dispatcher.runFound })
  }
  if (native.attach(zoneNumber, slot) === 1) dispatcher.run()
  else leave()
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

/** A worker that ends before this counts as a failed start. */
function ready(): void {
  parent.postMessage('ready')
  // Behind the tasks that wait already.
  setImmediate(rehearse)
}

/** Report an error that belongs to no task; the worker goes on. */
function report(error: Uint8Array): void {
  parent.postMessage({ corespunError: error } satisfies ErrorNote)
}

/** The zone has released this worker; resources that user code left open must not keep it alive. */
function leave(): void {
  bridge.runTasks = undefined
  const left = hooked
  if (left === undefined) return void setImmediate(() => process.exit(0))
  hooked = undefined
  void runTeardown(left).then((error) => {
    if (error !== undefined) report(error)
    setImmediate(() => process.exit(0))
  })
}
