/**
 * Which client a request comes from when proxies forward it: option `trustProxy`.
 *
 * A header that a client can write itself must not decide its address. So only what a trusted proxy has
 * appended counts: the addresses of the header are read from its end, as long as each belongs to a trusted
 * proxy. Of the two families of headers, `X-Forwarded-*` and `Forwarded` (RFC 7239), one is read: most
 * proxies write one and pass the other on as the client sent it.
 */
import { BlockList, isIP } from 'node:net'
import type { Exchange } from '../core/core.ts'
import { wrong } from '../limits.ts'

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
  /** The proxies. */
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
}

const HOPS_MAX = 100
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

  /** The client of a request whose head can be read. */
  clientOf(exchange: Exchange): ProxiedClient {
    let address = plainAddress(exchange.remoteAddress)
    if (!this.#trusts(address, 0)) return { address: exchange.remoteAddress, scheme: '', host: '' }
    const hops = this.#hopsOf(exchange)
    let at = hops.length
    // What is not an address ends the way: the client is hidden, and the last proxy is all that is known.
    while (at > 0 && hops[at - 1].address !== '') {
      address = hops[--at].address
      if (!this.#trusts(address, hops.length - at)) break
    }
    const { scheme, host } = hops[at] ?? hops.at(-1) ?? { scheme: '', host: '' }
    const isScheme = scheme === 'http' || scheme === 'https'
    return { address, scheme: isScheme ? scheme : '', host: HOST.test(host) ? host : '' }
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
  const list = new BlockList()
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
  const listOf = (name: string): string[] => (exchange.header(name) ?? '').split(',', HOPS_MAX).map(trimmed)
  const addresses = (exchange.header('x-forwarded-for') ?? '').split(',').slice(-HOPS_MAX).map(addressIn)
  const [schemes, hosts, ports] = ['proto', 'host', 'port'].map((part) => listOf(`x-forwarded-${part}`))
  return addresses.map((address, at) => {
    // A proxy that replaces a header leaves fewer values than there are addresses; the last is the nearest's.
    const valueOf = (values: readonly string[]): string =>
      values[Math.max(0, values.length - (addresses.length - at))]
    const scheme = valueOf(schemes).toLowerCase()
    return { address, scheme, host: withPort(valueOf(hosts), valueOf(ports)) }
  })
}

function withPort(host: string, port: string): string {
  return host !== '' && /^\d{1,5}$/.test(port) && !/:\d+$/.test(host) ? `${host}:${port}` : host
}

/** Elements of `Forwarded`; none if it is malformed. */
function forwardedHops(exchange: Exchange): Hop[] {
  const text = exchange.header('forwarded') ?? ''
  const hops: Hop[] = []
  const pair = /[ \t]*([\w!#$%&'*+.^`|~-]+)=(?:([\w!#$%&'*+.^`|~-]+)|"((?:[^"\\]|\\.)*)")[ \t]*(;|,|$)/y
  let hop = { address: '', scheme: '', host: '' }
  while (pair.lastIndex < text.length) {
    const found = pair.exec(text)
    if (found === null) return []
    const [, name, token, quoted = '', end] = found
    const value = token ?? quoted.replaceAll(/\\(.)/g, '$1')
    const key = name.toLowerCase()
    if (key === 'for') hop.address = addressIn(value)
    else if (key === 'proto') hop.scheme = value.toLowerCase()
    else if (key === 'host') hop.host = value
    if (end !== ';') hop = (hops.push(hop), { address: '', scheme: '', host: '' })
  }
  return hops.slice(-HOPS_MAX)
}

function trimmed(text: string): string {
  return text.trim()
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
