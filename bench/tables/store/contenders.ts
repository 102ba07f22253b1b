/**
 * The contenders of table `store`: each keeps values under keys so that other threads can have them.
 *
 * Each is set up the way its documentation calls fastest; all reads return copies, except of `Map`, which
 * keeps references in one thread and shows what a store costs beyond a table.
 */
import { mkdtempSync, existsSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** What is timed. */
export interface Calls {
  set(key: string, value: unknown): void
  get(key: string): unknown
  /** The same value as long as nobody wrote, where there is such a call. */
  view?(key: string): unknown
}

/** One thread's end of a contender. */
export interface Keeper {
  /**
   * Called as its users call it, where it has these names: a closure between costs what an engine cannot
   * inline.
   */
  readonly calls: Calls
  /** What another thread needs to have the same; `undefined`: it cannot. */
  readonly handle: unknown
  close(): Promise<void>
}

/** How to have one. */
export interface StoreContender {
  /** A new one, for values of so many characters as JSON. */
  open(characters: number): Promise<Keeper>
  /** One that another thread has opened. */
  attach?(handle: unknown): Promise<Keeper>
}

/** Keys that a map of a fixed size has room for. */
const KEYS_MAX = 1024
const KEY_CHARACTERS = 16

/** All of them by name. */
export const STORE_CONTENDERS: Readonly<Record<string, StoreContender>> = {
  corespun: {
    open: () => openCorespun(`bench ${process.pid}`, true),
    attach: (id) => openCorespun(id as string, false),
  },
  Map: { open: openMap },
  lmdb: {
    open: () => openLmdb(memoryFolder(), false, true),
    attach: (path) => openLmdb(path as string, false),
  },
  'lmdb, cached': { open: () => openLmdb(memoryFolder(), true, true) },
  sharedmap: { open: makeSharedMap, attach: (handle) => wrapSharedMap(handle as object) },
}

async function openCorespun(id: string, isNew: boolean): Promise<Keeper> {
  const { store } = await import('corespun/store')
  const opened = isNew ? store.create(id) : store.get(id)
  return { calls: opened, handle: id, close: async () => opened.close() }
}

async function openMap(): Promise<Keeper> {
  return { calls: new Map<string, unknown>(), handle: undefined, close: async () => {} }
}

function memoryFolder(): string {
  return mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'corespun-bench-lmdb-'))
}

/** In memory, never flushed, MessagePack with structures that all threads share. */
async function openLmdb(path: string, cache: boolean, isOwner = false): Promise<Keeper> {
  const { open } = await import('lmdb')
  const sharedStructuresKey = Symbol.for('structures')
  // Also when the process is ended before its time.
  if (isOwner) process.once('exit', () => rmSync(path, { recursive: true, force: true }))
  const database = open({ path, cache, noSync: true, encoding: 'msgpack', sharedStructuresKey })
  const get = (key: string): unknown => database.get(key)
  return {
    calls: { set: (key, value) => void database.putSync(key, value), get, ...(cache ? { view: get } : {}) },
    handle: cache ? undefined : path,
    close: () => database.close(),
  }
}

/** Carries strings only: values go as JSON, which is the fastest text there is. */
async function makeSharedMap(characters: number): Promise<Keeper> {
  const { default: SharedMap } = await import('sharedmap')
  // It ends each value with a character more.
  return wrapSharedMap(new SharedMap(KEYS_MAX, KEY_CHARACTERS, characters + 1))
}

async function wrapSharedMap(handle: object): Promise<Keeper> {
  const { default: SharedMap } = await import('sharedmap')
  const map = Object.setPrototypeOf(handle, SharedMap.prototype) as InstanceType<typeof SharedMap>
  return {
    calls: {
      set: (key, value) => map.set(key, JSON.stringify(value)),
      get: (key) => JSON.parse(map.get(key) as string) as unknown,
    },
    handle: map,
    close: async () => {},
  }
}
