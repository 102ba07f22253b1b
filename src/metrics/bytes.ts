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
  /** What is not copied yet, of another document. */
  #of: Bytes | undefined
  #from = 0
  #to = 0

  /** @param bytes How many there will be, about. */
  constructor(bytes: number) {
    this.#buffer = Buffer.allocUnsafe(bytes)
  }

  /** Begins anew, in the same memory. */
  clear(): void {
    this.#at = this.#from = this.#to = 0
    this.#text = ''
  }

  /** Where the next byte goes. */
  get at(): number {
    if (this.#text !== '') this.#encode()
    return this.#at + this.#to - this.#from
  }

  text(text: string): void {
    if (this.#from !== this.#to) this.#copy()
    this.#text += text
    if (this.#text.length > TEXT_MAX) this.#encode()
  }

  ascii(bytes: Uint8Array): void {
    this.#complete()
    this.#room(bytes.length)
    this.#buffer.set(bytes, this.#at)
    this.#at += bytes.length
  }

  /** Writes the bytes between two positions once more. */
  again(from: number, to: number): void {
    this.#complete()
    this.#put(this, from, to)
  }

  /** Writes those of another document; what follows each other there is copied together. */
  copy(of: Bytes, from: number, to: number): void {
    if (this.#text !== '') this.#encode()
    if (this.#of !== of || this.#to !== from) {
      this.#copy()
      this.#of = of
      this.#from = from
    }
    this.#to = to
  }

  number(value: number): void {
    if (!(value >= 0 && value < LARGEST && Number.isInteger(value))) return this.text(`${value}`)
    this.#complete()
    this.#room(DIGITS_MAX)
    let at = this.#at + 1
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
    this.#complete()
    return this.#buffer.subarray(0, this.#at) as Buffer<ArrayBuffer>
  }

  #complete(): void {
    if (this.#text !== '') this.#encode()
    if (this.#from !== this.#to) this.#copy()
  }

  #copy(): void {
    const [from, to] = [this.#from, this.#to]
    this.#from = this.#to = 0
    if (this.#of !== undefined) this.#put(this.#of, from, to)
    this.#of = undefined
  }

  #put(of: Bytes, from: number, to: number): void {
    this.#room(to - from)
    of.#buffer.copy(this.#buffer, this.#at, from, to)
    this.#at += to - from
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
