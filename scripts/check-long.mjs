/**
 * `npm run check:long`: the checks that take minutes to hours, each with its dated record.
 *
 *   npm run check:long                 every step
 *   npm run check:long -- miri fuzz    only steps with one of these words in their name
 *   npm run check:long -- --list       the steps and what each needs
 */
import { onSupportedNode } from './set-up/node-version.mjs'

onSupportedNode(async function () {
  const { setUp } = await import('./set-up/index.mjs')
  const { listSteps, runLong } = await import('./long/main.mjs')
  const words = process.argv.slice(2)
  if (words.includes('--list')) return listSteps()
  await setUp()
  return runLong(words)
})
