/**
 * Every file opens with why it exists, and no line is too long to read beside another. A long source file
 * opens with the reason why it is not two.
 *
 * Whether the comment is true is for people; this checks that it exists and is longer than a restated name.
 */
import { rustOf, scriptsOf } from '../tree.mjs'

const HEADER_LINES_MIN = 2
/** The width of oxfmt and rustfmt, which leave comments and long texts alone. */
const LINE_CHARS_MAX = 110

export function headers(tree) {
  const short = [...scriptsOf(tree), ...rustOf(tree)].filter(
    ({ text }) => headerLines(text) < HEADER_LINES_MIN,
  )
  return short.map(({ path }) => ({
    path,
    line: 1,
    message: `opens without a comment of ${HEADER_LINES_MIN} lines on why the file exists`,
  }))
}

const LINES_MAX = 400
const OVER = new RegExp(`Over\\s+(?:\\* |//! )?${LINES_MAX}\\s+(?:\\* |//! )?lines:`)
/** Tests are tables of cases. */
const TESTS = /\.test\.|(^|\/)tests?(\/|\.rs$)/

export function fileLengths(tree) {
  return [...scriptsOf(tree), ...rustOf(tree)]
    .filter(
      ({ path, text }) => !TESTS.test(path) && text.split('\n').length - 1 > LINES_MAX && !OVER.test(text),
    )
    .map(({ path, text }) => {
      const count = text.split('\n').length - 1
      const message = `${count} lines; the file must open with "Over ${LINES_MAX} lines:" and the reason`
      return { path, line: 1, message }
    })
}

/** Lines with words in the comment a file opens with. */
function headerLines(text) {
  const body = text.replace(/^#!.*\n/, '').trimStart()
  const block = /^\/\*([\s\S]*?)\*\//.exec(body)?.[1]
  const lines = block === undefined ? leading(body.split('\n'), /^\s*\/\//) : block.split('\n')
  return lines.filter((line) => /\w/.test(line.replace(/@\w+/, ''))).length
}

function leading(lines, pattern) {
  const end = lines.findIndex((line) => !pattern.test(line))
  return end === -1 ? lines : lines.slice(0, end)
}

export function lineLengths(tree) {
  return [...scriptsOf(tree), ...rustOf(tree)].flatMap(({ path, text }) =>
    text.split('\n').flatMap((content, index) => {
      const length = [...content].length
      if (length <= LINE_CHARS_MAX) return []
      const message = `${length} characters; at most ${LINE_CHARS_MAX}`
      return [{ path, line: index + 1, message }]
    }),
  )
}
