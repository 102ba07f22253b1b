/**
 * The zones of this process, as a thread reaches them; and how what belongs to zones travels.
 *
 * Every module of the folder that must exist in each thread (the owner's part, signals, handles) is set up
 * from here, once, by the first use of a zone or by the worker's main module.
 */
import { native } from '../../native/index.ts'
import { register } from '../../transport/index.ts'
import { registerHandle } from '../../transport/internal.ts'
import { currentZoneId } from '../worker/current.ts'
import { ZoneError } from '../errors.ts'
import { NodeZone } from './node-zone.ts'
import { Owner } from '../owner/owner.ts'
import { planOf } from '../owner/plan.ts'
import { thisBridge } from '../../bridge/index.ts'
import { carrySignals } from '../call/signals.ts'
import { type ZoneSettings, type ZoneOptions, parseId, parseSettings } from './settings.ts'
import { publish } from '../owner/events.ts'
import { Zone } from './zone.ts'

register(ZoneError, { cid: 'corespun.ZoneError' })
const common = { save: ({ id }: { readonly id: string }) => id, isOfAnyCopy: true }
registerHandle({ tag: 'corespun.Zone', is: Zone, load: (id) => zone.get(id) as Zone, ...common })
registerHandle({ tag: 'corespun.NodeZone', is: NodeZone, load: () => zone.node, ...common })

let owner: Owner | undefined
let node: NodeZone | undefined

/** Every thread can be asked to start workers and told of aborts; it listens from its first use of a zone. */
export function listen(): void {
  if (owner !== undefined) return
  owner = new Owner(thisBridge())
  carrySignals()
}

/**
 * End a worker that this thread started, as if it had died: another replaces it.
 * @param worker Its name, `zone/3`.
 * @param reason For whoever waits for its tasks, see `WORKER_DIED`.
 * @returns False if there is no such worker, or another thread started it.
 */
export function endWorker(worker: string, reason: string): boolean {
  return owner?.end(worker, reason) ?? false
}

/** The zones that this thread has a handle of, by number: asking again gives the same object. */
const opened = new Map<number, WeakRef<Zone>>()
const collected = new FinalizationRegistry<number>((number) => {
  if (opened.get(number)?.deref() === undefined) opened.delete(number)
})

function remember(found: Zone, handle: number): Zone {
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
    return remember(new Zone(id, handle, freeze(JSON.parse(settings) as ZoneSettings)), handle)
  native.zoneDrop(handle)
  return known
}

function make(name: string, settings: ZoneSettings): Zone | undefined {
  const handle = native.zoneMake(name, JSON.stringify(settings), ...planOf(settings))
  if (handle < 0) return undefined
  publish.zoneCreated(name, settings)
  // Where this thread starts the workers it does so now, not when it next has nothing else to do.
  thisBridge().takeMail()
  return remember(new Zone(name, handle, settings), handle)
}

/**
 * The zones that need not be created. What `nice` costs `zone.cpu` beside busy programs, and spares the
 * threads that serve: docs/design/service.md.
 */
const READY_MADE: ReadonlyMap<string, ZoneOptions> = new Map([
  ['corespun.cpu', { executor: 'work-stealing', nice: 3 }],
  ['corespun.blocking', { executor: 'blocking' }],
  ['corespun.cached', { executor: 'cached' }],
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

/** The zones of this process. */
export const zone = Object.freeze({
  /**
   * Make a zone and start its workers.
   * @param id Its name in the process, 1 to 256 characters.
   * @param settings All optional; see {@link ZoneOptions}.
   * @throws {ZoneError} `ZONE_ARGUMENT` for a wrong one; `ZONE_EXISTS` when the name is taken.
   */
  create(id: string, settings: ZoneOptions = {}): Zone {
    const name = parseId(id)
    const parsed = parseSettings(settings)
    if (name === NodeZone.id) throw new ZoneError('ZONE_EXISTS', { zone: name })
    listen()
    const made = make(name, parsed)
    if (made === undefined) throw new ZoneError('ZONE_EXISTS', { zone: name })
    return made
  },

  /**
   * The zone with that name, made with these settings if there is none; those of an existing one stay. For
   * modules that several threads load, such as the app of a server with several workers: the first one makes
   * the zone, the others get it. Its workers are started by the thread that owns all zones (mostly the main
   * thread), so it outlives the thread that made it.
   * @throws {ZoneError} `ZONE_ARGUMENT`; `ZONE_EXISTS` for `node`, which is the calling thread.
   */
  getOrCreate(id: string, settings: ZoneOptions = {}): Zone {
    const name = parseId(id)
    const parsed = parseSettings(settings, 'zone.getOrCreate()')
    if (name === NodeZone.id) throw new ZoneError('ZONE_EXISTS', { zone: name })
    for (;;) {
      // Closed, or made, by another thread in between: once more.
      const found = open(name) ?? readyMade(name) ?? make(name, parsed)
      if (found !== undefined) return found
    }
  },

  /**
   * The zone with that name, whichever thread made it.
   * @throws {ZoneError} `ZONE_UNKNOWN` when there is none.
   */
  get(id: string): Zone | NodeZone {
    const name = parseId(id)
    if (name === NodeZone.id) return zone.node
    const found = open(name) ?? readyMade(name)
    if (found === undefined) {
      const known = native
        .zoneIds()
        .split('\0')
        .filter((other) => other !== '')
      throw new ZoneError('ZONE_UNKNOWN', { zone: name, known })
    }
    return found
  },

  /** The zone whose worker this thread is; `zone.node` in all other threads. */
  get current(): Zone | NodeZone {
    const id = currentZoneId()
    return id === undefined ? zone.node : zone.get(id)
  },

  /**
   * Ready-made, made when it is first asked for: one worker for each core, `work-stealing`. For CPU-bound
   * work, and for tasks that fork tasks. Its workers give way to threads that serve (`nice`). Its name is
   * `corespun.cpu`. It keeps no process alive.
   */
  get cpu(): Zone {
    return zone.get('corespun.cpu') as Zone
  },

  /** A zone for tasks that block their thread: synchronous I/O, `Atomics.wait`. Named `corespun.blocking`. */
  get blocking(): Zone {
    return zone.get('corespun.blocking') as Zone
  },

  /**
   * The same for work that comes in bursts: it starts with no worker, and idle ones leave. `corespun.cached`.
   */
  get cached(): Zone {
    return zone.get('corespun.cached') as Zone
  },

  /** This thread itself, with the API of a zone. */
  get node(): NodeZone {
    return (node ??= new NodeZone())
  },
})
