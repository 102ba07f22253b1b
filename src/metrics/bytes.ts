/**
 * Text that is written as its bytes, for documents whose lines repeat each other: what was written is copied
 * faster than it is encoded again, and nothing has to be joined at the end.
 */

/** Digits of a number that is written without a string. */
const DIGITS_MAX = 9
const LARGEST = 10 ** DIGITS_MAX
/** Texts are encoded together: each call takes as long as a hundred characters. */
const TEXT_MAX = 8192

export class Bytes {
  #at = 0
  #buffer: Buffer
  /** Not encoded yet. */
  #text = ''

  /** @param bytes How many there will be, about. */
  constructor(bytes: number) {
    this.#buffer = Buffer.allocUnsafe(bytes)
  }

  /** Begins anew, in the same memory. */
  clear(): void {
    this.#at = 0
    this.#text = ''
  }

  /** Where the next byte goes. */
  get at(): number {
    if (this.#text !== '') this.#encode()
    return this.#at
  }

  text(text: string): void {
    this.#text += text
    if (this.#text.length > TEXT_MAX) this.#encode()
  }

  ascii(bytes: Uint8Array): void {
    const { at } = this
    this.#room(bytes.length)
    this.#buffer.set(bytes, at)
    this.#at += bytes.length
  }

  /** Writes the bytes between two positions once more, or those of another document. */
  again(from: number, to: number, of: Bytes = this): void {
    const { at } = this
    this.#room(to - from)
    of.#buffer.copy(this.#buffer, at, from, to)
    this.#at += to - from
  }

  number(value: number): void {
    if (!(value >= 0 && value < LARGEST && Number.isInteger(value))) return this.text(`${value}`)
    let { at } = this
    this.#room(DIGITS_MAX)
    at += 1
    for (let left = value; left >= 10; left = Math.trunc(left / 10)) at += 1
    this.#at = at
    let left = value
    do {
      const more = Math.trunc(left / 10)
      at -= 1
      this.#buffer[at] = 48 + left - more * 10
      left = more
    } while (left > 0)
  }

  /** All of it, in the memory of this object. */
  whole(): Buffer<ArrayBuffer> {
    const { at } = this
    return this.#buffer.subarray(0, at) as Buffer<ArrayBuffer>
  }

  #encode(): void {
    const text = this.#text
    this.#text = ''
    // A unit of a string has three bytes at most.
    this.#room(text.length * 3)
    this.#at += this.#buffer.write(text, this.#at)
  }

  #room(bytes: number): void {
    if (this.#at + bytes <= this.#buffer.length) return
    const larger = Buffer.allocUnsafe(2 * (this.#buffer.length + bytes))
    this.#buffer.copy(larger, 0, 0, this.#at)
    this.#buffer = larger
  }
}
