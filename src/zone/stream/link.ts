/**
 * The two ways between the ends of a stream: messages in order, each received once.
 *
 * Between threads they are two channels of the core; between processes two channels in each, which the core
 * connects (crates/bridge/src/link); in one thread two queues, whose messages are not copied.
 * Sending never waits: the ends bound what is in transit (sender.ts), and the channels have capacity for
 * that.
 */
import { assert } from '../../base/index.ts'
import { native } from '../../native/index.ts'
import { Channel } from '../../sync/index.ts'
import type { Position } from './carried/found.ts'
import type { Ahead } from '../call/call-options.ts'

/** What the ends send each other. */
export const Kind = {
  /** Items, the size they count as, and what the other way has freed. */
  batch: 0,
  /** What the other way has freed: items and bytes. */
  freed: 1,
  ended: 2,
  failed: 3,
  /** The reader takes no further item. */
  left: 4,
  /** The task has received that its reader has left. */
  noticed: 5,
  /** A task's result contains streams: what their reader needs to open them. */
  result: 6,
  /** The caller has opened them: the task's end of each stream's link. */
  opened: 7,
} as const

export type Message =
  | readonly [kind: typeof Kind.batch, items: readonly unknown[], size: number, freed: number, bytes: number]
  | readonly [kind: typeof Kind.freed, freed: number, bytes: number]
  | readonly [kind: typeof Kind.ended | typeof Kind.left | typeof Kind.noticed]
  | readonly [kind: typeof Kind.failed, error: unknown]
  | readonly [kind: typeof Kind.result, result: StreamedResult]
  | readonly [kind: typeof Kind.opened, links: readonly unknown[]]

/** A result that contains streams, as it travels. */
export interface StreamedResult {
  /** The result without its streams. */
  readonly value: unknown
  readonly positions: readonly Position[]
  readonly ahead: Ahead
  /** How long the clean-up of a stream whose reader has left may take, in ms. */
  readonly graceMs: number
  /** That of the task: who reads its streams is deeper. */
  readonly depth: number
}

/** One end's ways to and from the other. */
export interface Link {
  /**
   * Sends a message. Returns the bytes it takes, moved memory included; 0 where nothing is written, or the
   * link is closed.
   * @throws {TransportError} when it cannot travel; nothing was sent.
   */
  send(message: Message): number
  /** The messages of the other end, until the link is closed. */
  received(): AsyncIterable<Message>
  /** Sends nothing more; both ends still receive what was sent. */
  close(): void
}

/** The two ends of a link; the second one as it travels to its task. */
type Links = (messagesMax: number, isOutside: boolean) => readonly [here: Link, there: unknown]

class ChannelLink implements Link {
  readonly #to: Channel<Message>
  readonly #from: Channel<Message>
  /** The other end is in another process. */
  readonly #isOutside: boolean

  constructor(to: Channel<Message>, from: Channel<Message>, isOutside = false) {
    this.#to = to
    this.#from = from
    this.#isOutside = isOutside
  }

  send(message: Message): number {
    try {
      const bytes = this.#isOutside ? this.#to.offerOutside(message) : this.#to.offerSized(message)
      assert(bytes >= 0, 'a link has capacity for all that may be in transit')
      return bytes
    } catch (error) {
      // The other end has closed the link: it needs nothing more. Its class may be that of another copy.
      if ((error as { readonly code?: unknown } | null)?.code === 'SYNC_CLOSED') return 0
      throw error
    }
  }

  received(): AsyncIterable<Message> {
    return this.#from
  }

  close(): void {
    this.#to[Symbol.dispose]()
    this.#from[Symbol.dispose]()
  }
}

/** A link to another thread, or to a process, which opens its end by the numbers of the channels here. */
export const channelLinks: Links = (messagesMax, isOutside) => {
  if (!isOutside) {
    const [down, up] = channels(messagesMax)
    return [new ChannelLink(down, up), [up, down]]
  }
  const [here, to, from] = numberedLink(messagesMax, true)
  return [here, [to, from]]
}

/** A link whose other end is opened by the numbers of the channels to and from it. */
export function numberedLink(
  messagesMax: number,
  isOutside: boolean,
): readonly [here: Link, to: number, from: number] {
  const [down, up] = channels(messagesMax)
  return [new ChannelLink(down, up, isOutside), up.shared(), down.shared()]
}

/** The other end of a {@link numberedLink}. @throws {SyncError} `SYNC_UNKNOWN` when that is closed. */
export function linkOfNumbers(to: number, from: number): Link {
  return new ChannelLink(Channel.ofNumber(to), Channel.ofNumber(from))
}

/**
 * The end that the task has received.
 * @param messagesMax As of the other end.
 */
export function linkOf(there: unknown, messagesMax: number): Link {
  if (there instanceof LocalLink) return there
  const [to, from] = there as [Channel<Message>, Channel<Message>] | [number, number]
  if (typeof to !== 'number') return new ChannelLink(to, from as Channel<Message>)
  // Channels of the parent: those here continue as those there.
  const [up, down] = channels(messagesMax)
  native.linkChannels(up.shared(), down.shared(), to, from as number)
  return new ChannelLink(up, down, true)
}

function channels(messagesMax: number): [Channel<Message>, Channel<Message>] {
  return [new Channel<Message>({ messagesMax }), new Channel<Message>({ messagesMax })]
}

/** A link within a thread. */
export const localLinks: Links = () => {
  const [here, there] = [new LocalLink(), new LocalLink()]
  here.other = there
  there.other = here
  return [here, there]
}

/** Whether both ends of that link are in this thread. */
export function isLocal(there: unknown): boolean {
  return there instanceof LocalLink
}

class LocalLink implements Link {
  other: LocalLink | undefined
  readonly #messages: Message[] = []
  #isClosed = false
  #wake: (() => void) | undefined

  send(message: Message): number {
    const { other } = this
    if (other === undefined || other.#isClosed) return 0
    other.#messages.push(message)
    other.#wake?.()
    return 0
  }

  async *received(): AsyncIterable<Message> {
    for (;;) {
      const message = this.#messages.shift()
      if (message !== undefined) yield message
      else if (this.#isClosed) return
      else await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  close(): void {
    for (const end of [this, this.other]) {
      if (end === undefined) continue
      end.#isClosed = true
      end.#wake?.()
    }
  }
}
