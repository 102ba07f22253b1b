/**
 * Functions travel by number: the sender numbers the source once per process, each thread compiles it once.
 *
 * A number stands for one text (source, place, what it is given), so it means the same in every thread and is
 * never given twice. Refusing happens here, in the thread that sends, before anything is sent. What is
 * deliberately absent: captured values. They would be copies, and a copy of a variable is another variable.
 */
import { isAbsolute } from 'node:path'
import { pathToFileURL } from 'node:url'
import { types } from 'node:util'
import { shown } from '../../base/index.ts'
import { readFunctionText, type FreeName, type FunctionText } from './captures.ts'
import {
  checkCode,
  codeKey,
  compileKey,
  exportPlaceOf,
  functionKey,
  moduleKey,
  type Given,
} from './compile.ts'
import { FunctionError, type Captured, type FunctionPlace } from './function-errors.ts'
import { originOf, setScriptPlaces, type Binding, type Origin, type ScriptPlace } from './origin.ts'
import { importedFrom, isStrict } from './surroundings.ts'

export { setPreparation, type Preparation } from './compile.ts'

/** The process-wide numbering of function texts. */
export interface FunctionTable {
  /** The number of a text, from 1; 0 when the table is full. */
  intern(key: string): number
  /** The text of a number; `undefined` when no thread numbered it. */
  interned(number: number): string | undefined
  /**
   * The number remembered for the place (script and position) where `fn` was written; 0 when none was, -1
   * when its place is unknown: then, as without this, functions are told apart by their text. Called bare.
   */
  readonly known?: ((fn: Function) => number) | undefined
  /** Every function of this thread written where `fn` was has this number. Called bare. */
  readonly remember?: ((fn: Function, number: number) => void) | undefined
  /** Where `fn` was written, as the engine has it at hand; `undefined` where that cannot be told. */
  readonly origin?: ((fn: Function) => ScriptPlace | undefined) | undefined
}

/** Texts remembered per thread; more than a program has unless it makes code endlessly. */
const TEXTS_MAX = 50_000
/** Of new function objects from a known place or text, every so manieth is remembered by identity. */
const REMEMBER_EACH = 64

let table: FunctionTable = memoryTable()
let knownAt: FunctionTable['known']

let numberOf = new WeakMap<Function, number>()
const numberOfText = new Map<string, number>()
let functionsOf: (Function | undefined)[] = []

// A function recognised by identity is one that its program keeps: this holds nothing alive for long.
let lastFunction: Function | undefined
let lastNumber = 0
let rememberIn = REMEMBER_EACH

/** Use `next` for numbering from now on; forgets what this thread numbered before. */
export function setFunctionTable(next: FunctionTable): void {
  table = next
  knownAt = next.known
  setScriptPlaces(next.origin)
  numberOfText.clear()
  absolute.clear()
  relative.clear()
  functionsOf = []
  numberOf = new WeakMap()
  lastFunction = undefined
  lastModule = undefined
  lastExport = 0
}

/**
 * The number of a function object that this thread has numbered before and remembers; 0 for any other.
 * Cheaper than {@link functionNumber} for callers that have a faster way with fresh objects.
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
 * @throws {FunctionError} that says why it cannot travel, with the variables it captures and where.
 */
export function functionNumber(fn: Function): number {
  const seen = seenFunctionNumber(fn)
  return seen === 0 ? freshNumber(fn) : seen
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
 * names need `from`, the URL or path of the file they stand in (or a function that finds it, called only when
 * it is needed), and are resolved as an `import()` there.
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
  if (isAbsolute(module)) return moduleKey(pathToFileURL(module).href, name, undefined)
  if (URL.canParse(module)) return moduleKey(module, name, undefined)
  if (from === undefined) {
    const reason = 'is not an absolute path or URL, and the file it is relative to is not known'
    throw new FunctionError('FUNCTION_MODULE_NAME', { module, reason })
  }
  const base = baseOf(from)
  if (!/^\.{1,2}\//.test(module)) return moduleKey(module, name, base)
  if (URL.canParse(module, base)) return moduleKey(new URL(module, base).href, name, undefined)
  throw new FunctionError('FUNCTION_MODULE_NAME', { module, reason: `cannot be relative to ${shown(from)}` })
}

/** As in Node, code without a file (of `-e`, of the REPL) stands in the working directory. */
function baseOf(from: string): string {
  if (isAbsolute(from)) return pathToFileURL(from).href
  return URL.canParse(from) ? from : pathToFileURL(`${process.cwd()}/`).href
}

function firstFunction(number: number): Function | Promise<Function> {
  const key = table.interned(number)
  if (key === undefined) throw new FunctionError('FUNCTION_UNKNOWN', { number })
  const made = compileKey(key)
  // Whoever asked gets the error, and the next may try again.
  if (typeof made === 'function') keep(number, made)
  else
    made.then(
      (fn) => keep(number, fn),
      () => {},
    )
  return made
}

/** It goes on from here under the number that it came with. */
function keep(number: number, fn: Function): void {
  functionsOf[number] = fn
  if (!numberOf.has(fn)) numberOf.set(fn, number)
}

/** A function object not seen before: by its place, else by its text, else by reading it. */
function freshNumber(fn: Function): number {
  const exported = exportPlaceOf(fn)
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
  const { number, shared, placeless } = read(fn, text)
  if (placed === 0 && shared) table.remember?.(fn, number)
  else if (placed < 0 && placeless) remember(numberOfText, text, number)
  numberOf.set(fn, number)
  return number
}

/** Remembering an object costs more than recognising its source, so it is done for those that come back. */
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

interface Read {
  readonly number: number
  /** Every function made at this place has this number. */
  readonly shared: boolean
  /** Every function with this text has this number: it takes nothing at all from around it. */
  readonly placeless: boolean
}

function read(fn: Function, text: string): Read {
  refuseTextless(fn, text)
  const parsed = parsedText(fn, text)
  const origin = originOf(
    fn,
    parsed.free.map((each) => each.name),
  )
  const start = startOf(text, parsed.located, origin)
  const place: FunctionPlace = placeAt(fn, origin, start, 0, text)
  refuseTied(parsed, place)
  const bindings = origin?.bindings ?? new Map<string, Binding>()
  const captured = parsed.free.filter((each) => bindings.get(each.name)?.holds === 'other')
  if (captured.length > 0) {
    const facts = captured.map((each) => capturedAt(each, fn, text, origin, start))
    throw new FunctionError('FUNCTION_CAPTURES', { ...place, captured: facts })
  }
  const given = givenTo(parsed, bindings)
  refusePlaceless(parsed, given, origin, place)
  const key = functionKey({
    code: parsed.code,
    form: parsed.form,
    file: origin?.file ?? '',
    line: start.line,
    column: start.column,
    strict: isStrict(fn, text, parsed.plain, origin),
    name: fn.name,
    self: parsed.free.find((each) => bindings.get(each.name)?.holds === 'self')?.name,
    usesImport: parsed.usesImport,
    given,
    metaName: parsed.metaName,
  })
  return {
    number: numbered(key, place.name === '' ? 'an anonymous function' : place.name),
    shared: [...bindings.values()].every((each) => each.once),
    placeless: parsed.free.length === 0 && !parsed.usesImport && parsed.metaName === undefined,
  }
}

/** @throws {FunctionError} for what has no text that could be compiled elsewhere. */
function refuseTextless(fn: Function, text: string): void {
  const place = { name: fn.name, file: '', line: 0, column: 0 }
  if (types.isProxy(fn)) throw new FunctionError('FUNCTION_NATIVE', place)
  if (/\{\s*\[native code\]\s*\}$/.test(text)) {
    throw new FunctionError(fn.name.startsWith('bound ') ? 'FUNCTION_BOUND' : 'FUNCTION_NATIVE', place)
  }
}

function parsedText(fn: Function, text: string): FunctionText {
  const place = (): FunctionPlace => {
    const origin = originOf(fn, [])
    return placeAt(fn, origin, origin ?? { line: 0, column: 0 }, 0, '')
  }
  if (/^class\b/.test(text)) throw new FunctionError('FUNCTION_CLASS', place())
  try {
    return readFunctionText(text)
  } catch (error) {
    const why = error instanceof Error ? error.message : shown(error)
    const isOfText = error instanceof SyntaxError || error instanceof RangeError
    const reason = isOfText ? why : `the parser failed, ${whyParserFailed()}: ${why}`
    throw new FunctionError('FUNCTION_SYNTAX', { ...place(), reason }, { cause: error })
  }
}

/** It throws other errors only where what it uses is not the language's: a program has changed a built-in. */
function whyParserFailed(): string {
  const names: string[] = []
  for (const name in {}) names.push(name)
  if (names.length === 0) return 'as where a built-in method is replaced'
  return `as Object.prototype has enumerable properties (${names.join(', ')}), which every object inherits`
}

/** @throws {FunctionError} when the text is tied to an object or a class around it. */
function refuseTied(parsed: FunctionText, place: FunctionPlace): void {
  if (parsed.usesSuper) throw new FunctionError('FUNCTION_SUPER', place)
  if (parsed.privateNames.length > 0) {
    throw new FunctionError('FUNCTION_PRIVATE', { ...place, names: parsed.privateNames })
  }
  if (parsed.outerWord !== undefined) {
    throw new FunctionError('FUNCTION_OUTER_THIS', { ...place, word: parsed.outerWord })
  }
}

/** @throws {FunctionError} when the text depends on its file and the file cannot be known. */
function refusePlaceless(
  parsed: FunctionText,
  given: readonly Given[],
  origin: Origin | undefined,
  place: FunctionPlace,
): void {
  if (origin !== undefined) return
  const word = parsed.usesImport ? 'import()' : given.find((each) => each !== '__name')
  if (word !== undefined) throw new FunctionError('FUNCTION_ORIGIN', { ...place, word })
}

const GIVEN: ReadonlySet<string> = new Set<Given>(['require', '__filename', '__dirname', '__name'])

function givenTo(parsed: FunctionText, bindings: ReadonlyMap<string, Binding>): Given[] {
  const names = parsed.free.map((each) => each.name)
  const given = names.filter((name) => GIVEN.has(name) && isGiven(name, bindings))
  if (parsed.metaName !== undefined) given.push('import.meta')
  return given as Given[]
}

/** Node's own names are given; `__name` only where a compiler put it beside the function. */
function isGiven(name: string, bindings: ReadonlyMap<string, Binding>): boolean {
  const holds = bindings.get(name)?.holds
  return holds === 'node' || holds === 'helper' || (holds === undefined && name !== '__name')
}

interface Position {
  readonly line: number
  readonly column: number
}

/** Where the text begins, from where the engine says the function is. */
function startOf(text: string, located: number, origin: Origin | undefined): Position {
  if (origin === undefined) return { line: 0, column: 0 }
  const lines = text.slice(0, located).split('\n')
  if (lines.length === 1) return { line: origin.line, column: Math.max(0, origin.column - located) }
  return { line: origin.line - lines.length + 1, column: 0 }
}

/** The place of `offset` in a text that begins at `start`; from 1, 0 where unknown. */
function placeAt(
  fn: Function,
  origin: Origin | undefined,
  start: Position,
  offset: number,
  text: string,
): FunctionPlace {
  if (origin === undefined) return { name: fn.name, file: '', line: 0, column: 0 }
  const lines = text.slice(0, offset).split('\n')
  const column = (lines.length === 1 ? start.column : 0) + (lines.at(-1) as string).length
  return { name: fn.name, file: origin.file, line: start.line + lines.length, column: column + 1 }
}

function capturedAt(
  free: FreeName,
  fn: Function,
  text: string,
  origin: Origin | undefined,
  start: Position,
): Captured {
  const { line, column } = placeAt(fn, origin, start, free.offset, text)
  const from = importedFrom(origin?.file ?? '', free.name)
  return from === undefined ? { name: free.name, line, column } : { name: free.name, line, column, from }
}

/** A table for one thread: tests, and threads without the native core. */
function memoryTable(): FunctionTable {
  const keys: string[] = ['']
  const numbers = new Map<string, number>()
  return {
    intern(key) {
      const known = numbers.get(key)
      if (known !== undefined) return known
      numbers.set(key, keys.length)
      return keys.push(key) - 1
    },
    interned: (number) => (number > 0 ? keys[number] : undefined),
  }
}
