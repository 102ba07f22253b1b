/**
 * Source maps of edits: the same lines, with columns moved behind each.
 *
 * Written here because the transform keeps every line break, which leaves a page of code.
 */

/** A change of the text: [start, end) becomes `text`, which ends with the line breaks that were there. */
export interface Edit {
  readonly start: number
  readonly end: number
  readonly text: string
}

/** The text from `start` to `end` with edits that do not overlap. */
export function edited(code: string, edits: readonly Edit[], start = 0, end = code.length): string {
  let result = ''
  let from = start
  for (const edit of edits.toSorted((a, b) => a.start - b.start)) {
    result += code.slice(from, edit.start) + edit.text
    from = edit.end
  }
  return result + code.slice(from, end)
}

/** A source map of version 3, for one source. */
export interface SourceMap {
  /** The version of the format. */
  readonly version: 3
  /** The file. */
  readonly sources: string[]
  /** Its text. */
  readonly sourcesContent: string[]
  /** Empty. */
  readonly names: string[]
  /** Positions, encoded. */
  readonly mappings: string
}

/** The map of `code` with edits, which are ordered and do not overlap. */
export function mapOf(code: string, source: string, edits: readonly Edit[]): SourceMap {
  const lines: string[] = []
  let start = 0
  let next = 0
  let before = { line: 0, column: 0 }
  for (const [line, text] of code.split('\n').entries()) {
    const columns: (readonly [generated: number, original: number])[] = [[0, 0]]
    const words = text.matchAll(/[\w$]+|[^\w\s$]/g)
    for (const { index } of words) columns.push([index, index])
    let added = 0
    const segments: string[] = []
    let generatedBefore = 0
    for (const [, original] of columns) {
      const at = start + original
      for (; next < edits.length && edits[next].end <= at; next++) {
        const edit = edits[next]
        added += edit.start < start ? start - edit.end : edit.text.length - (edit.end - edit.start)
      }
      if (next < edits.length && edits[next].start < at) continue
      const generated = original + added
      segments.push(
        vlq(generated - generatedBefore) + vlq(0) + vlq(line - before.line) + vlq(original - before.column),
      )
      generatedBefore = generated
      before = { line, column: original }
    }
    while (next < edits.length && edits[next].end <= start + text.length) next++
    lines.push(segments.join(','))
    start += text.length + 1
  }
  return { version: 3, sources: [source], sourcesContent: [code], names: [], mappings: lines.join(';') }
}

const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'

/** A number in base 64 with the sign in the lowest bit. */
function vlq(value: number): string {
  let rest = value < 0 ? (-value << 1) | 1 : value << 1
  let text = ''
  do {
    const digit = rest & 31
    rest >>>= 5
    text += DIGITS[rest > 0 ? digit | 32 : digit]
  } while (rest > 0)
  return text
}
