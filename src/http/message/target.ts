/**
 * Targets of requests: which path they name, and which URL.
 *
 * The router and `request.url` see the same path. A target that the URL standard would change (dot segments,
 * a backslash, characters to be escaped) is changed first, so that no route is chosen by a path that the app
 * then reads differently. Nearly all targets are plain and are only cut at their '?'.
 */

/** A target taken apart. */
export interface Target {
  /** The path in canonical form, or `*`. */
  readonly path: string
  /** The target in origin-form, as it is appended to a host: path and query. */
  readonly tail: string
  /** The host of an absolute-form, which goes before the header's; '' otherwise. */
  readonly host: string
  /** Names and values of the query in turn, once {@link queryOf} has been asked. */
  query: readonly string[] | undefined
}

const PLAIN_QUERY = /^[\w\-.~!$&()*+,;=:@/?%]*$/
const PLAIN_HOST = /^[a-z0-9.-]*[a-z-](?::[1-9]\d{0,4})?$|^\d+\.\d+\.\d+\.\d+(?::[1-9]\d{0,4})?$/
const UNRESERVED = /^[\w\-.~]$/
const SLASH = 47
const DOT = 46
const QUESTION = 63

/** Whether a path character, by its code, is unchanged by URL parsing. */
const PLAIN = Uint8Array.from({ length: 128 }, (_, code) =>
  Number(/[\w\-.~!$&'()*+,;=:@/]/.test(String.fromCharCode(code))),
)

/** Hosts that were found plain; nearly all requests of a server have one of few. Bounded. */
const plainHosts = new Set<string>()
const PLAIN_HOSTS_MAX = 256

/**
 * Returns the end of a path that needs no change, or -1 for other paths. One pass, since it runs for every
 * request.
 */
function plainEnd(target: string): number {
  let before = 0
  for (let at = 0; at < target.length; at += 1) {
    const code = target.charCodeAt(at)
    if (code === QUESTION) return at
    if (code > 127 || PLAIN[code] === 0 || (code === DOT && before === SLASH)) return -1
    before = code
  }
  return target.length
}

/** Parses a target. Returns `undefined` if it is invalid. */
export function readTarget(target: string): Target | undefined {
  if (target.charCodeAt(0) === SLASH) {
    const end = plainEnd(target)
    if (end < 0) return fromUrl(`http://x${target}`, '')
    if (end === target.length) return { path: target, tail: target, host: '', query: undefined }
    const isPlain = PLAIN_QUERY.test(target.slice(end + 1))
    if (!isPlain) return fromUrl(`http://x${target}`, '')
    return { path: target.slice(0, end), tail: target, host: '', query: undefined }
  }
  if (target === '*') return { path: '*', tail: '/', host: '', query: undefined }
  if (!/^https?:\/\/[^/?#]/i.test(target)) return undefined
  return fromUrl(target, undefined)
}

function fromUrl(text: string, host: string | undefined): Target | undefined {
  try {
    const url = new URL(text)
    if (url.username !== '' || url.password !== '' || text.includes('#')) return undefined
    const tail = url.pathname + url.search
    return { path: canonicalPath(url.pathname), tail, host: host ?? url.host, query: undefined }
  } catch {
    return undefined // not a URL: the same response as for any other invalid target
  }
}

/** Names and values of the query in turn; read once for a target that recurs. */
export function queryOf(target: Target): readonly string[] {
  return (target.query ??= queryPairs(target.tail))
}

/** Names and values of the query of a URL in turn, decoded. */
export function queryPairs(url: string): readonly string[] {
  const at = url.indexOf('?')
  return at < 0 ? [] : [...new URLSearchParams(url.slice(at))].flat()
}

/** Normalizes equivalent percent-encodings: `%41` becomes `A`, `%c3` becomes `%C3` (RFC 3986, 6.2.2). */
export function canonicalPath(path: string): string {
  if (!path.includes('%')) return path
  return path.replace(/%[0-9a-f]{2}/gi, (escape) => {
    const character = String.fromCharCode(Number.parseInt(escape.slice(1), 16))
    return UNRESERVED.test(character) ? character : escape.toUpperCase()
  })
}

/** The URL of a request, as `new URL(...).href` would write it; `tail` is that of a {@link Target}. */
export function urlOf(scheme: string, host: string, tail: string): string {
  // The default port of the scheme is not part of a URL; that of http is never plain.
  if (isPlainHost(host) && !(scheme === 'https' && host.endsWith(':443'))) return `${scheme}://${host}${tail}`
  try {
    return new URL(`${scheme}://${host}${tail}`).href
  } catch {
    // The core accepted a host that URLs cannot contain, such as one with a percent sign.
    return new URL(`${scheme}://invalid${tail}`).href
  }
}

function isPlainHost(host: string): boolean {
  if (plainHosts.has(host)) return true
  // A host of digits and dots alone is an address, and `new URL` may write it differently.
  if (!PLAIN_HOST.test(host) || host.endsWith(':80')) return false
  // Not every match is valid: an address with numbers above 255, an `xn--` label that encodes nothing.
  if (!URL.canParse(`http://${host}`) || new URL(`http://${host}`).host !== host) return false
  if (plainHosts.size < PLAIN_HOSTS_MAX) plainHosts.add(host)
  return true
}
