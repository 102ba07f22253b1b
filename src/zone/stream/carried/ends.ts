/**
 * The two ends of a stream that is an argument or a part of a result.
 *
 * Each has a link of its own. What sends is `Outgoing`, what receives `Incoming`, in whichever thread. An end
 * of the source, or its error behind the items before it, is a message; what ends the task ends both as well.
 */
import { hideOwnFrames } from '../../call/stacks.ts'
import { End, type EndEvents } from '../end.ts'
import { Kind, type Link } from '../link.ts'
import type { Ahead } from '../../call/call-options.ts'
import type { StreamWaits } from '../waits.ts'
import type { Items } from './arrived.ts'

export interface Failure {
  readonly why: unknown
}

const LEFT = 'The reader of the stream needs no more'

export class Outgoing {
  readonly #link: Link
  readonly #end: End
  readonly #source: object
  #isOver = false
  #hasLeft = false
  #failure: Failure | undefined
  #isOfCleanUp = false
  /** Settles when the source has ended or is closed, and never rejects. */
  #over: Promise<void> | undefined

  /** @param waits Those of the task whose result it is a part of. */
  constructor(link: Link, ahead: Ahead, source: object, waits?: StreamWaits) {
    this.#link = link
    this.#source = source
    const left = (): void => {
      this.#hasLeft = true
      link.send([Kind.noticed])
      this.stop()
    }
    this.#end = new End(link, ahead, { leaves: () => {}, left }, waits)
  }

  /** What the source has failed with, or its clean-up. */
  get failure(): Failure | undefined {
    return this.#failure
  }

  /** What the clean-up of the source has failed with, which its reader did not receive. */
  get cleanUpFailure(): Failure | undefined {
    return this.#isOfCleanUp ? this.#failure : undefined
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** Whether the source is producing an item, which a caller does not wait for. */
  get isReading(): boolean {
    return this.#end.sender.isReading
  }

  /** Reads the source; resolves when it has ended or is closed. */
  begin(): Promise<void> {
    if (this.#over === undefined) {
      this.#end.listen().catch((why: unknown) => {
        this.#failure ??= { why }
        this.stop()
      })
      this.#over = this.#feed()
    }
    return this.#over
  }

  /** Takes no further item, and closes the source. */
  stop(): void {
    // Its outcome is that of the second call, in #feed.
    this.#end.sender.stop().catch(() => {})
  }

  close(): void {
    this.#link.close()
  }

  async #feed(): Promise<void> {
    const { sender } = this.#end
    try {
      await sender.send(this.#source)
      this.#isOfCleanUp = true
      await sender.stop()
      this.#link.send([Kind.ended])
    } catch (why) {
      // An item that cannot travel leaves the source open.
      await sender.stop().catch(() => {})
      // An item that was read ahead has failed: the reader, who has left, did not request it.
      if (this.#hasLeft && !this.#isOfCleanUp) return void this.#link.send([Kind.ended])
      this.#failure ??= { why }
      hideOwnFrames(why)
      sender.fail(why)
    } finally {
      this.#isOver = true
    }
  }
}

/** The call whose result a stream is a part of: what its reader waits for, and for how long. */
export interface Owner {
  readonly graceMs: number
  cancel(why: unknown): void
  /** Whether all its streams have ended, so that the task ends too. */
  isLast(): boolean
  /** Resolves when the task has ended and the sources among its arguments are closed; their error. */
  readonly over: Promise<Failure | undefined>
}

export class Incoming implements Items {
  readonly #link: Link
  readonly #end: End
  readonly #owner: Owner | undefined
  #finish: (failure: Failure | undefined) => void = () => {}
  /** Resolves when the other side has ended its source, or the task is over. */
  readonly #finished: Promise<Failure | undefined>
  readonly #listening: Promise<void>
  #hasLeft = false
  #isNoticed = false
  #hasFinished = false

  /**
   * @param owner Of a part of a result: the call. A reader waits for the clean-up there.
   * @param waits Of an argument: those of the task.
   */
  constructor(link: Link, ahead: Ahead, owner?: Owner, waits?: StreamWaits) {
    this.#link = link
    this.#owner = owner
    this.#finished = new Promise((resolve) => (this.#finish = resolve))
    const events: EndEvents = {
      leaves: () => {},
      left: () => {},
      noticed: () => void (this.#isNoticed = true),
      failed: (why) => this.#has({ why }),
      ended: () => {
        this.#has(undefined)
        return owner?.isLast() === true
      },
    }
    this.#end = new End(link, ahead, events, waits)
    // An item that cannot be read here is an error in its position, and the end.
    this.#listening = this.#end.listen().catch((why: unknown) => {
      this.#end.receiver.end({ why })
      this.#link.send([Kind.left])
    })
  }

  /** Whether the other side has ended its source. */
  get hasFinished(): boolean {
    return this.#hasFinished
  }

  get isAwaited(): boolean {
    return this.#end.receiver.isAwaited
  }

  /** Whether it is the error that the source has failed with. */
  isSourceError(error: unknown): boolean {
    return this.#end.receiver.isSourceError(error)
  }

  /** Calls `emptied` once it has ended and its last item was taken or dropped. */
  onEmpty(emptied: () => void): void {
    this.#end.receiver.onEmpty(emptied)
  }

  next(): Promise<IteratorResult<unknown, undefined>> {
    return this.#end.receiver.next()
  }

  async leave(): Promise<void> {
    if (!this.#hasLeft) {
      this.#hasLeft = true
      this.#end.receiver.drop()
      if (!this.#hasFinished) this.#link.send([Kind.left])
    }
    const owner = this.#owner
    if (owner === undefined) return
    const timer = setTimeout(() => owner.cancel(new DOMException(LEFT, 'AbortError')), owner.graceMs)
    try {
      const failure = await this.#finished
      // An error before the other side has received it lies behind items that nobody requested.
      if (failure !== undefined && this.#isNoticed) throw failure.why
      const closed = owner.isLast() ? await owner.over : undefined
      if (closed !== undefined) throw closed.why
    } finally {
      clearTimeout(timer)
    }
  }

  /** The task has ended or is cancelled: nothing that has come is given to the reader any more. */
  drop(failure?: Failure): void {
    this.#end.receiver.drop(failure)
  }

  /** The task is over. What has come is read first, then `failure`, unless the source had ended. */
  async over(failure: Failure | undefined): Promise<void> {
    this.#link.close()
    await this.#listening
    this.#end.receiver.end(failure)
    this.#has(undefined)
  }

  #has(failure: Failure | undefined): void {
    this.#hasFinished = true
    this.#finish(failure)
  }
}
