/**
 * What a worker runs in where it is a process: its zone here, its way to the parent, its end.
 *
 * What it posts is written before it ends. Results leave the process, so they cannot refer to what only this
 * process has; calls to other zones from here can.
 */
import { thisBridge } from '../../bridge/index.ts'
import { native } from '../../native/index.ts'
import { processFrame } from '../../transport/internal.ts'
import { planOf } from '../ground/plan.ts'
import { portable } from '../call/portable.ts'
import type { ZoneSettings } from '../ground/settings.ts'
import type { ProcessError } from '../owner/thread.ts'
import type { Host } from './worker.ts'

/** What the parent accepts this zone accepts, and what its own tasks send it. */
const OWN_LIMITS = {
  tasksMax: 2 ** 31 - 1,
  tasksPerTenantMax: null,
  queueBytesMax: 2 ** 40,
  broadcastsMax: 1_000_000,
}

/**
 * @param tasks The descriptor of the socket for tasks.
 * @param receiveSlot See {@link Host}.
 */
export function processHost(tasks: number, receiveSlot: Host['receiveSlot']): Host {
  let unsent = 0
  let exitCode: number | undefined
  const post = (message: unknown): void => {
    unsent++
    process.send?.(message, undefined, undefined, () => {
      if (--unsent === 0 && exitCode !== undefined) process.exit(exitCode)
    })
  }
  const exit = (code: number): void => {
    if (unsent === 0) process.exit(code)
    exitCode ??= code
  }
  const fail = (error: unknown): void => {
    thisBridge().runTasks = undefined
    post({ corespunThrown: frameOf(error) } satisfies ProcessError)
    exit(1)
  }
  process.on('uncaughtException', fail)
  return {
    post,
    exit,
    fail,
    receiveSlot,
    seat({ zoneNumber, slot, zoneId, settings }) {
      process.off('uncaughtException', fail)
      keepInside()
      const own = native.zoneMake(zoneId, JSON.stringify(settings), planOf(ownSettings(settings)))
      return [native.zoneNumber(own), native.linkJoin(own, tasks, zoneNumber, slot)]
    },
  }
}

/** Workers are not started here; longest polls delay what arrives by the socket. */
function ownSettings(settings: ZoneSettings): ZoneSettings {
  const own = { executor: 'fixed', workers: 0, workersMax: 0, workerTasksMax: null, spinUs: 0 } as const
  return { ...settings, ...OWN_LIMITS, ...own }
}

/** Results, unlike arguments, are not lent memory. */
function keepInside(): void {
  const bridge = thisBridge()
  const write = bridge.write.bind(bridge)
  bridge.write = (value, rootName, lends) => {
    if (lends === true) return write(value, rootName, lends)
    bridge.writer.isInside = false
    try {
      return write(value, rootName)
    } finally {
      bridge.writer.isInside = true
    }
  }
}

function frameOf(error: unknown): Uint8Array {
  try {
    return processFrame(error)
  } catch (why) {
    return processFrame(portable(error, why))
  }
}
