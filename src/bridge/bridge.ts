/**
 * This thread's bridge: its scratch memory, its calls in flight, and what it does when something arrives.
 *
 * A call is a number that stands for a task in the native core; JavaScript gives numbers out densely and uses
 * one again only when its task has come home. Everything that arrives comes through `drain`, which the core
 * calls once per batch. There is one bridge per thread, opened by the first use of a zone.
 */
import { isMainThread } from 'node:worker_threads'
import { assert } from '../base/index.ts'
import {
  FOUND,
  Flag,
  HEADER_BYTES,
  Mail,
  RECORD_BYTES,
  checkAttached,
  native,
  sharedMemory,
} from '../native/index.ts'
import { FrameWriter, readFrame } from '../transport/internal.ts'

/** Bytes of each scratch: a batch of some thousand small results; larger values take a path of their own. */
const SCRATCH_BYTES = 256 * 1024

/**
 * After fewer results than this their promises go first: what comes meanwhile is drained next. After more, a
 * caller's batch is coming home, and the rest of it is better taken at once.
 */
const FEW_RESULTS = 16

/** Rounds at most without a turn of the event loop, and of `process.nextTick`: about 30 µs. */
const LINGERS_MAX = 16
/** Vain looks after which some are left out, and the power of two of how many at most. */
const VAIN_FREE = 2
const REST_POWER_MAX = 6
/** Microtasks of callers between a result and their next call. */
const HOPS_MAX = 3
const RESOLVED = Promise.resolve()
const NO_BUFFERS = new Uint8Array(0)

/** What a call in flight is waiting for. */
export interface Arrival {
  /** The call has ended: `bytes` from `start` to `end` are its value, error or reason. */
  ended(status: number, bytes: Uint8Array, start: number, end: number): void
}

/** What a kind of mail means to this thread: its subject and two facts. */
export type MailHandler = (subject: number, first: number, second: number) => void
export class Bridge {
  readonly #memory = sharedMemory<[Uint8Array, Uint8Array]>(native, SCRATCH_BYTES, SCRATCH_BYTES)
  /** Where arguments and results are written for the core. */
  readonly out = this.#memory[0]
  /** Where the core writes; valid until the next call into it. */
  readonly inbound = this.#memory[1]
  /** The same memory as words. */
  readonly words = new Uint32Array(this.inbound.buffer, this.inbound.byteOffset, SCRATCH_BYTES / 4)
  /** The out scratch as words: what calls into the core are given. */
  readonly given = new Int32Array(this.out.buffer, this.out.byteOffset, SCRATCH_BYTES / 4)
  readonly writer = new FrameWriter(this.out)
  /** Takes tasks, in the worker of a zone. */
  runTasks: (() => void) | undefined
  /** Whether results that are being settled refer to memory that is let go right after. */
  settlesAttachments = false
  /** Results are being read from the scratch: nothing else may be written there. */
  #settling = false
  readonly #waiting: (Arrival | undefined)[] = []
  readonly #free: number[] = []
  readonly #mail = new Map<number, MailHandler>()
  #lingers = 0
  #hops = 0
  /** Looks in a row that found nothing, and batches of results after which none is made. */
  #vain = 0
  #rest = 0

  constructor() {
    native.open(() => this.#drain(), this.out, this.inbound, isMainThread)
  }

  /** A free number for a call that `arrival` waits for; not in flight until the core has accepted it. */
  take(arrival: Arrival): number {
    const call = this.#free.pop() ?? this.#waiting.length
    this.#waiting[call] = arrival
    return call
  }

  /** The core did not accept the call, or has given it back. */
  release(call: number): void {
    this.#waiting[call] = undefined
    this.#free[this.#free.length] = call
  }

  /** What waits for a call. */
  waiting(call: number): Arrival | undefined {
    return this.#waiting[call]
  }

  /** Handle mail of one kind from now on. */
  onMail(kind: (typeof Mail)[keyof typeof Mail], handler: MailHandler): void {
    this.#mail.set(kind, handler)
  }

  /**
   * Write a value into the out scratch, after its header. Returns its length, or -1 when it did not fit: then
   * `writer.overflow` has the frame.
   * @param rootName What errors call the value: their paths begin with it.
   * @param lends Memory that was given away leaves only with `writer.letGo()`, when the core has accepted it.
   * @throws {TransportError} when it cannot be carried.
   */
  write(value: unknown, rootName = 'value', lends = false): number {
    const writer = this.writer
    checkAttached(this.out)
    const end = writer.write(value, HEADER_BYTES, rootName, lends)
    if (writer.attachments.length > 0) this.#attach()
    return end < 0 ? end : end - HEADER_BYTES
  }

  /**
   * A value as a frame of its own memory.
   * @param rootName As in `write`.
   * @param lends As in `write`.
   * @throws {TransportError} when it cannot be carried.
   */
  frame(value: unknown, rootName = 'value', lends = false): Uint8Array {
    const length = this.write(value, rootName, lends)
    const overflow = this.writer.overflow
    if (length >= 0) return this.out.slice(HEADER_BYTES, HEADER_BYTES + length)
    assert(overflow !== undefined, 'a frame that did not fit is in overflow')
    return overflow
  }

  /** What was written last goes nowhere: memory that was lent to it stays, and it refers to none any more. */
  discard(): void {
    this.writer.lent = []
    if (this.writer.attachments.length > 0) native.attachBuffers(NO_BUFFERS)
  }

  #attach(): void {
    const ids = Uint32Array.from(this.writer.attachments)
    native.attachBuffers(new Uint8Array(ids.buffer))
  }

  /** Do what the core asks of this thread as the owner of zones, in the middle of a call from its program. */
  takeMail(): void {
    if (this.runTasks === undefined && !this.#settling) this.#handleMail()
  }

  #drain(): void {
    let count: number
    do {
      native.drain()
      count = this.#take()
    } while (count >= FEW_RESULTS)
    if (this.runTasks !== undefined) return this.runTasks()
    if (count === 0) return
    if (this.#rest > 0) {
      this.#rest--
      return
    }
    this.#lingers = LINGERS_MAX
    this.#soon()
  }

  /** Do what has been drained; the number of results. */
  #take(): number {
    const count = this.words[FOUND]
    const flags = this.words[0]
    this.settlesAttachments = (flags & Flag.attachments) !== 0
    this.#settling = true
    if (count > 0) this.#settle(count)
    this.#settling = false
    if ((flags & Flag.attachments) !== 0) native.drained()
    if ((flags & Flag.mail) !== 0) this.#handleMail()
    return count
  }

  /** Linger behind the microtasks that the results have set going. */
  #soon(): void {
    this.#hops = HOPS_MAX
    void RESOLVED.then(this.#linger)
  }

  /**
   * The callers have gone on with their results. If they have called again, the answer may come sooner than
   * the event loop would come round, which costs as much as a small task: so it is waited for here, a few
   * microseconds; ever more seldom while that does not pay.
   */
  readonly #linger = (): void => {
    if (this.#waiting.length === this.#free.length) {
      // Nobody has called; behind an `await` or two of theirs they may.
      if (this.#hops-- > 0) void RESOLVED.then(this.#linger)
      return
    }
    if (this.#lingers-- <= 0) return
    native.linger()
    if (this.#take() > 0) {
      this.#vain = 0
      this.#soon()
    } else {
      this.#vain += 1
      if (this.#vain > VAIN_FREE) this.#rest = 1 << Math.min(this.#vain - VAIN_FREE, REST_POWER_MAX)
    }
  }

  #settle(count: number): void {
    const { words, inbound } = this
    let at = HEADER_BYTES
    for (let index = 0; index < count; index++) {
      const word = at >>> 2
      const call = words[word]
      const status = words[word + 1]
      const length = words[word + 2]
      at += RECORD_BYTES
      const arrival = this.#waiting[call]
      this.#waiting[call] = undefined
      // Not by a method of Array: a program that replaces it must not lose the results behind this one.
      this.#free[this.#free.length] = call
      if (words[word + 3] === 1) {
        const bytes = native.largeResult(call)
        end(arrival, status, bytes, 0, bytes.length)
      } else {
        end(arrival, status, inbound, at, at + length)
        at += (length + 7) & ~7
      }
    }
  }

  #handleMail(): void {
    while (native.mail() === 1) {
      const [kind, subject, first, second] = this.words as unknown as [number, number, number, number]
      this.#mail.get(kind)?.(subject, first, second)
    }
  }
}

/**
 * Tell who waits; what that throws is nobody's here, and must not keep the results behind it from arriving.
 */
function end(
  arrival: Arrival | undefined,
  status: number,
  bytes: Uint8Array,
  start: number,
  stop: number,
): void {
  try {
    arrival?.ended(status, bytes, start, stop)
  } catch (error) {
    queueMicrotask(() => {
      throw error
    })
  }
}

let bridge: Bridge | undefined

/**
 * This thread's bridge, opened when it is first asked for.
 * @throws {NativeError} when the core does not load.
 */
export function thisBridge(): Bridge {
  return (bridge ??= new Bridge())
}

/**
 * The value of a call that ended well. No bytes stand for `undefined`.
 * @throws {TransportError} when this thread cannot read it.
 */
export function valueOf(bytes: Uint8Array, start: number, end: number): unknown {
  return start === end ? undefined : readFrame(bytes, start, end)
}
