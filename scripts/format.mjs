/**
 * `npm run format [-- words]`: TypeScript and JavaScript by prettier, Rust by rustfmt, long comments
 * refilled.
 *
 * Words choose files by path; none means every file of ours. Nothing checks that this was run: what must hold
 * (the width of lines, the form of Rust) is checked by itself.
 */
import { onSupportedNode } from './set-up/node-version.mjs'

onSupportedNode(async function () {
  const { existsSync } = await import('node:fs')
  const { inRoot } = await import('./set-up/place.mjs')
  if (!existsSync(inRoot('node_modules', 'prettier'))) {
    console.error('The packages that formatting needs are not installed: run `npm run build` once.')
    return 1
  }
  const { format } = await import('./format/main.mjs')
  await format(process.argv.slice(2))
  return 0
})
