/**
 * `npm run package [-- folder]`: the tarballs as users get them, in .set-up/packed or the given folder.
 *
 * Prints their paths, the package first. Publishing is not part of it.
 */
import { onSupportedNode } from './set-up/node-version.mjs'

onSupportedNode(async function () {
  const { inRoot, MEMORY, setUp } = await import('./set-up/index.mjs')
  const { resolve } = await import('node:path')
  await setUp()
  const { pack } = await import('./pack/main.mjs')
  const folder = process.argv[2] === undefined ? resolve(MEMORY, 'packed') : inRoot(process.argv[2])
  for (const path of await pack(folder)) console.log(path)
  return 0
})
