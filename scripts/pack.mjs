/**
 * `npm run package [-- --all] [folder]`: the tarballs as users get them, in .set-up/packed or that folder.
 *
 * Prints their paths, the package first, and their sizes on stderr. Without `--all` the core is that of this
 * machine, for trying out; what is published is made with `--all`. Publishing is not part of it.
 */
import { onSupportedNode } from './set-up/node-version.mjs'

onSupportedNode(async function () {
  const { inRoot, MEMORY, setUp } = await import('./set-up/index.mjs')
  const { resolve } = await import('node:path')
  const { parseArgs } = await import('node:util')
  const { values, positionals } = parseArgs({ options: { all: { type: 'boolean' } }, allowPositionals: true })
  await setUp()
  const { pack } = await import('./pack/main.mjs')
  const folder = positionals[0] === undefined ? resolve(MEMORY, 'packed') : inRoot(positionals[0])
  const cores = values.all ? await compileAll() : undefined
  for (const path of await pack(folder, cores, console.error)) console.log(path)
  return 0
})

async function compileAll() {
  const cross = await import('./cross/main.mjs')
  return cross.compileCores(console.error)
}
