/**
 * What this thread is in its zone: whose worker, and which task it runs.
 *
 * All copies of the package in the thread share it, so it hangs on the global object: a thread is a worker
 * whichever copy asks. Copies of another version are refused before they come here (src/native), so there is
 * one shape. The worker's main module sets it before any task; the zone never changes, since workers do not
 * change zones.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Carrying } from './record.ts'

/** Which task the running code belongs to: one at a time, or found by Node where tasks overlap. */
export interface Tracker<Task> {
  run<R>(task: Task, body: () => R): R
  current(): Task | undefined
}

/** The part of AsyncLocalStorage in use, so that the published types do not need those of Node. */
interface Outside<Task> {
  run<R>(task: Task, body: () => R): R
  getStore(): Task | undefined
}

/** A word of shared memory that a thread has set to `value`; it is 0 once that has ended, however it ends. */
export interface Mark {
  readonly word: Int32Array
  readonly value: number
}

/**
 * What a worker serves beside its tasks, such as a server of HTTP. Its end is that of the
 * thread, which finishes what it has accepted while another worker has the slot.
 */
export interface Served {
  /** Longest time in ms that {@link finish} takes. */
  readonly finishMs: number
  /** Set from {@link mayLeave} or {@link finish} on: the thread's owner resets it once that has ended. */
  readonly mark: Mark | undefined
  /** Whether the worker may leave now. */
  mayLeave(): boolean
  /** An error belongs to no task. Whether it belongs to what is served, which then receives it. */
  strayed(error: unknown): boolean
  /** Another worker takes the slot. Resolves when all that was accepted has ended. */
  finish(): Promise<void>
}

/** Notes under which label this thread runs, while it is profiled. */
export interface Labelling {
  /** Runs `body`, and what it causes, under a label. */
  run<R>(label: string, body: () => R): R
  /** What runs until the next `run` is for that label, such as reading arguments. */
  prepare(label: string): void
  /** Runs `body`, and what it causes, under the label of what `run` has run last. */
  follow(body: () => void): void
  /** The running code has another label from now on. */
  about(label: string): void
}

interface Here<Task> {
  /** The zone whose worker this thread is. */
  zone: string | undefined
  /** Its name there: the zone's id, a slash, its slot. */
  worker: string | undefined
  /** It was started to become one, and is not yet: it has no name. */
  isUnnamed: boolean
  /** A task of this worker is about to call its own zone: throws if it may not. */
  beforeFork(this: void): void
  /** Follows the tasks of this worker. */
  tracker: Tracker<Task> | undefined
  /** Follows the tasks that run in threads which are no workers. */
  readonly outside: Outside<Task>
  /** Tasks that are broadcasts. */
  readonly broadcasts: WeakSet<object>
  /** By task: how many of its streams wait. */
  readonly streamWaits: WeakMap<object, unknown>
  /** What the setup of this worker's zone has returned. */
  state: { readonly value: unknown } | undefined
  /** Contexts that cross to other threads; `undefined` until something is carried. */
  carrier: Carrying | undefined
  /** What this thread serves beside its tasks. */
  readonly served: Set<Served>
  /** Set while this thread is profiled. */
  labels: Labelling | undefined
  /** Imports a module that only who looks into this thread needs. */
  load(this: void, url: string): Promise<unknown>
}

const KEY = Symbol.for('corespun.thread')

export const here: Here<unknown> = (globalThis as { [KEY]?: Here<unknown> })[KEY] ?? made()

function made(): Here<unknown> {
  const fresh: Here<unknown> = {
    zone: undefined,
    worker: undefined,
    isUnnamed: false,
    beforeFork: () => {},
    tracker: undefined,
    outside: new AsyncLocalStorage(),
    broadcasts: new WeakSet(),
    streamWaits: new WeakMap(),
    state: undefined,
    carrier: undefined,
    served: new Set(),
    labels: undefined,
    load: async (url) => (await import(url)) as unknown,
  }
  Object.defineProperty(globalThis, KEY, { value: fresh })
  return fresh
}

/**
 * This thread is that worker of that zone; `beforeFork` is called before a task calls its own zone.
 */
export function setCurrent(zone: string, worker: string, beforeFork: () => void): void {
  here.zone = zone
  here.worker = worker
  here.isUnnamed = false
  here.beforeFork = beforeFork
}

/** A task of this worker is about to call its own zone. */
export function beforeFork(): void {
  here.beforeFork()
}

/** The zone whose worker this thread is; `undefined` in all other threads. */
export function currentZoneId(): string | undefined {
  return here.zone
}
