/**
 * A connection to a fleet: the door to its zones, and what all of them share.
 *
 * The engine is chosen by the address: `memory:` is this process, `sqlite:` a file of this machine,
 * `postgres://` a server of Postgres, `nats://` and `tls://` are servers of NATS. What an engine needs is
 * loaded with the first connection to it.
 */
import { meters } from '../base/index.ts'
import { type Engine, messagesOf } from './engine/engine.ts'
import { addressOf, identified, whereOf } from './address.ts'
import { FleetError } from './errors.ts'
import {
  type ConnectOptions,
  type FarStoreOptions,
  type FarZoneOptions,
  type LockOptions,
  type OverviewOptions,
  checkName,
  connectSettings,
  lockOptions,
  overviewOptions,
  storeOptions,
  zoneOptions,
} from './settings.ts'
import { Jobs } from './jobs/jobs.ts'
import { FarLimits } from './limits/limits.ts'
import { FarRooms } from './rooms/rooms.ts'
import { type FleetOverview, type JobQueueInfo, overviewOf, queuesOf } from './overview.ts'
import { FarLock } from './state/lock.ts'
import { FarStore } from './state/store.ts'
import { Payloads } from './wire.ts'
import type { Waiting } from './zone/hosts.ts'
import { FarZone } from './zone/far-zone.ts'
import { Hosts } from './zone/hosts.ts'
import { urlOf, versionOf } from './version.ts'

/**
 * Connect to a fleet.
 * @param address `nats://a,b,c` or `tls://a,b,c`: servers of NATS, of which one must answer now and later
 *   ones are found by themselves; `nats://user:password@a` or `nats://token@a` names the user too, encoded as
 *   in a URL. `sqlite:work.db`: a file of this machine, for jobs, stores and locks of all its processes. It
 *   is made if it does not exist; a relative path starts from the current directory.
 *   `postgres://user:password@host:port/database`, or `postgresql://`: jobs, stores and locks in tables of
 *   Postgres, for all machines that reach it; what is left out is as in the environment (`PGHOST` and
 *   others), `?host=/var/run/postgresql` names a socket, and of several hosts, `a:5432,b:5432`, the one that
 *   may be written is used. `memory:` or `memory:name`: this thread alone, for tests.
 * @throws {FleetError} `FLEET_ARGUMENT`, `FLEET_CONNECT`, `FLEET_PEER_MISSING`, `FLEET_CREDENTIALS`;
 *   `FLEET_DENIED` when a server refuses the credentials. Of a file `FLEET_NODE`, `FLEET_DISK_FULL`,
 *   `FLEET_FILE_FOLDER_MISSING`, `FLEET_FILE_DENIED`, `FLEET_FILE_FOREIGN`, `FLEET_FILE_CORRUPT`,
 *   `FLEET_FILE_VERSION` and `FLEET_FILE_REMOTE`. Of Postgres `FLEET_SCHEMA_VERSION`.
 * @example
 * ```ts
 * import { connect } from 'corespun/fleet'
 *
 * await using fleet = await connect('memory:')
 * const scores = fleet.zone<{ score(text: string): number }>('scores')
 * ```
 */
export async function connect(address: string, options?: ConnectOptions): Promise<Fleet> {
  const fleet = await connected(address, options)
  meters.fleets.set(fleet, whereOf(address, options))
  void fleet.ended.then(() => meters.fleets.delete(fleet))
  return fleet
}

async function connected(address: string, options?: ConnectOptions): Promise<Fleet> {
  const named = addressOf(address)
  const { scheme, servers } = named
  const settings = identified(connectSettings(options), named)
  if (scheme === 'memory') {
    const { memoryEngine } = await import('./engine/memory/memory.ts')
    return new Fleet(memoryEngine(servers[0]), settings.valueBytesMax)
  }
  if (scheme === 'sqlite') {
    const { sqliteEngine } = await import('./engine/sqlite/sqlite.ts')
    return new Fleet(await sqliteEngine(servers[0]), settings.valueBytesMax)
  }
  const { readSecrets } = await import('./secrets.ts')
  if (scheme === 'postgres') {
    const { postgresEngine } = await import('./engine/postgres/postgres.ts')
    const { tls } = readSecrets(settings, false)
    return new Fleet(await postgresEngine({ ...settings, where: servers[0], tls }), settings.valueBytesMax)
  }
  const { natsEngine } = await import('./engine/nats/nats.ts')
  const engine = await natsEngine({ ...settings, servers, ...readSecrets(settings, scheme === 'tls') })
  return new Fleet(engine, settings.valueBytesMax)
}

let fleets = 0

/**
 * A connection. {@link connect} makes it.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { type Fleet, connect } from 'corespun/fleet'
 *
 * const fleet: Fleet = await connect('memory:')
 * await fleet.close()
 * assert.equal(await fleet.ended, 'close() was called')
 * ```
 */
export class Fleet {
  /** @internal */
  readonly engine: Engine
  /** @internal */
  readonly payloads: Payloads
  /** @internal */
  readonly valueBytesMax: number
  /** @internal */
  readonly hosts = new Set<{ close(): Promise<void> }>()
  readonly #zones = new Map<string, Hosts>()
  /** Each is of the module that its caller names. */
  readonly #jobs = new Map<string, unknown>()
  readonly #rooms = new Map<string, FarRooms>()
  readonly #limits = new Map<string, FarLimits>()
  readonly #calls = new Set<Waiting>()
  readonly #id = `${crypto.randomUUID()}${++fleets}`
  #closed: Promise<void> | undefined

  /** Resolves with the reason when the connection has ended for good: by `close()`, or by the server. */
  readonly ended: Promise<string>

  /** @internal */
  constructor(engine: Engine, valueBytesMax: number) {
    this.engine = engine
    this.ended = engine.ended
    this.valueBytesMax = valueBytesMax
    this.payloads = new Payloads(engine, valueBytesMax)
    void engine.ended.then((reason) => {
      for (const call of [...this.#calls]) call.lost(new FleetError('FLEET_CLOSED', { reason }))
    })
  }

  /**
   * A zone on other machines: `fleet.zone<typeof import('./score.ts')>('scores')`. Nothing is asked here.
   * @param options Which version of the module hosts must run.
   * @throws {FleetError} `FLEET_ARGUMENT`; `FLEET_MESSAGES` over an engine that has no messages.
   */
  zone<Module>(name: string, options?: FarZoneOptions): FarZone<Module> {
    checkName('fleet.zone()', name)
    const asked = zoneOptions(options)
    const module = asked.module === undefined ? undefined : urlOf(asked.module)
    const version = asked.version ?? (module === undefined ? undefined : versionOf(module))
    const key = `${name} ${version ?? ''}`
    let hosts = this.#zones.get(key)
    const messages = messagesOf(this.engine, 'fleet.zone()')
    if (hosts === undefined) this.#zones.set(key, (hosts = new Hosts(messages, name, version)))
    const { payloads } = this
    const about = { zone: name, version, module, id: this.#id, calls: this.#calls }
    return new FarZone({ messages, payloads, hosts, ...about })
  }

  /**
   * Durable jobs of a zone: `fleet.jobs<typeof import('./score.ts')>('scores')`. Nothing is asked here.
   * @throws {FleetError} `FLEET_ARGUMENT`.
   */
  jobs<Module>(name: string): Jobs<Module> {
    checkName('fleet.jobs()', name)
    let jobs = this.#jobs.get(name) as Jobs<Module> | undefined
    if (jobs === undefined) this.#jobs.set(name, (jobs = new Jobs(this.engine, name, this.valueBytesMax)))
    return jobs
  }

  /**
   * Values that all machines share: `fleet.store<number>('prices')`. Nothing is asked here.
   * @throws {FleetError} `FLEET_ARGUMENT`.
   */
  store<Value = unknown>(name: string, options?: FarStoreOptions): FarStore<Value> {
    checkName('fleet.store()', name)
    return new FarStore(this.engine, name, storeOptions(options).ttlMs)
  }

  /**
   * Rooms of WebSockets that all servers of that name share: `serve({ rooms: fleet.rooms('chat') })`. Nothing
   * is asked here.
   * @throws {FleetError} `FLEET_ARGUMENT`; `FLEET_MESSAGES` over an engine that has no messages.
   */
  rooms(name: string): FarRooms {
    checkName('fleet.rooms()', name)
    const messages = messagesOf(this.engine, 'fleet.rooms()')
    let rooms = this.#rooms.get(name)
    if (rooms === undefined) this.#rooms.set(name, (rooms = new FarRooms(messages, name, this.#id)))
    return rooms
  }

  /**
   * Rate limits that the servers of several machines share, those of `rateLimit({ shared: name })`. Nothing
   * is asked before `join()`.
   * @throws {FleetError} `FLEET_ARGUMENT`; `FLEET_MESSAGES` over an engine that has no messages.
   */
  limits(name: string): FarLimits {
    checkName('fleet.limits()', name)
    const messages = messagesOf(this.engine, 'fleet.limits()')
    let limits = this.#limits.get(name)
    if (limits === undefined) this.#limits.set(name, (limits = new FarLimits(messages, name)))
    return limits
  }

  /**
   * A lock over all machines. Nothing is asked here.
   * @throws {FleetError} `FLEET_ARGUMENT`.
   */
  lock(name: string, options?: LockOptions): FarLock {
    checkName('fleet.lock()', name)
    return new FarLock(this.engine, name, lockOptions(options).leaseMs)
  }

  /**
   * Who hosts what, how busy hosts are, and what waits in the queues of jobs and runs. Nothing of it is kept
   * here.
   * @throws {FleetError} `FLEET_ARGUMENT`; `FLEET_TIMEOUT` when the servers do not confirm; `FLEET_DENIED`.
   */
  overview(options?: OverviewOptions): Promise<FleetOverview> {
    return overviewOf(this.engine, overviewOptions(options).waitMs)
  }

  /**
   * What waits in the queues of jobs and runs, as {@link overview} has it; no host is asked.
   * @throws {FleetError} `FLEET_TIMEOUT` when the servers do not confirm; `FLEET_DENIED`.
   */
  queues(): Promise<JobQueueInfo[]> {
    return queuesOf(this.engine)
  }

  /**
   * Close the hosts of this connection, which finish their calls, and then the connection. Calls that are in
   * flight then fail with `FLEET_CLOSED`.
   */
  async close(): Promise<void> {
    this.#closed ??= this.#close()
    await this.#closed
  }

  async #close(): Promise<void> {
    await Promise.all([...this.hosts].map((host) => host.close()))
    const why = new FleetError('FLEET_CLOSED', { reason: 'close() was called' })
    for (const call of [...this.#calls]) call.cancel(why)
    for (const hosts of this.#zones.values()) hosts.close()
    await Promise.all([...this.#limits.values()].map((limits) => limits.leave()))
    await this.engine.close()
  }

  /** `close()`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}
