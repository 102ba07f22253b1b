/**
 * The API reference: HTML pages made by TypeDoc from the doc comments of what package.json exports,
 * with the guides.
 *
 * TypeDoc needs a TypeScript whose compiler is written in JavaScript, which version 7 is not. It is installed
 * below .set-up/ with a TypeScript of its own, never into node_modules. A warning is an error: a link without
 * a target, a public type that is not exported, a parameter that does not exist.
 */
import { join } from 'node:path'
import { doors, inRoot, installCopy, MEMORY } from '../set-up/index.mjs'
import { emptyReport, shown } from '../test/report.mjs'

const FOLDER = join(MEMORY, 'reference')
/** Where the pages are written; git ignores it. */
const PAGES = inRoot('reference')

/**
 * Write the reference.
 * @param {import('../test/report.mjs').Report} [report]
 * @returns {Promise<number>} 0 when TypeDoc found nothing to warn of.
 */
export async function writeReference(report = emptyReport()) {
  await installCopy('TypeDoc', inRoot('scripts', 'reference'), FOLDER)
  const typedoc = join(FOLDER, 'node_modules', 'typedoc', 'bin', 'typedoc')
  const options = ['--options', inRoot('scripts', 'reference', 'typedoc.json')]
  // The root last: a name belongs to the entry point of its part.
  const [root, ...parts] = doors()
  const entries = [...parts, root].flatMap((door) => ['--entryPoints', inRoot('src', `${door}.ts`)])
  const input = ['--tsconfig', inRoot('tsconfig.json'), ...entries]
  const args = [typedoc, ...options, ...input, '--out', PAGES]
  return shown('reference', report, process.execPath, args)
}
