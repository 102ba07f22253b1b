/**
 * The options of a fleet's functions, checked once and complete from then on.
 *
 * What leaves here is frozen and has every default.
 */
import {
  type Kind,
  type PemSource,
  TIMER_MS_MAX,
  abortSignal,
  anything,
  flag,
  integer,
  milliseconds,
  optionsOf,
  pem,
  pems,
  text,
} from '../base/index.ts'
import { wrong } from './errors.ts'

/** How a connection is made. */
export interface ConnectOptions {
  /** What servers and their logs call this connection. Default: `corespun`. */
  readonly name?: string
  /** Longest time until a server has accepted the connection, in ms. Default 5000. */
  readonly connectMs?: number
  /**
   * Most bytes of the arguments of a call or of a job, of its value, or of an item. What is larger than a
   * message of the server is kept apart from it, of a job until that is forgotten. Default 64 MiB.
   */
  readonly valueBytesMax?: number
  /**
   * The name of the user, where each one may receive replies to its own name alone, as `serverConfig` has it.
   * Default: replies come to `_INBOX`, as those of all others.
   */
  readonly inbox?: string | undefined
  /**
   * How many servers keep each queue, value and object; 3 survives the loss of one. What exists with another
   * number is refused with `FLEET_MISMATCH`. Default: as it exists, and 1 of what is made.
   */
  readonly replicas?: number | undefined
  /** The TLS of the connection. Default: with `tls://`, or a server that demands it, authorities of Node. */
  readonly tls?: FleetTls | undefined
  /** A .creds file, a JWT and its nkey: its path, its file: URL or its text. */
  readonly credentials?: PemSource | undefined
  /** The seed of an nkey of a user, `SU…`, or the path or file: URL of a file that contains it. */
  readonly nkey?: string | Uint8Array | URL | undefined
  /** With `password`, of an account of the server. */
  readonly user?: string | undefined
  /** With `user`. */
  readonly password?: string | undefined
  /** What the server expects instead of a user. */
  readonly token?: string | undefined
  /** The schema of Postgres that has the tables; it is made if it does not exist. Default `corespun`. */
  readonly schema?: string
}

/** Option `tls` of {@link connect}: each PEM, or the path or file: URL of a file, as of `serve`. */
export interface FleetTls {
  /** Authorities of the servers' certificates. Default: those of Node. */
  readonly ca?: PemSource | readonly PemSource[] | undefined
  /** The certificate of this client, for servers that ask for one, and those that lead to its authority. */
  readonly cert?: PemSource | undefined
  /** Its private key. */
  readonly key?: PemSource | undefined
  /** What the key is encrypted with. Default: it is not. */
  readonly passphrase?: string | undefined
  /** For servers with `handshake_first`, which send nothing before TLS. Default false. */
  readonly handshakeFirst?: boolean
}

const URL_OR_TEXT: Kind<string | URL | undefined> = {
  expected: 'a path or a file: URL',
  accepts: (value) => value instanceof URL || (typeof value === 'string' && value !== ''),
  default: undefined,
}
const NAME = /^[\w-]{1,64}$/
const NAME_KIND: Kind<string | undefined> = {
  expected: 'a name of 1 to 64 letters, digits, _ and -',
  accepts: (value) => typeof value === 'string' && NAME.test(value),
  default: undefined,
}

const SCHEMA_KIND: Kind<string> = {
  expected: 'the name of a schema: 1 to 63 bytes, not that of a system',
  accepts: (value) =>
    typeof value === 'string' &&
    /^(?!pg_)[^\0]+$/.test(value) &&
    Buffer.byteLength(value) <= 63 &&
    !/\p{Surrogate}/u.test(value),
  default: 'corespun',
}

const TLS_KINDS = {
  ca: pems,
  cert: pem,
  key: pem,
  passphrase: text<string | undefined>(undefined),
  handshakeFirst: flag(false),
}

/** Most bytes of a value, unless a connection has another bound. */
export const VALUE_BYTES_MAX = 64 * 2 ** 20

const CONNECT_KINDS = {
  name: text('corespun'),
  inbox: NAME_KIND,
  connectMs: milliseconds<number>(TIMER_MS_MAX, 5000),
  valueBytesMax: integer(1024, 2 ** 30, VALUE_BYTES_MAX),
  replicas: integer<number | undefined>(1, 5, undefined),
  tls: anything,
  credentials: { ...pem, expected: 'the path or file: URL of a .creds file, or its text' },
  nkey: { ...pem, expected: 'the seed of a user (SU…), or the path of a file with one' },
  user: text<string | undefined>(undefined),
  password: text<string | undefined>(undefined),
  token: text<string | undefined>(undefined),
  schema: SCHEMA_KIND,
}

/** @throws {FleetError} `FLEET_ARGUMENT`. */
export function connectSettings(options: unknown) {
  const { tls: given, ...own } = optionsOf(options, CONNECT_KINDS, wrong, 'connect()')
  const tls: FleetTls | undefined =
    given === undefined ? undefined : optionsOf(given, TLS_KINDS, wrong, 'connect()', 'tls')
  if (own.credentials !== undefined && own.nkey !== undefined)
    throw wrong('connect(): nkey', 'left out with credentials, which contain one', 'both')
  return { ...own, tls }
}

/** Complete. */
export type ConnectSettings = ReturnType<typeof connectSettings>

/** The limits of a far call. */
export interface FarOptions {
  /** Longest time from the call to its end, in ms; then it fails with `TASK_TIMEOUT`. Default: no limit. */
  readonly timeoutMs?: number | undefined
  /** Aborting it ends the call with the signal's reason, on its host too. Default: none. */
  readonly signal?: AbortSignal | undefined
}

/** The options of `stream`. */
export interface FarStreamOptions extends FarOptions {
  /**
   * Most items that the host sends ahead of the reader, 1 to 65,536. The function runs further ahead, by the
   * windows of the host's zone. Default 64.
   */
  readonly aheadMax?: number
}

/** The options of `map`. */
export interface FarMapOptions extends FarOptions {
  /** Most items in flight, 1 or more. Default: as many as the hosts that are known then accept. */
  readonly callsMax?: number
}

export const FAR_KINDS = {
  timeoutMs: milliseconds<number | undefined>(TIMER_MS_MAX, undefined),
  signal: abortSignal,
}
/** Most items that a host sends ahead of their reader, whatever the reader has asked for. */
export const AHEAD_MAX = 65_536
export const DAY_MS = 86_400_000

/** @throws {FleetError} `FLEET_ARGUMENT`. */
export const farOptions = (call: string, options: unknown) => optionsOf(options, FAR_KINDS, wrong, call)
/** @throws {FleetError} `FLEET_ARGUMENT`. */
export const streamOptions = (options: unknown) =>
  optionsOf(options, { ...FAR_KINDS, aheadMax: integer(1, AHEAD_MAX, 64) }, wrong, 'far.stream()')
/** @throws {FleetError} `FLEET_ARGUMENT`. */
export const mapOptions = (options: unknown) =>
  optionsOf(
    options,
    { ...FAR_KINDS, callsMax: integer<number | undefined>(1, AHEAD_MAX, undefined) },
    wrong,
    'far.map()',
  )

/** Which hosts a zone may be called on. */
export interface FarZoneOptions {
  /**
   * The module that hosts must run, as a URL or path here: its version is computed, unless `version` is set.
   * `arrow.on(zone)` needs it. Default: any.
   */
  readonly module?: string | URL | undefined
  /** The version that hosts must have, as `versionOf` returns it. Default: any. */
  readonly version?: string | undefined
}

/** @throws {FleetError} `FLEET_ARGUMENT`. */
export function checkName(call: string, name: unknown): asserts name is string {
  if (!NAME_KIND.accepts(name)) throw wrong(`${call}: the name`, NAME_KIND.expected, name)
}

/** @throws {FleetError} `FLEET_ARGUMENT`. */
export const zoneOptions = (options: unknown) =>
  optionsOf(options, { module: URL_OR_TEXT, version: NAME_KIND }, wrong, 'fleet.zone()')

const HOST_KINDS = {
  name: NAME_KIND,
  module: URL_OR_TEXT,
  zone: anything,
  inFlightMax: integer(1, AHEAD_MAX, 64),
  jobsMax: integer(0, AHEAD_MAX, 0),
  leaseMs: integer(100, DAY_MS, 10_000),
  version: NAME_KIND,
}

/** @throws {FleetError} `FLEET_ARGUMENT`. */
export const createOptions = (options: unknown) =>
  optionsOf(options, { leaseMs: HOST_KINDS.leaseMs }, wrong, 'createStreams()')

/** @throws {FleetError} `FLEET_ARGUMENT`. */
export const hostSettings = (options: unknown) => optionsOf(options, HOST_KINDS, wrong, 'host()')

/** @throws {FleetError} `FLEET_ARGUMENT`. */
export const closeOptions = (call: string, options: unknown) =>
  optionsOf(options, { timeoutMs: FAR_KINDS.timeoutMs }, wrong, call)

/** How a copy of a store is kept. */
export interface CopyOptions {
  /** Most bytes of it in this process; a store with more is refused. Default: as of the process's stores. */
  readonly bytesMax?: number | undefined
  /** How often the servers are asked how far they are, in ms, from 10. Default 1000. */
  readonly checkMs?: number
}

/** How a store keeps its values. */
export interface FarStoreOptions {
  /**
   * How long after its last write a value ends, in ms, from 1000: the same for all who use the store, else
   * `FLEET_MISMATCH`. It can then be neither watched nor copied. Default: values are kept.
   */
  readonly ttlMs?: number | undefined
}

/** On which condition a value is written or deleted. */
export interface RevisionOptions {
  /** The revision that the value must have; 0: it must not exist. Default: any. */
  readonly revision?: number | undefined
}

/** How a lock is held. */
export interface LockOptions {
  /** How long after the loss of its holder a lock is free, in ms, from 1000. Default 10,000. */
  readonly leaseMs?: number
}

/** How rate limits are shared. */
export interface LimitsOptions {
  /**
   * How often each server reports what it has admitted, in ms, from 10 to 60,000. What others admit in that
   * time may exceed the limit. Default 100.
   */
  readonly intervalMs?: number
}

/** How a fleet is looked at. */
export interface OverviewOptions {
  /** How long hosts have to reply, in ms; one that has not by then is not listed. Default 500. */
  readonly waitMs?: number
}

/** @throws {FleetError} `FLEET_ARGUMENT`. */
export const overviewOptions = (options: unknown) =>
  optionsOf(options, { waitMs: milliseconds(TIMER_MS_MAX, 500) }, wrong, 'fleet.overview()')

/** @throws {FleetError} `FLEET_ARGUMENT`. */
export const storeOptions = (options: unknown) =>
  optionsOf(options, { ttlMs: integer(1000, 400 * DAY_MS, 0) }, wrong, 'fleet.store()')

/** @throws {FleetError} `FLEET_ARGUMENT`. */
export const limitsOptions = (options: unknown) =>
  optionsOf(options, { intervalMs: integer(10, 60_000, 100) }, wrong, 'limits.join()')

const COPY_KINDS = {
  bytesMax: integer<number | undefined>(1, 2 ** 40, undefined),
  checkMs: integer(10, DAY_MS, 1000),
}

/** Complete. */
export type CopySettings = ReturnType<typeof copyOptions>

/** @throws {FleetError} `FLEET_ARGUMENT`. */
export const copyOptions = (options: unknown) => optionsOf(options, COPY_KINDS, wrong, 'store.copy()')
/** @throws {FleetError} `FLEET_ARGUMENT`. */
export const lockOptions = (options: unknown) =>
  optionsOf(options, { leaseMs: integer(1000, DAY_MS, 10_000) }, wrong, 'fleet.lock()')
/** @throws {FleetError} `FLEET_ARGUMENT`. */
export const revisionOptions = (call: string, options: unknown) =>
  optionsOf(
    options,
    { revision: integer<number | undefined>(0, Number.MAX_SAFE_INTEGER, undefined) },
    wrong,
    call,
  )

const KEY_CHARS_MAX = 200
/** What a schedule adds to its key: `@2026-11-26T03:00:00.000Z`. */
const TIME_CHARS = 25

/** @param repeats Whether a time comes behind it. @throws {FleetError} `FLEET_ARGUMENT`. */
export function checkKey(call: string, key: unknown, repeats = false): asserts key is string {
  const charsMax = KEY_CHARS_MAX - (repeats ? TIME_CHARS : 0)
  // Halves of a character are one and the same where keys travel.
  if (typeof key !== 'string' || key === '' || key.length > charsMax || /\p{Surrogate}/u.test(key))
    throw wrong(`${call}: the key`, `a string of 1 to ${charsMax} characters`, key)
}

/** @throws {FleetError} `FLEET_ARGUMENT`. */
export function checkExport(call: string, name: unknown): asserts name is string {
  if (typeof name !== 'string' || name === '')
    throw wrong(`${call}: the name of an export`, 'a string that is not empty', name)
}
