/**
 * What the callback of a check receives: all that its seed decides.
 *
 * Functions and objects that need no `this`, so they are taken apart: `({ spawn, sleep }) => ...`.
 */
import type { Fleet } from '../fleet/internal.ts'
import { type Store, type StoreOptions, store } from '../store/index.ts'
import { Channel, type ChannelOptions, Lock, Semaphore, type SemaphoreOptions } from '../sync/index.ts'
import { History } from './history.ts'
import { EPOCH_MS, sleepOf, uuidOf } from './mock.ts'
import type { SeededNetwork } from './network.ts'
import type { Play } from './play.ts'
import { Job, type Spawned } from './tasks.ts'
import { type SeededZone, type SeededZoneOptions, zoneOf } from './zones.ts'

/** What a seed decides. */
export interface World {
  /** The seed of this run; 0 in the first one, which makes no choice. */
  readonly seed: number
  /** The time in ms since 1970; a run begins with 2026. */
  now(): number
  /** A number from 0 to 1. */
  random(): number
  /** A UUID. */
  id(): string
  /** Waits so many ms of the run's time. */
  sleep(ms: number): Promise<void>
  /** A wait at which all others may run. @param what How the story calls it. */
  step(what?: string): Promise<void>
  /** Starts a task that is interleaved with all others. @param name How stories call it. */
  spawn<Value>(fn: () => Value | Promise<Value>, name?: string): Spawned<Value>
  /** Kills a task as the end of a process does; as its `kill()`. */
  kill(task: Spawned): void
  /** A new lock, whose holder may die; those of `corespun/sync` can be used as well. */
  lock(): Lock
  /** A new semaphore. */
  semaphore(options: SemaphoreOptions): Semaphore
  /** A new channel. */
  channel<Value = unknown>(options: ChannelOptions): Channel<Value>
  /** A new store; it is closed with the run. */
  store<Value = unknown>(options?: StoreOptions): Store<Value>
  /** Zones whose workers are tasks. */
  readonly zone: { create(id: string, options?: SeededZoneOptions): SeededZone }
  /** Connects to the fleet of this run: for durable runs, stores, locks, rooms and limits of fleets. */
  connect(): Fleet
  /** Cuts a task's connections off; what is returned connects them again. */
  cut(task: Spawned): () => void
  /** A new history of operations, for `linearizable()`. */
  history<Input, Output>(): History<Input, Output>
}

let stores = 0

/** The world of a run. */
export function worldOf(play: Play, network: SeededNetwork): World {
  const at = (call: string) => play.actor(call)
  return {
    seed: play.seed,
    now: () => EPOCH_MS + play.nowMs(),
    random: () => at('random()').random(),
    id: () => uuidOf(at('id()')),
    sleep: async (ms) => sleepOf(at('sleep()'), `sleep(${ms})`, ms, undefined),
    step: async (what = 'step()') => at('step()').step(what),
    spawn: (fn, name) => new Job(play, at('spawn()'), name ?? (fn.name || 'task'), fn),
    kill: (task) => task.kill(),
    lock: () => new Lock(),
    semaphore: (options) => new Semaphore(options),
    channel: (options) => new Channel(options),
    store: <Value>(options?: StoreOptions) => {
      const made = store.create<Value>(`check ${++stores}`, options)
      play.atEnd.push(() => made.close())
      return made
    },
    zone: { create: (id, options) => zoneOf(play, id, options) },
    connect: () => network.connect(),
    cut: (task) => network.cut((task as Job<unknown>).actor),
    history: () => new History(play),
  }
}
