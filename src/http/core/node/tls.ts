/**
 * The option `tls` for node:https: the same certificates by the same rules as in the native core.
 *
 * The context without a name is the server's own; SNICallback chooses among the others, so that a certificate
 * for `*.example.com` is not one for `a.b.example.com`, as node:tls would have it.
 */
import { constants, createPrivateKey, randomBytes } from 'node:crypto'
import { createServer, type Server, type ServerOptions } from 'node:https'
import { type SecureContext, type TlsOptions as NodeOptions, createSecureContext } from 'node:tls'
import type { Credentials, Tls } from '../../message/core-interface.ts'
import { credentialsFor } from '../../message/credentials.ts'

/** What node:tls reads. */
const PEM = { type: 'pkcs8', format: 'pem' } as const
/** What node:tls demands of `ticketKeys`. */
const TICKET_KEYS_BYTES = 48

/** A server that chooses among the certificates by `SNICallback`. */
export function createSecure(
  tls: Tls,
  options: ServerOptions,
  SNICallback: NonNullable<ServerOptions['SNICallback']>,
): Server {
  return createServer({ ...options, ...nodeOptions(tls), SNICallback })
}

/**
 * Other certificates and authorities for connections that begin from now on. Sessions of before are resumed
 * only if clients have to prove the same: whoever resumes shows no certificate again.
 */
export function renew(server: Server, tls: Tls, previous: Tls): void {
  const options = nodeOptions(tls)
  const isSame = demandsOf(tls) === demandsOf(previous)
  const ticketKeys = isSame ? server.getTicketKeys() : randomBytes(TICKET_KEYS_BYTES)
  server.setSecureContext({ ...options, ticketKeys })
  const { requestCert, rejectUnauthorized } = options
  Object.assign(server, { requestCert, rejectUnauthorized })
}

/** What clients have to prove. */
function demandsOf({ clients, authorities }: Tls): string {
  return [clients, ...authorities].join('\n')
}

function nodeOptions(tls: Tls): NodeOptions {
  const { clients, alpn, certificates } = tls
  return {
    ...contextOf(tls, certificates[0]),
    ALPNProtocols: alpn.filter((protocol) => protocol !== 'h2'),
    requestCert: clients !== 'none',
    // One that is invalid is refused by the core: node:tls would also refuse clients without one.
    rejectUnauthorized: clients === 'require',
  }
}

/**
 * The reason of a failed handshake, the same word as the native core's; undefined: the client has
 * disconnected.
 * @param unauthorized Why the client's certificate is not valid.
 */
export function failureOf({ code = '' }: NodeJS.ErrnoException, unauthorized: unknown): string | undefined {
  if (unauthorized) return 'client-certificate'
  if (code === 'ECONNRESET' || code === 'EPIPE') return undefined
  const known = FAILURES.find(([pattern]) => pattern.test(code))
  return known?.[1] ?? 'handshake'
}

const FAILURES = [
  [/HTTP_REQUEST/, 'plain-http'],
  [/TIMEOUT/, 'handshake-timeout'],
  [/UNSUPPORTED_PROTOCOL|WRONG_SSL_VERSION|VERSION_TOO_LOW/, 'tls-version'],
  [/NO_SHARED_CIPHER|NO_SUITABLE|NO_SHARED_GROUP/, 'no-common-cipher'],
  [/NO_APPLICATION_PROTOCOL/, 'no-common-protocol'],
  [/PEER_DID_NOT_RETURN_A_CERTIFICATE/, 'no-client-certificate'],
  [/CERTIFICATE_VERIFY_FAILED/, 'client-certificate'],
  [/_ALERT_/, 'client-alert'],
  [/WRONG_VERSION_NUMBER|PACKET_LENGTH|LENGTH_MISMATCH|DECODE|BAD_/, 'malformed'],
] as const

/** Chooses the certificate for a name, with its context made once. */
export class Names {
  readonly tls: Tls
  readonly #contexts = new Map<Credentials, SecureContext>()

  constructor(tls: Tls) {
    this.tls = tls
  }

  /** `undefined`: the server's own. */
  async contextFor(name: string): Promise<SecureContext | undefined> {
    const { certificates, sni } = this.tls
    const lower = name.toLowerCase()
    const known = credentialsFor(certificates, lower)
    if (known !== undefined) return known === certificates[0] ? undefined : this.#of(known)
    const chosen = await sni?.(lower)
    return chosen === undefined ? undefined : createSecureContext(contextOf(this.tls, chosen))
  }

  #of(credentials: Credentials): SecureContext {
    const known = this.#contexts.get(credentials) ?? createSecureContext(contextOf(this.tls, credentials))
    this.#contexts.set(credentials, known)
    return known
  }
}

function contextOf({ minVersion, authorities }: Tls, { chain, key }: Credentials): NodeOptions {
  return {
    cert: chain.map(String).join(''),
    key: createPrivateKey({ key: Buffer.from(key), type: 'pkcs8', format: 'der' }).export(PEM),
    minVersion,
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
    ...(authorities.length === 0 ? {} : { ca: authorities.map(String) }),
    sessionIdContext: 'corespun',
  }
}
