/**
 * Files of the stores of a run: on a disk of the run, which remains whatever task dies.
 *
 * When the task dies that has a file open, the file has the store as it was at one moment since the last
 * `flush()`, which the seed chooses: what stores promise. No byte of it is on a real disk.
 */
import { Store, StoreError, type StoreOptions } from '../store/index.ts'
import { type Play, current } from './play.ts'

/** All entries at one moment, and when each expires; 0: never. */
type Moment = readonly (readonly [key: string, value: unknown, endMs: number])[]

/** So many changes since a flush can be lost; of more the first ones were written meanwhile. */
const MOMENTS_MAX = 256
const CHANGES = ['set', 'delete', 'update', 'increment', 'compareAndSet', 'clear'] as const

export class SeededFiles {
  readonly #play: Play
  /** What each file has. */
  readonly #written = new Map<string, Moment>()
  readonly #open = new Set<string>()

  constructor(play: Play) {
    this.#play = play
  }

  /** @throws {StoreError} `STORE_FILE_IN_USE`, and what `make` does. */
  open<Value>(
    file: string,
    options: StoreOptions,
    make: (options: StoreOptions) => Store<Value>,
  ): Store<Value> {
    const owner = this.#play.actor('store()')
    if (this.#open.has(file))
      throw new StoreError('STORE_FILE_IN_USE', { id: file, file, what: 'another store' })
    const { file: _file, unflushedBytesMax: _bytes, ...others } = options
    const kept = make(others)
    this.#open.add(file)
    const play = this.#play
    for (const [key, value, endMs] of this.#written.get(file) ?? [])
      if (endMs === 0) kept.set(key, value as Value)
      else if (endMs > play.nowMs()) kept.set(key, value as Value, { ttlMs: endMs - play.nowMs() })
    const endOf = (key: string): number => {
      const leftMs = Store.leftMs(kept, key)
      return leftMs && play.nowMs() + leftMs
    }
    const now = (): Moment => [...kept.entries()].map(([key, value]) => [key, value, endOf(key)] as const)
    /** The first is in the file. */
    const moments = [now()]
    for (const name of CHANGES)
      this.#recorded(kept, name, () => {
        moments.push(now())
        if (moments.length > MOMENTS_MAX) moments.shift()
      })
    const close = kept.close.bind(kept)
    const end = (last: Moment): void => {
      this.#written.set(file, last)
      this.#open.delete(file)
      forget()
      close()
    }
    const forget = owner.whenDead(() => end(moments[Math.floor(owner.random() * moments.length)]))
    const flush = async (): Promise<void> => {
      const last = now()
      moments.push(last)
      await (current.getStore() ?? owner).step('flush()')
      const at = moments.lastIndexOf(last)
      if (at > 0) moments.splice(0, at)
    }
    return Object.assign(kept, { flush, close: () => void (this.#open.has(file) && end(now())) })
  }

  #recorded(kept: object, name: string, changed: () => void): void {
    const change = (Reflect.get(kept, name) as (...args: unknown[]) => unknown).bind(kept)
    Object.defineProperty(kept, name, {
      value: (...args: unknown[]) => {
        const result = change(...args)
        changed()
        return result
      },
    })
  }
}
