/**
 * Source maps of insertions: the same lines, with columns moved behind each.
 *
 * Written here because an insertion into a line is all that the transform does.
 */

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

/** The map of `code` with insertions, ordered by their position. */
export function mapOf(
  code: string,
  source: string,
  edits: readonly { readonly at: number; readonly text: string }[],
): SourceMap {
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
      while (next < edits.length && (edits[next] as { at: number }).at <= at)
        added += (edits[next++] as { text: string }).text.length
      const generated = original + added
      segments.push(
        vlq(generated - generatedBefore) + vlq(0) + vlq(line - before.line) + vlq(original - before.column),
      )
      generatedBefore = generated
      before = { line, column: original }
    }
    while (next < edits.length && (edits[next] as { at: number }).at <= start + text.length) next++
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
