/**
 * The scratch memory through which stores and locks call the core.
 *
 * Separate from the bridge's, because hooks of classes may use a store while a task's arguments or a batch of
 * results are being read. A hook that runs while this memory is in use works `aside`: its content, and the
 * attachments of the value being read, are restored afterwards.
 *
 * Arguments are words and doubles of `out`, results those of `inbound`: layout.ts.
 */
import { assert } from '../base/index.ts'
import { HEADER_BYTES, NativeError, checkAttached, native, sharedMemory } from '../native/index.ts'
import { FrameWriter, rawText, readFrame } from '../transport/internal.ts'
import { KNOWN_LENGTH_MAX, KnownKeys } from './keys.ts'
import { thisBridge } from './bridge.ts'

/** Bytes of each scratch buffer; larger values have memory of their own. */
const SCRATCH_BYTES = 256 * 1024
/** Longest key whose characters are copied one by one. */
const COPY_MAX = 40
/** Shorter strings are never slices of another one (V8: SlicedString::kMinLength). */
const PART_MIN = 13
/** One comparison for strings that the engine stores in one byte per character. */
const isWide = /[^\0-\xff]/

const { latin1Write, ucs2Write, latin1Slice, ucs2Slice } = rawText

function isSecondCopy(error: unknown): boolean {
  return (error as { readonly code?: unknown }).code === 'NATIVE_SECOND_COPY'
}

export class Scratch {
  readonly #memory = sharedMemory<[Uint8Array, Uint8Array]>(native, SCRATCH_BYTES, SCRATCH_BYTES)
  /** Arguments for the core. */
  readonly out = this.#memory[0]
  /** Results of the core; valid until the next call. */
  readonly inbound = this.#memory[1]
  /** `out` as words. */
  readonly given = new Uint32Array(this.out.buffer, this.out.byteOffset, SCRATCH_BYTES / 4)
  readonly givenDoubles = new Float64Array(this.out.buffer, this.out.byteOffset, SCRATCH_BYTES / 8)
  readonly words = new Uint32Array(this.inbound.buffer, this.inbound.byteOffset, SCRATCH_BYTES / 4)
  readonly doubles = new Float64Array(this.inbound.buffer, this.inbound.byteOffset, SCRATCH_BYTES / 8)
  /** Bytes of the value written last, with the memory that it moves. */
  sentBytes = 0
  /** Whether a value is being written or read here: then only `aside` may use this memory. */
  busy = false
  /** The value written last, when it did not fit. */
  overflow: Uint8Array | undefined = undefined
  readonly #writer = new FrameWriter(this.out, true)
  readonly #known = new KnownKeys()

  constructor() {
    thisBridge()
    try {
      native.scratchOpen(this.out, this.inbound)
    } catch (error) {
      throw isSecondCopy(error) ? new NativeError('NATIVE_SECOND_COPY', {}) : error
    }
  }

  /**
   * Call `method` of `self`, which uses this memory, while it is in use; then restore the memory. Takes a
   * method and not a closure, which would be allocated on every call and not only on those that get here.
   */
  aside<Args extends unknown[], Result>(
    method: (...args: Args) => Result,
    self: unknown,
    args: Args,
  ): Result {
    const [out, inbound, overflow] = [this.out.slice(), this.inbound.slice(), this.overflow]
    native.scratchHold()
    this.busy = false
    try {
      return method.apply(self, args)
    } finally {
      this.busy = true
      native.scratchRelease()
      this.out.set(out)
      this.inbound.set(inbound)
      this.overflow = overflow
    }
  }

  /** Whether the next values may refer to what only this process has. */
  get isInside(): boolean {
    return this.#writer.isInside
  }

  set isInside(isInside: boolean) {
    this.#writer.isInside = isInside
  }

  /**
   * Write a value after the header; returns its bytes, or -1 when it is in `overflow`. Moved memory leaves
   * only with {@link Scratch.letGo}.
   * @throws {TransportError} when the value cannot travel.
   */
  write(value: unknown, isProcess = true): number {
    const writer = this.#writer
    checkAttached(this.out)
    let end: number
    this.busy = true
    try {
      end = writer.write(value, HEADER_BYTES, 'value', true, isProcess)
    } finally {
      this.busy = false
    }
    this.sentBytes = writer.frameBytes
    if (writer.attachments.length > 0) {
      for (const buffer of writer.lent) this.sentBytes += buffer.byteLength
      native.scratchAttach(new Uint8Array(Uint32Array.from(writer.attachments).buffer))
      writer.attachments = []
    }
    if (end >= 0) return end - HEADER_BYTES
    assert(writer.overflow !== undefined, 'a frame that did not fit is in overflow')
    this.overflow = writer.overflow
    return -1
  }

  /** Detach the moved memory of the value written last, which the core has accepted. */
  letGo(): void {
    if (this.#writer.lent.length > 0) this.#writer.letGo()
  }

  /** Takes the moved memory of the value written last, which {@link Scratch.detach} detaches. */
  takeLent(): readonly ArrayBuffer[] {
    const { lent } = this.#writer
    if (lent.length > 0) this.#writer.lent = []
    return lent
  }

  /** Detach the moved memory of several values, which the core has accepted. */
  detach(lent: Iterable<ArrayBuffer>): void {
    this.#writer.lent = [...lent]
    this.letGo()
  }

  /**
   * The value of `length` bytes in `inbound`.
   * @throws {TransportError} when this thread cannot read it.
   */
  read(length: number): unknown {
    this.busy = true
    try {
      return readFrame(this.inbound, HEADER_BYTES, HEADER_BYTES + length)
    } finally {
      this.busy = false
    }
  }

  /**
   * The value that did not fit into `inbound`.
   * @throws {TransportError} when this thread cannot read it.
   */
  readLarge(): unknown {
    const bytes = native.scratchLarge()
    // Hooks may use this memory meanwhile, but must not release the attachments of the value.
    native.scratchHold()
    try {
      return readFrame(bytes, 0, bytes.length)
    } finally {
      native.scratchRelease()
    }
  }

  /**
   * The word that identifies a key in a call. Of a cached key it is the number; any other key is written at
   * `at` of `out`: a byte for the width of its characters, then the characters.
   */
  putKey(key: string, at: number): number {
    if (this.out.length === 0) checkAttached(this.out)
    if (key.length > KNOWN_LENGTH_MAX) return this.#putText(key, at)
    const known = this.#known.get(key)
    if (known !== 0) return known
    const bytes = this.#putText(key, at)
    if (!this.#known.takes()) return bytes
    // A longer one may be a slice, which would keep the whole string.
    const own = key.length < PART_MIN ? key : Scratch.keyOf(this.out, at, at + bytes)
    return bytes + this.#known.add(own)
  }

  /** Whether a key takes two bytes per character. */
  static isWide(key: string): boolean {
    return isWide.test(key)
  }

  /** Write a key at `at` of `out`; returns its bytes. */
  #putText(key: string, at: number): number {
    const { out } = this
    const length = key.length
    if (length <= COPY_MAX) {
      let all = 0
      for (let index = 0; index < length; index++) {
        const unit = key.charCodeAt(index)
        all |= unit
        out[at + 1 + index] = unit
      }
      if (all < 256) {
        out[at] = 0
        return length + 1
      }
    } else if (!isWide.test(key)) {
      out[at] = 0
      latin1Write.call(out, key, at + 1, length)
      return length + 1
    }
    out[at] = 1
    ucs2Write.call(out, key, at + 1, length * 2)
    return length * 2 + 1
  }

  static keyOf(bytes: Uint8Array, start: number, end: number): string {
    return bytes[start] === 0
      ? latin1Slice.call(bytes, start + 1, end)
      : ucs2Slice.call(bytes, start + 1, end)
  }
}

let scratch: Scratch | undefined

/**
 * This thread's scratch memory, made at its first use.
 * @throws {NativeError} when the core does not load.
 */
export function thisScratch(): Scratch {
  return (scratch ??= new Scratch())
}
