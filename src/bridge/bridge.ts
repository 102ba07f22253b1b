/**
 * This thread's bridge to the native core: its scratch memory, its calls in flight, and what arrives.
 *
 * A call is a number that identifies a task in the core. Numbers are dense, and one is reused only when the
 * result of its task has arrived. Everything arrives through `drain`, which the core calls once per batch.
 * There is one bridge per thread, opened by the first use of a zone.
 */
import { assert, threads } from '../base/index.ts'
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

/** Bytes of each scratch buffer: some thousand small results; larger values have memory of their own. */
const SCRATCH_BYTES = 256 * 1024

/**
 * After fewer results than this their promises settle first, and later results are drained next. More results
 * are a caller's batch, and the rest of it is drained at once.
 */
const FEW_RESULTS = 16

/** Most rounds without a turn of the event loop and of `process.nextTick`: about 30 µs. */
const LINGERS_MAX = 16
/** Empty polls after which some are skipped, and the power of two of the most that are. */
const VAIN_FREE = 2
const REST_POWER_MAX = 6
/** Microtasks of a caller between a result and its next call. */
const HOPS_MAX = 3
const RESOLVED = Promise.resolve()
const NO_BUFFERS = new Uint8Array(0)

/** Receives the result of a call in flight. */
export interface Arrival {
  /** The call has ended: `bytes` from `start` to `end` are its value, error or reason. */
  ended(status: number, bytes: Uint8Array, start: number, end: number): void
}

/** Handles one kind of mail: its subject and two facts. */
export type MailHandler = (subject: number, first: number, second: number) => void

type Piece = [kind: number, subject: number, first: number, second: number]

export class Bridge {
  readonly #memory = sharedMemory<[Uint8Array, Uint8Array]>(native, SCRATCH_BYTES, SCRATCH_BYTES)
  /** Arguments and results for the core. */
  readonly out = this.#memory[0]
  /** Written by the core; valid until the next call into it. */
  readonly inbound = this.#memory[1]
  readonly words = new Uint32Array(this.inbound.buffer, this.inbound.byteOffset, SCRATCH_BYTES / 4)
  /** `out` as words: the arguments of calls into the core. */
  readonly given = new Int32Array(this.out.buffer, this.out.byteOffset, SCRATCH_BYTES / 4)
  readonly writer = new FrameWriter(this.out)
  /** Runs tasks; set in the worker of a zone, and in a main thread that `zone.main` is called in. */
  runTasks: (() => void) | undefined
  /** The tasks run beside a program: this is the main thread, and may own zones. */
  isBesideProgram = false
  /** Tasks of this thread call zones, so calls state their depth. */
  notesDepth = false
  /** The least depth of the call that is being made, where it reads streams (src/zone/stream/waits.ts). */
  depthMin = 0
  /** Whether the results being settled refer to memory that is released right after. */
  settlesAttachments = false
  /** Results are being read from `inbound`: nothing else may be written there. */
  #settling = false
  readonly #waiting: (Arrival | undefined)[] = []
  readonly #free: number[] = []
  readonly #mail = new Map<number, MailHandler>()
  #lingers = 0
  #hops = 0
  /** Consecutive empty polls, and the batches of results after which to skip polling. */
  #vain = 0
  #rest = 0

  constructor() {
    const mailbox = native.open(() => this.#drain(), this.out, this.inbound, threads().isMainThread)
    assert(mailbox > 0, 'each evaluation of the package opens a bridge of its own')
    this.onMail(Mail.count, count)
    count()
  }

  /** A free number for the call of `arrival`; in flight once the core has accepted it. */
  take(arrival: Arrival): number {
    const call = this.#free.pop() ?? this.#waiting.length
    this.#waiting[call] = arrival
    return call
  }

  /** Free the number of a call that the core has refused or returned. */
  release(call: number): void {
    this.#waiting[call] = undefined
    this.#free[this.#free.length] = call
  }

  waiting(call: number): Arrival | undefined {
    return this.#waiting[call]
  }

  /** Let another arrival wait for a call in flight. */
  replace(call: number, arrival: Arrival): void {
    this.#waiting[call] = arrival
  }

  onMail(kind: (typeof Mail)[keyof typeof Mail], handler: MailHandler): void {
    this.#mail.set(kind, handler)
  }

  /**
   * Write a value into `out`, after the header. Returns its length, or -1 when it did not fit and
   * `writer.overflow` contains the frame.
   * @param rootName The name of the value in the paths of errors.
   * @param lends Moved memory leaves only with `writer.letGo()`, when the core has accepted the frame.
   * @throws {TransportError} when the value cannot travel.
   */
  write(value: unknown, rootName = 'value', lends = false): number {
    const writer = this.writer
    checkAttached(this.out)
    const end = writer.write(value, HEADER_BYTES, rootName, lends)
    if (writer.attachments.length > 0) this.#attach()
    return end < 0 ? end : end - HEADER_BYTES
  }

  /**
   * A value as a frame in memory of its own; parameters as of `write`.
   * @throws {TransportError} when the value cannot travel.
   */
  frame(value: unknown, rootName = 'value', lends = false): Uint8Array {
    const length = this.write(value, rootName, lends)
    const overflow = this.writer.overflow
    if (length >= 0) return this.out.slice(HEADER_BYTES, HEADER_BYTES + length)
    assert(overflow !== undefined, 'a frame that did not fit is in overflow')
    return overflow
  }

  /** Drop the frame written last: the memory lent to it stays here. */
  discard(): void {
    this.writer.lent = []
    if (this.writer.attachments.length > 0) native.attachBuffers(NO_BUFFERS)
  }

  #attach(): void {
    const ids = Uint32Array.from(this.writer.attachments)
    native.attachBuffers(new Uint8Array(ids.buffer))
  }

  /** Handle the mail of the core to the owner of zones, during a call from its program. */
  takeMail(): void {
    if ((this.runTasks === undefined || this.isBesideProgram) && !this.#settling) this.#handleMail()
  }

  #drain(): void {
    let count: number
    do {
      native.drain()
      count = this.#take()
    } while (count >= FEW_RESULTS)
    if (this.runTasks !== undefined) {
      this.runTasks()
      if (!this.isBesideProgram) return
    }
    if (count === 0) return
    if (this.#rest > 0) {
      this.#rest--
      return
    }
    this.#lingers = LINGERS_MAX
    this.#soon()
  }

  /** Handle what was drained; returns the number of results. */
  #take(): number {
    const count = this.words[FOUND]
    const flags = this.words[0]
    this.settlesAttachments = (flags & Flag.attachments) !== 0
    const mail = (flags & Flag.mail) !== 0 && count > 0 ? this.#readMail() : undefined
    this.#settling = true
    if (count > 0) this.#settle(count)
    this.#settling = false
    if ((flags & Flag.attachments) !== 0) native.drained()
    if (mail !== undefined) for (const [kind, ...facts] of mail) this.#mail.get(kind)?.(...facts)
    else if ((flags & Flag.mail) !== 0) this.#handleMail()
    return count
  }

  /**
   * Read the mail behind results that were drained and not settled. What concerns a call is handled at once,
   * since its result, which is behind it, may be among those.
   */
  #readMail(): Piece[] {
    const others: Piece[] = []
    while (native.mail() === 1) {
      const [kind, subject, first, second] = this.words as unknown as Piece
      if (kind === Mail.streamed) this.#mail.get(kind)?.(subject, first, second)
      else others.push([kind, subject, first, second])
    }
    return others
  }

  /** Poll after the microtasks that the results have caused. */
  #soon(): void {
    this.#hops = HOPS_MAX
    void RESOLVED.then(this.#linger)
  }

  /**
   * The callers have continued with their results. If they have called again, the next result may arrive
   * sooner than a turn of the event loop, which takes as long as a small task. So wait here for a few
   * microseconds, and skip ever more polls while they find nothing.
   */
  readonly #linger = (): void => {
    if (this.#waiting.length === this.#free.length) {
      // No caller has called again; after another `await` or two one may.
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
      // Not by a method of Array: a program may have replaced it, and must not lose the next results.
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
      const [kind, subject, first, second] = this.words as unknown as Piece
      this.#mail.get(kind)?.(subject, first, second)
    }
  }
}

/** End one call. What its receiver throws must not keep the next results from arriving. */
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

let counting: Promise<void> | undefined

/** Load what counts in this thread, if anything counts. */
function count(): void {
  const module = native.countedBy()
  if (module === undefined) return
  const failed = (error: unknown): void => process.emitWarning(error as Error)
  counting ??= import(module).then(({ countHere }: { countHere(): void }) => countHere(), failed)
}

/** Settles when what counts in this thread is loaded; `undefined` where nothing counts. */
export function whenCounting(): Promise<void> | undefined {
  return counting
}

let bridge: Bridge | undefined

/**
 * This thread's bridge, opened at its first use.
 * @throws {NativeError} when the core does not load.
 */
export function thisBridge(): Bridge {
  return (bridge ??= new Bridge())
}

/**
 * The value of a call that succeeded; an empty frame is `undefined`.
 * @throws {TransportError} when this thread cannot read it.
 */
export function valueOf(bytes: Uint8Array, start: number, end: number): unknown {
  return start === end ? undefined : readFrame(bytes, start, end)
}
