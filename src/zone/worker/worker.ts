/**
 * The main module of a zone's worker: become that worker, then run what the zone has.
 *
 * Tells the owner when it is ready, so that a worker which cannot even start is not replaced for ever.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { assert } from '../../base/index.ts'
import { Mail, native } from '../../native/index.ts'
// oxlint-disable-next-line import/no-unassigned-import -- its handles must be known here before any task
import '../../store/index.ts'
// oxlint-disable-next-line import/no-unassigned-import -- as above
import '../../sync/index.ts'
// What `map` runs is here before it is asked for: see docs/design/zones.md, Limits, about files left open.
// oxlint-disable-next-line import/no-unassigned-import -- as above
import '../parallel/chunks.ts'
import { installTypeScript } from './loader/index.ts'
import type { WorkerBirth } from '../owner/owner.ts'
import { useJoiner } from '../call/join.ts'
import { thisPort } from '../../bridge/index.ts'
import { Pump } from './pump.ts'
import { currentTask } from '../call/task.ts'
import type { ErrorNote } from './uncaught.ts'
import { setCurrent } from './current.ts'
import { NO_SLOT } from '../owner/spare.ts'
import { listen } from '../api/zones.ts'

const { zoneNumber, slot, slots, zoneId, settings } = (workerData as { corespun: WorkerBirth }).corespun
assert(parentPort !== null, 'this module runs in a worker')
const parent = parentPort

installTypeScript()
process.on('uncaughtExceptionMonitor', cutCycles)
const port = thisPort()
if (settings.nice > 0) native.giveWay(settings.nice)
if (slot !== undefined) become(slot)
else
  slots?.once('message', (number: number) => {
    slots.close()
    if (number === NO_SLOT) leave()
    else become(number)
  })

/** Take up the place of `number` in the zone. */
function become(number: number): void {
  const events = { ready, leave, report }
  const pump = new Pump(port, zoneId, `${zoneId}/${number}`, settings.tasksPerWorkerMax, events)
  process.on('uncaughtException', (error) => {
    // What user code listens for in its worker is that code's.
    if (process.listenerCount('uncaughtException') > 1) return
    // As without a listener: it ends the worker, and the owner gets it.
    if (!pump.uncaught(error, currentTask())) throw error
  })
  setCurrent(zoneId, pump.beforeFork)
  listen()
  port.onMail(Mail.abort, (token, serial, why) => pump.abandon(token, serial, why))
  port.pump = pump.run
  if (settings.executor === 'work-stealing') {
    useJoiner({ port, zone: zoneId, handle: native.zoneOpen(zoneId), runFound: pump.runFound })
  }
  if (native.attach(zoneNumber, number) === 1) pump.run()
  else leave()
}

/**
 * Node 20 follows the causes of an error that nobody caught to their end before it lets the thread go, and
 * stays in a circle of them for ever.
 */
function cutCycles(uncaught: unknown): void {
  const seen = new Set<unknown>()
  try {
    for (let error = uncaught; error instanceof Error && Object.hasOwn(error, 'cause'); error = error.cause) {
      seen.add(error)
      if (seen.has(error.cause)) Object.defineProperty(error, 'cause', { value: undefined })
    }
  } catch {
    // One that will not be read or changed is as it is.
  }
}

/** A worker that ends before this was never of use: see the owner's count of failed starts. */
function ready(): void {
  parent.postMessage('ready')
}

/** An error belongs to no task, and the worker goes on. */
function report(error: Uint8Array): void {
  parent.postMessage({ corespunError: error } satisfies ErrorNote)
}

/** The zone has let this worker go. What user code left open must not keep it. */
function leave(): void {
  port.pump = undefined
  setImmediate(() => process.exit(0))
}
