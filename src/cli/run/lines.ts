/**
 * Text that arrives in pieces, cut into lines.
 *
 * A line ends at LF or CRLF; the last one needs no end. Memory is bounded by the longest line accepted: a
 * longer one becomes an error, and the rest of it is skipped.
 */
import { CliError } from '../errors.ts'

/** The text of an item, or the error that takes its position. */
export type Item = string | CliError

/** The line of an item that an earlier run has done. */
export class KeptLine {
  readonly line: string

  constructor(line: string) {
    this.line = line
  }
}

/** Cuts one text; make a new one for each. */
export class LineCutter {
  readonly #lineCharsMax: number
  readonly #blankLines: boolean
  #partial = ''
  #skipping = false
  #atStart = true

  /**
   * @param limits.lineCharsMax Longest line accepted, in UTF-16 units, without its end.
   * @param limits.blankLines Whether a line of nothing, or of spaces, is an item.
   */
  constructor(limits: { readonly lineCharsMax: number; readonly blankLines: boolean }) {
    this.#lineCharsMax = limits.lineCharsMax
    this.#blankLines = limits.blankLines
  }

  /** The lines that `text` completes. */
  push(text: string): Item[] {
    const items: Item[] = []
    let start = this.#atStart && text.charCodeAt(0) === 0xfeff ? 1 : 0
    if (text !== '') this.#atStart = false
    for (let end = text.indexOf('\n', start); end !== -1; end = text.indexOf('\n', start)) {
      this.#finish(text.slice(start, end), items)
      start = end + 1
    }
    if (start < text.length && !this.#skipping) this.#keep(text.slice(start), items)
    return items
  }

  /** The last line, when the text did not end with a line's end. */
  end(): Item[] {
    const items: Item[] = []
    if (this.#partial !== '') this.#finish('', items)
    return items
  }

  #finish(tail: string, items: Item[]): void {
    if (this.#skipping) {
      this.#skipping = false
      return
    }
    const line = this.#partial === '' ? tail : this.#partial + tail
    this.#partial = ''
    const text = line.endsWith('\r') ? line.slice(0, -1) : line
    if (text.length > this.#lineCharsMax) items.push(this.#tooLong())
    else if (this.#blankLines || text.trim() !== '') items.push(text)
  }

  #keep(piece: string, items: Item[]): void {
    this.#partial += piece
    // One more for a CR that may belong to the line's end.
    if (this.#partial.length <= this.#lineCharsMax + 1) return
    this.#partial = ''
    this.#skipping = true
    items.push(this.#tooLong())
  }

  #tooLong(): CliError {
    return new CliError('CLI_LINE_TOO_LONG', { lineCharsMax: this.#lineCharsMax })
  }
}
