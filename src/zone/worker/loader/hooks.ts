/**
 * The module hooks of Nodes that do not strip types: what `import` gets for a TypeScript file.
 *
 * Runs in Node's thread for hooks. A loader that the program brought itself (tsx, ts-node) is asked first and
 * keeps its own behaviour; only files of unknown extension are handled here.
 */
import { readFile } from 'node:fs/promises'
import type { LoadHook } from 'node:module'
import { fileURLToPath } from 'node:url'
import { formatOf, isTypeScript, stripTypes } from './strip.ts'

/**
 * Load a module; Node calls it for each.
 * @throws {SyntaxError} and whatever else `stripTypes` refuses with; the error of Node or of another loader.
 */
export const load: LoadHook = async (url, context, nextLoad) => {
  if (!url.startsWith('file:') || !isTypeScript(url)) return await nextLoad(url, context)
  try {
    return await nextLoad(url, context)
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'ERR_UNKNOWN_FILE_EXTENSION') throw error
  }
  const path = fileURLToPath(url)
  const source = stripTypes(await readFile(path, 'utf8'), path)
  const format = formatOf(path, source)
  // Without a source Node loads CommonJS as require does, through what commonjs.ts has installed.
  return format === 'module' ? { format, source, shortCircuit: true } : { format, shortCircuit: true }
}
