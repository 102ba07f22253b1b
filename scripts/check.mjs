/**
 * `npm run check`: everything that can be checked without running the code.
 *
 *   npm run check                 all of it
 *   npm run check -- types tidy   only these: types, lint, format, unused, rustfmt, clippy, tidy
 */
import { onSupportedNode } from './set-up/node-version.mjs'

onSupportedNode(async function () {
  const { setUp } = await import('./set-up/index.mjs')
  await setUp()
  const { runChecks } = await import('./check/main.mjs')
  return runChecks(process.argv.slice(2))
})
