/**
 * The network of a client, by which a limit counts it.
 *
 * A provider assigns a customer whole networks of IPv6 (RFC 6177: a /48 to a /64), so one client has more
 * addresses than any table of counts. Of IPv4, also written as IPv6, the address counts. Text that is not an
 * address, such as '' for the peer of a Unix socket, is returned as it is.
 */
import { isIP } from '../../message/proxies.ts'

/**
 * The key of a client.
 * @param address As sockets and proxies write it.
 * @param bits Of an IPv6 address, the leading bits that count: 1 to 128.
 */
export function networkOf(address: string, bits: number): string {
  if (!address.includes(':') || isIP(address) !== 6) return address
  const groups = groupsOf(address)
  if (isMapped(groups)) {
    const [high, low] = groups.slice(6)
    return `${high >> 8}.${high & 0xff}.${low >> 8}.${low & 0xff}`
  }
  const kept = groups.map((group, at) => {
    const dropped = Math.min(16, Math.max(0, (at + 1) * 16 - bits))
    return ((group >> dropped) << dropped).toString(16)
  })
  return `${kept.slice(0, Math.ceil(bits / 16)).join(':')}/${bits}`
}

/** The eight groups of an IPv6 address; its zone (`%eth0`) is a fact of this machine and does not count. */
function groupsOf(address: string): number[] {
  const [text] = address.split('%', 1)
  const [before, after] = text.split('::').map(partsOf)
  if (after === undefined) return before
  return [...before, ...Array<number>(8 - before.length - after.length).fill(0), ...after]
}

/** The groups between colons; the last may be an IPv4 address, which is two of them. */
function partsOf(text: string): number[] {
  if (text === '') return []
  return text.split(':').flatMap((part) => {
    if (!part.includes('.')) return [Number.parseInt(part, 16)]
    const [a, b, c, d] = part.split('.').map(Number)
    return [(a << 8) | b, (c << 8) | d]
  })
}

/** `::ffff:192.0.2.1`: what a socket that accepts both has for an IPv4 client. */
function isMapped(groups: readonly number[]): boolean {
  return groups[5] === 0xffff && groups.slice(0, 5).every((group) => group === 0)
}
