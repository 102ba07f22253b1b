/**
 * The zones of this process, as a thread reaches them; and how what belongs to zones travels.
 *
 * Every module of the folder that must exist in each thread (the owner's part, signals, handles) is set up
 * from here, once, by the first use of a zone or by the worker's main module.
 */
import { native } from '../../native/index.ts'
import { checkSame, threads } from '../../base/index.ts'
import { register, registerHandle, rehearse } from '../../transport/internal.ts'
import { currentZoneId } from '../ground/current.ts'
import { ZoneError } from '../errors.ts'
import { MAIN_OPTIONS, MainNodeZone, MainZone } from './main-zone.ts'
import { MAIN_ID, NODE_ID, NodeZone } from './node-zone.ts'
import { type FirstWorker, Owner } from '../owner/owner.ts'
import { planOf } from '../ground/plan.ts'
import { thisBridge } from '../../bridge/index.ts'
import { carrySignals } from '../call/signals.ts'
import {
  type ZoneOptions,
  type ZoneSettings,
  flatOptions,
  parseId,
  parseSettings,
  wrong,
} from '../ground/settings.ts'
import { publish } from '../ground/events.ts'
import type { AnyZone, Zone } from './any-zone.ts'
import { LimitedZone } from './limited-zone.ts'
import { WorkerNumber } from '../call/order.ts'
import { WorkerZone } from './worker-zone.ts'

register(ZoneError, { cid: 'corespun.ZoneError' })
const common = { save: ({ id }: { readonly id: string }) => id, isOfAnyCopy: true }
registerHandle({
  tag: 'corespun.Zone',
  is: WorkerZone,
  load: (id) => zone.get(id) as WorkerZone,
  ...common,
})
registerHandle({ tag: 'corespun.NodeZone', is: NodeZone, load: () => zone.node as NodeZone, ...common })
// What is the main thread here is so there, too.
const main = { load: () => zone.main as NodeZone, ...common }
registerHandle({ tag: 'corespun.MainZone', is: MainNodeZone, ...main })
registerHandle({
  tag: 'corespun.LimitedZone',
  is: LimitedZone,
  save: ({ id, limits: { affinity, ...limits } }: LimitedZone) =>
    (affinity as unknown) instanceof WorkerNumber
      ? ([id, limits, (affinity as unknown as WorkerNumber).worker] as const)
      : ([id, { ...limits, affinity }, -1] as const),
  load: ([id, limits, worker]) => {
    const view = worker < 0 ? zone.get(id) : (zone.get(id) as Zone).worker(worker)
    return view.with(limits) as LimitedZone
  },
})

let owner: Owner | undefined
let node: NodeZone | undefined
let mainHere: MainNodeZone | undefined

/**
 * Every thread may be asked to start workers and receives aborts, from its first use of a zone on.
 * @internal
 */
export function listen(): Owner {
  if (owner !== undefined) return owner
  owner = new Owner(thisBridge())
  carrySignals()
  return owner
}

/**
 * Create a zone of which one worker starts at first, and the others when `startOthers` is called. Its workers
 * have no options of Node of their own. Only for the thread that owns all zones.
 * @throws {ZoneError} As `zone.create`.
 * @internal
 */
export function createGradually(
  id: string,
  options: ZoneOptions,
  first: FirstWorker,
): { readonly zone: Zone; startOthers(): void } {
  const startOthers = listen().beginWithOne(id, first)
  return { zone: zone.create(id, options), startOthers }
}

/**
 * End a worker that this thread started, as if it had died: another replaces it.
 * @param worker Its name, `zone/3`.
 * @param reason The reason in the errors of its tasks, see `WORKER_DIED`.
 * @returns False if there is no such worker, or another thread started it.
 */
export function endWorker(worker: string, reason: string): boolean {
  return owner?.end(worker, reason) ?? false
}

/** The zones that this thread has a handle of, by number: `get` returns the same object again. */
const opened = new Map<number, WeakRef<WorkerZone>>()
const collected = new FinalizationRegistry<number>((number) => {
  if (opened.get(number)?.deref() === undefined) opened.delete(number)
})

function remember(found: WorkerZone, handle: number): WorkerZone {
  const number = native.zoneNumber(handle)
  opened.set(number, new WeakRef(found))
  collected.register(found, number)
  return found
}

function open(id: string): Zone | undefined {
  listen()
  const handle = native.zoneOpen(id)
  if (handle < 0) return undefined
  const number = native.zoneNumber(handle)
  const known = opened.get(number)?.deref()
  const settings = known === undefined ? native.zoneSettings(number) : undefined
  if (settings !== undefined)
    return remember(zoneOf(id, handle, freeze(JSON.parse(settings) as ZoneSettings)), handle)
  native.zoneDrop(handle)
  return known
}

/**
 * Create a zone with settings that are checked. `undefined` if there is one of that name.
 * @internal
 */
export function make(name: string, settings: ZoneSettings): Zone | undefined {
  listen()
  const handle = native.zoneMake(name, JSON.stringify(settings), planOf(settings))
  if (handle < 0) return undefined
  if (settings.weak) native.zoneWeaken(handle)
  publish.zoneCreated(name, settings)
  // Where this thread starts the workers it does so now, not when it next has nothing else to do.
  thisBridge().takeMail()
  // Until they are ready there is nothing else to do.
  setImmediate(rehearse)
  return remember(zoneOf(name, handle, settings), handle)
}

function zoneOf(id: string, handle: number, settings: ZoneSettings): WorkerZone {
  return id === MAIN_ID ? new MainZone(id, handle, settings) : new WorkerZone(id, handle, settings)
}

/** @throws {ZoneError} `ZONE_EXISTS` for the names of threads. */
function checkFree(name: string): void {
  if (name === NODE_ID || name === MAIN_ID) throw new ZoneError('ZONE_EXISTS', { zone: name })
}

/**
 * The zones that need not be created. What `nice` costs `zone.cpu` beside busy programs, and spares the
 * threads that serve: docs/design/service.md.
 */
const READY_MADE: ReadonlyMap<string, ZoneOptions> = new Map([
  ['corespun.cpu', { executor: 'work-stealing', nice: 3 }],
  ['corespun.blocking', { executor: 'blocking' }],
  ['corespun.cached', { executor: 'cached' }],
  [MAIN_ID, MAIN_OPTIONS],
])

function readyMade(name: string): Zone | undefined {
  const settings = READY_MADE.get(name)
  // Another thread may have been quicker.
  return settings === undefined ? undefined : (make(name, parseSettings(settings)) ?? open(name))
}

function freeze(settings: ZoneSettings): ZoneSettings {
  Object.values(settings).forEach(Object.freeze)
  return Object.freeze(settings)
}

/**
 * The zones of this process.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { zone } from 'corespun/zone'
 *
 * const cpu = zone.create('cpu', { workers: 1 })
 * const product = await cpu.run((a: number, b: number) => a * b, 6, 7)
 * assert.equal(product, 42)
 * assert.deepEqual(await cpu.map([1, 2, 3], (n: number) => n * n), [1, 4, 9])
 * const slow = cpu.with({ timeoutMs: 20 }).run(() => new Promise(() => {}))
 * await assert.rejects(slow, { code: 'TASK_TIMEOUT' })
 * await cpu.close()
 * ```
 */
export const zone = Object.freeze({
  /**
   * Create a zone and start its workers.
   * @param id Its name in the process: 1 to 256 characters.
   * @param options All optional; see {@link ZoneOptions}.
   * @throws {ZoneError} `ZONE_ARGUMENT` for a wrong id or option; `ZONE_EXISTS` when the name is taken.
   * @throws {FunctionError} for a `setup` or `teardown` that cannot be sent.
   */
  create(id: string, options: ZoneOptions = {}): Zone {
    const name = parseId('zone.create()', id)
    const settings = parseSettings(options, 'zone.create()', zone.create)
    checkFree(name)
    const made = make(name, settings)
    if (made === undefined) {
      const workerOf = currentZoneId()
      throw new ZoneError('ZONE_EXISTS', workerOf === undefined ? { zone: name } : { zone: name, workerOf })
    }
    return made
  },

  /**
   * Return the zone with that name, or create it. For modules that several threads load, such as the app of a
   * server with several workers: the first thread creates the zone, the others receive it. The options must
   * be those of the existing zone; those that are absent are not compared. The thread that owns all zones
   * (mostly the main thread) starts the workers, so the zone outlives the thread that created it.
   * @throws {ZoneError} `ZONE_ARGUMENT`, also for an option that differs from that of the existing zone;
   *   `ZONE_EXISTS` for `node`, which is the calling thread, and `corespun.main`, which is the main one.
   */
  getOrCreate(id: string, options: ZoneOptions = {}): Zone {
    const name = parseId('zone.getOrCreate()', id)
    const settings = parseSettings(options, 'zone.getOrCreate()', zone.getOrCreate)
    checkFree(name)
    for (;;) {
      const found = open(name) ?? readyMade(name)
      if (found !== undefined) {
        const given = flatOptions(options)
        checkSame('zone.getOrCreate()', `the zone "${name}"`, given, settings, found.settings, wrong)
        return found
      }
      const made = make(name, settings)
      // Otherwise another thread has created it meanwhile.
      if (made !== undefined) return made
    }
  },

  /**
   * Return the zone with that name, whichever thread created it; `node` is the calling thread.
   * @throws {ZoneError} `ZONE_UNKNOWN` when no zone has that name; `ZONE_ARGUMENT` for a wrong id.
   */
  get(id: string): AnyZone {
    const name = parseId('zone.get()', id)
    if (name === NODE_ID) return zone.node
    if (name === MAIN_ID) return zone.main
    const found = open(name) ?? readyMade(name)
    if (found !== undefined) return found
    const known = native.zoneIds().split('\0')
    throw new ZoneError('ZONE_UNKNOWN', { zone: name, known: known.filter((other) => other !== '') })
  },

  /** The zone whose worker the calling thread is; `zone.node` in all other threads. */
  get current(): AnyZone {
    const id = currentZoneId()
    return id === undefined ? zone.node : zone.get(id)
  },

  /**
   * A ready-made zone, created when first used: one worker per core, `work-stealing`. For CPU-bound work, and
   * for tasks that fork tasks. Its workers yield to threads that serve (`nice: 3`). Its id is
   * `corespun.cpu`. It keeps no process alive.
   */
  get cpu(): Zone {
    return zone.get('corespun.cpu') as Zone
  },

  /** A ready-made zone for tasks that block their thread (synchronous I/O): `corespun.blocking`. */
  get blocking(): Zone {
    return zone.get('corespun.blocking') as Zone
  },

  /** A ready-made zone for bursts, which starts without workers; idle ones leave: `corespun.cached`. */
  get cached(): Zone {
    return zone.get('corespun.cached') as Zone
  },

  /**
   * The main thread as a zone, for what only that thread has opened: a connection pool, a native handle, a
   * logger. Calls from other threads run in its event loop, at most 1024 at a time; the others wait, while it
   * is blocked as well. Keeps no process alive: when the main thread's program has ended, the process ends.
   * In the main thread itself functions are called on the spot, as by `zone.node`. Its id is `corespun.main`;
   * `close` does nothing. Calls reject with `ZONE_START_FAILED` if the main thread has not used a zone.
   * @example
   * ```ts
   * import assert from 'node:assert/strict'
   * import { zone } from 'corespun/zone'
   *
   * const cpu = zone.create('cpu', { workers: 1 })
   * const where = await cpu.run(async () => {
   *   const { zone } = await import('corespun/zone')
   *   return zone.main.run(async () => (await import('node:worker_threads')).isMainThread)
   * })
   * assert.equal(where, true)
   * await cpu.close()
   * ```
   */
  get main(): AnyZone {
    if (threads().isMainThread) return (mainHere ??= new MainNodeZone())
    return (open(MAIN_ID) ?? readyMade(MAIN_ID)) as Zone
  },

  /** The calling thread as a zone: functions run here, without a hop and without copies. */
  get node(): AnyZone {
    return (node ??= new NodeZone())
  },
})
