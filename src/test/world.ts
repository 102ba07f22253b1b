/**
 * What the callback of a check receives: all that its seed decides.
 *
 * Functions and objects that need no `this`, so they are taken apart: `({ spawn, sleep }) => ...`.
 */
import type { Fleet } from '../fleet/internal.ts'
import { type Store, type StoreOptions, store } from '../store/index.ts'
import { Channel, type ChannelOptions, Lock, Semaphore, type SemaphoreOptions } from '../sync/index.ts'
import { type SeededHost, type SeededHostOptions, hostOf } from './hosts.ts'
import { History } from './history.ts'
import { sleepOf, uuidOf } from './mock.ts'
import type { SeededNetwork } from './network.ts'
import type { SeededHttp, SeededServeOptions, SeededServer } from './http.ts'
import { ClientEnd, type SeededSocket } from './sockets.ts'
import { CheckError } from './errors.ts'
import type { Actor, Play } from './play.ts'
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
  /**
   * Bounds the run's time of what `work` does; use it with `stall: 0`.
   * @throws {CheckError} `CHECK_LATE`.
   */
  within<Value>(ms: number, work: () => Value | Promise<Value>): Promise<Value>
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
  /**
   * A new store, closed with the run. With `file` it has the entries of that file of the run; behind the
   * death of the task that has opened it, those of one moment since the last `flush()`.
   * @throws {StoreError} As `store.create()`.
   */
  store<Value = unknown>(options?: StoreOptions): Store<Value>
  /** Zones whose workers are tasks. */
  readonly zone: { create(id: string, options?: SeededZoneOptions): SeededZone }
  /** Connects to the fleet of this run. */
  connect(): Fleet
  /** Takes jobs of a zone, as `host()` of corespun/fleet, and runs their functions as tasks. */
  host(fleet: Fleet, options: SeededHostOptions): Promise<SeededHost>
  /**
   * An app that `fetch()` reaches, as `serve()` of corespun/http; it ends with its task.
   * @throws {HttpError} As `createApp`, and `HTTP_PORT_TAKEN`.
   */
  serve<Pattern extends string>(options: SeededServeOptions<Pattern>): Promise<SeededServer>
  /** Sends a request to a server of this run, found by its port. @throws {TypeError} As Node's fetch. */
  fetch(input: string | URL | Request, init?: RequestInit): Promise<Response>
  /** A client of WebSockets; the global one is the same, where Node has it. */
  readonly WebSocket: {
    new (url: string | URL, protocols?: string | readonly string[]): SeededSocket
    readonly CONNECTING: 0
    readonly OPEN: 1
    readonly CLOSING: 2
    readonly CLOSED: 3
  }
  /**
   * Cuts a task's connections off; what is returned connects them again. `'commits'`: they reach the fleet,
   * but a leader of it that is alone, which accepts writes and commits none; then all of them, or none.
   */
  cut(task: Spawned, what?: 'messages' | 'commits'): () => void
  /** A new history of operations, for `linearizable()`. */
  history<Input, Output>(): History<Input, Output>
}

let stores = 0

/** The world of a run. */
export function worldOf(play: Play, network: SeededNetwork, http: SeededHttp): World {
  const at = (call: string) => play.actor(call)
  return {
    seed: play.seed,
    now: () => play.wallMs(),
    random: () => at('random()').random(),
    id: () => uuidOf(at('id()')),
    sleep: async (ms) => sleepOf(at('sleep()'), `sleep(${ms})`, ms, undefined),
    within: (ms, work) => within(play, at('within()'), ms, work),
    step: async (what = 'step()') => at('step()').step(what),
    spawn: (fn, name) => new Job(play, at('spawn()'), name ?? (fn.name || 'task'), fn),
    kill: (task) => task.kill(),
    lock: () => new Lock(),
    semaphore: (options) => new Semaphore(options),
    channel: (options) => new Channel(options),
    store: <Value>(options: StoreOptions = {}) => {
      at('store()')
      return store.create<Value>(`check ${++stores}`, options)
    },
    zone: { create: (id, options) => zoneOf(play, id, options) },
    host: (fleet, options) => hostOf(play, network.parts, fleet, options),
    connect: () => network.connect(),
    serve: (options) => http.serve(options),
    fetch: (input, init) => http.fetch(input, init),
    WebSocket: new Proxy(ClientEnd as unknown as World['WebSocket'], {
      construct: (_, args: Parameters<SeededHttp['socket']>) => http.socket(...args),
    }),
    cut: (task, what = 'messages') => network.cut((task as Job<unknown>).actor, what),
    history: () => new History(play),
  }
}

async function within<Value>(
  play: Play,
  actor: Actor,
  ms: number,
  work: () => Value | Promise<Value>,
): Promise<Value> {
  const facts = { what: work.name || 'the work', ms }
  const [late, end] = play.late(actor, ms, () => new CheckError('CHECK_LATE', facts))
  try {
    return await Promise.race([work(), late])
  } finally {
    end()
  }
}
