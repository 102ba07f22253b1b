/**
 * The runtime: which one it is, and modules of Node and of others that are loaded by their first use.
 *
 * A program that has imported Corespun and starts no worker does without `worker_threads`: 2.5 ms and 1.8 MB
 * (Node 24). The bundle takes what a file imports from Node when the file is loaded, so a file that needs a
 * module of Node rarely takes it by `process.getBuiltinModule` instead.
 */
let loaded: typeof import('node:worker_threads') | undefined

/**
 * The module; internal, because programs without the types of Node see the types of this folder.
 * @internal
 */
export function threads(): typeof import('node:worker_threads') {
  return (loaded ??= process.getBuiltinModule('node:worker_threads'))
}

/** How many threads run at once, as Node counts them. */
export function cores(): number {
  return process.getBuiltinModule('node:os').availableParallelism()
}

/**
 * A runtime beside Node that runs programs for it, such as `Bun 1.4.5`; `undefined` in Node. Asked only where
 * something would end the process there, or cannot work.
 */
export function otherRuntime(): string | undefined {
  const { bun, deno } = process.versions as { readonly bun?: string; readonly deno?: string }
  if (bun !== undefined) return `Bun ${bun}`
  return deno === undefined ? undefined : `Deno ${deno}`
}

/** What {@link requireShortened} has loaded: to look for a file takes longer than most of its calls. */
const shortened = new Map<string, unknown>()

/**
 * A module of others that lies in the package as a file of its own, shortened and compressed; `name` is what
 * that file's begins with. A checkout that is not bundled takes it from its packages.
 * @internal
 */
export function requireShortened(name: string, packageName: string): unknown {
  if (shortened.has(name)) return shortened.get(name)
  const { existsSync, readFileSync } = process.getBuiltinModule('node:fs')
  const require = process.getBuiltinModule('node:module').createRequire(import.meta.url)
  const own = process.getBuiltinModule('node:url').fileURLToPath(new URL(`../${name}.br`, import.meta.url))
  const module: { exports: unknown } = { exports: {} }
  if (existsSync(own)) {
    const text = process.getBuiltinModule('node:zlib').brotliDecompressSync(readFileSync(own)).toString()
    const { compileFunction } = process.getBuiltinModule('node:vm')
    const names = ['exports', 'require', 'module', '__filename']
    compileFunction(text, names, { filename: own })(module.exports, require, module, own)
  } else module.exports = require(packageName)
  shortened.set(name, module.exports)
  return module.exports
}
