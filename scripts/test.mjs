/**
 * `npm test` and `npm run test:all`: set up, then what must hold before a change is done.
 *
 * `npm test` is check (types, lints, formats, tidy), the Rust tests and the suite on this Node without what
 * takes long. `npm run test:all` adds the rest of the suite, the loom models, the bench's self-test, the
 * coverage of lines (counted while the suite runs), and the suite's core on Node 22, 24 and 26. Every step
 * runs even when one before it failed; the summary comes last.
 *
 *   npm test                      check, rust, suite
 *   npm test -- suite zone        only test files with "zone" in their path, slow ones too, all of each
 *   npm test -- slow nodes        two steps
 *   npm run test:all              all steps
 */
import { onSupportedNode } from './set-up/node-version.mjs'

onSupportedNode(async function () {
  const { setUp } = await import('./set-up/index.mjs')
  await setUp()
  const { runTests } = await import('./test/main.mjs')
  const words = process.argv.slice(2)
  return runTests(
    words.filter((word) => word !== '--all'),
    { isAll: words.includes('--all') },
  )
})
