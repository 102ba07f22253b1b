/**
 * Questions of one connection, and their replies: one subscription receives all of them.
 *
 * The client's own `request` is not used: it makes an error with a stack for each reply, also for those that
 * succeed, which takes as long as the rest of the request, and a timer for each question.
 */
import type { Msg, MsgHdrs, NatsConnection } from '@nats-io/transport-node'
import { CLOCK, type End } from '../engine.ts'
import { CONFIRM_MS } from './confirmed.ts'

const NOBODY = 503
const NOTHING = new Uint8Array()

/** What waits for a reply. */
interface Question {
  readonly subject: string
  /** When a request times out; what asks for any number of replies has no end. */
  readonly dueMs: number
  on(reply: Msg): void
  failed(why: Error): void
}

export class Requests {
  readonly #connection: NatsConnection
  readonly #inbox: string
  readonly #open = new Map<string, Question>()
  #count = 0
  #isTimed = false

  /** @param inbox What subjects of replies begin with. */
  constructor(connection: NatsConnection, inbox: string) {
    this.#connection = connection
    this.#inbox = inbox
    connection.subscribe(`${inbox}.*`, {
      callback: (error, reply) => {
        if (error === null) this.#open.get(reply.subject.slice(inbox.length + 1))?.on(reply)
      },
    })
    void connection.closed().then(() => this.#fail(named('ClosedConnectionError', 'it was closed')))
    void this.#watch()
  }

  /** A question that is not permitted has no reply. */
  async #watch(): Promise<void> {
    for await (const status of this.#connection.status()) {
      if (status.type !== 'error') continue
      const { operation, subject } = status.error as { operation?: unknown; subject?: unknown }
      if (operation === 'publish') this.#fail(status.error, (each) => each.subject === subject)
    }
  }

  /** Ask; `on` has all replies, and `undefined` when nobody listens, until it is ended. */
  ask(subject: string, bytes: Uint8Array, on: (reply: Uint8Array | undefined) => void): End {
    const received = (reply: Msg): void => on(isNobody(reply) ? undefined : reply.data)
    return this.#ask({ subject, dueMs: Infinity, on: received, failed: () => {} }, bytes, undefined)
  }

  /** The one reply to a question. Rejects with an error that `confirmed` reads by its name. */
  request(subject: string, bytes: Uint8Array = NOTHING, headers?: MsgHdrs): Promise<Msg> {
    return new Promise((resolve, reject) => {
      const on = (reply: Msg): void => {
        end()
        if (isNobody(reply)) reject(named('NoRespondersError', `nobody listens to ${subject}`))
        else resolve(reply)
      }
      const question = { subject, dueMs: CLOCK.nowMs() + CONFIRM_MS, on, failed: reject }
      const end = this.#ask(question, bytes, headers)
      if (!this.#isTimed) this.#time(CONFIRM_MS)
    })
  }

  #ask(question: Question, bytes: Uint8Array, headers: MsgHdrs | undefined): End {
    if (this.#connection.isClosed()) throw named('ClosedConnectionError', 'it was closed before')
    const id = (this.#count = (this.#count + 1) % Number.MAX_SAFE_INTEGER).toString(36)
    const reply = `${this.#inbox}.${id}`
    this.#open.set(id, question)
    try {
      const options = headers === undefined ? { reply } : { reply, headers }
      this.#connection.publish(question.subject, bytes, options)
    } catch (error) {
      this.#open.delete(id)
      throw error
    }
    return () => void this.#open.delete(id)
  }

  /** One timer for all requests. */
  #time(ms: number): void {
    this.#isTimed = true
    CLOCK.after(ms, () => {
      this.#isTimed = false
      const nowMs = CLOCK.nowMs()
      const late = named('TimeoutError', `no reply within ${CONFIRM_MS} ms`)
      this.#fail(late, ({ dueMs }) => dueMs <= nowMs)
      let nextMs = Infinity
      for (const { dueMs } of this.#open.values()) nextMs = Math.min(nextMs, dueMs)
      if (nextMs < Infinity) this.#time(nextMs - nowMs)
    })
  }

  #fail(why: Error, isMeant: (question: Question) => boolean = () => true): void {
    for (const [id, question] of this.#open)
      if (isMeant(question) && question.dueMs < Infinity) {
        this.#open.delete(id)
        question.failed(why)
      }
  }
}

const isNobody = ({ data, headers }: Msg): boolean => data.length === 0 && headers?.code === NOBODY

const named = (name: string, message: string): Error => Object.assign(new Error(message), { name })
