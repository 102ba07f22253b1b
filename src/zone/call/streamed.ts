/**
 * A call whose result contains streams: it resolves while its task goes on.
 *
 * The worker notifies the caller's thread of the channels of a link (src/zone/stream/carried/sent.ts); the
 * result comes over that. From then on the call has limits, so that a reader can cancel the task, and what
 * ends it ends the streams. The code of streams is loaded when the first such notice arrives.
 */
import type { Bridge } from '../../bridge/index.ts'
import { Mail, Status } from '../../native/index.ts'
import type { OpenedResult } from '../stream/carried/opened.ts'
import { LimitedCall, ValueCall, failureOf } from './call.ts'

interface Failure {
  readonly why: unknown
  /** The signal or the deadline of the caller's own thread failed it; results that came are dropped. */
  readonly isOwn: boolean
  readonly isLate?: boolean
  /** The clean-up of a source among the call's arguments failed. */
  readonly isOfSource?: boolean
}

export function takeStreamedResults(bridge: Bridge): void {
  bridge.onMail(Mail.streamed, (call, to, from) => {
    const arrival = bridge.waiting(call)
    const streamed = (inner: ValueCall, cancel: (why: unknown) => void): ValueCall =>
      new StreamedCall(inner, [to, from], cancel)
    if (arrival instanceof LimitedCall) return arrival.streamed(streamed)
    if (!(arrival instanceof ValueCall)) return
    const limited = new LimitedCall(bridge, arrival.zone, arrival, undefined)
    limited.begin(call, undefined)
    bridge.replace(call, limited)
    limited.streamed(streamed)
  })
}

/** Whether a value contains streams, of which each is read once. */
export async function containsStreams(value: unknown): Promise<boolean> {
  const { streamsIn } = await import('../stream/carried/arguments.ts')
  return streamsIn(value) !== undefined
}

/** Replaces the call that waits. */
class StreamedCall extends ValueCall {
  /** Until it has settled: its promise has the streams, which must stay collectable. */
  #inner: ValueCall | undefined
  #opened: OpenedResult | undefined
  #failure: Failure | undefined
  #isOver = false
  /** The process of the task has ended; its outcome is still to come. */
  #isLost = false
  #hasOpened = false
  /** See `untilRead`. */
  #read: (() => void) | undefined

  /** @param cancel Cancels the task. */
  constructor(inner: ValueCall, link: readonly [to: number, from: number], cancel: (why: unknown) => void) {
    super(inner.zone, nothing, nothing)
    this.#inner = inner
    void this.#open(link, cancel)
  }

  override ended(status: number, bytes: Uint8Array, start: number, end: number): void {
    const isDone = status === Status.done
    const why = isDone ? undefined : failureOf(this.zone, status, bytes, start, end)
    this.#over(isDone ? undefined : { why, isOwn: false })
  }

  override fail(why: unknown): void {
    this.#over({ why, isOwn: false })
  }

  override refuse(why: unknown): void {
    this.#over({ why, isOwn: true })
  }

  override late(why: unknown): void {
    this.#over({ why, isOwn: true, isLate: true })
  }

  override closed(why: unknown): void {
    this.#over({ why, isOwn: false, isOfSource: true })
  }

  override untilRead(read: () => void): boolean {
    this.#read = read
    if (this.#hasOpened) this.#opened?.whenRead(read)
    return true
  }

  async #open(link: readonly [to: number, from: number], cancel: (why: unknown) => void): Promise<void> {
    try {
      const { OpenedResult } = await import('../stream/carried/opened.ts')
      this.#opened = new OpenedResult(link, this.zone.isOutside, cancel)
      if (this.#isOver) this.#end()
      const result = await this.#opened.opened()
      if (result === undefined) return this.#lost()
      this.#hasOpened = true
      if (this.#read !== undefined) this.#opened.whenRead(this.#read)
      this.#taken()?.succeed(result.value)
    } catch (error) {
      if (this.#isOver || isUnknown(error)) return this.#lost(error)
      this.#failure = { why: error, isOwn: true }
      cancel(error)
      this.#unopened()
    }
  }

  #over(failure: Failure | undefined): void {
    if (this.#isOver) {
      // A limit, behind the end of the task: what was not read yet is dropped.
      if (failure?.isOwn === true) this.#opened?.drop(failure.why)
      return
    }
    this.#isOver = true
    this.#failure = failure
    this.#end()
    if (this.#isLost) this.#unopened()
  }

  #lost(error?: unknown): void {
    if (this.#isOver) this.#unopened(error)
    else this.#isLost = true
  }

  #end(): void {
    const failure = this.#failure
    if (failure?.isOwn === true) {
      this.#opened?.drop(failure.why)
      // Before its streams have come, an aborted call rejects at once.
      this.#unopened()
    }
    void this.#opened?.over(failure, failure?.isOfSource)
  }

  /** The task has ended before its streams were opened. */
  #unopened(error?: unknown): void {
    this.#read?.()
    const failure = this.#failure
    if (failure === undefined) this.#taken()?.fail(error)
    else if (failure.isLate === true) this.#taken()?.late(failure.why)
    else if (failure.isOwn) this.#taken()?.refuse(failure.why)
    else this.#taken()?.fail(failure.why)
  }

  #taken(): ValueCall | undefined {
    const inner = this.#inner
    this.#inner = undefined
    return inner
  }
}

/** Whether the channels are no longer there. Its class may be that of another copy. */
function isUnknown(error: unknown): boolean {
  return (error as { readonly code?: unknown } | null)?.code === 'SYNC_UNKNOWN'
}

function nothing(): void {}
