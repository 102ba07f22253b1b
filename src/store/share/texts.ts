/**
 * The strings of a value that is shared: each is numbered, and equal ones mostly have the same number.
 *
 * A column of names has as many strings as rows, and to find that out by looking each up takes longer than
 * all else. So while nearly all strings of a block are new, blocks behind it are numbered without a look, for
 * twice as many blocks each time; then one is looked up again. Equal strings have two numbers at worst, which
 * costs memory and is not visible.
 */
import { rawText } from '../../transport/internal.ts'

/** Rows of a column that are numbered in the same way. */
const BLOCK_ROWS = 1024
/** Most blocks that are numbered without a look, one after the other. */
const SKIPPED_BLOCKS_MAX = 32
/** Strings whose characters are written, and looked at for wide ones, together. */
const JOINED = 1024
/** Takes one comparison for strings that the engine stores in one byte per character. */
const isWide = /[^\0-\xff]/

export interface WrittenTexts {
  /** The position in `text` at which each string begins, and at which the last one ends. */
  readonly starts: Uint32Array
  /** 1: two bytes for each character. */
  readonly wide: Uint8Array
  readonly text: Uint8Array
}

export class Texts {
  readonly #numbers = new Map<string, number>()
  readonly #all: string[] = []
  #characters = 0

  get count(): number {
    return this.#all.length
  }

  /** The number of their characters, each of which takes a byte or two. */
  get characters(): number {
    return this.#characters
  }

  /**
   * Numbers the strings of a column into `rows`; other values are left out.
   * @param check Called with the characters so far, after each block.
   */
  number(values: readonly unknown[], rows: Uint32Array, check: (characters: number) => void): void {
    let [skipped, skips] = [0, 0]
    for (let start = 0; start < values.length; start += BLOCK_ROWS) {
      const end = Math.min(values.length, start + BLOCK_ROWS)
      if (skips > 0) {
        skips--
        this.#add(values, rows, start, end)
      } else {
        const isNew = this.#find(values, rows, start, end) > (end - start) * 0.875
        skipped = isNew ? Math.min(SKIPPED_BLOCKS_MAX, skipped * 2 + 1) : 0
        skips = skipped
      }
      check(this.#characters)
    }
  }

  /** @returns How many of them were new. */
  #find(values: readonly unknown[], rows: Uint32Array, start: number, end: number): number {
    const numbers = this.#numbers
    const before = numbers.size
    for (let row = start; row < end; row++) {
      const text = values[row]
      if (typeof text !== 'string') continue
      let number = numbers.get(text)
      if (number === undefined) {
        number = this.#push(text)
        numbers.set(text, number)
      }
      rows[row] = number
    }
    return numbers.size - before
  }

  #add(values: readonly unknown[], rows: Uint32Array, start: number, end: number): void {
    for (let row = start; row < end; row++) {
      const text = values[row]
      if (typeof text === 'string') rows[row] = this.#push(text)
    }
  }

  #push(text: string): number {
    this.#characters += text.length
    return this.#all.push(text) - 1
  }

  /** Writes all of them. @param check Called with their bytes, before there is memory for them. */
  written(check: (bytes: number) => void): WrittenTexts {
    const count = this.#all.length
    const wide = new Uint8Array(count)
    const parts: string[] = []
    let bytes = this.#characters
    for (let start = 0; start < count; start += JOINED) {
      const part = this.#all.slice(start, start + JOINED)
      const joined = part.join('')
      parts.push(joined)
      if (!isWide.test(joined)) continue
      for (let index = 0; index < part.length; index++) {
        if (!isWide.test(part[index])) continue
        wide[start + index] = 1
        bytes += part[index].length
      }
    }
    check(bytes)
    const [starts, text] = [new Uint32Array(count + 1), new Uint8Array(bytes)]
    let at = 0
    for (let start = 0, part = 0; start < count; start += JOINED, part++)
      at = this.#write(start, parts[part], at, { starts, wide, text })
    starts[count] = at
    return { starts, wide, text }
  }

  #write(start: number, joined: string, at: number, { starts, wide, text }: WrittenTexts): number {
    const end = Math.min(this.#all.length, start + JOINED)
    const isJoined = wide.indexOf(1, start) === -1 || wide.indexOf(1, start) >= end
    if (isJoined) rawText.latin1Write.call(text, joined, at, joined.length)
    for (let index = start; index < end; index++) {
      const one = this.#all[index]
      starts[index] = at
      if (!isJoined) {
        if (wide[index] === 1) rawText.ucs2Write.call(text, one, at, one.length * 2)
        else rawText.latin1Write.call(text, one, at, one.length)
      }
      at += one.length << wide[index]
    }
    return at
  }
}
