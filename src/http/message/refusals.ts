/**
 * What a server refuses by itself, before any handler: published for operators, who would see a counter
 * alone.
 *
 * Both cores report to one `Refusals`. It publishes a bounded number in each turn of the event loop, so
 * that a
 * flood of refusals is counted and not published one by one. Nothing is made where nobody listens.
 */
import { channel } from 'node:diagnostics_channel'

/**
 * A refusal, a message on the diagnostics channel `corespun:http:refused` and the argument of
 * `onRefused`.
 */
export interface HttpRefusal {
  /** What was refused; `goaway` is a connection of HTTP/2 that this server ends. */
  readonly what: 'connection' | 'handshake' | 'request' | 'goaway'
  /**
   * A word for programs, such as `client-certificate` or `target-too-long`; docs/guide/edge.md
   * lists them.
   */
  readonly reason: string
  /** The status of the response; 0: the client got none. */
  readonly status: number
  /** `HTTP/1.1`, `HTTP/2`, `TLS` or `PROXY`; empty for a connection that was closed when it was accepted. */
  readonly protocol: string
  /** The client's IP address; empty for a Unix socket, or when the client has disconnected. */
  readonly remoteAddress: string
  /** The port that the server listens on; 0 for a Unix socket. */
  readonly localPort: number
  /** More about the reason, for people; may be empty. */
  readonly detail: string
  /** Refusals before this one that were not published, because there were too many in one turn. */
  readonly leftOut: number
}

/** A refusal as a core reports it. */
export type Refused = Omit<HttpRefusal, 'localPort' | 'leftOut'>

/** Most refusals that are published in a turn of the event loop. */
export const REFUSALS_MAX = 64

const refused = channel('corespun:http:refused')

const REASONS: Readonly<Record<number, string>> = {
  400: 'malformed',
  408: 'head-timeout',
  413: 'body-too-large',
  414: 'target-too-long',
  417: 'expectation',
  421: 'other-scheme',
  431: 'head-too-large',
  501: 'not-implemented',
  505: 'version',
}

/** The reason of a request that is refused with this status. */
export function reasonOf(status: number): string {
  return REASONS[status] ?? (status === 0 ? 'reset' : `status-${status}`)
}

export class Refusals {
  /** Set when the server listens. */
  localPort = 0
  readonly #listener: ((refusal: HttpRefusal) => void) | undefined
  readonly #onFault: (error: unknown) => void
  #leftOut = 0
  #inTurn = 0

  constructor(listener: ((refusal: HttpRefusal) => void) | undefined, onFault: (error: unknown) => void) {
    this.#listener = listener
    this.#onFault = onFault
  }

  /** Whether anybody listens. */
  get isHeard(): boolean {
    return refused.hasSubscribers || this.#listener !== undefined
  }

  /** Some were not reported. */
  leaveOut(count: number): void {
    this.#leftOut += count
  }

  report(one: Refused): void {
    if (!this.isHeard) return
    if (this.#inTurn === REFUSALS_MAX) return this.leaveOut(1)
    if (this.#inTurn === 0) setImmediate(() => (this.#inTurn = 0))
    this.#inTurn += 1
    const refusal: HttpRefusal = { ...one, localPort: this.localPort, leftOut: this.#leftOut }
    this.#leftOut = 0
    refused.publish(refusal)
    try {
      this.#listener?.(refusal)
    } catch (error) {
      this.#onFault(error)
    }
  }
}
