/**
 * The style guide as tests: every rule of docs/STYLE.md that a program can check.
 *
 * Findings are lines of `file:line rule: what`, as compilers print them. Each rule has a self-test that
 * plants a violation (tidy.test.mjs), so an empty list means that the code is clean and not that nothing was
 * looked at.
 */
import { ROOT, Stop } from '../set-up/index.mjs'
import { applyExceptions, firstList, grown } from './exceptions.mjs'
import { readTree } from './source.mjs'
import { currentRecords, folderList, recordedNumbers, versions } from './rules/documents.mjs'
import { locks } from './rules/lock.mjs'
import { anyTypes, exportDocs, functionSizes } from './rules/functions.mjs'
import { headers, lineLengths, syntax } from './rules/header.mjs'
import { cycles, doors, importTable } from './rules/imports.mjs'
import { crateTable, rustCycles, rustFunctionSizes, unwraps } from './rules/rust.mjs'

/** Every rule by name: a function from a tree to findings. */
export const RULES = {
  syntax,
  header: headers,
  'line-length': lineLengths,
  'function-size': functionSizes,
  'export-doc': exportDocs,
  any: anyTypes,
  'import-table': importTable,
  door: doors,
  cycle: cycles,
  'crate-table': crateTable,
  'rust-cycle': rustCycles,
  'rust-function-size': rustFunctionSizes,
  unwrap: unwraps,
  folders: folderList,
  version: versions,
  lock: locks,
  record: recordedNumbers,
  'current-record': currentRecords,
}

/**
 * What the rules find in a tree, without exceptions.
 * @param {ReturnType<typeof readTree>} tree
 * @returns {import('./source.mjs').Finding[]}
 */
export function findingsIn(tree) {
  return Object.entries(RULES).flatMap(([rule, look]) => look(tree).map((finding) => ({ rule, ...finding })))
}

/**
 * Check the checkout.
 * @param {string[]} words Show only findings whose path has one of these; none shows all.
 * @returns {Promise<string>} What was looked at.
 * @throws {Stop} With the list, when there is anything to say.
 */
export async function tidy(words) {
  const tree = readTree(ROOT)
  const listed = JSON.parse(tree.byPath.get('scripts/tidy/exceptions.json')?.text ?? '{}')
  const all = [...applyExceptions(findingsIn(tree), listed), ...grown(listed, firstList(ROOT) ?? listed)]
  const shown = words.length === 0 ? all : all.filter(({ path }) => words.some((word) => path.includes(word)))
  if (shown.length > 0) {
    const lines = shown.map(({ path, line, rule, message }) => `${path}:${line} ${rule}: ${message}`)
    throw new Stop(`${lines.join('\n')}\n${shown.length} findings`)
  }
  return `${Object.keys(RULES).length} rules on ${tree.sources.length} files`
}
