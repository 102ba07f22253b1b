/**
 * Comments whose lines are too long, filled again to the width of the repository.
 *
 * Works on lines, not on syntax: `//`, `//!`, `///` and the ` * ` lines of a block. Only paragraphs with a
 * line that is too long are touched. Lists and tags keep their hanging indent; code, tables and indented
 * lines stay.
 */

const BLOCK_OPEN = /^\s*\/\*/
const ONE_LINE = /^(\s*)\/\*\* (.*) \*\/$/
/** Starts something of its own, so it is never joined to the line above. */
const OWN = /^([-*] |\d+\. |@\w+|```|[|#]|$)/
/** Is shown as it stands. */
const VERBATIM = /^(```|[|#]|\s)/

/**
 * The text with its long comments refilled.
 * @param {string} text
 * @param {number} width
 */
export function refill(text, width) {
  const lines = text.split('\n')
  const filled = []
  for (let at = 0; at < lines.length;) {
    const one = ONE_LINE.exec(lines[at])
    const length = one === null ? paragraphLength(lines, at) : 1
    const paragraph = lines.slice(at, at + length)
    const long = (one !== null || isProse(lines[at])) && paragraph.some((line) => line.length > width)
    filled.push(...(long ? refilled(paragraph, one, width) : paragraph))
    at += length
  }
  return filled.join('\n')
}

/** Words of a comment that may be filled again. */
function isProse(line) {
  const words = commentLine(line)?.words ?? ''
  return words !== '' && !VERBATIM.test(words)
}

/** How many lines belong together from this one on; 1 for what is no prose. */
function paragraphLength(lines, start) {
  const first = commentLine(lines[start])
  if (!isProse(lines[start])) return 1
  let end = start + 1
  for (; end < lines.length; end += 1) {
    const next = commentLine(lines[end])
    if (next?.prefix !== first.prefix || OWN.test(next.words)) break
    if (next.words.startsWith(' ') && !OWN.test(first.words)) break
  }
  return end - start
}

/** A line of a comment as prefix and words; `undefined` for code and for the ends of a block. */
function commentLine(line) {
  if (BLOCK_OPEN.test(line) || line.includes('*/')) return undefined
  const parts = /^(\s*(?:\/\/[!/]?|\*)) ?(.*)$/.exec(line)
  return parts === null ? undefined : { prefix: `${parts[1]} `, words: parts[2] }
}

function refilled(paragraph, one, width) {
  if (one !== null) {
    const prefix = `${one[1]} * `
    const parts = one[2].split(/ (?=@(?:throws|param|returns)\b)/)
    return [`${one[1]}/**`, ...parts.flatMap((part) => fill(part, prefix, width)), `${one[1]} */`]
  }
  const lines = paragraph.map(commentLine)
  return fill(lines.map(({ words }) => words.trim()).join(' '), lines[0].prefix, width)
}

function fill(words, prefix, width) {
  const hanging = /^([-*]|\d+\.|@\w+) /.test(words) ? '  ' : ''
  const lines = []
  let line = prefix
  for (const word of words.split(' ').filter(Boolean)) {
    const isEmpty = line === prefix || line === prefix + hanging
    if (!isEmpty && line.length + 1 + word.length > width) {
      lines.push(line)
      line = prefix + hanging + word
    } else line += isEmpty ? word : ` ${word}`
  }
  return [...lines, line]
}
