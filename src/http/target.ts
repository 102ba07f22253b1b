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
}

const PLAIN_PATH = /^\/[\w\-.~!$&'()*+,;=:@/]*$/
const PLAIN_TAIL = /^\/[\w\-.~!$&()*+,;=:@/?%]*$/
const PLAIN_HOST = /^[a-z0-9.-]*[a-z-](?::[1-9]\d{0,4})?$|^\d+\.\d+\.\d+\.\d+(?::[1-9]\d{0,4})?$/
const DOTS = /\/\.|%2e/i
const UNRESERVED = /^[\w\-.~]$/

/** Whether the path (without its query) is used as it stands. */
export function isPlain(path: string): boolean {
  return PLAIN_PATH.test(path) && !path.includes('/.')
}

/** Take a target apart; undefined when it is none that a server answers. */
export function readTarget(target: string): Target | undefined {
  if (target.charCodeAt(0) === 47) {
    const cut = target.indexOf('?')
    const path = cut < 0 ? target : target.slice(0, cut)
    if (isPlain(path)) return { path, tail: target, host: '' }
    return fromUrl(`http://x${target}`, '')
  }
  if (target === '*') return { path: '*', tail: '/', host: '' }
  if (!/^https?:\/\/[^/?#]/i.test(target)) return undefined
  return fromUrl(target, undefined)
}

function fromUrl(text: string, host: string | undefined): Target | undefined {
  try {
    const url = new URL(text)
    if (url.username !== '' || url.password !== '' || text.includes('#')) return undefined
    return { path: canonicalPath(url.pathname), tail: url.pathname + url.search, host: host ?? url.host }
  } catch {
    return undefined // no URL at all: the same answer as for any other bad target
  }
}

/** Percent-encodings that say the same are made the same: `%41` is `A`, `%c3` is `%C3` (RFC 3986, 6.2.2). */
export function canonicalPath(path: string): string {
  if (!path.includes('%')) return path
  return path.replace(/%[0-9a-f]{2}/gi, (escape) => {
    const character = String.fromCharCode(Number.parseInt(escape.slice(1), 16))
    return UNRESERVED.test(character) ? character : escape.toUpperCase()
  })
}

/** The URL of a request, as `new URL(...).href` would write it. */
export function urlOf(scheme: string, host: string, tail: string): string {
  if (PLAIN_HOST.test(host) && !host.endsWith(':80') && PLAIN_TAIL.test(tail) && !DOTS.test(tail))
    return `${scheme}://${host}${tail}`
  try {
    return new URL(`${scheme}://${host}${tail}`).href
  } catch {
    // A host that passed the core and is no URL's host, such as one with a percent sign: named, not used.
    return new URL(`${scheme}://invalid${tail}`).href
  }
}
