/**
 * Functions that the plugin has lifted out of their module at build time.
 *
 * Such a function is sent as the source that the plugin took before other tools rewrote it, together with the
 * imports that it uses. In the thread that made it, the function itself runs as ever. What it imports is
 * loaded by `require`, which loads ES modules too: a function in a frame must be there when it is read.
 * Variables that it captures travel as values, with each frame that it is in.
 */
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { types } from 'node:util'
import { fileURLToPath } from 'node:url'
import { hasMember, isObject } from '../../base/index.ts'
import { FunctionError, moduleReason } from './function-errors.ts'

/** An import of a lifted function. */
export interface LiftedImport {
  readonly local: string
  /** A URL, or a specifier relative to the file of the function. */
  readonly from: string
  /** The name of the export; `*` is the whole module. */
  readonly name: string
  /** Whether a tool has written the file, as an ES module or as CommonJS with `__esModule`. */
  readonly isEmitted?: boolean
}

/** What the plugin has taken from a module for one function. */
export interface LiftedSource {
  /** Statements that end with `return` and the function. */
  readonly code: string
  /** URL of the module; '' is the calling file, as in a bundle. */
  readonly file: string
  /** The name of the file in stack traces, where it is not `file`. */
  readonly shown?: string
  /** The line where `code` begins in the module, from 0. */
  readonly line: number
  /** The column of the first character, from 0. */
  readonly column: number
  readonly imports: readonly LiftedImport[]
  /** Whether `code` has an `import()`. */
  readonly usesImport: boolean
  /** Replaces `import.meta` in `code`. */
  readonly metaName?: string
  /** The captured variables whose values travel, in the order of the values. */
  readonly captured?: readonly string[]
  /** By name: functions of `code` that return the sources of what it sends itself. */
  readonly inner?: Readonly<Record<string, LiftedSource>>
}

/** A source with its files filled in; what it sends itself is in the same file. */
export function placed(source: LiftedSource, file: string): LiftedSource {
  const { inner, ...rest } = source
  const own = { ...rest, file: source.file === '' ? file : source.file }
  if (inner === undefined) return own
  const each = Object.entries(inner).map(([name, one]) => [name, placed(one, file)] as const)
  return { ...own, inner: Object.fromEntries(each) }
}

/** The code of a source, with its functions for what it sends itself. */
export function wholeCode({ code, inner = {} }: LiftedSource): string {
  const functions = Object.entries(inner).map(
    ([name, source]) => `\nfunction ${name}() { return ${JSON.stringify(source)} }`,
  )
  return code + functions.join('')
}

/** What a function captures. */
export interface Captures {
  /** The number of the function that makes it of the values. */
  readonly number: number
  readonly names: readonly string[]
  readonly values: readonly unknown[]
}

const captures = new WeakMap<Function, Captures>()
/** Nothing is looked up in a program without such functions. */
let isUsed = false

/** What a function captures and takes along; `undefined` for all that the plugin has not marked so. */
export function capturesOf(fn: Function): Captures | undefined {
  return isUsed ? captures.get(fn) : undefined
}

/** Have the values sent with `fn`. */
export function setCaptures(fn: Function, found: Captures): void {
  isUsed = true
  captures.set(fn, found)
}

const makers = new WeakMap<Function, readonly string[]>()

/** Note that `make` makes a function of the values of captured variables. */
export function setMaker(make: Function, names: readonly string[]): void {
  makers.set(make, names)
}

/**
 * The function of captured values, in the thread that received them.
 * @returns `undefined` when the number is not that of a maker of such values.
 */
export function capturingFunction(make: unknown, number: number, values: unknown): Function | undefined {
  const names = typeof make === 'function' ? makers.get(make) : undefined
  if (names === undefined || !Array.isArray(values) || values.length !== names.length) return undefined
  const fn = (make as (...values: unknown[]) => Function)(...(values as unknown[]))
  setCaptures(fn, { number, names, values })
  return fn
}

/** Node's; declared here because the public types must not need @types/node. */
type Require = ((module: string) => unknown) & { resolve(module: string): string }

/**
 * The values of the imports of a function, loaded by the `require` of its file.
 * @throws {FunctionError} `FUNCTION_MODULE`, `FUNCTION_EXPORT_MISSING`.
 */
export function importedValues(imports: readonly LiftedImport[], require: Require): unknown[] {
  return imports.map((each) => exportOf(loaded(require, each.from), each, require))
}

function loaded(require: Require, module: string): unknown {
  try {
    return require(module.startsWith('file:') ? fileURLToPath(module) : module)
  } catch (error) {
    throw new FunctionError(
      'FUNCTION_MODULE',
      { module, reason: moduleReason(error, module) },
      { cause: error },
    )
  }
}

function exportOf(module: unknown, each: LiftedImport, require: Require): unknown {
  const { from, name } = each
  if (name === '*') return module
  if (isObject(module) && types.isModuleNamespaceObject(module)) {
    if (hasMember(module, name)) return (module as unknown as Record<string, unknown>)[name]
    const facts = { module: from, export: name, exports: Object.keys(module) }
    throw new FunctionError('FUNCTION_EXPORT_MISSING', facts)
  }
  const { __esModule: isCompiled, default: value } = module as Record<string, unknown>
  if (name !== 'default') return (module as Record<string, unknown>)[name]
  // To Node the default export of CommonJS is all of it. Loaders (tsx) compile ES modules for `require`.
  const isModule = isCompiled === true && (each.isEmitted === true || isEsModule(require.resolve(from)))
  return isModule ? value : module
}

/** Is a file an ES module to Node? */
function isEsModule(path: string): boolean {
  const kind = /\.([cm])[jt]s$/.exec(path)?.[1]
  if (kind !== undefined) return kind === 'm'
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    try {
      const { type } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { type?: unknown }
      return type === 'module'
    } catch {
      if (folder === dirname(folder)) return false // no folder around it has one
    }
  }
}
