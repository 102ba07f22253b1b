/**
 * What `require` gets for a TypeScript file, on Nodes that do not strip types. Also what `import` gets for
 * one that is CommonJS: hooks.ts leaves those to Node, which loads them as `require` does.
 */
/* oxlint-disable no-underscore-dangle -- the names are Node's, and every loader uses them */
import { readFileSync } from 'node:fs'
import { formatOf, stripTypes } from './strip.ts'

/** The parts of Node's CommonJS loader that this file uses. */
interface Compiling {
  _compile(code: string, path: string, format: string): void
}
type Extensions = Record<string, (module: Compiling, path: string) => void>

/** Let this thread `require` TypeScript, unless another loader does it already. */
export function installCommonJs(): void {
  const { Module } = process.getBuiltinModule('node:module')
  const extensions = (Module as unknown as { _extensions: Extensions })._extensions
  for (const extension of ['.ts', '.mts', '.cts']) extensions[extension] ??= loadTypeScript
}

function loadTypeScript(module: Compiling, path: string): void {
  const code = stripTypes(readFileSync(path, 'utf8'), path)
  module._compile(code, path, formatOf(path, code))
}
