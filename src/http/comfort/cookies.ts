/**
 * Cookies: reading what a request brought, writing `set-cookie` with its attributes checked (RFC 6265bis).
 *
 * Values are percent-encoded on the way out where they have to be and decoded on the way in, as everywhere on
 * the web. Nothing is signed or encrypted here.
 */
import { wrong } from '../limits.ts'

/** How a cookie is kept; checked against each other. */
export interface CookieAttributes {
  /** Life in seconds; 0 deletes it. Without it and `expires` the cookie ends with the browser. */
  readonly maxAgeS?: number
  readonly expires?: Date
  /** Default '/'. */
  readonly path?: string
  readonly domain?: string
  /** Sent over HTTPS alone. Default false. */
  readonly secure?: boolean
  /** Not shown to scripts. Default true. */
  readonly httpOnly?: boolean
  /** Default 'lax'. */
  readonly sameSite?: 'strict' | 'lax' | 'none'
  /** One jar for each site that embeds this one; needs `secure`. */
  readonly partitioned?: boolean
}

const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
/** The octets of RFC 6265's cookie-value, but '%', which begins an escape. */
const NOT_PLAIN = /[^!#$&'()*+\-./0-9:<=>?@A-Z[\]^_`a-z{|}~]/gu
const PATH = /^\/[\x20-\x3a\x3c-\x7e]*$/
const DOMAIN = /^\.?[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/i
/** What browsers keep at least; more is refused rather than silently dropped by them. */
const COOKIE_BYTES_MAX = 4096
const MAX_AGE_S_MAX = 400 * 86_400

/** The cookies of a request, by name; of two with one name the first counts. */
export function cookiesOf(request: Request): ReadonlyMap<string, string> {
  const cookies = new Map<string, string>()
  for (const pair of (request.headers.get('cookie') ?? '').split(';')) {
    const at = pair.indexOf('=')
    if (at < 0) continue
    const name = pair.slice(0, at).trim()
    if (name !== '' && !cookies.has(name)) cookies.set(name, decoded(pair.slice(at + 1).trim()))
  }
  return cookies
}

/**
 * The value of a `set-cookie` header.
 * @param name A token; with the prefix `__Host-` or `__Secure-` its conditions are checked.
 * @throws {HttpError} `HTTP_SETTING` for a name, value or attribute that a browser would refuse or misread.
 */
export function cookie(name: string, value: string, attributes: CookieAttributes = {}): string {
  if (typeof name !== 'string' || !NAME.test(name)) throw wrong('the name of a cookie', 'a token', name)
  if (typeof value !== 'string' || /[\ud800-\udfff]/u.test(value))
    throw wrong(`the value of cookie ${name}`, 'a well-formed string', value)
  const { path = '/', httpOnly = true, sameSite = 'lax', secure = false } = attributes
  checkTogether(name, attributes)
  const text = [
    `${name}=${value.replace(NOT_PLAIN, (char) => encodeURIComponent(char))}`,
    ...lifeOf(name, attributes),
    `Path=${matching(`cookie ${name}: path`, path, PATH)}`,
    ...(attributes.domain === undefined
      ? []
      : [`Domain=${matching(`cookie ${name}: domain`, attributes.domain, DOMAIN)}`]),
    ...(secure ? ['Secure'] : []),
    ...(httpOnly ? ['HttpOnly'] : []),
    `SameSite=${oneOf(`cookie ${name}: sameSite`, sameSite)}`,
    ...(attributes.partitioned === true ? ['Partitioned'] : []),
  ].join('; ')
  if (text.length > COOKIE_BYTES_MAX)
    throw wrong(`cookie ${name}`, `at most ${COOKIE_BYTES_MAX} bytes, encoded`, text)
  return text
}

/** The `set-cookie` that deletes a cookie; `path` and `domain` as it was set with. @throws As `cookie`. */
export function deletedCookie(name: string, attributes: CookieAttributes = {}): string {
  return cookie(name, '', { ...attributes, maxAgeS: 0, expires: new Date(0) })
}

function checkTogether(
  name: string,
  { sameSite, secure, partitioned, path, domain }: CookieAttributes,
): void {
  const where = `cookie ${name}: secure`
  if (secure !== true) {
    if (sameSite === 'none') throw wrong(where, 'true with sameSite none', secure)
    if (partitioned === true) throw wrong(where, 'true with partitioned', secure)
    if (/^__(host|secure)-/i.test(name)) throw wrong(where, 'true for this prefix', secure)
  }
  if (!/^__host-/i.test(name)) return
  if (domain !== undefined) throw wrong(`cookie ${name}: domain`, 'absent for this prefix', domain)
  if (path !== undefined && path !== '/') throw wrong(`cookie ${name}: path`, "'/' for this prefix", path)
}

function lifeOf(name: string, { maxAgeS, expires }: CookieAttributes): string[] {
  const life: string[] = []
  if (maxAgeS !== undefined) {
    if (!Number.isInteger(maxAgeS) || maxAgeS < 0 || maxAgeS > MAX_AGE_S_MAX)
      throw wrong(`cookie ${name}: maxAgeS`, `an integer from 0 to ${MAX_AGE_S_MAX}`, maxAgeS)
    life.push(`Max-Age=${maxAgeS}`)
  }
  if (expires !== undefined) {
    if (!(expires instanceof Date) || Number.isNaN(expires.getTime()))
      throw wrong(`cookie ${name}: expires`, 'a valid Date', expires)
    life.push(`Expires=${expires.toUTCString()}`)
  }
  return life
}

function matching(name: string, value: unknown, form: RegExp): string {
  if (typeof value !== 'string' || !form.test(value)) throw wrong(name, `of the form ${form.source}`, value)
  return value
}

function oneOf(name: string, value: unknown): string {
  if (value === 'strict') return 'Strict'
  if (value === 'lax') return 'Lax'
  if (value === 'none') return 'None'
  throw wrong(name, "'strict', 'lax' or 'none'", value)
}

function decoded(value: string): string {
  const bare = value.length > 1 && value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1) : value
  if (!bare.includes('%')) return bare
  try {
    return decodeURIComponent(bare)
  } catch {
    return bare // written by somebody who does not encode: as it is
  }
}
