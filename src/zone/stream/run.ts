/**
 * A stream that has begun: one task, and this thread's end of its link.
 *
 * The stream has ended when the task has: then the link is closed, what had arrived is given to the reader,
 * and after it the task's error. So a worker that dies is an error in its position too, and a reader that
 * leaves waits until the function's clean-up has run.
 */
import { onAbort } from '../../base/index.ts'
import type { CallLimits } from '../call/call.ts'
import { stackless } from '../call/stacks.ts'
import { shorterMs } from '../call/send.ts'
import { ZoneError } from '../errors.ts'
import type { Spreader } from '../parallel/engine.ts'
import { End, messagesMaxOf } from './end.ts'
import { Kind, type Link, channelLinks, localLinks } from './link.ts'
import type { CheckedOptions } from '../call/call-options.ts'
import { SOURCE_FAILED } from './stream-task.ts'
import { sendDeeper } from './waits.ts'

const TASK = new URL('./stream-task.js', import.meta.url)

/** Nothing that runs refers to the {@link ZoneStream}, so it can be collected. */
export class Run {
  readonly #graceMs: number
  readonly #link: Link
  readonly #end: End
  readonly #cancel = new AbortController()
  /** That of its task. */
  readonly depth: number
  /** Settles when the task has ended and the source is closed; rejects with the error of a clean-up. */
  readonly #over: Promise<void>
  #sourceError: Failure | undefined
  #closing: Promise<Failure | undefined> | undefined
  #hasLeft = false
  /** The task has received that; what it throws from then on is an error of its clean-up. */
  #isNoticed = false
  #isOver = false
  readonly #zone: string
  /** The time of the whole stream, and when that began. */
  readonly #timeoutMs: number | undefined
  readonly #begunMs = performance.now()
  /** What has come is still being read. */
  #deadline: NodeJS.Timeout | undefined

  /** @param depthMin The least depth of its task. */
  constructor(zone: Spreader, fn: Function, source: object, options: CheckedOptions, depthMin: number) {
    const { aheadMax, aheadBytesMax, timeoutMs, order } = options
    const ahead = { aheadMax, aheadBytesMax }
    const [here, there] = (zone.isHere ? localLinks : channelLinks)(messagesMaxOf(ahead), zone.isIsolated)
    this.#zone = zone.id
    this.#timeoutMs = shorterMs(timeoutMs)
    this.#graceMs = zone.graceMs
    this.#link = here
    this.#end = new End(here, ahead, {
      leaves: nothing,
      left: () => void this.#closeSource(),
      noticed: () => void (this.#isNoticed = true),
    })
    const own = this.#cancel.signal
    const signal = options.signal === undefined ? own : AbortSignal.any([own, options.signal])
    const aborted = (): void => this.#end.receiver.drop({ why: signal.reason as unknown })
    onAbort(signal, aborted)
    const listening = this.#end.listen().catch((error: unknown) => this.#cancel.abort(error))
    const expired = (): void => this.#end.receiver.discard()
    const limits: CallLimits = { timeoutMs, signal, order, expired }
    const send = (): ReturnType<Spreader['execute']> =>
      zone.execute(TASK, 'streamTask', [fn, there, ahead], limits, nothing)
    const [depth, returned] = sendDeeper([source], depthMin, send)
    this.depth = depth
    this.#over = returned.then(
      ({ value }) =>
        this.#ended(listening, undefined, value === SOURCE_FAILED ? this.#sourceError : undefined),
      (why: unknown) => this.#ended(listening, { why }, undefined),
    )
    // The receiver throws it, or `leave`.
    this.#over.catch(nothing)
    // A listener would keep the signal as long as those it follows.
    this.#end.receiver.onEmpty(() => {
      clearTimeout(this.#deadline)
      signal.removeEventListener('abort', aborted)
    })
    void this.#feed(source)
  }

  next(): Promise<IteratorResult<unknown, undefined>> {
    return this.#end.receiver.next()
  }

  /** Nobody reads further; resolves when the task has ended. @throws The error of a clean-up. */
  async leave(): Promise<void> {
    // A reader that has had an error does not receive it twice.
    if (this.#isOver) return this.#end.receiver.drop()
    let timer: NodeJS.Timeout | undefined
    if (!this.#hasLeft) {
      this.#hasLeft = true
      this.#end.receiver.drop()
      this.#link.send([Kind.left])
      const why = new DOMException('The reader of the stream needs no more', 'AbortError')
      timer = setTimeout(() => this.#cancel.abort(why), this.#graceMs)
      void this.#closeSource()
    }
    try {
      await this.#over
    } finally {
      clearTimeout(timer)
    }
  }

  /** The stream was collected. A call of `next` that waits still receives its item. */
  abandon(): void {
    const leave = (): void => void this.leave()
    if (this.#end.receiver.isAwaited) this.next().then(leave, leave)
    else leave()
  }

  async #feed(source: object): Promise<void> {
    const { sender } = this.#end
    try {
      if ((await sender.send(source)) === 'all') this.#link.send([Kind.ended])
    } catch (why) {
      this.#sourceError = { why }
      sender.fail(why)
    }
  }

  /** A source that is producing an item is not waited for. */
  #closeSource(): Promise<Failure | undefined> {
    const { sender } = this.#end
    const { isReading } = sender
    this.#closing ??= sender.stop().then(nothing, (why: unknown) => ({ why }))
    return isReading ? NONE : this.#closing
  }

  async #ended(
    listening: Promise<void>,
    ofTask: Failure | undefined,
    ofSource: Failure | undefined,
  ): Promise<void> {
    this.#link.close()
    await listening
    const closed = await this.#closeSource()
    this.#isOver = true
    this.#end.receiver.end(ofTask ?? ofSource ?? closed)
    if (!this.#hasLeft) return this.#limitRest()
    // What the task has thrown before lies behind the items that its reader did not request, as does an item
    // that the source has failed to produce.
    const failure = this.#isNoticed ? (ofTask ?? closed) : closed
    if (failure !== undefined && failure.why !== this.#cancel.signal.reason) throw failure.why
  }

  /** The task has ended, and with it its deadline: that of the stream is for the last item that is read. */
  #limitRest(): void {
    const { receiver } = this.#end
    const timeoutMs = this.#timeoutMs
    if (timeoutMs === undefined || receiver.isRead) return
    const facts = { zone: this.#zone, timeoutMs, started: true }
    const late = (): void => receiver.drop({ why: stackless(() => new ZoneError('TASK_TIMEOUT', facts)) })
    this.#deadline = setTimeout(late, Math.max(1, timeoutMs - (performance.now() - this.#begunMs)))
    // Nobody may read on.
    this.#deadline.unref()
  }
}

interface Failure {
  readonly why: unknown
}

const NONE = Promise.resolve(undefined)

function nothing(): undefined {
  return undefined
}
