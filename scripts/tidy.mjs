/**
 * `npm run tidy`: only scripts/tidy, without set-up. Words choose files: `npm run tidy -- src/zone`.
 *
 * Needs nothing installed and nothing compiled, so it runs in a second while code is being written.
 */
import { onSupportedNode } from './set-up/node-version.mjs'

onSupportedNode(async function () {
  const { tidy } = await import('./tidy/main.mjs')
  console.log(await tidy(process.argv.slice(2)))
  return 0
})
