/**
 * `npm run tidy`: only the style guide's tests, without set-up. Words choose files: `npm run tidy --
 * src/zone`.
 *
 * Needs the installed packages and nothing compiled, so it runs in a second while code is being written.
 */
import { onSupportedNode } from './set-up/node-version.mjs'

onSupportedNode(async function () {
  const { existsSync } = await import('node:fs')
  const { inRoot } = await import('./set-up/place.mjs')
  if (!existsSync(inRoot('node_modules', 'oxc-parser'))) {
    console.error('The packages that tidy needs are not installed: run `npm run build` once.')
    return 1
  }
  const { tidy } = await import('./tidy/main.mjs')
  console.log(await tidy(process.argv.slice(2)))
  return 0
})
