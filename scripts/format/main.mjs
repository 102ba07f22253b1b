/**
 * Formats the files that words choose: prettier, then comments that it leaves alone; rustfmt for all Rust.
 *
 * Only files that tidy looks at are touched, so nothing generated and nothing broken on purpose.
 */
import { writeFileSync } from 'node:fs'
import { format as prettify } from 'prettier'
import { inRoot, must, needComponent, ROOT } from '../set-up/index.mjs'
import { readTree, rustOf, scriptsOf } from '../tidy/source.mjs'
import { LINE_CHARS_MAX } from '../tidy/table.mjs'
import { refill } from './refill.mjs'

const OPTIONS = { semi: false, singleQuote: true, printWidth: LINE_CHARS_MAX, trailingComma: 'all' }

/**
 * Format files.
 * @param {string[]} words Those whose path has one of these; none means all.
 */
export async function format(words) {
  const tree = readTree(ROOT)
  const isChosen = ({ path }) => words.length === 0 || words.some((word) => path.includes(word))
  for (const { path, text } of scriptsOf(tree).filter(isChosen)) {
    const pretty = await prettify(refill(text, LINE_CHARS_MAX), { ...OPTIONS, filepath: path })
    if (pretty !== text) write(path, pretty)
  }
  const rust = rustOf(tree).filter(isChosen)
  for (const { path, text } of rust) {
    const filled = refill(text, LINE_CHARS_MAX)
    if (filled !== text) write(path, filled)
  }
  if (rust.length === 0) return
  await needComponent('rustfmt')
  await must('Formatting Rust', 'rustfmt', ['--edition', '2024', ...rust.map(({ path }) => inRoot(path))])
}

function write(path, text) {
  writeFileSync(inRoot(path), text)
  console.log(path)
}
