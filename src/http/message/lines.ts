/**
 * Complete header lines, as they are on the wire, taken apart again.
 *
 * They were checked when they were made or received, so nothing is checked here.
 */

/** Names and values of header lines, flat, without the whitespace around values. */
export function pairsOf(lines: string): string[] {
  const pairs: string[] = []
  for (const line of lines.split('\r\n')) {
    const colon = line.indexOf(':')
    if (colon > 0) pairs.push(line.slice(0, colon), line.slice(colon + 1).replace(/^[\t ]+|[\t ]+$/g, ''))
  }
  return pairs
}
