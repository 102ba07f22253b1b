/**
 * Connections to a server of Postgres: statements, transactions and hints, over what comes and goes.
 *
 * Of several servers one may be written, the primary. It is found by asking: a connection that cannot be
 * made, or that may only read, leads to the next server, round and round, so one that is promoted is found.
 * Each has a pool of its own, which is empty while it is not used.
 *
 * No state of a session is used, so a pooler between the two may use another connection for each transaction.
 * Statements have no names. A connection that cannot be made is tried again, ever later, for as long as the
 * operation may take: until then nothing was sent. What was sent and has no reply is repeated only where that
 * changes nothing.
 *
 * Hints come by LISTEN on one more connection. Where they do not come, as through such a pooler, whoever
 * waits looks anyway.
 */
import type { ClientConfig, Pool, PoolClient } from 'pg'
import { TIMER_MS_MAX } from '../../../base/index.ts'
import type { Clock } from '../engine.ts'
import {
  closedError,
  connectError,
  failureOf,
  isLost,
  isUndone,
  readOnlyError,
  unreachedError,
} from './failures.ts'

export type Row = Record<string, unknown>
export type Query = (text: string, values?: readonly unknown[]) => Promise<Row[]>
type Postgres = typeof import('pg').default

/** How long an operation has, connecting again included. */
export const OPERATION_MS = 10_000
const CONNECTIONS_MAX = 6
const RETRY_MS = { min: 50, max: 1000 }

export interface LinkSettings {
  /** Of each server. */
  readonly configs: readonly ClientConfig[]
  readonly connectMs: number
  readonly clock: Clock
  readonly channel: string
  /** Called with each hint, and when some may have been missed with none. */
  onHint(hint: string | undefined): void
}

interface Server {
  readonly config: ClientConfig
  readonly pool: Pool
}

export class Link {
  /** All of them, without credentials. */
  readonly server: string
  readonly #pg: Postgres
  readonly #settings: LinkSettings
  readonly #servers: readonly Server[]
  /** The index of the one that is used. */
  #at = 0
  readonly #busy = new Set<PoolClient>()
  /** Those that may write. */
  readonly #checked = new WeakSet<PoolClient>()
  #listener: InstanceType<Postgres['Client']> | undefined
  #isClosed = false
  /** Ends pauses. */
  readonly #pauses = new Set<() => void>()
  /** An open connection keeps its process alive, also while it has no socket since its server is away. */
  readonly #hold: NodeJS.Timeout

  /** @throws What the client reports of an address, with the address in it. */
  constructor(pg: Postgres, settings: LinkSettings) {
    this.#pg = pg
    this.#settings = settings
    const clients = settings.configs.map((config) => new pg.Client(config))
    const names = clients.map(({ host, port }) => `${host}${host.startsWith('/') ? '' : `:${port}`}`)
    this.server = `${names.join(', ')}, database ${clients[0].database ?? ''}`
    this.#servers = settings.configs.map((config) => ({ config, pool: this.#poolOf(config) }))
    this.#hold = setInterval(() => {}, TIMER_MS_MAX)
  }

  #poolOf(config: ClientConfig): Pool {
    const { connectMs } = this.#settings
    const pool = new this.#pg.Pool({ ...config, max: CONNECTIONS_MAX, connectionTimeoutMillis: connectMs })
    // One that waits and is lost has left the pool; who needs one makes another.
    pool.on('error', () => {})
    // Of one in use its statement is rejected.
    pool.on('connect', (client) => void client.on('error', () => {}))
    return pool
  }

  /** Whether one of them may be written. @throws {FleetError} `FLEET_CONNECT`, `FLEET_DENIED`. */
  async check(): Promise<void> {
    for (let tried = 1; ; tried++)
      try {
        return this.#release(await this.#connected())
      } catch (error) {
        const failure = connectError(this.server, error)
        if (failure.code === 'FLEET_DENIED' || tried === this.#servers.length) throw failure
      }
  }

  /**
   * A statement, in a transaction of its own.
   * @param repeats Whether doing it twice is doing it once.
   * @throws What the server or the client reports; `FLEET_TIMEOUT` without a connection for so long,
   *   `FLEET_DENIED` if it is refused.
   */
  async query(text: string, values: readonly unknown[] = [], repeats = true): Promise<Row[]> {
    const endMs = this.#settings.clock.nowMs() + OPERATION_MS
    for (let pauseMs = RETRY_MS.min; ; pauseMs = Math.min(2 * pauseMs, RETRY_MS.max)) {
      const client = await this.#client(endMs)
      try {
        return await this.#on(client, text, values, endMs)
      } catch (error) {
        const goesOn = isUndone(error) || (repeats && isLost(error))
        if (!goesOn || this.#isClosed || this.#settings.clock.nowMs() >= endMs) throw error
      }
      await this.#pause(pauseMs)
    }
  }

  async #on(client: PoolClient, text: string, values: readonly unknown[], endMs: number): Promise<Row[]> {
    // Destroying it rejects the statement.
    const end = this.#settings.clock.after(Math.max(100, endMs - this.#settings.clock.nowMs()), () =>
      this.#release(client, true),
    )
    try {
      const { rows } = await client.query(text, values as unknown[])
      this.#release(client)
      return rows as Row[]
    } catch (error) {
      this.#release(client, isLost(error))
      throw error
    } finally {
      end()
    }
  }

  /** Several statements, or nothing of them. @throws {FleetError} What they were refused for. */
  async transaction(operation: string, work: (query: Query) => Promise<void>): Promise<void> {
    const client = await this.#client(this.#settings.clock.nowMs() + OPERATION_MS)
    let isOver = false
    try {
      const query: Query = async (text, values = []) =>
        (await client.query(text, values as unknown[])).rows as Row[]
      await query('BEGIN')
      await work(query)
      await query('COMMIT')
      isOver = true
    } catch (error) {
      throw failureOf(error, operation, OPERATION_MS)
    } finally {
      // One that is not over is rolled back by the server.
      this.#release(client, !isOver)
    }
  }

  async #client(endMs: number): Promise<PoolClient> {
    const { clock } = this.#settings
    let pauseMs: number = RETRY_MS.min
    for (let tried = 1; ; tried++) {
      if (this.#isClosed) throw closedError()
      try {
        return await this.#connected()
      } catch (error) {
        if (clock.nowMs() + pauseMs >= endMs && !this.#isClosed)
          throw unreachedError(this.server, error, OPERATION_MS)
      }
      if (tried % this.#servers.length !== 0) continue
      await this.#pause(pauseMs)
      pauseMs = Math.min(2 * pauseMs, RETRY_MS.max)
    }
  }

  /** A connection that may write; after a failure the next server is tried. */
  async #connected(): Promise<PoolClient> {
    const server = this.#servers[this.#at]
    try {
      const client = await server.pool.connect()
      this.#busy.add(client)
      if (!this.#checked.has(client)) await this.#checkWrites(client)
      return client
    } catch (error) {
      if (server === this.#servers[this.#at]) this.#at = (this.#at + 1) % this.#servers.length
      throw error
    }
  }

  async #checkWrites(client: PoolClient): Promise<void> {
    const { clock, connectMs } = this.#settings
    const end = clock.after(connectMs, () => this.#release(client, true))
    try {
      const { rows } = await client.query('SHOW transaction_read_only')
      if ((rows as Row[])[0]['transaction_read_only'] === 'on') throw readOnlyError()
      this.#checked.add(client)
    } catch (error) {
      this.#release(client, true)
      throw error
    } finally {
      end()
    }
  }

  /** Once. */
  #release(client: PoolClient, isBroken = false): void {
    if (this.#busy.delete(client)) client.release(isBroken)
  }

  /** Others may have the same rhythm: pauses are a half to the whole of their length. */
  async #pause(ms: number): Promise<void> {
    if (this.#isClosed) return
    await new Promise<void>((resolve) => {
      const end = this.#settings.clock.after(ms * (0.5 + Math.random() / 2), () => over())
      const over = (): void => {
        end()
        this.#pauses.delete(over)
        resolve()
      }
      this.#pauses.add(over)
    })
  }

  /** Receive hints until it is closed. */
  async listen(): Promise<void> {
    const { channel, connectMs, onHint } = this.#settings
    for (let pauseMs = RETRY_MS.min; !this.#isClosed; pauseMs = Math.min(2 * pauseMs, RETRY_MS.max)) {
      const { config } = this.#servers[this.#at]
      const client = new this.#pg.Client({ ...config, connectionTimeoutMillis: connectMs })
      const ended = new Promise<void>((resolve) => client.once('end', resolve).on('error', () => resolve()))
      client.on('notification', ({ payload }) => onHint(payload ?? ''))
      this.#listener = client
      try {
        await client.connect()
        await client.query(`LISTEN "${channel}"`)
        pauseMs = RETRY_MS.min
        onHint(undefined)
        await ended
      } catch {
        // Hints are missing until it is there again, and whoever waits looks anyway.
      }
      await client.end().catch(() => {})
      await this.#pause(pauseMs)
    }
  }

  /** End all of it; who waits for a reply is rejected. */
  async close(): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#hold)
    for (const over of [...this.#pauses]) over()
    for (const client of [...this.#busy]) this.#release(client, true)
    const pools = this.#servers.map(({ pool }) => pool.end().catch(() => {}))
    await Promise.all([...pools, this.#listener?.end().catch(() => {})])
  }
}
