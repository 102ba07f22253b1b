/**
 * Computing a missing value once, while all other calls for it wait: here and in other threads.
 *
 * The core says who leads. A leader that fails, or whose thread ends, is followed by one that waits. What
 * computes a key and asks for it again would wait for itself; the async context tells.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { abortSignal, ownOptions, shown, valueOfKind } from '../base/index.ts'
import { Fact, Mode, thisWaits } from '../bridge/index.ts'
import { StoreError, wrong } from './errors.ts'
import { type ComputeOptions, ttlOf } from './options.ts'

/** Said to a call that waits, by its own thread: it is given up. */
const GIVEN_UP = 0

const CALL = 'store.getOrCompute()'
const OPTIONS = new Set(['ttlMs', 'signal'])

/** What a computation needs of its store. */
export interface ComputingStore {
  /** A value, or `absent`. */
  find(key: string): unknown
  readonly absent: symbol
  /** Write if nothing is there (mode expects); whether it was written. */
  write(key: string, value: unknown, mode: number, ttlMs: number): boolean
  /** Whether this call computes; else it will be told. */
  begin(key: string, ticket: number): boolean
  end(key: string, ticket: number, well: boolean): void
}

interface Computing {
  readonly store: number
  readonly key: string
  readonly within: Computing | undefined
}

const computing = new AsyncLocalStorage<Computing>()

/** One for each store of a thread. */
export class Computations<Value> {
  readonly #id: string
  readonly #number: number
  readonly #store: ComputingStore

  /** For the store with that name and number. */
  constructor(id: string, number: number, store: ComputingStore) {
    this.#id = id
    this.#number = number
    this.#store = store
  }

  /**
   * The value of a key, found or made.
   * @throws {StoreError} `STORE_COMPUTE_CYCLE`, `STORE_ARGUMENT`, and as `get` and `set`.
   * @throws whatever `fn` throws.
   */
  async of(
    key: string,
    fn: (key: string) => Value | Promise<Value>,
    options: ComputeOptions | undefined,
  ): Promise<Value> {
    const ttlMs = ttlOf(CALL, options, OPTIONS)
    const given = options && ownOptions(options, OPTIONS, wrong, CALL)
    const signal = valueOfKind(CALL, 'signal', given?.signal, abortSignal, wrong)
    for (;;) {
      const found = this.#store.find(key)
      if (found !== this.#store.absent) return found as Value
      signal?.throwIfAborted()
      this.#refuseCycle(key)
      const ticket = thisWaits().ticket()
      const fact = this.#store.begin(key, ticket) ? Fact.lead : await this.#turn(key, ticket, signal)
      if (fact === Fact.lead) return this.#compute(key, ticket, fn, ttlMs)
    }
  }

  /** Wait for what another call makes of the key. */
  async #turn(key: string, ticket: number, signal: AbortSignal | undefined): Promise<number> {
    const waits = thisWaits()
    const told = waits.once(ticket)
    const abort = (): void => waits.notify(ticket, GIVEN_UP)
    signal?.addEventListener('abort', abort, { once: true })
    const fact = await told
    signal?.removeEventListener('abort', abort)
    if (fact === GIVEN_UP || (signal?.aborted === true && fact === Fact.lead)) {
      // It may have become this call's to compute meanwhile: then it is passed on.
      this.#store.end(key, ticket, false)
      signal?.throwIfAborted()
    }
    return fact
  }

  async #compute(
    key: string,
    ticket: number,
    fn: (key: string) => Value | Promise<Value>,
    ttlMs: number,
  ): Promise<Value> {
    const { find, absent, write, end } = this.#store
    let well = false
    try {
      const found = find(key)
      if (found !== absent) {
        well = true
        return found as Value
      }
      const within = computing.getStore()
      const value = await computing.run({ store: this.#number, key, within }, () => fn(key))
      // No value: none of those who wait has one to find, so the next of them computes.
      if (value === undefined) return value
      // Expecting nothing: what somebody wrote meanwhile is newer than what this made.
      const written = write(key, value, Mode.expects | (ttlMs > 0 ? Mode.hasTtl : 0), ttlMs)
      const newer = written ? absent : find(key)
      well = true
      return newer === absent ? value : (newer as Value)
    } finally {
      end(key, ticket, well)
    }
  }

  #refuseCycle(key: string): void {
    for (let at = computing.getStore(); at !== undefined; at = at.within) {
      if (at.store === this.#number && at.key === key) {
        throw new StoreError('STORE_COMPUTE_CYCLE', { id: this.#id, key: shown(key) })
      }
    }
  }
}
