/**
 * What docs/STYLE.md asks for and no standard tool checks: the documents against the disk, records that are
 * cited, lock files, headers of files, which crate may depend on which, words that may not come back.
 *
 * Imports, sizes, `any` and promises are rules of oxlint (.oxlintrc.json), knip finds what nobody imports
 * (knip.json), clippy sizes in Rust and `unwrap`. tidy.test.mjs plants a violation of each rule, of those of
 * oxlint too, so an empty list means that the code is clean and not that nothing was looked at.
 */
import { ROOT, Stop } from '../set-up/index.mjs'
import { circles } from './rules/circles.mjs'
import { crateTable, systemChoices } from './rules/crates.mjs'
import { currentRecords, folderList, recordedCells, recordedNumbers, versions } from './rules/documents.mjs'
import { fileLengths, headers, lineLengths } from './rules/header.mjs'
import { locks } from './rules/lock.mjs'
import { ranks } from './rules/ranks.mjs'
import { words } from './rules/words.mjs'
import { readTree } from './tree.mjs'

/** Every rule by name: a function from a tree to findings. */
export const RULES = {
  header: headers,
  'line-length': lineLengths,
  'file-length': fileLengths,
  'crate-table': crateTable,
  circles,
  'system-choice': systemChoices,
  folders: folderList,
  ranks,
  version: versions,
  lock: locks,
  record: recordedNumbers,
  'current-record': currentRecords,
  'recorded-cell': recordedCells,
  words,
}

/**
 * Check the checkout.
 * @param {string[]} parts Show only findings whose path has one of these; none shows all.
 * @returns {Promise<string>} What was looked at.
 * @throws {Stop} With the findings, if there are any.
 */
export async function tidy(parts) {
  const tree = readTree(ROOT)
  const lines = Object.entries(RULES).flatMap(([rule, look]) =>
    look(tree)
      .filter(({ path }) => parts.length === 0 || parts.some((part) => path.includes(part)))
      .map(({ path, line, message }) => `${path}:${line} ${rule}: ${message}`),
  )
  if (lines.length > 0) throw new Stop(`${lines.join('\n')}\n${lines.length} findings`)
  return `${Object.keys(RULES).length} rules on ${tree.sources.length} files`
}
