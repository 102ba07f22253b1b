/**
 * Source maps for functions that were compiled without their file.
 *
 * Node reads a source map when it loads the file. A function from another thread is compiled under the name
 * of a file that this thread may never load; with `--enable-source-maps` its stacks must show the original
 * lines all the same. Without that option nothing happens here.
 */
import { readFileSync } from 'node:fs'
import { isAbsolute } from 'node:path'
import { fileURLToPath } from 'node:url'

/** What keeps Node's entry of a file alive; `undefined` for a file without a map. */
const learned = new Map<string, object | undefined>()

/** Apply the source map of `file`, a URL or a path, to stacks. */
export function learnSourceMap(file: string): void {
  if (!process.sourceMapsEnabled || learned.has(file)) return
  learned.set(file, undefined)
  try {
    const path = file.startsWith('file:') ? fileURLToPath(file) : file
    const { Module, findSourceMap } = process.getBuiltinModule('node:module')
    if (!isAbsolute(path) || findSourceMap(path) !== undefined) return
    const comment = /\/\/[#@] sourceMappingURL=\S+\s*$/.exec(readFileSync(path, 'utf8'))
    if (comment === null) return
    const module = new Module(path) as InstanceType<typeof Module> & {
      _compile(code: string, path: string): void
    }
    // An empty module of that name, for the comment alone: this is where Node looks for it.
    module._compile(comment[0], path)
    learned.set(file, module)
  } catch {
    // Without a readable source map, stacks show the compiled lines.
  }
}
