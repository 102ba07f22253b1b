/**
 * The cookie of a session: its options, the id in a request, and the header of a response (RFC 6265bis).
 *
 * An id is 256 bits of the system's randomness. One that a client has made up names no session, and none is
 * ever created under it.
 */
import { type Kind, flag, oneOf, optionsOf, randomText } from '../../../base/index.ts'
import { wrong } from '../../message/limits.ts'
import { sha256 } from '../../message/text.ts'

/** The cookie of `sessions()`. */
export interface SessionCookie {
  /** Default `sid`. A name that begins with `__Host-` needs `path: '/'` and no domain. */
  readonly name?: string
  /** Default `/`. */
  readonly path?: string
  /** Whose subdomains receive it, too. Default: the host alone. */
  readonly domain?: string | undefined
  /** Default `lax`. */
  readonly sameSite?: 'strict' | 'lax' | 'none'
  /** Whether clients send it over TLS alone. Default: if the request came over TLS, by its URL. */
  readonly secure?: boolean | undefined
}

function matching(expected: string, pattern: RegExp, otherwise: string): Kind<string>
function matching(expected: string, pattern: RegExp): Kind<string | undefined>
function matching(expected: string, pattern: RegExp, otherwise?: string): Kind<string | undefined> {
  const accepts = (value: unknown): boolean => typeof value === 'string' && pattern.test(value)
  return { expected, accepts, default: otherwise }
}

const KINDS = {
  name: matching('a name of letters, digits, _, - and .', /^[\w.-]{1,64}$/, 'sid'),
  path: matching('a path as /app', /^\/[!-:<-~]*$/, '/'),
  domain: matching('a domain as example.com', /^[a-z\d.-]{1,253}$/i),
  sameSite: oneOf<'strict' | 'lax' | 'none'>(['strict', 'lax', 'none'], 'lax'),
  secure: flag<boolean | undefined>(undefined),
}

/** Complete. */
export type CookieSettings = ReturnType<typeof cookieSettings>

/** @throws {HttpError} `HTTP_ARGUMENT`. */
export function cookieSettings(options: unknown) {
  const settings = optionsOf(options, KINDS, wrong, 'sessions()', 'cookie')
  const { name, path, domain, sameSite, secure } = settings
  if (name.startsWith('__Host-') && (path !== '/' || domain !== undefined))
    throw wrong('sessions(): cookie.name', "without __Host- where path is not '/' or domain is set", name)
  if (sameSite === 'none' && secure === false)
    throw wrong('sessions(): cookie.secure', "true or left out with sameSite: 'none'", secure)
  return settings
}

const ID = /^[\w-]{43}$/

export const newId = (): string => randomText(32)

/** What a store has instead of the id, so that whoever reads the store has no session. */
export const keyOf = (id: string): string => sha256(id)

/** The id that a request has; `undefined` without one. */
export function idIn(header: string | null, name: string): string | undefined {
  for (const pair of header?.split(';') ?? []) {
    const [key, value] = pair.split('=', 2)
    if (key.trim() === name && value !== undefined && ID.test(value.trim())) return value.trim()
  }
  return undefined
}

/** The header that sets an id, or removes it. */
export function cookieText(
  id: string | undefined,
  { name, path, domain, sameSite, secure }: CookieSettings,
  { ttlMs, isEncrypted }: { readonly ttlMs: number; readonly isEncrypted: boolean },
): string {
  const parts = [`${name}=${id ?? ''}`, `Path=${path}`]
  if (domain !== undefined) parts.push(`Domain=${domain}`)
  parts.push(`Max-Age=${id === undefined ? 0 : Math.ceil(ttlMs / 1000)}`, 'HttpOnly')
  parts.push(`SameSite=${sameSite[0].toUpperCase()}${sameSite.slice(1)}`)
  if (secure ?? isEncrypted) parts.push('Secure')
  return parts.join('; ')
}
