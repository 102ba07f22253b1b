/**
 * Messages of a stream, by the protocol of JetStream: written on a condition, and read by their subject.
 *
 * These two are what jobs, values and locks consist of, so they go by {@link Requests}; whatever else
 * JetStream has is asked by its client.
 */
import type { Msg, MsgHdrs } from '@nats-io/transport-node'
import { CLOCK } from '../engine.ts'
import { CONFIRM_MS, IN_FLIGHT } from './confirmed.ts'
import type { Requests } from './requests.ts'

/** An error code of the server: there is no such message. */
const NONE = 10037
/** After so long a write is sent again that one of the same subject was in the way of. */
const IN_FLIGHT_MS = 20

/** On which condition a message is written. */
export interface Condition {
  /** The last sequence that its subject has; 0: none. */
  readonly sequence?: number | undefined
  /** Another subject, or several of them, that `sequence` is of. */
  readonly of?: string
  /** How long it is kept. */
  readonly ttl?: string | undefined
  /** It marks a deletion, and replaces all messages of its subject. */
  readonly isMark?: boolean
}

/** A message as it is stored. */
export interface Stored {
  readonly subject: string
  readonly bytes: Uint8Array
  readonly sequence: number
  readonly addedMs: number
  /** It marks a deletion. */
  readonly isMark: boolean
}

export class Streams {
  readonly #requests: Requests
  readonly #newHeaders: () => MsgHdrs
  /** Streams that one server alone has. */
  readonly #alone = new Set<string>()

  constructor(requests: Requests, newHeaders: () => MsgHdrs) {
    this.#requests = requests
    this.#newHeaders = newHeaders
  }

  /**
   * Resolves with the sequence of the message. Rejects as the client does, for `confirmed`. While another
   * write of the subject is in flight it is sent again: each refusal is for certain, so it is written once.
   */
  async write(subject: string, bytes: Uint8Array, condition: Condition): Promise<number> {
    const { sequence, of, ttl, isMark = false } = condition
    const headers = this.#newHeaders()
    if (isMark) {
      headers.set('KV-Operation', 'PURGE')
      headers.set('Nats-Rollup', 'sub')
    }
    if (sequence !== undefined) headers.set('Nats-Expected-Last-Subject-Sequence', String(sequence))
    if (of !== undefined) headers.set('Nats-Expected-Last-Subject-Sequence-Subject', of)
    if (ttl !== undefined) headers.set('Nats-TTL', ttl)
    const untilMs = CLOCK.nowMs() + CONFIRM_MS
    for (;;) {
      const reply = await this.#requests.request(subject, bytes, headers)
      const isLast = CLOCK.nowMs() >= untilMs
      const content = contentOf(reply, isLast ? undefined : IN_FLIGHT) as { seq: number } | undefined
      if (content !== undefined) return content.seq
      await new Promise<void>((resolve) => void CLOCK.after(IN_FLIGHT_MS, resolve))
    }
  }

  /**
   * From now on the last messages of a stream that one server alone has are read without the queue of its
   * questions, which takes a fifth of the server's time. Users with roles may not: such a read sends what is
   * stored to any subject.
   * @param subject Any.
   */
  async readAlone(stream: string, subject: string): Promise<void> {
    try {
      await this.#direct(stream, subject)
      this.#alone.add(stream)
    } catch {
      // Its leader is asked, as before.
    }
  }

  /** The last message of a subject, as the leader of the stream has it. */
  async last(stream: string, subject: string): Promise<Stored | undefined> {
    if (this.#alone.has(stream))
      try {
        const found = await this.#direct(stream, subject)
        if (found !== undefined) return found
      } catch (error) {
        // It was closed to them, or is away.
        if (Object(error).name !== 'NoRespondersError') throw error
        this.#alone.delete(stream)
      }
    return this.#get(stream, { last_by_subj: subject })
  }

  /** Mirrors of a stream answer, too, and lag: what they have, or have not, is left to its leader. */
  async #direct(stream: string, subject: string): Promise<Stored | undefined> {
    const { data, headers } = await this.#requests.request(`$JS.API.DIRECT.GET.${stream}.${subject}`)
    if (headers?.get('Nats-Stream') !== stream) return undefined
    return {
      subject,
      bytes: new Uint8Array(data),
      sequence: Number(headers.get('Nats-Sequence')),
      addedMs: Date.parse(headers.get('Nats-Time-Stamp')),
      isMark: headers.has('KV-Operation') || headers.has('Nats-Marker-Reason'),
    }
  }

  /** The first message of a subject, which may have `>`, from a sequence on. */
  next(stream: string, subject: string, from: number): Promise<Stored | undefined> {
    return this.#get(stream, { next_by_subj: subject, seq: from })
  }

  async #get(stream: string, question: object): Promise<Stored | undefined> {
    const asked = Buffer.from(JSON.stringify(question))
    const reply = await this.#requests.request(`$JS.API.STREAM.MSG.GET.${stream}`, asked)
    const content = contentOf(reply, NONE) as { message: Found } | undefined
    if (content === undefined) return undefined
    const { subject, data = '', seq, time, hdrs } = content.message
    const headers = hdrs === undefined ? '' : Buffer.from(hdrs, 'base64').toString()
    return {
      subject,
      bytes: new Uint8Array(Buffer.from(data, 'base64')),
      sequence: seq,
      addedMs: Date.parse(time),
      isMark: /^(?:KV-Operation|Nats-Marker-Reason):/im.test(headers),
    }
  }
}

interface Found {
  readonly subject: string
  readonly data?: string
  readonly seq: number
  readonly time: string
  readonly hdrs?: string
}

/** What a reply has; `undefined` for the error `absent`. @throws What the server has refused with. */
function contentOf(reply: Msg, absent?: number): unknown {
  const content = reply.json<{ error?: { code: number; err_code: number; description: string } }>()
  const { error } = content
  if (error === undefined) return content
  if (error.err_code === absent) return undefined
  throw Object.assign(new Error(error.description), { code: error.err_code, status: error.code })
}
