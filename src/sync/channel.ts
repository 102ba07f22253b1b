/**
 * A bounded queue of values between any number of threads; each value is received once.
 *
 * `offer` and `poll` never wait; `put` and `take` do.
 */
import { effects, integer, optionsOf } from '../base/index.ts'
import { Fact, Found, Given, Passed, Wait, thisWaits } from '../bridge/index.ts'
import { native } from '../native/index.ts'
import { registerHandle } from '../transport/internal.ts'
import { SyncError, wrong } from './errors.ts'
import { SyncHandle } from './handle.ts'
import { type BlockOptions, type WaitOptions, blockOf, blockingTurn, turn, waitOf } from './turn.ts'

/** Options of a new {@link Channel}. */
export interface ChannelOptions {
  /** Most values in the queue, 1 to 2,147,483,647. Required. */
  readonly messagesMax: number
}

const KINDS = { messagesMax: integer<number | undefined>(1, 2 ** 31 - 1, undefined) }

/**
 * A bounded queue across all threads of the process. Each value is received by one taker, as a copy; memory
 * passed with `move` is transferred.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { Channel } from 'corespun'
 *
 * const channel = new Channel<number>({ messagesMax: 16 })
 * await channel.put(1)
 * channel.close()
 * const values: number[] = []
 * for await (const value of channel) values.push(value)
 * assert.deepEqual(values, [1])
 * ```
 */
export class Channel<Value = unknown> {
  static {
    registerHandle({
      tag: 'corespun.Channel',
      is: Channel,
      save: (channel: Channel) => channel.#handle.save(),
      load: (saved) => new Channel(SyncHandle.load('channel', saved as never)),
    })
  }

  /** The name in the process; `''` if the channel is anonymous. */
  readonly name: string
  readonly #handle: SyncHandle
  /** The status of the last call that takes. */
  #status: number = Passed.none

  /** Creates an anonymous channel. @throws {SyncError} `SYNC_ARGUMENT`. */
  constructor(options: ChannelOptions)
  /** @internal */
  constructor(handle: SyncHandle)
  constructor(from: ChannelOptions | SyncHandle) {
    this.#handle =
      from instanceof SyncHandle
        ? from
        : SyncHandle.anonymous('channel', messagesMaxOf('new Channel()', from))
    this.name = this.#handle.which.name
  }

  /**
   * Creates a channel with a name of 1 to 256 characters.
   * @throws {SyncError} `SYNC_EXISTS` when a channel has that name; `SYNC_ARGUMENT`.
   */
  static create<Value = unknown>(name: string, options: ChannelOptions): Channel<Value> {
    return new Channel(SyncHandle.create('channel', name, messagesMaxOf('Channel.create()', options)))
  }

  /**
   * Returns the channel that any thread has created with that name.
   * @throws {SyncError} `SYNC_UNKNOWN` when no channel has that name; `SYNC_ARGUMENT`.
   */
  static get<Value = unknown>(name: string): Channel<Value> {
    return new Channel(SyncHandle.get('channel', name))
  }

  /**
   * Returns the channel with that name, and creates it if necessary.
   * @throws {SyncError} `SYNC_ARGUMENT`, also when it has another `messagesMax`.
   */
  static getOrCreate<Value = unknown>(name: string, options: ChannelOptions): Channel<Value> {
    const messagesMax = messagesMaxOf('Channel.getOrCreate()', options)
    return new Channel(SyncHandle.getOrCreate('channel', name, messagesMax))
  }

  /** The channel of that number, which another thread has shared. @internal */
  static ofNumber<Value = unknown>(number: number): Channel<Value> {
    return new Channel(SyncHandle.load('channel', { number, name: '' }))
  }

  /** Lets other threads open it by its number, which is returned. @internal */
  shared(): number {
    return this.#handle.save().number
  }

  /**
   * As `offer`, but returns the bytes that the value takes, moved memory included; -1 when the queue is full.
   * @internal
   */
  offerSized(value: Value): number {
    return this.offer(value) ? this.#handle.scratch.sentBytes : -1
  }

  /**
   * As `offerSized`, for a channel that continues in another process: what only this one has is refused.
   * @internal
   */
  offerOutside(value: Value): number {
    const { scratch } = this.#handle
    const { isInside } = scratch
    scratch.isInside = false
    try {
      return this.offerSized(value)
    } finally {
      scratch.isInside = isInside
    }
  }

  /**
   * Adds a value unless the queue is full, and returns whether it did. A full queue leaves moved memory here.
   * @throws {SyncError} `SYNC_CLOSED`.
   * @throws {TransportError} when the value cannot be sent.
   */
  offer(value: Value): boolean {
    return this.#put(value, 0, Wait.not) === Passed.done
  }

  /**
   * Adds a value as soon as the queue has capacity. A waiting value is lost if its thread ends. Moved memory
   * leaves when the wait begins, and is lost when the wait times out or is aborted.
   * @throws {SyncError} `SYNC_CLOSED`, `SYNC_TIMEOUT`.
   * @throws {TransportError} when the value cannot be sent.
   * @throws the signal's reason.
   */
  async put(value: Value, options?: WaitOptions): Promise<void> {
    const wait = waitOf('channel.put()', options)
    const seeded = effects.seeded?.()
    if (seeded !== undefined) await seeded.step('channel.put()')
    const ticket = thisWaits().ticket()
    if (this.#put(value, ticket, Wait.mail) !== Passed.queued) return
    const fact = await turn(ticket, this.#handle.which, wait, () => this.#cancel(ticket))
    if (fact === Fact.closed) throw this.#closed()
  }

  /**
   * As `put`, but blocks the thread.
   * @throws {SyncError} `SYNC_BLOCKING` in the main thread without `allowBlocking`, `SYNC_CLOSED`,
   *   `SYNC_TIMEOUT`.
   * @throws {TransportError} when the value cannot be sent.
   */
  putSync(value: Value, options?: BlockOptions): void {
    const timeoutMs = blockOf('channel.putSync()', this.#handle.which, options)
    const ticket = thisWaits().ticket()
    if (this.#put(value, ticket, Wait.blocking) !== Passed.queued) return
    const fact = blockingTurn(ticket, this.#handle.which, timeoutMs, () => this.#cancel(ticket))
    if (fact === Fact.closed) throw this.#closed()
  }

  /**
   * Removes and returns the oldest value; returns `undefined` if the queue is empty.
   * @throws {TransportError} when this thread cannot read the value.
   */
  poll(): Value | undefined {
    return this.#take(0, Wait.not)?.value
  }

  /**
   * Waits for a value, removes the oldest one and returns it.
   * @throws {SyncError} `SYNC_CLOSED` when the channel is closed and empty, `SYNC_TIMEOUT`.
   * @throws {TransportError} when this thread cannot read the value.
   * @throws the signal's reason.
   */
  async take(options?: WaitOptions): Promise<Value> {
    const taken = await this.#next(options)
    if (taken === undefined) throw this.#closed()
    return taken.value
  }

  /**
   * As `take`, but blocks the thread.
   * @throws {SyncError} `SYNC_BLOCKING` in the main thread without `allowBlocking`, `SYNC_CLOSED`,
   *   `SYNC_TIMEOUT`.
   * @throws {TransportError} when this thread cannot read the value.
   */
  takeSync(options?: BlockOptions): Value {
    const timeoutMs = blockOf('channel.takeSync()', this.#handle.which, options)
    const ticket = thisWaits().ticket()
    let taken = this.#take(ticket, Wait.blocking)
    if (taken === undefined && this.#status === Passed.queued) {
      blockingTurn(ticket, this.#handle.which, timeoutMs, () => (taken = this.#fetch(ticket)) === undefined)
      taken ??= this.#fetch(ticket)
    }
    if (taken === undefined) throw this.#closed()
    return taken.value
  }

  /**
   * Closes the channel. The values in the queue can still be taken; waiting calls of `put`, and of `take`
   * once the queue is empty, reject with `SYNC_CLOSED`.
   */
  close(): void {
    native.channelClose(this.#handle.id)
  }

  /** Number of values in the queue. */
  get size(): number {
    return Math.max(0, native.channelLength(this.#handle.id))
  }

  /** Closes the channel, removes it from the process and frees its name. */
  [Symbol.dispose](): void {
    this.close()
    this.#handle.dispose()
  }

  /** As `Symbol.dispose`. */
  async [Symbol.asyncDispose](): Promise<void> {
    this[Symbol.dispose]()
  }

  /** Takes values until the channel is closed and empty. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Value, void, undefined> {
    for (;;) {
      const taken = await this.#next(undefined)
      if (taken === undefined) return
      yield taken.value
    }
  }

  async #next(options: WaitOptions | undefined): Promise<{ readonly value: Value } | undefined> {
    const wait = waitOf('channel.take()', options)
    const seeded = effects.seeded?.()
    if (seeded !== undefined) await seeded.step('channel.take()')
    const ticket = thisWaits().ticket()
    let taken = this.#take(ticket, Wait.mail)
    if (taken !== undefined || this.#status !== Passed.queued) return taken
    await turn(ticket, this.#handle.which, wait, () => (taken = this.#fetch(ticket)) === undefined)
    return taken ?? this.#fetch(ticket)
  }

  /** Returns `Passed.done`, `Passed.none` or `Passed.queued`. */
  #put(value: Value, ticket: number, wait: number): number {
    const scratch = this.#handle.scratch
    if (scratch.busy) return scratch.aside(this.#put, this, [value, ticket, wait])
    const length = scratch.write(value)
    const { given } = scratch
    given[Given.handle] = this.#handle.id
    given[Given.ticket] = ticket
    given[Given.length] = Math.max(0, length)
    given[Given.wait] = wait
    const large = length < 0 ? scratch.overflow : undefined
    scratch.overflow = undefined
    if (large === undefined) native.channelPut()
    else native.channelPutLarge(large)
    const status = scratch.words[Found.status]
    if (status === Passed.closed) throw this.#closed()
    // A value that was not added keeps its moved memory.
    if (status !== Passed.none) scratch.letGo()
    return status
  }

  #take(ticket: number, wait: number): { readonly value: Value } | undefined {
    const scratch = this.#handle.scratch
    if (scratch.busy) return scratch.aside(this.#take, this, [ticket, wait])
    const { given } = scratch
    given[Given.handle] = this.#handle.id
    given[Given.ticket] = ticket
    given[Given.wait] = wait
    native.channelTake()
    return this.#read()
  }

  #fetch(ticket: number): { readonly value: Value } | undefined {
    const scratch = this.#handle.scratch
    if (scratch.busy) return scratch.aside(this.#fetch, this, [ticket])
    scratch.given[Given.handle] = this.#handle.id
    scratch.given[Given.ticket] = ticket
    native.channelFetch()
    return this.#read()
  }

  #read(): { readonly value: Value } | undefined {
    const scratch = this.#handle.scratch
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
    return native.channelCancel(this.#handle.id, ticket) === 1
  }

  #closed(): SyncError {
    return new SyncError('SYNC_CLOSED', this.#handle.which)
  }
}

function messagesMaxOf(call: string, options: ChannelOptions): number {
  const { messagesMax } = optionsOf(options, KINDS, wrong, call)
  if (messagesMax === undefined) throw wrong(call, '{ messagesMax }', messagesMax, { verb: 'needs' })
  return messagesMax
}
