/**
 * Connections to a server of Postgres: statements, transactions and hints, over what comes and goes.
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
import type { Clock } from '../engine.ts'
import { closedError, connectError, failureOf, isLost, isUndone, unreachedError } from './failures.ts'

export type Row = Record<string, unknown>
export type Query = (text: string, values?: readonly unknown[]) => Promise<Row[]>
type Postgres = typeof import('pg').default

/** How long an operation has, connecting again included. */
export const OPERATION_MS = 10_000
const CONNECTIONS_MAX = 6
const RETRY_MS = { min: 50, max: 1000 }

export interface LinkSettings {
  readonly config: ClientConfig
  readonly connectMs: number
  readonly clock: Clock
  readonly channel: string
  /** Called with each hint, and when some may have been missed with none. */
  onHint(hint: string | undefined): void
}

export class Link {
  /** Without credentials. */
  readonly server: string
  readonly #pg: Postgres
  readonly #settings: LinkSettings
  readonly #pool: Pool
  readonly #busy = new Set<PoolClient>()
  #listener: InstanceType<Postgres['Client']> | undefined
  #isClosed = false
  /** Ends pauses. */
  readonly #pauses = new Set<() => void>()

  /** @throws What the client reports of an address, with the address in it. */
  constructor(pg: Postgres, settings: LinkSettings) {
    this.#pg = pg
    this.#settings = settings
    const { host, port, database } = new pg.Client(settings.config)
    this.server = `${host}${host.startsWith('/') ? '' : `:${port}`}, database ${database ?? ''}`
    this.#pool = new pg.Pool({
      ...settings.config,
      max: CONNECTIONS_MAX,
      connectionTimeoutMillis: settings.connectMs,
    })
    // One that waits and is lost has left the pool; who needs one makes another.
    this.#pool.on('error', () => {})
    // Of one in use its statement is rejected.
    this.#pool.on('connect', (client) => void client.on('error', () => {}))
  }

  /** Whether a server accepts connections. @throws {FleetError} `FLEET_CONNECT`, `FLEET_DENIED`. */
  async check(): Promise<void> {
    try {
      this.#release(await this.#pool.connect())
    } catch (error) {
      throw connectError(this.server, error)
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
    let isReleased = false
    const release = (error?: boolean): void => {
      if (!isReleased) this.#release(client, error)
      isReleased = true
    }
    // Destroying it rejects the statement.
    const end = this.#settings.clock.after(Math.max(100, endMs - this.#settings.clock.nowMs()), () =>
      release(true),
    )
    try {
      const { rows } = await client.query(text, values as unknown[])
      release()
      return rows as Row[]
    } catch (error) {
      release(isLost(error))
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
    for (let pauseMs = RETRY_MS.min; ; pauseMs = Math.min(2 * pauseMs, RETRY_MS.max)) {
      if (this.#isClosed) throw closedError()
      try {
        const client = await this.#pool.connect()
        this.#busy.add(client)
        return client
      } catch (error) {
        if (clock.nowMs() + pauseMs >= endMs && !this.#isClosed)
          throw unreachedError(this.server, error, OPERATION_MS)
      }
      await this.#pause(pauseMs)
    }
  }

  #release(client: PoolClient, isBroken = false): void {
    this.#busy.delete(client)
    client.release(isBroken)
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
    const { channel, config, connectMs, onHint } = this.#settings
    for (let pauseMs = RETRY_MS.min; !this.#isClosed; pauseMs = Math.min(2 * pauseMs, RETRY_MS.max)) {
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
    for (const over of [...this.#pauses]) over()
    for (const client of [...this.#busy]) this.#release(client, true)
    await Promise.all([this.#pool.end().catch(() => {}), this.#listener?.end().catch(() => {})])
  }
}
