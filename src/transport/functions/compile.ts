/**
 * Compiles, in this thread, a function that functions.ts numbered in another.
 *
 * The text arrives checked and rewritten, so only the engine parses it here. A function is compiled under the
 * file, line and column of its source: stack traces, `import()` and `require` mean the same in both threads.
 * `vm` works where code generation from strings is forbidden.
 */
import { dirname, isAbsolute } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import vm from 'node:vm'
import { assert, hasMember, isObject, messageOf, shown } from '../../base/index.ts'
import { callerFile } from './caller.ts'
import { FunctionError, moduleReason } from './function-errors.ts'
import { importerOf, knownImporterOf, withLoader } from './importers.ts'
import { importedValues, setMaker, type LiftedImport } from './lifted.ts'
import { isMainModule } from './main-module.ts'
import { learnSourceMap } from './source-maps.ts'

/** Names that a compiled function receives as parameters. */
export type Given = 'require' | '__filename' | '__dirname' | '__name' | 'import.meta' | 'import'

/** A function ready to be compiled anywhere. */
export interface FunctionSource {
  readonly code: string
  /** A unit has statements around the function, and returns it. */
  readonly form: 'expression' | 'method' | 'unit'
  /** URL or path of the script; '' when unknown. */
  readonly file: string
  /** Where `code` begins in the file, from 0. */
  readonly line: number
  readonly column: number
  readonly strict: boolean
  /** The function's own `name`. */
  readonly name: string
  /** The variable that holds the function around itself, when it calls itself by it. */
  readonly self: string | undefined
  readonly usesImport: boolean
  readonly given: readonly Given[]
  /** Replaces `import.meta` in `code`. */
  readonly metaName: string | undefined
  /** Replaces `import` in `code`, where a literal is imported. */
  readonly importName?: string | undefined
  /** What a unit imports. */
  readonly imports?: readonly LiftedImport[]
  /** The file in stack traces, where it is not `file`. */
  readonly shown?: string | undefined
  /** The variables whose values a unit is given later: it is compiled to what makes the function of them. */
  readonly captured?: readonly string[] | undefined
}

/** Code that parses. Declared here because the public types must not need @types/node. */
export interface Checked {
  runInThisContext(): unknown
}

/** Called before this thread runs something written in `file`: a module's URL, or the text of a function. */
export type Preparation = (file: string, text: string) => void

let prepare: Preparation = () => {}

/** Have `next` called before anything from another thread is compiled or imported here. */
export function setPreparation(next: Preparation): void {
  prepare = next
}

/** The text under which a function is numbered. Equal texts are the same function. */
export function functionKey(source: FunctionSource): string {
  const { code, ...head } = source
  return `f${JSON.stringify(head)}\n${code}`
}

/** The text under which an export is numbered. `from` is set when `module` is relative to it. */
export function moduleKey(module: string, name: string, from: string | undefined): string {
  return `m${JSON.stringify(from === undefined ? [module, name] : [module, name, from])}`
}

/** The text under which code is numbered. */
export function codeKey(code: string, file: string): string {
  return `c${JSON.stringify(file)}\n${code}`
}

/** What people call the function of a key, and the file and line of its source, where they are recorded. */
export function labelOfKey(key: string): { name: string; file: string; line: number | undefined } {
  const end = key.indexOf('\n')
  const head: unknown = JSON.parse(key.slice(1, end < 0 ? undefined : end))
  if (Array.isArray(head)) return { name: String(head[1]), file: String(head[0]), line: undefined }
  if (typeof head === 'string') return { name: 'code', file: head, line: undefined }
  const { name, file, line } = head as FunctionSource
  return { name, file, line: line + 1 }
}

/**
 * Make the function of a key; a promise for an export, whose module must be imported first.
 * @throws {FunctionError} `FUNCTION_SYNTAX`, `FUNCTION_CODE` when the engine of this thread refuses the text;
 * the promise rejects with `FUNCTION_MODULE`, `FUNCTION_EXPORT_MISSING` or `FUNCTION_EXPORT_KIND`.
 */
export function compileKey(key: string): Function | Promise<Function> {
  const rest = key.slice(1)
  if (key[0] === 'm') {
    const loaded = exportsByKey.get(key)
    if (loaded !== undefined) return loaded
    const [module, name, from] = JSON.parse(rest) as [string, string, string | undefined]
    return exportedFunction(module, name, from)
  }
  const end = rest.indexOf('\n')
  const head: unknown = JSON.parse(rest.slice(0, end))
  const code = rest.slice(end + 1)
  if (key[0] === 'c') return codeFunction(code, head as string)
  assert(key[0] === 'f', `a function key begins with f, m or c, not ${shown(key[0])}`)
  return compiledFunction({ ...(head as Omit<FunctionSource, 'code'>), code })
}

/**
 * Check that code parses.
 * @throws {FunctionError} `FUNCTION_CODE` with the SyntaxError as its cause.
 */
export function checkCode(code: string, file: string): Checked {
  try {
    return withLoader((loader) => new vm.Script(code, { ...loader, filename: filenameOf(file) }))
  } catch (error) {
    throw new FunctionError('FUNCTION_CODE', { file, reason: messageOf(error) }, { cause: error })
  }
}

function compiledFunction(source: FunctionSource): Function {
  const imports = source.imports ?? []
  if (source.usesImport || source.given.includes('require')) prepare(source.file, source.code)
  for (const { from } of imports) prepare(from, '')
  learnSourceMap(source.file)
  const strict = source.strict ? '"use strict";' : ''
  const [before, after] = frameOf(source)
  const names = [...source.given.map((name) => nameIn(source, name)), ...imports.map(({ local }) => local)]
  const options: vm.CompileFunctionOptions = {
    filename: source.shown ?? filenameOf(source.file),
    lineOffset: source.line,
    columnOffset: source.column - strict.length - before.length,
  }
  let make: Function
  try {
    const text = strict + before + source.code + after
    make = source.usesImport
      ? withLoader((loader) => vm.compileFunction(text, names, { ...options, ...loader }))
      : vm.compileFunction(text, names, options)
  } catch (error) {
    const { name, file, line, column } = source
    const facts = { name, file, line: line + 1, column: column + 1, reason: messageOf(error) }
    throw new FunctionError('FUNCTION_SYNTAX', facts, { cause: error })
  }
  const given = source.given.map((name) => givenValue(name, source.file))
  const values = imports.length === 0 ? [] : importedValues(imports, requireOf(source.file))
  const made: unknown = make(...given, ...values)
  // An export or a declared function, whose name is its own.
  if (source.form === 'unit') {
    if (source.captured !== undefined) setMaker(made as Function, source.captured)
    return made as Function
  }
  const fn = source.form === 'method' ? methodOf(made as object) : (made as Function)
  if (fn.name !== source.name) Object.defineProperty(fn, 'name', { value: source.name, configurable: true })
  return fn
}

/** The name under which the code has what it is given. */
function nameIn({ metaName, importName }: FunctionSource, given: Given): string {
  if (given === 'import.meta') return metaName as string
  return given === 'import' ? (importName as string) : given
}

/** What is written before and after the code, so that it returns the function. */
function frameOf({ form, self, captured }: FunctionSource): readonly [before: string, after: string] {
  if (form === 'unit') return captured === undefined ? ['', ''] : [`return (${captured.join()}) => {`, '\n}']
  if (form === 'method') return ['return {', '\n}']
  return self === undefined ? ['return (', '\n)'] : [`const ${self} = (`, `\n); return ${self}`]
}

function methodOf(holder: object): Function {
  const [key] = Reflect.ownKeys(holder)
  const made = Object.getOwnPropertyDescriptor(holder, key) as PropertyDescriptor
  return (made.value ?? made.get ?? made.set) as Function
}

/** Code runs as a script of this thread: what it declares at the top stays for later code. */
function codeFunction(code: string, file: string): Function {
  const script = checkCode(code, file)
  prepare(file, code)
  return () => {
    // Scripts have no `require`. As with `node -e` it becomes a global, unless one is defined.
    if (/\brequire\b/.test(code) && !Object.hasOwn(globalThis, 'require')) {
      const value = scriptRequire(file)
      Object.defineProperty(globalThis, 'require', { value, configurable: true, writable: true })
    }
    return script.runInThisContext()
  }
}

async function exportedFunction(module: string, name: string, from: string | undefined): Promise<Function> {
  let space: Readonly<Record<string, unknown>>
  prepare(module, '')
  try {
    space = (await (from === undefined ? import(module) : importerOf(from)(module))) as typeof space
  } catch (error) {
    throw new FunctionError(
      'FUNCTION_MODULE',
      { module, reason: moduleReason(error, module) },
      { cause: error },
    )
  }
  rememberExports(module, from, space)
  let { owner, value } = member(space, name)
  if (value === undefined && isObject(space.default)) ({ owner, value } = member(space.default, name))
  if (typeof value === 'function') {
    return owner === space || owner === space.default ? value : (value.bind(owner) as Function)
  }
  if (value === undefined) {
    const exports = Object.keys(space)
      .filter((key) => key !== 'module.exports')
      .slice(0, EXPORTS_SHOWN_MAX)
    const facts = { module, export: name, exports }
    throw new FunctionError(
      'FUNCTION_EXPORT_MISSING',
      isMainModule(module) ? { ...facts, isMain: true } : facts,
    )
  }
  throw new FunctionError('FUNCTION_EXPORT_KIND', { module, export: name, received: shown(value) })
}

/** Functions that modules loaded by tasks export, and the keys they are numbered under. */
const exportsByKey = new Map<string, Function>()
const exportKeys = new WeakMap<Function, string>()
/** A module with more exports is a generated table; its other functions are numbered by their text. */
const EXPORTS_KEPT_MAX = 1000

function rememberExports(module: string, from: string | undefined, space: object): void {
  for (const [name, value] of Object.entries(space).slice(0, EXPORTS_KEPT_MAX)) {
    if (typeof value !== 'function') continue
    const key = moduleKey(module, name, from)
    exportsByKey.set(key, value)
    if (!exportKeys.has(value)) exportKeys.set(value, key)
  }
}

/** The key of a function that a module loaded by a task exports: it travels as that export. */
export function exportKeyOf(fn: Function): string | undefined {
  return exportKeys.get(fn)
}

/** How many exports an error lists. */
const EXPORTS_SHOWN_MAX = 30

type Member = { owner: unknown; value: unknown }

/** `name`, or with dots the member of a member; the owner is what a method is called on. */
function member(space: object, name: string): Member {
  if (hasMember(space, name)) return { owner: space, value: (space as Record<string, unknown>)[name] }
  let found: Member = { owner: undefined, value: space }
  for (const part of name.split('.')) {
    const owner = found.value
    if (!isObject(owner) || !hasMember(owner, part)) return { owner: undefined, value: undefined }
    found = { owner, value: (owner as Record<string, unknown>)[part] }
  }
  return found
}

function givenValue(name: Given, file: string): unknown {
  switch (name) {
    case 'require':
      return requireOf(file)
    case '__filename':
      return pathOf(file)
    case '__dirname':
      return dirname(pathOf(file))
    case '__name': // Compilers call it to keep the names of functions inside.
      return (target: Function, value: string) =>
        Object.defineProperty(target, 'name', { value, configurable: true })
    case 'import.meta':
      return metaOf(file)
    case 'import':
      return knownImporterOf(file)
  }
}

const metas = new Map<string, object>()

/** The `import.meta` of a file: one object per file and thread, as in Node. */
function metaOf(file: string): object {
  let meta = metas.get(file)
  if (meta === undefined) {
    const url = isAbsolute(file) ? pathToFileURL(file).href : file
    const path = url.startsWith('file:') ? fileURLToPath(url) : undefined
    const location = path === undefined ? {} : { dirname: dirname(path), filename: path }
    const resolve = (specifier: string): string => resolvedFrom(specifier, url)
    meta = Object.assign(Object.create(null) as object, location, { main: false, resolve, url })
    metas.set(file, meta)
  }
  return meta
}

function resolvedFrom(specifier: string, url: string): string {
  if (/^\.{0,2}\//.test(specifier)) return new URL(specifier, url).href
  if (URL.canParse(specifier)) return specifier
  const path = requireOf(url).resolve(specifier)
  return isAbsolute(path) ? pathToFileURL(path).href : path.startsWith('node:') ? path : `node:${path}`
}

const requires = new Map<string, NodeJS.Require>()

function requireOf(file: string): NodeJS.Require {
  let made = requires.get(file)
  if (made === undefined) {
    made = process.getBuiltinModule('node:module').createRequire(pathOf(file))
    requires.set(file, made)
  }
  return made
}

/**
 * The `require` of all scripts of this thread, relative to the script that calls it. Without a calling script
 * on the stack (a callback of the engine) it is relative to `file`.
 */
function scriptRequire(file: string): NodeJS.Require {
  const of = (above: Function): NodeJS.Require => {
    const caller = callerFile(above)
    return caller === '' || caller.startsWith('node:') ? requireOf(file) : requireOf(originalOf(caller))
  }
  const { cache, extensions, main } = requireOf(file)
  const resolve = Object.assign((id: string, options?: object) => of(resolve).resolve(id, options), {
    paths: (request: string) => of(resolve.paths).resolve.paths(request),
  })
  const required = Object.assign((id: string): unknown => of(required)(id), {
    cache,
    extensions,
    main,
    resolve,
  })
  return required as NodeJS.Require
}

/** The file of a script, from its name in stacks. */
function originalOf(filename: string): string {
  return filename === filenameOf('') ? '' : filename
}

/** Path of a script; one without a file is in the working directory, as with `node -e`. */
function pathOf(file: string): string {
  if (file.startsWith('file:')) return fileURLToPath(file)
  return isAbsolute(file) ? file : `${process.cwd()}/${file.replace(/[^\w.[\]-]/g, '_') || '[eval]'}`
}

function filenameOf(file: string): string {
  return file === '' ? 'anonymous' : file
}
