/**
 * Computes a missing value once, while all other calls for it in the process wait.
 *
 * The core selects the call that computes. If that call fails or its thread ends, one of the waiting calls
 * computes. The async context shows when a computation asks for its own key, which would never end.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { abortSignal, ownOptions, shown, unwatch, valueOfKind, watch } from '../base/index.ts'
import { Fact, Mode, thisWaits } from '../bridge/index.ts'
import { StoreError, wrong } from './errors.ts'
import { type ComputeOptions, ttlOf } from './options.ts'

/** Sent to a waiting call by its own thread when its signal aborts. */
const ABORTED = 0

const CALL = 'store.getOrCompute()'
const OPTIONS = new Set(['ttlMs', 'signal'])

export interface ComputingStore {
  /** Returns a value, or `absent`. */
  find(key: string): unknown
  readonly absent: symbol
  write(key: string, value: unknown, mode: number, ttlMs: number): boolean
  /** Returns whether this call computes; otherwise its ticket receives a fact. */
  begin(key: string, ticket: number): boolean
  end(key: string, ticket: number, succeeded: boolean): void
}

interface Computing {
  readonly store: number
  readonly key: string
  readonly within: Computing | undefined
}

const computing = new AsyncLocalStorage<Computing>()

export class Computations<Value> {
  readonly #id: string
  readonly #number: number
  readonly #store: ComputingStore

  constructor(id: string, number: number, store: ComputingStore) {
    this.#id = id
    this.#number = number
    this.#store = store
  }

  async of(
    key: string,
    fn: (key: string) => Value | Promise<Value>,
    options: ComputeOptions | undefined,
  ): Promise<Value> {
    if (typeof fn !== 'function') throw wrong(`${CALL}: the second argument`, 'a function', fn)
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

  async #turn(key: string, ticket: number, signal: AbortSignal | undefined): Promise<number> {
    const waits = thisWaits()
    const facts = waits.once(ticket)
    const abort = (): void => waits.notify(ticket, ABORTED)
    if (signal !== undefined) watch(signal, abort)
    const fact = await facts
    if (signal !== undefined) unwatch(signal, abort)
    if (fact === ABORTED || (signal?.aborted === true && fact === Fact.lead)) {
      // If this call was selected meanwhile, the next one is.
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
    let succeeded = false
    try {
      const found = find(key)
      if (found !== absent) {
        succeeded = true
        return found as Value
      }
      const within = computing.getStore()
      const value = await computing.run({ store: this.#number, key, within }, () => fn(key))
      // Without a value the waiting calls find nothing, so the next of them computes.
      if (value === undefined) return value
      // Expects an absent key: a value written meanwhile is newer than this one.
      const written = write(key, value, Mode.expects | (ttlMs > 0 ? Mode.hasTtl : 0), ttlMs)
      const newer = written ? absent : find(key)
      succeeded = true
      return newer === absent ? value : (newer as Value)
    } finally {
      end(key, ticket, succeeded)
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
