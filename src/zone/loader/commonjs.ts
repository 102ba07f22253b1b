/** What `require` gets for a TypeScript file, on Nodes that do not strip types. */
import { readFileSync } from 'node:fs'
import { Module } from 'node:module'
import { formatOf, stripTypes } from './strip.ts'

/** The parts of Node's CommonJS loader that loaders have always used. */
interface Compiling {
  _compile(code: string, path: string, format: string): void
}
type Extensions = Record<string, (module: Compiling, path: string) => void>

/** Let this thread `require` TypeScript, unless another loader does it already. */
export function installCommonJs(): void {
  const extensions = (Module as unknown as { _extensions: Extensions })._extensions
  for (const extension of ['.ts', '.mts', '.cts']) extensions[extension] ??= loadTypeScript
}

function loadTypeScript(module: Compiling, path: string): void {
  const code = stripTypes(readFileSync(path, 'utf8'), path)
  module._compile(code, path, formatOf(path, code))
}
