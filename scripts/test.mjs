/**
 * `npm test` and `npm run test:all`: set up, then what must hold before a change is done.
 *
 * The steps are a table (test/steps.mjs). `npm test` is check (types, lints, formats, tidy), the Rust tests
 * and the suite on this Node without what takes long; `npm run test:all`, which CI runs, adds the rest.
 *
 *   npm test                      check, rust, suite
 *   npm test -- suite zone        only test files with "zone" in their path, slow ones too, all of each
 *   npm test -- slow nodes        two steps
 *   npm run test:all              all steps but those that the table leaves out
 *   npm run test:all -- --list    the table
 */
import { onSupportedNode } from './set-up/node-version.mjs'

onSupportedNode(async function () {
  const words = process.argv.slice(2).filter((word) => !word.startsWith('--'))
  if (process.argv.includes('--list')) {
    const { listed } = await import('./test/steps.mjs')
    console.log(listed())
    return 0
  }
  const { setUp } = await import('./set-up/index.mjs')
  await setUp()
  const { runTests } = await import('./test/main.mjs')
  return runTests(words, { isAll: process.argv.includes('--all') })
})
