/**
 * `npm test`: set up, then everything that must hold before a change is done.
 *
 * Steps: check (types, lints, formats, tidy), the Rust tests, the loom models, the bench's self-test, the
 * whole suite on this Node, the suite's core on Node 22, 24 and 26. Every step runs even when one before it
 * failed; the summary comes last.
 *
 *   npm test                      all of it
 *   npm test -- suite zone        only the step "suite", only test files with "zone" in their path
 *   npm test -- suite nodes       two steps
 */
import { onSupportedNode } from './set-up/node-version.mjs'

onSupportedNode(async function () {
  const { setUp } = await import('./set-up/index.mjs')
  await setUp()
  const { runTests } = await import('./test/main.mjs')
  return runTests(process.argv.slice(2))
})
