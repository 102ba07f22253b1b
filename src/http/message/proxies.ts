/**
 * Which client a request comes from when proxies forward it: option `trustProxy`.
 *
 * A header that a client can write itself must not decide its address. So only what a trusted proxy has
 * appended counts: the addresses of the header are read from its end, as long as each belongs to a trusted
 * proxy. Of the two families of headers, `X-Forwarded-*` and `Forwarded` (RFC 7239), one is read: most
 * proxies write one and pass the other on as the client sent it.
 */
import type { BlockList } from 'node:net'
import type { Exchange } from './core-interface.ts'
import { wrong } from './limits.ts'

/** Whether an address is that of a trusted proxy; `hop` 0 is the peer's, 1 that of the peer's client. */
export type TrustsAddress = (address: string, hop: number) => boolean

/**
 * The proxies in front of a server: how many there are, their addresses, or a function that recognizes them.
 * Addresses are IP addresses, subnets such as `10.0.0.0/8`, and the names `loopback` (this machine, and the
 * peers of a Unix socket), `linklocal` and `uniquelocal` (private networks).
 */
export type TrustedProxies = number | string | readonly string[] | TrustsAddress

/** Trusted proxies, and the header that they write. */
export interface ProxyOptions {
  /** Which connections come from such a proxy. */
  readonly from: TrustedProxies
  /**
   * `'x-forwarded'`: X-Forwarded-For, -Proto, -Host and -Port. `'forwarded'`: Forwarded, of RFC 7239. Default
   * `'x-forwarded'`. The proxy must set this header, or append to it; the other one is ignored.
   */
  readonly header?: 'x-forwarded' | 'forwarded'
}

/** What is known of a request's client; '' is what no trusted proxy has stated. */
export interface ProxiedClient {
  readonly address: string
  readonly scheme: '' | 'http' | 'https'
  readonly host: string
}

/** One step of the way, as a proxy has stated it. */
interface Hop {
  readonly address: string
  readonly scheme: string
  readonly host: string
  readonly port: string
}

/** Loaded by the first server that trusts a proxy. */
let node: typeof import('node:net') | undefined
const net = (): typeof import('node:net') => (node ??= process.getBuiltinModule('node:net'))

const HOPS_MAX = 100
const QUOTE = 34
const COMMA = 44
const BACKSLASH = 92
/** Addresses whose check is kept: proxies are few, and BlockList is slow. */
const CHECKED_MAX = 1024
const NAMED: Readonly<Record<string, readonly string[]>> = {
  loopback: ['127.0.0.0/8', '::1'],
  linklocal: ['169.254.0.0/16', 'fe80::/10'],
  uniquelocal: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7'],
}
const EXPECTED =
  `the number of proxies (1 to ${HOPS_MAX}), their addresses ('10.0.0.0/8', 'loopback'), ` +
  'a function (address, hop), or { from, header }'
const HOST = /^(?:[\w.-]+|\[[\da-f:.]+\])(?::\d{1,5})?$/i

/** The client of each request, as the trusted proxies in front of this server state it. */
export class Proxies {
  readonly #trusts: TrustsAddress
  readonly #hopsOf: (exchange: Exchange) => readonly Hop[]

  /** @param given Option `trustProxy`. @throws {HttpError} `HTTP_ARGUMENT`. */
  constructor(given: unknown, call: string) {
    const { from, header } = partsOf(given, call)
    this.#trusts = trustsOf(from, `${call}: trustProxy`, given)
    this.#hopsOf = header === 'forwarded' ? forwardedHops : xForwardedHops
  }

  /** The client of a request whose head can be read. @param named The host that the request names itself. */
  clientOf(exchange: Exchange, named: string): ProxiedClient {
    let address = plainAddress(exchange.remoteAddress)
    if (!this.#trusts(address, 0)) return { address: exchange.remoteAddress, scheme: '', host: '' }
    const hops = this.#hopsOf(exchange)
    let at = hops.length
    // What is not an address ends the way: the client is hidden, and the last proxy is all that is known.
    while (at > 0 && hops[at - 1].address !== '') {
      address = hops[--at].address
      if (!this.#trusts(address, hops.length - at)) break
    }
    const { scheme, host: stated, port } = hops[at] ?? hops.at(-1) ?? HIDDEN
    const isScheme = scheme === 'http' || scheme === 'https'
    const host = withPort(HOST.test(stated) ? stated : port === '' ? '' : named, port)
    return { address, scheme: isScheme ? scheme : '', host }
  }
}

function partsOf(given: unknown, call: string): { readonly from: unknown; readonly header: unknown } {
  if (given === null || typeof given !== 'object' || Array.isArray(given))
    return { from: given, header: 'x-forwarded' }
  const { from, header = 'x-forwarded', ...rest } = given as { from?: unknown; header?: unknown }
  const [unknown] = Object.keys(rest)
  if (unknown !== undefined) throw wrong(`${call}: trustProxy`, EXPECTED, given)
  if (header !== 'x-forwarded' && header !== 'forwarded')
    throw wrong(`${call}: trustProxy.header`, "'x-forwarded' or 'forwarded'", header)
  return { from, header }
}

function trustsOf(from: unknown, name: string, given: unknown): TrustsAddress {
  if (typeof from === 'function') return from as TrustsAddress
  if (typeof from === 'number' && Number.isInteger(from) && from >= 1 && from <= HOPS_MAX)
    return (_address, hop) => hop < from
  const texts: unknown = typeof from === 'string' ? from.split(',').map((part) => part.trim()) : from
  if (!Array.isArray(texts) || texts.length === 0) throw wrong(name, EXPECTED, given)
  const list = new (net().BlockList)()
  for (const part of texts as unknown[]) {
    for (const subnet of NAMED[part as string] ?? [part])
      if (!add(list, subnet)) throw wrong(name, 'IP addresses, subnets such as 10.0.0.0/8, or names', part)
  }
  return inList(list, texts.includes('loopback'))
}

/** Adds an address or a subnet; false if it is neither. */
function add(list: BlockList, text: unknown): boolean {
  if (typeof text !== 'string') return false
  const [address, bits, more] = text.split('/')
  const version = isIP(address)
  if (version === 0 || more !== undefined) return false
  const family = version === 4 ? 'ipv4' : 'ipv6'
  if (bits === undefined) return (list.addAddress(address, family), true)
  if (!/^\d{1,3}$/.test(bits) || Number(bits) > (version === 4 ? 32 : 128)) return false
  list.addSubnet(address, Number(bits), family)
  return true
}

function inList(list: BlockList, hasLoopback: boolean): TrustsAddress {
  const checked = new Map<string, boolean>()
  return (address) => {
    const known = checked.get(address)
    if (known !== undefined) return known
    const version = isIP(address)
    const isListed =
      version === 0 ? hasLoopback && address === '' : list.check(address, version === 4 ? 'ipv4' : 'ipv6')
    if (checked.size >= CHECKED_MAX) checked.clear()
    checked.set(address, isListed)
    return isListed
  }
}

function xForwardedHops(exchange: Exchange): Hop[] {
  const listOf = (part: string): string[] => lastElements(exchange.header(`x-forwarded-${part}`) ?? '')
  const [addresses, schemes, hosts, ports] = ['for', 'proto', 'host', 'port'].map(listOf)
  return addresses.map((address, at) => {
    // A proxy that replaces a header leaves fewer values than there are addresses; the last is the nearest's.
    const valueOf = (values: readonly string[]): string =>
      values[Math.max(0, values.length - (addresses.length - at))] ?? ''
    return {
      address: addressIn(address),
      scheme: valueOf(schemes).toLowerCase(),
      host: valueOf(hosts),
      port: valueOf(ports),
    }
  })
}

/**
 * The last {@link HOPS_MAX} elements of a list. A client writes its beginning: no cut and no fault there
 * may change what proxies have appended.
 */
function lastElements(list: string): string[] {
  const found: string[] = []
  let end = list.length
  while (end >= 0 && found.length < HOPS_MAX) {
    const comma = end === 0 ? -1 : list.lastIndexOf(',', end - 1)
    found.push(list.slice(comma + 1, end).trim())
    end = comma
  }
  return found.reverse()
}

function withPort(host: string, port: string): string {
  return host !== '' && /^\d{1,5}$/.test(port) && !/:\d+$/.test(host) ? `${host}:${port}` : host
}

function forwardedHops(exchange: Exchange): Hop[] {
  return lastForwarded(exchange.header('forwarded') ?? '').map(hopOf)
}

/**
 * As {@link lastElements}, where commas in quotes divide nothing. Read from its end, a quote that the client
 * has opened and not closed reaches no element of a proxy. Empty elements do not count (RFC 9110, 5.6.1).
 */
function lastForwarded(list: string): string[] {
  const found: string[] = []
  let end = list.length
  let isQuoted = false
  for (let at = end - 1; at >= -1 && found.length < HOPS_MAX; at -= 1) {
    const isEnd = at === -1 || (list.charCodeAt(at) === COMMA && !isQuoted)
    if (isEnd) {
      const element = list.slice(at + 1, end).trim()
      if (element !== '') found.push(element)
      end = at
    } else if (list.charCodeAt(at) === QUOTE && !(isQuoted && isEscaped(list, at))) isQuoted = !isQuoted
  }
  return found.reverse()
}

/** Behind an odd number of backslashes. */
function isEscaped(text: string, at: number): boolean {
  let before = at
  while (text.charCodeAt(before - 1) === BACKSLASH) before -= 1
  return (at - before) % 2 === 1
}

const PAIR = /[ \t]*(?:([\w!#$%&'*+.^`|~-]+)=(?:([\w!#$%&'*+.^`|~-]+)|"((?:[^"\\]|\\.)*)"))?[ \t]*(;|$)/y
const HIDDEN: Hop = { address: '', scheme: '', host: '', port: '' }

/** The hop of one element; a malformed one hides its client. */
function hopOf(element: string): Hop {
  const hop = { address: '', scheme: '', host: '', port: '' }
  PAIR.lastIndex = 0
  for (;;) {
    const found = PAIR.exec(element)
    if (found === null) return HIDDEN
    const [, name = '', token, quoted = '', end] = found
    const value = token ?? quoted.replaceAll(/\\(.)/g, '$1')
    const key = name.toLowerCase()
    if (key === 'for') hop.address = addressIn(value)
    else if (key === 'proto') hop.scheme = value.toLowerCase()
    else if (key === 'host') hop.host = value
    if (end === '') return hop
  }
}

/** As that of node:net: 4, 6, or 0 for other text. */
export function isIP(text: string): number {
  return net().isIP(text)
}

/** The IP address in a value that may have a port and brackets; '' for other values. */
function addressIn(value: string): string {
  const text = value.trim()
  const inner = /^\[(.*)\](?::\d{1,5})?$/.exec(text)?.[1] ?? /^([\d.]+):\d{1,5}$/.exec(text)?.[1] ?? text
  return isIP(inner) === 0 ? '' : plainAddress(inner)
}

/** An IPv4 client of a socket that accepts both has a mapped address, `::ffff:192.0.2.1`. */
function plainAddress(address: string): string {
  const inner = /^::ffff:([\d.]+)$/i.exec(address)?.[1]
  return inner !== undefined && isIP(inner) === 4 ? inner : address
}
