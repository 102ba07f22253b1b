/**
 * joined/: dist with few files to open, for the suite.
 *
 * Half of what a short test costs is Node's loader: each of its threads and processes opens up to two hundred
 * modules of dist, half a millisecond each. Here a module keeps its path and exports what a chunk of its area
 * has; the tests are the files of dist. lib would not do, since it has only the paths of doors. No module
 * names its source map, which coverage finds by the path (counters.mjs).
 */
import { readdirSync, readFileSync } from 'node:fs'
import { relative, sep } from 'node:path'
import { bundled, loadedByUrl, sources, write } from '../set-up/bundle.mjs'
import { filesBelow, inRoot } from '../set-up/index.mjs'
import { JOINED } from '../set-up/paths.mjs'

/** Joined, one of these would run when another is loaded. */
const APART = /[\\/](cli|plugin)[\\/]|[\\/]transport[\\/]index\.ts$/

/** With these variables `import 'corespun'` loads joined, too: lib would be a second copy of the package. */
export function joinedEnv() {
  return { NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} --conditions=corespun-joined`.trim() }
}

/** Write what has changed. @param {string[]} files Of tests. @returns {Promise<string[]>} Those to run. */
export async function joined(files) {
  if (!files.some((file) => file.startsWith('dist/'))) return files
  const texts = sources()
  const byUrl = loadedByUrl(texts)
  const groups = readdirSync(inRoot('src')).map((name) => ({
    name,
    test: (path) => path.startsWith(inRoot('src', name, sep)) && !byUrl.includes(path) && !APART.test(path),
  }))
  const codeSplitting = { groups, includeDependenciesRecursively: false }
  const { output } = await bundled(
    [...texts.keys()],
    { codeSplitting, minifyInternalExports: false, sourcemap: 'hidden' },
    {
      preserveEntrySignatures: 'allow-extension',
      checks: { ineffectiveDynamicImport: false, pluginTimings: false },
    },
  )
  const dist = inRoot('dist')
  const tests = filesBelow(dist, (path) => /\.test\.(support\.)?js(\.map)?$/.test(path))
  const copied = tests.map((path) => ({ fileName: relative(dist, path), source: readFileSync(path) }))
  write(JOINED, [...output, ...copied])
  return files.map((file) => file.replace(/^dist(?=\/)/, 'joined'))
}
