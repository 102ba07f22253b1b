/**
 * Rate limits that the servers of several machines share.
 *
 * One thread of each process joins; its workers count in a store of the process. A server that cannot reach
 * the others goes on by its own counts.
 */
import type { Messages } from '../engine/engine.ts'
import { FleetError } from '../errors.ts'
import { type LimitsOptions, limitsOptions } from '../settings.ts'
import { Exchange } from './exchange.ts'

/** Counts of a limit in this thread, since its first use. */
export interface LimitsStats {
  /** Whether the servers can be reached, as far as is known. */
  readonly isLinked: boolean
  /** Requests that this process has admitted and reported to the others. */
  readonly sent: number
  /** Requests that others have admitted and that are counted here. */
  readonly received: number
  /** Reports of others that have not arrived: what they had admitted in an interval is not counted here. */
  readonly missed: number
}

/**
 * Limits of a fleet. `fleet.limits(name)` returns them, the same for each call; they end with the connection.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { type FarLimits, connect } from 'corespun/fleet'
 * import { createApp, rateLimit, use } from 'corespun/http'
 *
 * await using fleet = await connect('memory:')
 * const limits: FarLimits = await fleet.limits('api').join()
 * const limit = rateLimit({ requestsMax: 1, key: () => 'all', shared: 'api' })
 * const app = createApp({ routes: use({ '/': 'Hello' }, limit) })
 * assert.equal((await app.inject('/')).status, 200)
 * assert.equal((await app.inject('/')).status, 429)
 * await limits.leave()
 * assert.equal(limits.stats().sent, 1)
 * ```
 */
export class FarLimits {
  /** The name in the fleet, and of `rateLimit({ shared: name })`. */
  readonly name: string
  readonly #messages: Messages
  readonly #log = { isLinked: true, sent: 0, received: 0, missed: 0 }
  #exchange: Promise<Exchange> | undefined
  #isWatched = false
  #ended: string | undefined

  /** @internal */
  constructor(messages: Messages, name: string) {
    this.name = name
    this.#messages = messages
  }

  /**
   * Begin to count together with the other servers: once for all workers of a process. Resolves with these
   * limits when what others admit from then on is counted. A second call does nothing, until `leave()`.
   * @throws {FleetError} `FLEET_ARGUMENT`; `FLEET_CLOSED`; `FLEET_TIMEOUT` when the servers do not confirm
   *   it; `FLEET_DENIED` without the permission.
   */
  async join(options?: LimitsOptions): Promise<this> {
    const { intervalMs } = limitsOptions(options)
    if (this.#ended !== undefined) throw new FleetError('FLEET_CLOSED', { reason: this.#ended })
    const exchange = (this.#exchange ??= this.#begun(intervalMs))
    try {
      await exchange
    } catch (error) {
      if (this.#exchange === exchange) this.#exchange = undefined
      throw error
    }
    return this
  }

  async #begun(intervalMs: number): Promise<Exchange> {
    if (!this.#isWatched) this.#watch()
    const { SharedCounts } = await import('../../http/middleware/internal.ts')
    const exchange = new Exchange(
      this.#messages,
      this.name,
      new SharedCounts(this.name),
      this.#log,
      intervalMs,
    )
    await exchange.begin()
    return exchange
  }

  /**
   * Count alone from now on. Resolves when the others have what was admitted here, or after a second.
   * Closing the connection does this too.
   */
  async leave(): Promise<void> {
    const exchange = this.#exchange
    this.#exchange = undefined
    await (await exchange?.catch(() => undefined))?.leave()
  }

  /** `leave()`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.leave()
  }

  /** What was sent and received by this thread since the first use. */
  stats(): LimitsStats {
    return { ...this.#log }
  }

  #watch(): void {
    this.#isWatched = true
    this.#messages.watchLink((isLinked) => this.#link(isLinked))
    void this.#messages.ended.then(async (reason) => {
      this.#ended = reason
      this.#link(false, `: ${reason}`)
      ;(await this.#exchange?.catch(() => undefined))?.stop()
    })
  }

  #link(isLinked: boolean, reason = ''): void {
    // Who has left, or closes the connection, is not surprised.
    if (this.#log.isLinked && !isLinked && this.#exchange !== undefined)
      process.emitWarning(
        `limits ${this.name}: the servers cannot be reached${reason}; this machine counts by itself`,
      )
    this.#log.isLinked = isLinked
  }
}
