/**
 * A bounded queue of values between any number of threads; each value is taken once.
 *
 * Trying and waiting have different names: `offer` and `poll` never wait, `put` and `take` do.
 */
import { native } from '../native/index.ts'
import { Fact, Found, Given, Passed, Wait, thisWaits } from '../bridge/index.ts'
import { SyncError } from './errors.ts'
import { type Arrived, Thing, checkCount } from './thing.ts'
import { type BlockOptions, type WaitOptions, blockOf, blockingTurn, turn, waitOf } from './turn.ts'

const MESSAGES_MAX = 2 ** 31 - 1

/** Values arrive as the reader's own, `move`d buffers without a copy. */
export class Channel<Value = unknown> extends Thing {
  /** What the core said of the last call to take. */
  #status: number = Passed.none

  /**
   * @param messagesMax Most values that wait for a taker; an existing channel of that name must have as many.
   * @param name Process-wide; without one the channel is known by its handles only.
   * @throws {SyncError} `SYNC_ARGUMENT`, `SYNC_DIFFERENT`.
   */
  constructor(messagesMax: number, name?: string | Arrived) {
    super('channel', name, checkCount('new Channel(): messagesMax', messagesMax, MESSAGES_MAX))
  }

  /**
   * Put a value if there is room now; whether there was. Without room nothing was `move`d.
   * @throws {SyncError} `SYNC_CLOSED`. @throws {TransportError} when it cannot be carried.
   */
  offer(value: Value): boolean {
    return this.#put(value, 0, Wait.not) === Passed.done
  }

  /**
   * Put a value when there is room. One that waits is lost if its thread ends; what it `move`s leaves when
   * it begins to wait, and is gone when that is given up.
   * @throws {SyncError} `SYNC_CLOSED`, `SYNC_TIMEOUT`. @throws the signal's reason.
   * @throws {TransportError} when it cannot be carried.
   */
  async put(value: Value, options?: WaitOptions): Promise<void> {
    const wait = waitOf('channel.put()', options)
    const ticket = thisWaits().ticket()
    if (this.#put(value, ticket, Wait.mail) !== Passed.queued) return
    const fact = await turn(ticket, this.which, wait, () => this.#cancel(ticket))
    if (fact === Fact.closed) throw this.#closed()
  }

  /**
   * As `put`, blocking the thread.
   * @throws {SyncError} `SYNC_BLOCKING` in the main thread, `SYNC_CLOSED`, `SYNC_TIMEOUT`.
   */
  putSync(value: Value, options?: BlockOptions): void {
    const timeoutMs = blockOf('channel.putSync()', this.which, options)
    const ticket = thisWaits().ticket()
    if (this.#put(value, ticket, Wait.blocking) !== Passed.queued) return
    const fact = blockingTurn(ticket, this.which, timeoutMs, () => this.#cancel(ticket))
    if (fact === Fact.closed) throw this.#closed()
  }

  /** Take the oldest value if there is one; `undefined` when there is none. @throws {TransportError} */
  poll(): Value | undefined {
    return this.#take(0, Wait.not)?.value
  }

  /**
   * Take the oldest value when there is one.
   * @throws {SyncError} `SYNC_CLOSED` when it is closed and empty, `SYNC_TIMEOUT`. @throws the signal's
   *   reason.
   * @throws {TransportError} when this thread cannot read the value.
   */
  async take(options?: WaitOptions): Promise<Value> {
    const taken = await this.#next(options)
    if (taken === undefined) throw this.#closed()
    return taken.value
  }

  /**
   * As `take`, blocking the thread.
   * @throws {SyncError} `SYNC_BLOCKING` in the main thread, `SYNC_CLOSED`, `SYNC_TIMEOUT`.
   */
  takeSync(options?: BlockOptions): Value {
    const timeoutMs = blockOf('channel.takeSync()', this.which, options)
    const ticket = thisWaits().ticket()
    let taken = this.#take(ticket, Wait.blocking)
    if (taken === undefined && this.#status === Passed.queued) {
      blockingTurn(ticket, this.which, timeoutMs, () => (taken = this.#fetch(ticket)) === undefined)
      taken ??= this.#fetch(ticket)
    }
    if (taken === undefined) throw this.#closed()
    return taken.value
  }

  /** No more values: those in the queue can still be taken, whoever waits for room or for more is told. */
  close(): void {
    native.channelClose(this.handle)
  }

  /** Values that wait for a taker. */
  get size(): number {
    return Math.max(0, native.channelLength(this.handle))
  }

  /** Close it, and forget it: its name is free for a new one. */
  override [Symbol.dispose](): void {
    this.close()
    super[Symbol.dispose]()
  }

  /** Take values until it is closed and empty. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Value, void, undefined> {
    for (;;) {
      const taken = await this.#next(undefined)
      if (taken === undefined) return
      yield taken.value
    }
  }

  async #next(options: WaitOptions | undefined): Promise<{ readonly value: Value } | undefined> {
    const wait = waitOf('channel.take()', options)
    const ticket = thisWaits().ticket()
    let taken = this.#take(ticket, Wait.mail)
    if (taken !== undefined || this.#status !== Passed.queued) return taken
    await turn(ticket, this.which, wait, () => (taken = this.#fetch(ticket)) === undefined)
    return taken ?? this.#fetch(ticket)
  }

  /** Returns done, none or queued. */
  #put(value: Value, ticket: number, wait: number): number {
    const scratch = Thing.scratchOf(this)
    if (scratch.busy) return scratch.aside(this.#put, this, [value, ticket, wait])
    const length = scratch.write(value)
    const { given } = scratch
    given[Given.handle] = this.handle
    given[Given.ticket] = ticket
    given[Given.length] = Math.max(0, length)
    given[Given.wait] = wait
    const large = length < 0 ? scratch.overflow : undefined
    scratch.overflow = undefined
    if (large === undefined) native.channelPut()
    else native.channelPutLarge(large)
    const status = scratch.words[Found.status]
    if (status === Passed.closed) throw this.#closed()
    // A refused value keeps what it would have moved.
    if (status !== Passed.none) scratch.letGo()
    return status
  }

  #take(ticket: number, wait: number): { readonly value: Value } | undefined {
    const scratch = Thing.scratchOf(this)
    if (scratch.busy) return scratch.aside(this.#take, this, [ticket, wait])
    const { given } = scratch
    given[Given.handle] = this.handle
    given[Given.ticket] = ticket
    given[Given.wait] = wait
    native.channelTake()
    return this.#read()
  }

  #fetch(ticket: number): { readonly value: Value } | undefined {
    const scratch = Thing.scratchOf(this)
    if (scratch.busy) return scratch.aside(this.#fetch, this, [ticket])
    scratch.given[Given.handle] = this.handle
    scratch.given[Given.ticket] = ticket
    native.channelFetch()
    return this.#read()
  }

  #read(): { readonly value: Value } | undefined {
    const scratch = Thing.scratchOf(this)
    const status = scratch.words[Found.status]
    this.#status = status
    if (status >= Passed.none) return undefined
    return {
      value: (status === Passed.large
        ? scratch.readLarge()
        : scratch.read(scratch.words[Found.length])) as Value,
    }
  }

  #cancel(ticket: number): boolean {
    return native.channelCancel(this.handle, ticket) === 1
  }

  #closed(): SyncError {
    return new SyncError('SYNC_CLOSED', this.which)
  }
}
