/**
 * A result that contains streams, in the caller's thread.
 *
 * The task goes on meanwhile: its end is that of the streams. A stream that nobody can read any more is left.
 */
import { assert } from '../../../base/index.ts'
import { messagesMaxOf } from '../end.ts'
import { Kind, type Link, channelLinks, linkOfNumbers } from '../link.ts'
import { arrived } from './arrived.ts'
import { type Failure, Incoming, type Owner } from './ends.ts'
import { restored } from './found.ts'
import { deepen } from '../waits.ts'

/** Streams of results that nobody can read any more. */
const unread = new FinalizationRegistry<Incoming>((incoming) => {
  const leave = (): void => void incoming.leave().catch(nothing)
  // A call of `next` that waits still receives its item.
  if (incoming.isAwaited) incoming.next().then(leave, leave)
  else leave()
})

/** The streams of one result. */
export class OpenedResult {
  readonly #control: Link
  readonly #isOutside: boolean
  readonly #cancel: (why: unknown) => void
  readonly #incoming: Incoming[] = []
  #isOver = false
  #close: (ofSources: Failure | undefined) => void = nothing
  readonly #over: Promise<Failure | undefined>

  /**
   * @param isOutside The task is in another process.
   * @param cancel Cancels the task.
   * @throws {SyncError} `SYNC_UNKNOWN` when the task has ended.
   */
  constructor(
    [to, from]: readonly [to: number, from: number],
    isOutside: boolean,
    cancel: (why: unknown) => void,
  ) {
    this.#control = linkOfNumbers(to, from)
    this.#isOutside = isOutside
    this.#cancel = cancel
    this.#over = new Promise((resolve) => (this.#close = resolve))
  }

  /**
   * The result; `undefined` when the task has ended before it was sent.
   * @throws {TransportError} when this thread cannot read it.
   */
  async opened(): Promise<{ readonly value: unknown } | undefined> {
    const { done, value: message } = await this.#control.received()[Symbol.asyncIterator]().next()
    if (done === true) return undefined
    assert(message[0] === Kind.result, 'the result is the first message')
    const { value, positions, ahead, graceMs, depth } = message[1]
    const owner: Owner = {
      graceMs,
      cancel: this.#cancel,
      isLast: () => this.#incoming.every(({ hasFinished }) => hasFinished),
      over: this.#over,
    }
    const theres: unknown[] = []
    const streams = positions.map((position) => {
      const [here, there] = channelLinks(messagesMaxOf(ahead), this.#isOutside)
      theres.push(there)
      const incoming = new Incoming(here, ahead, owner)
      this.#incoming.push(incoming)
      const stream = arrived(incoming, position)
      unread.register(stream, incoming)
      deepen(stream, depth + 1)
      return stream
    })
    if (this.#isOver) await this.over(undefined)
    else this.#control.send([Kind.opened, theres])
    return { value: restored(value, positions, streams) }
  }

  /** The call was cancelled: nothing that has come is given to the readers any more. */
  drop(why: unknown): void {
    for (const each of this.#incoming) each.drop({ why })
  }

  /** Calls `read` once every item of its streams was taken or dropped. */
  whenRead(read: () => void): void {
    let left = this.#incoming.length
    const emptied = (): void => {
      left -= 1
      if (left === 0) read()
    }
    for (const each of this.#incoming) each.onEmpty(emptied)
  }

  /**
   * The task has ended. What has come is given to the readers, and then `failure`.
   * @param ofSources Whether that is an error of the sources among the call's arguments.
   */
  async over(failure: Failure | undefined, ofSources = false): Promise<void> {
    this.#isOver = true
    this.#control.close()
    await Promise.all(this.#incoming.map((each) => each.over(failure)))
    this.#close(ofSources ? failure : undefined)
  }
}

function nothing(): void {}
