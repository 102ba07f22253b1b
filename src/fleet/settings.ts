/**
 * The options of a fleet's functions, checked once and complete from then on.
 *
 * What leaves here is frozen and has every default.
 */
import {
  type Kind,
  TIMER_MS_MAX,
  abortSignal,
  anything,
  integer,
  milliseconds,
  optionsOf,
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
   * Most bytes of the arguments of a call, of its value, or of an item. What is larger than a message of the
   * server goes through its object store. Default 64 MiB.
   */
  readonly valueBytesMax?: number
  /** How many servers keep each queue, value and object; 3 survives the loss of one. Default 1. */
  readonly replicas?: number
  /** The options of a TLS connection, as @nats-io/transport-node takes them: `caFile`, `certFile`, ... */
  readonly tls?: object | undefined
  /** The path of a .creds file: a JWT and its nkey. */
  readonly credentials?: string | URL | undefined
  /** With `password`, of an account of the server. */
  readonly user?: string | undefined
  /** With `user`. */
  readonly password?: string | undefined
  /** What the server expects instead of a user. */
  readonly token?: string | undefined
}

const URL_OR_TEXT: Kind<string | URL | undefined> = {
  expected: 'a path or a file: URL',
  accepts: (value) => value instanceof URL || (typeof value === 'string' && value !== ''),
  default: undefined,
}
const OBJECT: Kind<object | undefined> = {
  expected: 'an object',
  accepts: (value) => typeof value === 'object' && value !== null,
  default: undefined,
}

const CONNECT_KINDS = {
  name: text('corespun'),
  connectMs: milliseconds<number>(TIMER_MS_MAX, 5000),
  valueBytesMax: integer(1024, 2 ** 30, 64 * 2 ** 20),
  replicas: integer(1, 5, 1),
  tls: OBJECT,
  credentials: URL_OR_TEXT,
  user: text<string | undefined>(undefined),
  password: text<string | undefined>(undefined),
  token: text<string | undefined>(undefined),
}

/** @throws {FleetError} `FLEET_ARGUMENT`. */
export function connectSettings(options: unknown) {
  return optionsOf(options, CONNECT_KINDS, wrong, 'connect()')
}

/** The limits of a far call. */
export interface FarOptions {
  /** Longest time from the call to its end, in ms; then it fails with `TASK_TIMEOUT`. Default: no limit. */
  readonly timeoutMs?: number | undefined
  /** Aborting it ends the call with the signal's reason, on its host too. Default: none. */
  readonly signal?: AbortSignal | undefined
}

/** The options of `stream`. */
export interface FarStreamOptions extends FarOptions {
  /** Most items that the host sends ahead of the reader, 1 or more. Default 64. */
  readonly aheadMax?: number
}

/** The options of `map`. */
export interface FarMapOptions extends FarOptions {
  /** Most items in flight, 1 or more. Default: as many as the hosts that are known then accept. */
  readonly callsMax?: number
}

const FAR_KINDS = {
  timeoutMs: milliseconds<number | undefined>(TIMER_MS_MAX, undefined),
  signal: abortSignal,
}
const AHEAD_MAX = 65_536

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
  /** The module that hosts must run, as a URL or path here: its version is computed. Default: any. */
  readonly module?: string | URL | undefined
  /** The version that hosts must have, as `versionOf` returns it. Default: any. */
  readonly version?: string | undefined
}

const NAME = /^[\w-]{1,64}$/
const NAME_KIND: Kind<string | undefined> = {
  expected: 'a name of 1 to 64 letters, digits, _ and -',
  accepts: (value) => typeof value === 'string' && NAME.test(value),
  default: undefined,
}

/** @throws {FleetError} `FLEET_ARGUMENT`. */
export function checkName(call: string, name: unknown): asserts name is string {
  if (!NAME_KIND.accepts(name)) throw wrong(`${call}: the name`, NAME_KIND.expected, name)
}

/** @throws {FleetError} `FLEET_ARGUMENT`. */
export const zoneOptions = (options: unknown) =>
  optionsOf(options, { module: URL_OR_TEXT, version: NAME_KIND }, wrong, 'far.zone()')

const HOST_KINDS = {
  name: NAME_KIND,
  module: URL_OR_TEXT,
  zone: anything,
  inFlightMax: integer(1, AHEAD_MAX, 64),
  version: NAME_KIND,
}

/** @throws {FleetError} `FLEET_ARGUMENT`. */
export const hostSettings = (options: unknown) => optionsOf(options, HOST_KINDS, wrong, 'host()')

/** @throws {FleetError} `FLEET_ARGUMENT`. */
export const closeOptions = (call: string, options: unknown) =>
  optionsOf(options, { timeoutMs: FAR_KINDS.timeoutMs }, wrong, call)
