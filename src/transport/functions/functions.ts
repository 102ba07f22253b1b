/**
 * Functions travel by number: the sender numbers the source once per process, each thread compiles it once.
 *
 * A number identifies one key (source, location, parameters), so it means the same in every thread and is
 * never reused. Functions are refused here, in the sending thread, before anything is sent. Captured values
 * are deliberately not copied, except where the plugin has seen that nothing assigns the variable: a copy of
 * a variable is another variable.
 *
 * Over 400 lines: one numbering, and the caches of a thread that all ways to a number share.
 */
import { isAbsolute } from 'node:path'
import { pathToFileURL } from 'node:url'
import { shown } from '../../base/index.ts'
import { callerFile } from './caller.ts'
import { checkCode, codeKey, compileKey, exportKeyOf, functionKey, moduleKey } from './compile.ts'
import { FunctionError } from './function-errors.ts'
import { keyOfFunction } from './function-key.ts'
import { capturesOf, placed, setCaptures, wholeCode, type LiftedSource } from './lifted.ts'
import { warnOfMainModule } from './main-module.ts'
import { fileOfFunction, setScriptLocations, type ScriptLocation } from './origin.ts'

export { setPreparation, type Preparation } from './compile.ts'

/** The process-wide numbering of function texts. */
export interface FunctionTable {
  /** The number of a text, from 1; 0 when the table is full. */
  intern(key: string): number
  /** The text of a number; `undefined` when no thread numbered it. */
  interned(number: number): string | undefined
  /**
   * The number of the location (script and position) of `fn`; 0 before it has one, -1 when the location is
   * unknown: then functions are compared by their text. Called without a receiver.
   */
  readonly known?: ((fn: Function) => number) | undefined
  /** Assign the number to the location of `fn`. Called without a receiver. */
  readonly remember?: ((fn: Function, number: number) => void) | undefined
  /** The location of `fn` in the engine's records; `undefined` when unknown. */
  readonly origin?: ((fn: Function) => ScriptLocation | undefined) | undefined
}

/** Texts cached per thread; more than a program has unless it generates code endlessly. */
const TEXTS_MAX = 50_000
/** Every Nth new function object from a known location or text is cached by identity. */
const REMEMBER_EACH = 64

let table!: FunctionTable
let knownAt: FunctionTable['known']

let numberOf = new WeakMap<Function, number>()
const numberOfText = new Map<string, number>()
/** The numbers of exports that were sent as values. */
let valueNumberOf = new WeakMap<Function, number>()
let unitsOf = new WeakMap<() => LiftedSource, { number: number; names: readonly string[] | undefined }>()
let functionsOf: (Function | undefined)[] = []
/** Of functions that are sent by their text alone: of objects, and of texts with their files. */
let byTextOf = new WeakMap<Function, number>()
const byText = new Map<string, number>()

// The program keeps a function that is called again, so this reference keeps nothing else alive.
let lastFunction: Function | undefined
let lastNumber = 0
let rememberIn = REMEMBER_EACH

/** Use `next` from now on, and drop what this thread has cached. */
export function setFunctionTable(next: FunctionTable): void {
  table = next
  knownAt = next.known
  setScriptLocations(next.origin)
  numberOfText.clear()
  absolute.clear()
  relative.clear()
  functionsOf = []
  numberOf = new WeakMap()
  valueNumberOf = new WeakMap()
  unitsOf = new WeakMap()
  byTextOf = new WeakMap()
  byText.clear()
  callNumber = 0
  lastFunction = undefined
  lastModule = undefined
  lastExport = 0
}

/**
 * The number of a function object that this thread has cached; 0 for any other. For callers with a faster way
 * for new objects than {@link functionNumber}.
 */
export function seenFunctionNumber(fn: Function): number {
  if (fn === lastFunction) return lastNumber
  const known = numberOf.get(fn)
  if (known === undefined) return 0
  lastFunction = fn
  lastNumber = known
  return known
}

/**
 * The process-wide number of a function, for {@link functionByNumber} in any thread.
 * @throws {FunctionError} when the function cannot travel, with the variables it captures and where.
 */
export function functionNumber(fn: Function): number {
  const seen = seenFunctionNumber(fn)
  return seen === 0 ? freshNumber(fn) : seen
}

/**
 * The number of a function that is sent by its text alone: each name that it captures here is a global of the
 * thread that runs it. Functions of one file and text are one function, in this thread the first of them.
 * @param caller Returns the file that it belongs to if the engine has not recorded one: a path or a URL.
 * @param own Instead of the file that the engine has recorded.
 * @throws {FunctionError} when the text is not enough: native functions, classes, `super`, `#names`, and
 * arrows that use the `this` around them.
 */
export function textNumber(fn: Function, caller: () => string, own?: string): number {
  const known = seenFunctionNumber(fn) || byTextOf.get(fn)
  if (known !== undefined) return known
  const text = textOf(fn)
  const file = own ?? (fileOfFunction(fn) || caller())
  const signature = `${file}\n${text}`
  let number = byText.get(signature)
  if (number === undefined) {
    const { key, what } = keyOfFunction(fn, text, file)
    number = numbered(key, what)
    remember(byText, signature, number)
    functionsOf[number] ??= fn
  }
  byTextOf.set(fn, number)
  return number
}

/**
 * The number of a function within a value. Values are read at once, by threads that may not have imported the
 * module of an export, so its text is sent where that has all it needs.
 * @throws {FunctionError} as {@link functionNumber}.
 */
export function valueNumber(fn: Function): number {
  if (exportKeyOf(fn) === undefined) return functionNumber(fn)
  const known = valueNumberOf.get(fn)
  if (known !== undefined) return known
  let number = functionNumber(fn)
  if (exportOfNumber(number) !== undefined) {
    try {
      number = numbered(keyOfFunction(fn, textOf(fn)).key, fn.name)
    } catch {
      // Its text is not enough. The other thread has its module if it runs the same tasks.
    }
  }
  valueNumberOf.set(fn, number)
  return number
}

/** The export that has a number; `undefined` for a function that has it by its text. */
export function exportOfNumber(number: number): [module: string, name: string] | undefined {
  const key = table.interned(number)
  return key?.[0] === 'm' ? (JSON.parse(key.slice(1)) as [string, string]) : undefined
}

/**
 * The function of a number, compiled in this thread when it is first asked for. An export of a module is a
 * promise until its module has been imported, and the function itself from then on.
 * @throws {FunctionError} `FUNCTION_UNKNOWN`; `FUNCTION_SYNTAX` or `FUNCTION_CODE` when this thread's engine
 * refuses the text. A promise rejects with `FUNCTION_MODULE`, `FUNCTION_EXPORT_MISSING` or
 * `FUNCTION_EXPORT_KIND`.
 */
export function functionByNumber(number: number): Function | Promise<Function> {
  return functionsOf[number] ?? firstFunction(number)
}

/**
 * Mark a function as one that the plugin has lifted out of its module: it is sent as `source`, with what that
 * imports. Written by the plugin into the code that it transforms, and of no use elsewhere.
 * @param source The same function at each call, for functions of one call site.
 * @param values Of the variables that `source` names as captured: they are copied when `fn` is sent.
 * @returns `fn`, unmarked if it is not a function.
 * @throws {FunctionError} `FUNCTION_TABLE_FULL`.
 * @example
 * ```ts
 * import { lifted } from 'corespun/transport'
 *
 * const where = { file: import.meta.url, line: 0, column: 0 }
 * const unit = () => ({ code: 'return (n) => n * 2', ...where, usesImport: false, imports: [] })
 * const double = lifted((n: number) => n * 2, unit)
 * console.log(double(2)) // 4
 * ```
 */
export function lifted<Fn>(fn: Fn, source: () => LiftedSource, values?: readonly unknown[]): Fn {
  if (typeof fn !== 'function') return fn
  let unit = unitsOf.get(source)
  if (unit === undefined) unitsOf.set(source, (unit = unitOf(source, fn.name)))
  const { number, names } = unit
  if (names === undefined) numberOf.set(fn, number)
  else setCaptures(fn, { number, names, values: values ?? [] })
  return fn
}

function unitOf(
  source: () => LiftedSource,
  name: string,
): { readonly number: number; readonly names: readonly string[] | undefined } {
  const taken = source()
  const found = placed(taken, taken.file === '' ? callerFile(lifted) : taken.file)
  const { metaName, inner: _sent, ...unit } = found
  const key = functionKey({
    ...unit,
    code: wholeCode(found),
    form: 'unit',
    strict: true,
    name: '',
    self: undefined,
    given: metaName === undefined ? [] : ['import.meta'],
    metaName,
  })
  return { number: numbered(key, name === '' ? 'an anonymous function' : name), names: unit.captured }
}

/** Calls its last argument with the others. */
const CALL = '(...all) => all.pop()(...all)'
let callNumber = 0

/** The number by which a zone calls `fn`, with {@link calledArguments}. @throws {FunctionError} */
export function calledNumber(fn: Function): number {
  const seen = seenFunctionNumber(fn)
  if (seen !== 0) return seen
  if (capturesOf(fn) === undefined) return freshNumber(fn)
  if (callNumber === 0) {
    callNumber = numbered(
      functionKey({
        code: CALL,
        form: 'expression',
        file: import.meta.url,
        line: 0,
        column: 0,
        strict: true,
        name: '',
        self: undefined,
        usesImport: false,
        given: [],
        metaName: undefined,
      }),
      'a function with captured values',
    )
  }
  return callNumber
}

/** The arguments for {@link calledNumber}: a function that takes values along is one itself, the last. */
export function calledArguments(fn: Function, args: readonly unknown[]): readonly unknown[] {
  return capturesOf(fn) === undefined ? args : [...args, fn]
}

/**
 * The URL of a file that the plugin has emitted beside the bundle. Written by the plugin into the code that
 * it transforms, and of no use elsewhere.
 * @param location Relative to the calling file, or a URL.
 * @throws {TypeError} When `location` is not a URL, and the file of the caller is unknown.
 * @example
 * ```ts
 * import { emittedUrl } from 'corespun/transport'
 *
 * console.log(emittedUrl('file:///app/corespun-words.mjs').pathname) // /app/corespun-words.mjs
 * ```
 */
export function emittedUrl(location: string): URL {
  return new URL(location, URL.canParse(location) ? undefined : baseOf(callerFile(emittedUrl)))
}

let lastModule: string | undefined
let lastName: unknown
let lastExport = 0

/** The number of an export that was asked for before, by an absolute URL or path; 0 when it was not. */
export function seenExportNumber(module: unknown, name: unknown): number {
  const asked = module instanceof URL ? module.href : module
  if (asked === lastModule && name === lastName) return lastExport
  const known = absolute.get(asked as string)?.get(name as string)
  if (known === undefined) return 0
  lastModule = asked as string
  lastName = name
  lastExport = known
  return known
}

/**
 * The number of an export of a module. `name` may be `default` and may name a member of an export
 * (`api.score`), which is then called on its owner. A module is an absolute URL or path; relative and bare
 * names need `from`, the URL or path of the file that contains them (or a function that returns it, called
 * only if needed), and are resolved as an `import()` there.
 * @throws {FunctionError} `FUNCTION_MODULE_NAME`, `FUNCTION_TABLE_FULL`.
 */
export function moduleFunctionNumber(
  module: string | URL,
  name: string,
  from?: string | (() => string),
): number {
  const seen = seenExportNumber(module, name)
  if (seen !== 0) return seen
  const asked = typeof module === 'string' ? module : module.href
  const complete = isAbsolute(asked) || URL.canParse(asked)
  const base = complete ? undefined : typeof from === 'function' ? from() : from
  const numbers = childOf(base === undefined ? absolute : childOf(relative, base), asked)
  let number = numbers.get(name)
  if (number === undefined) {
    number = numbered(keyOfExport(asked, name, base), `${asked}#${name}`)
    numbers.set(name, number)
  }
  return number
}

/**
 * The number of a piece of code, run as a script: what it declares at its top stays in the thread that runs
 * it. `file` names it in stack traces and is what its `import()` and `require` are relative to.
 * @throws {FunctionError} `FUNCTION_CODE` when it does not parse; `FUNCTION_TABLE_FULL`.
 */
export function codeNumber(code: string, file: string): number {
  const key = codeKey(code, file)
  let number = numberOfText.get(key)
  if (number === undefined) {
    checkCode(code, file)
    number = numbered(key, file === '' ? 'code' : `code of ${file}`)
    remember(numberOfText, key, number)
  }
  return number
}

const absolute = new Map<string, Map<string, number>>()
const relative = new Map<string, Map<string, Map<string, number>>>()

function childOf<Value>(parent: Map<string, Map<string, Value>>, key: string): Map<string, Value> {
  let child = parent.get(key)
  if (child === undefined) parent.set(key, (child = new Map()))
  return child
}

function keyOfExport(module: string, name: string, from: string | undefined): string {
  if (isAbsolute(module)) return keyOfUrl(pathToFileURL(module).href, name)
  if (URL.canParse(module)) return keyOfUrl(module, name)
  if (from === undefined) {
    const reason = 'is not an absolute path or URL, and the file it is relative to is not known'
    throw new FunctionError('FUNCTION_MODULE_NAME', { module, reason })
  }
  const base = baseOf(from)
  if (!/^\.{1,2}\//.test(module)) return moduleKey(module, name, base)
  if (URL.canParse(module, base)) return keyOfUrl(new URL(module, base).href, name)
  throw new FunctionError('FUNCTION_MODULE_NAME', { module, reason: `cannot be relative to ${shown(from)}` })
}

function keyOfUrl(url: string, name: string): string {
  warnOfMainModule(url)
  return moduleKey(url, name, undefined)
}

/** As in Node, code without a file (`-e`, the REPL) is in the working directory. */
function baseOf(from: string): string {
  if (isAbsolute(from)) return pathToFileURL(from).href
  return URL.canParse(from) ? from : pathToFileURL(`${process.cwd()}/`).href
}

function firstFunction(number: number): Function | Promise<Function> {
  const key = table.interned(number)
  if (key === undefined) throw new FunctionError('FUNCTION_UNKNOWN', { number })
  const made = compileKey(key)
  // A failed import is not cached.
  if (typeof made === 'function') keep(number, made)
  else
    made.then(
      (fn) => keep(number, fn),
      () => {},
    )
  return made
}

function keep(number: number, fn: Function): void {
  functionsOf[number] = fn
  if (!numberOf.has(fn)) numberOf.set(fn, number)
}

/** The number of a new function object: by its location, else by its text, else by parsing it. */
function freshNumber(fn: Function): number {
  const exported = exportKeyOf(fn)
  if (exported !== undefined) {
    const number = numbered(exported, fn.name)
    keep(number, fn)
    return number
  }
  const placed = knownAt === undefined ? -1 : knownAt(fn)
  if (placed > 0) return seldomRemembered(fn, placed)
  const text = textOf(fn)
  if (placed < 0) {
    const known = numberOfText.get(text)
    if (known !== undefined) return seldomRemembered(fn, known)
  }
  const { key, what, isPerLocation, isPerText } = keyOfFunction(fn, text)
  const number = numbered(key, what)
  if (placed === 0 && isPerLocation) table.remember?.(fn, number)
  else if (placed < 0 && isPerText) remember(numberOfText, text, number)
  numberOf.set(fn, number)
  return number
}

/** Caching an object costs more than finding its location: worth it only for objects that are sent again. */
function seldomRemembered(fn: Function, number: number): number {
  if (--rememberIn === 0) {
    rememberIn = REMEMBER_EACH
    numberOf.set(fn, number)
  }
  return number
}

const toString = Function.prototype.toString

function textOf(fn: Function): string {
  return toString.call(fn)
}

function remember<Key>(numbers: Map<Key, number>, key: Key, number: number): void {
  if (numbers.size >= TEXTS_MAX) numbers.clear()
  numbers.set(key, number)
}

function numbered(key: string, what: string): number {
  const number = table.intern(key)
  if (number === 0) throw new FunctionError('FUNCTION_TABLE_FULL', { what })
  return number
}
