/**
 * The other threads of this process, by Node's inspector: a session with the main thread, and through it one
 * with each worker.
 *
 * A message interrupts the JavaScript of its thread, an endless loop or an `Atomics.wait` as well, and does
 * not stop it: no debugger is enabled. A thread in native code answers when that has returned. Sessions last
 * for one request; between requests the threads are as without them.
 */
import type { Session } from 'node:inspector'
import { threadId } from 'node:worker_threads'
import { messageOf } from '../../base/index.ts'
import { ObserveError } from '../errors.ts'

/** A thread that is inspected. */
export interface Inspected {
  /** As an error names it; `main thread`, or the name of the worker. */
  readonly name: string
  /** Node's `threadId`, once the thread has answered. */
  readonly thread: number
  /**
   * Call a method of the inspector.
   * @throws {ObserveError} `OBSERVE_THREAD_SILENT`; `OBSERVE_FAILED` with what the inspector refuses.
   */
  call(method: string, params?: object, timeoutMs?: number): Promise<Record<string, unknown>>
}

interface Reply {
  readonly id?: number
  readonly result?: Record<string, unknown>
  readonly error?: { readonly message: string }
}

const CALL_MS = 1000

export class Threads {
  /** The main thread first. Those that start later are added. */
  readonly all: Inspected[] = []
  /** Called with each thread that starts later. */
  onStarted: (thread: Inspected) => void = () => {}
  readonly #session: Session
  readonly #ended = new Map<string, () => void>()

  private constructor(session: Session) {
    this.#session = session
  }

  /** @throws {ObserveError} `OBSERVE_RUNTIME` where the inspector is missing, or forbidden. */
  static async open(): Promise<Threads> {
    let session: Session
    try {
      const inspector = await import('node:inspector')
      session = new inspector.Session()
      session.connectToMainThread()
    } catch (cause) {
      const facts = { runtime: `Node ${process.version}`, needs: `its inspector: ${messageOf(cause)}` }
      throw new ObserveError('OBSERVE_RUNTIME', facts, { cause })
    }
    const threads = new Threads(session)
    try {
      await threads.#begin()
      return threads
    } catch (error) {
      threads.close()
      throw error
    }
  }

  close(): void {
    this.#session.disconnect()
    for (const ended of this.#ended.values()) ended()
  }

  async #begin(): Promise<void> {
    const main = new Line('the main thread', (message) => {
      const { id, method, params } = message
      this.#session.post(method, params, (error, result) =>
        main.received({ id, ...(error === null ? { result: result as object } : { error }) } as Reply),
      )
    })
    this.all.push(main)
    const on = (event: string, listener: (message: never) => void): void =>
      void this.#session.on(event, listener as () => void)
    const lines = new Map<string, Line>()
    on('NodeWorker.attachedToWorker', ({ params }: { params: AttachedEvent }) => {
      const { sessionId, workerInfo } = params
      const [, id = '', name = ''] = /^\[worker (\d+)\]\s*(.*)$/.exec(workerInfo.title) ?? []
      if (Number(id) === threadId) return
      const line = new Line(name === '' ? `worker ${id}` : name, (message) =>
        this.#session.post('NodeWorker.sendMessageToWorker', { sessionId, message: JSON.stringify(message) }),
      )
      if (id !== '') line.thread = Number(id)
      lines.set(sessionId, line)
      this.#ended.set(sessionId, () => line.end())
      this.all.push(line)
      this.onStarted(line)
    })
    on('NodeWorker.receivedMessageFromWorker', ({ params }: { params: ReceivedEvent }) =>
      lines.get(params.sessionId)?.received(JSON.parse(params.message) as Reply),
    )
    on('NodeWorker.detachedFromWorker', ({ params }: { params: ReceivedEvent }) => {
      lines.get(params.sessionId)?.end()
    })
    await main.call('NodeWorker.enable', { waitForDebuggerOnStart: false })
  }
}

interface AttachedEvent {
  readonly sessionId: string
  readonly workerInfo: { readonly title: string }
}

interface ReceivedEvent {
  readonly sessionId: string
  readonly message: string
}

interface Message {
  readonly id: number
  readonly method: string
  readonly params: object
}

/** The requests to one thread that wait for their replies. */
class Line implements Inspected {
  readonly name: string
  thread = 0
  readonly #send: (message: Message) => void
  readonly #waiting = new Map<number, (reply: Reply) => void>()
  #last = 0
  #hasEnded = false

  constructor(name: string, send: (message: Message) => void) {
    this.name = name
    this.#send = send
  }

  async call(method: string, params: object = {}, timeoutMs = CALL_MS): Promise<Record<string, unknown>> {
    const id = ++this.#last
    let timer: NodeJS.Timeout | undefined
    const { result, error } = await new Promise<Reply>((resolve, reject) => {
      if (this.#hasEnded) return resolve(ENDED)
      this.#waiting.set(id, resolve)
      const silent = { thread: this.name, timeoutMs }
      timer = setTimeout(() => reject(new ObserveError('OBSERVE_THREAD_SILENT', silent)), timeoutMs)
      this.#send({ id, method, params })
    }).finally(() => {
      clearTimeout(timer)
      this.#waiting.delete(id)
    })
    if (error !== undefined) throw new ObserveError('OBSERVE_FAILED', { method, reason: error.message })
    return result ?? {}
  }

  received(reply: Reply): void {
    this.#waiting.get(reply.id ?? 0)?.(reply)
  }

  end(): void {
    this.#hasEnded = true
    for (const resolve of this.#waiting.values()) resolve(ENDED)
  }
}

const ENDED: Reply = { error: { message: 'the thread has ended' } }
