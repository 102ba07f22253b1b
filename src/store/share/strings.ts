/**
 * The distinct strings of a shared value, in one thread: decoded when they are looked at, and kept.
 *
 * A string that is kept costs a read of an array. At most 32 MiB of them are kept for each value; then all
 * are dropped, so a walk over more text than that decodes each string at every pass, as without keeping.
 * Beside them the array takes eight bytes for each distinct string, from the first look on.
 */
import { rawText } from '../../transport/internal.ts'
import type { StringsPlan } from './layout.ts'

const KEPT_BYTES_MAX = 32 * 1024 * 1024
/** Bytes that the engine adds to the characters of a string, about. */
const STRING_BYTES = 24

export class Strings {
  #kept: (string | undefined)[] | undefined
  #keptBytes = 0
  readonly #count: number
  readonly #starts: Uint32Array
  readonly #wide: Uint8Array
  readonly #text: Uint8Array

  /** @throws {RangeError} for a damaged plan. */
  constructor(memory: SharedArrayBuffer, { count, starts, wide, text, textBytes }: StringsPlan) {
    this.#count = count
    this.#starts = new Uint32Array(memory, starts, count + 1)
    this.#wide = new Uint8Array(memory, wide, count)
    this.#text = new Uint8Array(memory, text, textBytes)
  }

  at(number: number): string {
    return this.#kept?.[number] ?? this.#decode(number)
  }

  #decode(number: number): string {
    const [start, end] = [this.#starts[number], this.#starts[number + 1]]
    const decode = this.#wide[number] === 1 ? rawText.ucs2Slice : rawText.latin1Slice
    const text = decode.call(this.#text, start, end)
    this.#keptBytes += end - start + STRING_BYTES
    if (this.#kept === undefined || this.#keptBytes > KEPT_BYTES_MAX) {
      this.#kept = new Array<string | undefined>(this.#count)
      this.#keptBytes = end - start + STRING_BYTES
    }
    this.#kept[number] = text
    return text
  }
}
