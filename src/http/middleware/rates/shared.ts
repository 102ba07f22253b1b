/**
 * The counts of a rate limit that several servers share, as all threads of this process see them.
 *
 * A request is decided by the counts here and waits for nothing. What was admitted is noted in a second
 * store, from which whoever has a connection to the other servers takes it, and adds here what they have
 * admitted: corespun/fleet does. Without one, the limit is that of this process.
 */
import { randomId } from '../../../base/index.ts'
import { type Store, store as stores } from '../../../store/index.ts'
import { sha256 } from '../../message/text.ts'
import { type RateNow, type Verdict, WINDOWS_MAX, add, countOf, take } from './counts.ts'

export const CLIENTS_MAX = 100_000
/** Servers whose last batch is remembered. */
const SERVERS_MAX = 4096
/** Longest key: of a longer one the hash is counted. */
const KEY_CHARS_MAX = 256
const RATE = /^([1-9]\d{0,9})\/([1-9]\d{0,9}) /

/** Which batches of a server are new. */
interface Unseen {
  /** The number of the first that no thread here has counted. */
  readonly first: number
  /** How many before it have not arrived. */
  readonly missed: number
}

export class SharedCounts {
  /** The id of this process, the same in all threads. */
  readonly id: string
  readonly #counts: Store<number>
  readonly #admitted: Store<number>
  readonly #seen: Store<number>
  readonly #now: () => number

  /** @param now As of `rateLimit`. */
  constructor(name: string, now: () => number = Date.now) {
    const opened = (what: string, entriesMax: number): Store<number> =>
      stores.getOrCreate(`corespun.http.rate.${what}.${name}`, { entriesMax })
    this.#counts = opened('counts', CLIENTS_MAX)
    this.#admitted = opened('admitted', CLIENTS_MAX)
    this.#seen = opened('seen', SERVERS_MAX)
    this.id = stores
      .getOrCreate<string>('corespun.http.rate.processes')
      .update(name, (id) => id ?? randomId())!
    this.#now = now
  }

  /** Counts one request. @param whole Begins with the rate, as in `100/60000 `. */
  take(whole: string, most: number, spanMs: number): Verdict {
    const key = whole.length > KEY_CHARS_MAX ? `${most}/${spanMs} ${hashOf(whole)}` : whole
    const verdict = take(this.#counts, key, { most, spanMs, now: this.#now() }, WINDOWS_MAX)
    if (verdict.allowed) this.#admitted.increment(key, 1, { ttlMs: spanMs + 1 })
    return verdict
  }

  /**
   * Takes what was admitted here since it was taken last, by key.
   * @param isLate Takes of it only what still counts here.
   */
  *admitted(keysMax: number, isLate: boolean): IterableIterator<readonly [key: string, requests: number]> {
    const keys = [...this.#admitted.keys()]
    // If there are too many keys, start at a random one, so that each is sent at last.
    const start = keys.length > keysMax ? Math.floor(Math.random() * keys.length) : 0
    for (let index = 0; index < Math.min(keys.length, keysMax); index++) {
      const key = keys[(start + index) % keys.length]
      let requests = 0
      this.#admitted.update(key, (count = 0) => {
        requests = count
        return undefined
      })
      const rate = this.#rateOf(key)
      if (rate === undefined) continue
      requests = Math.min(requests, isLate ? countOf(this.#counts, key, rate) : WINDOWS_MAX * rate.most)
      if (requests > 0) yield [key, requests]
    }
  }

  /** Which of `batches` batches, the last with that number, are to be added. They count as added. */
  unseen(server: string, number: number, batches: number): Unseen {
    let unseen: Unseen = { first: 0, missed: 0 }
    const oldest = Math.max(0, number - batches + 1)
    this.#seen.update(server, (last) => {
      const first = Math.max(oldest, (last ?? -1) + 1)
      unseen = { first, missed: last === undefined ? 0 : first - last - 1 }
      return Math.max(last ?? 0, number)
    })
    return unseen
  }

  /** Adds what another server has admitted. Returns whether it was counted: others may send anything. */
  add(key: unknown, requests: unknown): boolean {
    const rate = typeof key === 'string' && key.length <= KEY_CHARS_MAX ? this.#rateOf(key) : undefined
    if (rate === undefined || !Number.isInteger(requests)) return false
    const count = requests as number
    if (count < 1 || count > WINDOWS_MAX * rate.most) return false
    add(this.#counts, key as string, count, rate)
    return true
  }

  #rateOf(key: string): RateNow | undefined {
    const [, most, spanMs] = RATE.exec(key) ?? []
    if (most === undefined || Number(most) > 2 ** 31 || Number(spanMs) >= 2 ** 31) return undefined
    return { most: Number(most), spanMs: Number(spanMs), now: this.#now() }
  }
}

const hashOf = (text: string): string => `#${sha256(text)}`
