/**
 * Stores that code of a run creates: they end with it, and their files are on a disk of the run, which
 * remains whatever task dies.
 *
 * When the task dies that has a file open, the file has the store as it was at one moment since the last
 * `flush()`, which the seed chooses: what stores promise. No byte of it is on a real disk.
 */
import { Store, StoreError } from '../store/index.ts'
import { type Actor, type Play, current } from './play.ts'

/** What a key has, and when that expires; 0: never. `undefined` is the value of a key that was deleted. */
type Kept = readonly [value: unknown, endMs: number]
type Entries = ReadonlyMap<string, Kept>
/** What has changed: a key, or all. */
type Change = Entries | readonly [key: string, kept: Kept]

const CHANGING = ['set', 'delete', 'update', 'increment', 'compareAndSet', 'clear'] as const

export class SeededFiles {
  readonly #play: Play
  /** What each file has. */
  readonly #written = new Map<string, Entries>()
  readonly #open = new Set<string>()

  constructor(play: Play) {
    this.#play = play
  }

  /** @throws {StoreError} `STORE_FILE_IN_USE`, and as `set()` for limits of what the file has. */
  created(owner: Actor, kept: Store, file: string | undefined): void {
    const play = this.#play
    // Code of a dead task may go on until its next wait.
    if (owner.isDead) return kept.close()
    // Their order differs from process to process.
    const keys = kept.keys.bind(kept)
    Object.defineProperty(kept, 'keys', { value: () => [...keys()].sort().values() })
    if (file === undefined) return void play.atEnd.push(() => kept.close())
    if (this.#open.has(file)) {
      kept.close()
      throw new StoreError('STORE_FILE_IN_USE', { id: kept.id, file, what: 'another store' })
    }
    let base: Entries = this.#written.get(file) ?? new Map()
    try {
      for (const [key, [value, endMs]] of base)
        if (endMs === 0) kept.set(key, value)
        else if (endMs > play.nowMs()) kept.set(key, value, { ttlMs: endMs - play.nowMs() })
    } catch (error) {
      kept.close()
      throw error
    }
    this.#open.add(file)
    const now = (key: string, value: unknown): readonly [string, Kept] => {
      const leftMs = value === undefined ? 0 : Store.leftMs(kept, key)
      return [key, [value, leftMs && play.nowMs() + leftMs]]
    }
    const all = (): Entries => new Map([...kept.entries()].map(([key, value]) => now(key, value)))
    /** Since the base, which is in the file. */
    const changes: Change[] = []
    this.#recorded(kept, (name, key) => {
      changes.push(name === 'clear' ? new Map() : now(key, kept.get(key)))
    })
    const close = kept.close.bind(kept)
    const end = (last: Entries): void => {
      this.#written.set(file, last)
      this.#open.delete(file)
      forget()
      close()
    }
    const forget = owner.whenDead(() => {
      if (play.isOver) return close()
      // What a transaction has changed since, too.
      changes.push(all())
      end(changed(base, changes.slice(0, Math.floor(owner.random() * (changes.length + 1)))))
    })
    const flush = async (): Promise<void> => {
      const last = all()
      changes.push(last)
      await (current.getStore() ?? owner).step('flush()')
      const at = changes.lastIndexOf(last)
      if (at < 0) return
      base = last
      changes.splice(0, at + 1)
    }
    Object.assign(kept, { flush, close: () => void (this.#open.has(file) && end(all())) })
  }

  #recorded(kept: object, record: (name: string, key: string) => void): void {
    for (const name of CHANGING) {
      const change = (Reflect.get(kept, name) as (...args: unknown[]) => unknown).bind(kept)
      const value = (...args: unknown[]): unknown => {
        const result = change(...args)
        record(name, args[0] as string)
        return result
      }
      Object.defineProperty(kept, name, { value })
    }
  }
}

function changed(before: Entries, changes: readonly Change[]): Entries {
  const entries = new Map(before)
  for (const change of changes) {
    if (change instanceof Map) entries.clear()
    for (const [key, kept] of change instanceof Map
      ? (change as Entries)
      : [change as readonly [string, Kept]])
      if (kept[0] === undefined) entries.delete(key)
      else entries.set(key, kept)
  }
  return entries
}
