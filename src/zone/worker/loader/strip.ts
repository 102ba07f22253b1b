/**
 * TypeScript to JavaScript by erasing types, and what kind of module the rest is.
 *
 * The engine is the one inside Node (swc, as WebAssembly), so a file means the same on every version; it is
 * loaded when the first file needs it. Errors have the class and the codes of Node's own.
 */
import { existsSync, readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { compileFunction } from 'node:vm'
import { packageType } from '../../../base/index.ts'

type Engine = typeof import('@swc/wasm-typescript')

/** What a module is, as Node's loader names it. */
export type Format = 'module' | 'commonjs'

/** Is this URL or path one of a TypeScript module? */
export function isTypeScript(file: string): boolean {
  return /\.[cm]?ts(?:$|[?#])/.test(file)
}

let engine: Engine | undefined

/**
 * The engine in the package: compressed, since few Nodes need it and it is larger than all the rest.
 * Decompressed it is the length of its JavaScript, the JavaScript, and the WebAssembly that this takes from
 * `module.wasm`.
 */
const COMPRESSED = new URL('../../../swc.js.br', import.meta.url)

function loadEngine(): Engine {
  const require = process.getBuiltinModule('node:module').createRequire(import.meta.url)
  if (!existsSync(COMPRESSED)) return require('@swc/wasm-typescript') as Engine
  const bytes = process.getBuiltinModule('node:zlib').brotliDecompressSync(readFileSync(COMPRESSED))
  const codeEnd = 4 + bytes.readUInt32LE(0)
  const module = { exports: {} as Engine, wasm: bytes.subarray(codeEnd) }
  compileFunction(bytes.toString('utf8', 4, codeEnd), ['require', 'module'])(require, module)
  return module.exports
}

/**
 * Erase the types of a module; every line and column stays.
 * @throws {SyntaxError} `ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX` for what erasing cannot do (enums, parameter
 * properties), `ERR_INVALID_TYPESCRIPT_SYNTAX` for other text. As in Node.
 * @throws {Error} `ERR_UNSUPPORTED_NODE_MODULES_TYPE_STRIPPING` for packages, which must ship JavaScript. As
 * in Node.
 */
export function stripTypes(source: string, path: string): string {
  if (/[\\/]node_modules[\\/]/.test(path)) {
    const message = `Stripping types is currently unsupported for files under node_modules, for "${path}"`
    throw Object.assign(new Error(message), { code: 'ERR_UNSUPPORTED_NODE_MODULES_TYPE_STRIPPING' })
  }
  engine ??= loadEngine()
  try {
    return engine.transformSync(source, { mode: 'strip-only', filename: path }).code
  } catch (error) {
    throw syntaxError(error, path)
  }
}

/** What a TypeScript file is: by its extension, else by its package, else by its syntax. */
export function formatOf(path: string, code: string): Format {
  if (path.endsWith('.mts')) return 'module'
  if (path.endsWith('.cts')) return 'commonjs'
  return packageType(dirname(path)) ?? (hasModuleSyntax(code) ? 'module' : 'commonjs')
}

interface Refusal {
  readonly code?: unknown
  readonly message?: unknown
  readonly snippet?: unknown
  readonly startLine?: unknown
  readonly startColumn?: unknown
}

/** The engine throws plain objects. */
function syntaxError(error: unknown, path: string): unknown {
  const { code, message, snippet, startLine, startColumn } = Object(error) as Refusal
  if (code !== 'UnsupportedSyntax' && code !== 'InvalidSyntax') return error
  const position = `${path}:${String(startLine)}:${Number(startColumn) + 1}`
  const kind = code === 'UnsupportedSyntax' ? 'UNSUPPORTED' : 'INVALID'
  const sentence = `${String(message)} (${position})\n${String(snippet)}`
  return Object.assign(new SyntaxError(sentence), { code: `ERR_${kind}_TYPESCRIPT_SYNTAX` })
}

/** As Node does: module syntax is an error in a CommonJS function. */
function hasModuleSyntax(code: string): boolean {
  try {
    compileFunction(code, ['exports', 'require', 'module', '__filename', '__dirname'])
    return false
  } catch (error) {
    return error instanceof SyntaxError && MODULE_ERRORS.some((each) => error.message.includes(each))
  }
}

/** V8's sentences about `import`, `export`, `import.meta` and top-level `await` outside a module. */
const MODULE_ERRORS = [
  'Cannot use import statement outside a module',
  "Unexpected token 'export'",
  "Cannot use 'import.meta' outside a module",
  'await is only valid in async functions and the top level bodies of modules',
]
