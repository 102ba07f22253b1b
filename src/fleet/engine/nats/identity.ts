/**
 * For whom the certificate of a server must be.
 *
 * The client checks names. A server that is an IP address it checks as `localhost`, since Node gets no host;
 * so its certificate would have to be for that. Here it must be for one of the addresses that were given.
 */
import { isIP } from 'node:net'
import { type PeerCertificate, checkServerIdentity } from 'node:tls'

/** The check of a connection to these servers. */
export function identityFor(
  servers: readonly string[],
): (host: string, certificate: PeerCertificate) => Error | undefined {
  const hosts = servers.map((server) => new URL(server).hostname.replace(/^\[|\]$/g, ''))
  const addresses = hosts.filter((host) => isIP(host) !== 0)
  return (host, certificate) => {
    const isAddress = host === 'localhost' && addresses.length > 0
    const names = isAddress ? (hosts.includes(host) ? [host, ...addresses] : addresses) : [host]
    const errors = names.map((name) => checkServerIdentity(name, certificate))
    return errors.includes(undefined) ? undefined : errors[0]
  }
}
