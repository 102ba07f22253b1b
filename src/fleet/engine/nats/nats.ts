/**
 * The engine on NATS: messages over its core, queues, values and objects over JetStream.
 *
 * One subscription receives the replies to everything that this connection asks. The packages are optional
 * peers: this module is loaded by `connect('nats://…')` alone, and what JetStream needs with its first use.
 */
import type { Msg, MsgHdrs, NatsConnection, NodeConnectionOptions } from '@nats-io/transport-node'
import { reasonOf } from '../../../base/index.ts'
import { FleetError } from '../../errors.ts'
import {
  CLOCK,
  type End,
  type Engine,
  type KeyValue,
  type Message,
  type Messages,
  type Objects,
  type Queue,
  type QueueState,
} from '../engine.ts'
import { confirmed } from './confirmed.ts'
import type { JetStream } from './jetstream.ts'
import { peer } from '../../peer.ts'
import type { Secrets } from '../../secrets.ts'
import { inboxOf } from './names.ts'
import { identityFor } from './identity.ts'
import { refusal } from './refusal.ts'
import { Requests } from './requests.ts'

/** How a connection is made, checked. */
export interface NatsSettings extends Secrets {
  readonly servers: readonly string[]
  readonly name: string
  readonly connectMs: number
  /** Where replies come, below `_INBOX`; `undefined`: anywhere there. */
  readonly inbox: string | undefined
  /** How many servers keep each value and queue; `undefined`: as it exists, and 1 of what is made. */
  readonly replicas: number | undefined
  readonly user: string | undefined
  readonly password: string | undefined
  readonly token: string | undefined
}

/** The part of a message's limit for its headers and its subject. */
const HEAD_BYTES = 1024
/** How long a connection that closes has to send what it has. */
const DRAIN_MS = 1000
/**
 * A server is asked so often whether it is there, and left for another one when two questions have no reply:
 * one that is cut off is lost within 15 s. With the client's own times it would be within six minutes.
 */
const PING_MS = 5000
const PINGS_MAX = 2

/** @throws {FleetError} `FLEET_PEER_MISSING`, `FLEET_CONNECT`, `FLEET_DENIED`. */
export async function natsEngine(settings: NatsSettings): Promise<Engine> {
  const { connect, credsAuthenticator, nkeyAuthenticator, createInbox, headers } = await peer(
    '@nats-io/transport-node',
    () => import('@nats-io/transport-node'),
  )
  const { servers, name, connectMs, inbox, credentials, nkey, user, password, token, tls } = settings
  const inboxPrefix = inboxOf(inbox)
  try {
    // Node's options, which the client passes on, are not in its types.
    const secured = { ...tls, checkServerIdentity: identityFor(servers) }
    const options: NodeConnectionOptions = {
      servers: [...servers],
      name,
      inboxPrefix,
      timeout: connectMs,
      // For ever: calls have limits of their own.
      maxReconnectAttempts: -1,
      // A stack for each request, in case that it fails, takes as long as all the rest of the request.
      noAsyncTraces: true,
      pingInterval: PING_MS,
      maxPingOut: PINGS_MAX,
      ...(credentials !== undefined && { authenticator: credsAuthenticator(Buffer.from(credentials)) }),
      ...(nkey !== undefined && { authenticator: nkeyAuthenticator(Buffer.from(nkey)) }),
      ...(user !== undefined && { user }),
      ...(password !== undefined && { pass: password }),
      ...(token !== undefined && { token }),
      ...(tls !== undefined && { tls: secured }),
    }
    return new NatsEngine(await connect(options), createInbox(inboxPrefix), settings.replicas, headers)
  } catch (cause) {
    throw refusal(servers.join(', '), tls, cause)
  }
}

class NatsEngine implements Engine, Messages {
  readonly scheme = 'nats'
  readonly messages = this as Messages
  readonly clock = CLOCK
  readonly messageBytesMax: number
  readonly ended: Promise<string>
  readonly #connection: NatsConnection
  readonly #inbox: string
  readonly #replicas: number | undefined
  readonly #requests: Requests
  readonly #newHeaders: () => MsgHdrs
  #stream: Promise<JetStream> | undefined

  constructor(
    connection: NatsConnection,
    inbox: string,
    replicas: number | undefined,
    newHeaders: () => MsgHdrs,
  ) {
    this.#connection = connection
    this.#inbox = inbox
    this.#replicas = replicas
    this.messageBytesMax = (connection.info?.max_payload ?? 1_048_576) - HEAD_BYTES
    this.ended = connection
      .closed()
      .then((error) => (error === undefined ? 'close() was called' : reasonOf(error)))
    this.#requests = new Requests(connection, inbox)
    this.#newHeaders = newHeaders
  }

  send(subject: string, bytes: Uint8Array): void {
    if (this.#connection.isClosed()) throw closedError()
    this.#connection.publish(subject, bytes)
  }

  flush(): Promise<void> {
    if (this.#connection.isClosed()) return Promise.reject(closedError())
    return confirmed('sending', this.#connection.flush())
  }

  watchLink(on: (isLinked: boolean) => void): void {
    const states = this.#connection.status() // ends with the connection
    const watch = async (): Promise<void> => {
      for await (const { type } of states)
        if (type === 'disconnect' || type === 'reconnect') on(type === 'reconnect')
    }
    void watch()
  }

  ask(subject: string, bytes: Uint8Array, on: (reply: Uint8Array | undefined) => void): End {
    if (this.#connection.isClosed()) throw closedError()
    return this.#requests.ask(subject, bytes, on)
  }

  async listen(subject: string, on: (message: Message) => void): Promise<End> {
    if (this.#connection.isClosed()) throw closedError()
    const callback = (error: Error | null, message: Msg): void => {
      // An error ends the subscription: a permission that is missing, as the flush reports, or the end.
      if (error !== null || isStored(message)) return
      on({
        bytes: message.data,
        reply: (bytes) => {
          if (!this.#connection.isClosed()) message.respond(bytes)
        },
      })
    }
    const subscription = this.#connection.subscribe(subject, { callback })
    try {
      await confirmed(`listening to ${subject}`, this.#connection.flush())
    } catch (error) {
      subscription.unsubscribe()
      throw error
    }
    if (subscription.isClosed())
      throw new FleetError('FLEET_DENIED', { operation: `listening to ${subject}`, reason: 'not permitted' })
    // Without a drain, what is on its way would be dropped unread.
    return () => void subscription.drain().catch(() => {})
  }

  async queue(name: string): Promise<Queue> {
    return (await this.#jetstream()).queue(name)
  }

  async keyValue(name: string, options: { readonly ttlMs: number }): Promise<KeyValue> {
    return (await this.#jetstream()).keyValue(name, options.ttlMs)
  }

  async objects(name: string, options: { readonly ttlMs: number }): Promise<Objects> {
    return (await this.#jetstream()).objects(name, options.ttlMs)
  }

  async queues(): Promise<readonly QueueState[]> {
    // A server without JetStream has no queues, and does not reply to a question for them.
    return this.#connection.info?.jetstream === true ? (await this.#jetstream()).queues() : []
  }

  async valuesIn(name: string): Promise<number> {
    return (await this.#jetstream()).valuesIn(name)
  }

  #jetstream(): Promise<JetStream> {
    if (this.#connection.isClosed()) return Promise.reject(closedError())
    this.#stream ??= import('./jetstream.ts').then(({ openJetStream }) =>
      openJetStream({
        connection: this.#connection,
        requests: this.#requests,
        newHeaders: this.#newHeaders,
        replicas: this.#replicas,
        inbox: this.#inbox,
      }),
    )
    // What a server that is not ready refuses may succeed later.
    this.#stream.catch(() => (this.#stream = undefined))
    return this.#stream
  }

  async close(): Promise<void> {
    const connection = this.#connection
    if (!connection.isDraining() && !connection.isClosed()) {
      // What was sent goes out first; a server that is away is not waited for.
      const end = CLOCK.after(DRAIN_MS, () => void connection.close())
      await Promise.race([connection.drain().catch(() => connection.close()), this.ended])
      end()
    }
    await this.ended
  }
}

/**
 * Whether JetStream has sent what a stream has. A consumer sends to any subject, whoever may publish there:
 * no message of Corespun comes in this way.
 */
const isStored = ({ reply, headers }: Msg): boolean =>
  reply?.startsWith('$JS.') === true || headers?.has('Nats-Stream') === true

function closedError(): FleetError {
  return new FleetError('FLEET_CLOSED', { reason: 'it was closed before' })
}
