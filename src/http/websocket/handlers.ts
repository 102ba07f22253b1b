/**
 * The handlers of WebSockets with their options, parsed once.
 *
 * Everything that a client can occupy has a limit here, and every limit has a default.
 */
import { callback, type Kind, integer, isPlainObject, optionsOf, TIMER_MS_MAX } from '../../base/index.ts'
import type { HeadersInit } from '../message/standard.ts'
import { wrong } from '../message/limits.ts'
import type { AllowedOrigins, UpgradeOptions, WebSocketHandlers } from './socket.ts'
import type { SocketTerms } from '../message/wire.ts'

const MEBI = 1024 * 1024
const COMPRESSED_BYTES_MIN = 1024
/** A token of RFC 9110. */
export const TOKEN = /^[!#$%&'*+\-.^_`|~\w]+$/

const milliseconds = (otherwise: number): Kind<number> => integer(1, TIMER_MS_MAX, otherwise)
const KINDS = {
  upgrade: callback,
  open: callback,
  message: callback,
  drain: callback,
  close: callback,
  protocols: {
    expected: 'an array of subprotocols',
    accepts: (list) =>
      Array.isArray(list) && list.every((name) => typeof name === 'string' && TOKEN.test(name)),
    default: [],
  } as Kind<readonly string[]>,
  origins: {
    expected: "'same', 'any', an array of origins such as 'https://example.com', or a function",
    accepts: (origins) =>
      origins === 'same' ||
      origins === 'any' ||
      typeof origins === 'function' ||
      (Array.isArray(origins) && origins.every(isOrigin)),
    default: 'same',
  } as Kind<AllowedOrigins>,
  messageBytesMax: integer(1, 1024 * MEBI, MEBI),
  queuedBytesMax: integer(1024, 1024 * MEBI, 16 * MEBI),
  pingMs: milliseconds(30_000),
  pongMs: milliseconds(10_000),
  closeMs: milliseconds(5000),
  compression: {
    expected: 'true, false, or the number of bytes from which messages are compressed',
    accepts: (value) => typeof value === 'boolean' || (Number.isInteger(value) && (value as number) >= 0),
    default: false,
  } as Kind<boolean | number>,
}

/** Handlers that have been checked. */
export interface Parsed {
  readonly handlers: WebSocketHandlers
  readonly protocols: readonly string[]
  readonly origins: AllowedOrigins
  readonly terms: SocketTerms
}

const parsed = new WeakMap<object, Parsed>()

/**
 * The options of handlers; parsed once, since `upgrade()` is called with the same ones again and again.
 * @throws {HttpError} `HTTP_ARGUMENT`.
 */
export function parseHandlers(given: unknown, call: string): Parsed {
  const known = typeof given === 'object' && given !== null ? parsed.get(given) : undefined
  if (known !== undefined) return known
  if (!isPlainObject(given)) throw wrong(call, 'an object of handlers, such as { message }', given)
  const { protocols, origins, compression, ...terms } = optionsOf(given, KINDS, wrong, call)
  const { messageBytesMax, queuedBytesMax, pingMs, pongMs, closeMs } = terms
  const compressedBytesMin =
    compression === false ? undefined : compression === true ? COMPRESSED_BYTES_MIN : compression
  const found: Parsed = {
    handlers: given,
    protocols: [...protocols],
    origins: Array.isArray(origins) ? [...(origins as string[])] : origins,
    terms: { messageBytesMax, queuedBytesMax, pingMs, pongMs, closeMs, compressedBytesMin },
  }
  parsed.set(given, found)
  return found
}

const UPGRADE = {
  data: { expected: 'anything', accepts: () => true, default: undefined } as Kind<unknown>,
  headers: {
    expected: 'headers, as for new Headers()',
    accepts: (headers) => typeof headers === 'object' && headers !== null,
    default: undefined,
  } as Kind<HeadersInit | undefined>,
  protocol: {
    expected: 'the name of a subprotocol',
    accepts: (name) => typeof name === 'string' && TOKEN.test(name),
    default: undefined,
  } as Kind<string | undefined>,
}

/** @throws {HttpError} `HTTP_ARGUMENT`. */
export function parseUpgrade(given: unknown, call: string): UpgradeOptions {
  return optionsOf(given, UPGRADE, wrong, call) as UpgradeOptions
}

/**
 * Whether a value of `routes` has handlers of WebSockets: a function, or nothing but their options. With
 * another meaning it would be JSON.
 */
export function isWebSocketRoute(value: unknown): value is { readonly websocket: object } {
  if (!isPlainObject(value) || !isPlainObject(value['websocket'])) return false
  const { websocket } = value
  const names = Object.keys(websocket)
  if (names.some((name) => typeof websocket[name] === 'function')) return true
  return names.length > 0 && names.every((name) => Object.hasOwn(KINDS, name))
}

function isOrigin(value: unknown): boolean {
  return (
    typeof value === 'string' &&
    (value === 'null' || (URL.canParse(value) && new URL(value).origin === value))
  )
}
