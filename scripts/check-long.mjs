/**
 * `npm run check:long`: the checks that take minutes to hours (.github/workflows/long.yml).
 *
 *   npm run check:long                 every step
 *   npm run check:long -- miri fuzz    only steps with one of these words in their name
 *   npm run check:long -- --list       the steps and how long each may take
 */
import { onSupportedNode } from './set-up/node-version.mjs'

onSupportedNode(async function () {
  const { setUp } = await import('./set-up/index.mjs')
  await setUp()
  const { listSteps, runLong } = await import('./long/main.mjs')
  const words = process.argv.slice(2)
  return words.includes('--list') ? listSteps() : runLong(words)
})
