/**
 * `npm run build`: only the set-up that `npm start` and `npm test` do first.
 *
 * Also npm's `prepack`, so a tarball is never packed from a stale dist; it speaks on standard error alone,
 * because `npm pack` prints the tarball's name on standard output.
 */
import { onSupportedNode } from './set-up/node-version.mjs'

onSupportedNode(async function () {
  const { setUp } = await import('./set-up/index.mjs')
  await setUp()
  return 0
})
