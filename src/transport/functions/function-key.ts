/**
 * The key of a function that this thread has not numbered: its source text with what it needs elsewhere.
 *
 * The text is parsed and the names it takes from outside are looked up in the real scopes; a function that
 * depends on more than its text can carry is refused here, in the sending thread.
 */
import { types } from 'node:util'
import { messageOf } from '../../base/index.ts'
import { readFunctionText, type FreeName, type FunctionText } from './captures.ts'
import { functionKey, type Given } from './compile.ts'
import { FunctionError, type Captured, type FunctionLocation } from './function-errors.ts'
import { originOf, type VariableBinding, type Origin } from './origin.ts'
import { importedFrom, isStrict } from './source-file.ts'

/** The key of a function, and which other functions have the same key. */
export interface KeyedFunction {
  readonly key: string
  /** The function in the error about a full table. */
  readonly what: string
  /** Every function made at the same location has this key. */
  readonly isPerLocation: boolean
  /** Every function with the same text has this key: it takes nothing from outside, not even a global. */
  readonly isPerText: boolean
}

/**
 * @param file Set for a function that is sent by its text alone: what it captures is left to the globals of
 *   the thread that runs it. The file that it belongs to.
 * @throws {FunctionError} when the function cannot travel, with the variables that it captures.
 */
export function keyOfFunction(fn: Function, text: string, file?: string): KeyedFunction {
  refuseTextless(fn, text)
  const parsed = parsedText(fn, text)
  const origin = originOf(
    fn,
    parsed.free.map((each) => each.name),
  )
  const start = startOf(text, parsed.located, origin)
  const location: FunctionLocation = locationAt(fn, origin, start, 0, text)
  refuseTied(parsed, location)
  const bindings = origin?.bindings ?? new Map<string, VariableBinding>()
  const captured = parsed.free.filter((each) =>
    origin === undefined ? isUnknown(each) : bindings.get(each.name)?.holds === 'other',
  )
  if (captured.length > 0 && file === undefined) {
    const facts = captured.map((each) => capturedAt(each, fn, text, origin, start))
    throw new FunctionError('FUNCTION_CAPTURES', { ...location, captured: facts })
  }
  const given = givenTo(parsed, bindings, file !== undefined)
  if (file === undefined) refuseUnlocated(parsed, given, origin, location)
  const key = functionKey({
    code: parsed.code,
    form: parsed.form,
    file: file ?? origin?.file ?? '',
    line: start.line,
    column: start.column,
    strict: isStrict(fn, text, parsed.plain, origin),
    name: fn.name,
    self: parsed.free.find((each) => bindings.get(each.name)?.holds === 'self')?.name,
    usesImport: parsed.usesImport,
    given,
    metaName: parsed.metaName,
    importName: parsed.importName,
  })
  return {
    key,
    what: location.name === '' ? 'an anonymous function' : location.name,
    isPerLocation: [...bindings.values()].every((each) => each.once),
    isPerText: parsed.free.length === 0 && !parsed.usesImport && parsed.metaName === undefined,
  }
}

/** @throws {FunctionError} for what has no text that could be compiled elsewhere. */
function refuseTextless(fn: Function, text: string): void {
  const location = { name: fn.name, file: '', line: 0, column: 0 }
  if (types.isProxy(fn)) throw new FunctionError('FUNCTION_NATIVE', location)
  if (/\{\s*\[native code\]\s*\}$/.test(text)) {
    throw new FunctionError(fn.name.startsWith('bound ') ? 'FUNCTION_BOUND' : 'FUNCTION_NATIVE', location)
  }
}

function parsedText(fn: Function, text: string): FunctionText {
  const location = (): FunctionLocation => {
    const origin = originOf(fn, [])
    return locationAt(fn, origin, origin ?? { line: 0, column: 0 }, 0, '')
  }
  if (/^class\b/.test(text)) throw new FunctionError('FUNCTION_CLASS', location())
  try {
    return readFunctionText(text)
  } catch (error) {
    const why = messageOf(error)
    const isOfText = error instanceof SyntaxError || error instanceof RangeError
    const reason = isOfText ? why : `the parser failed, ${whyParserFailed()}: ${why}`
    throw new FunctionError('FUNCTION_SYNTAX', { ...location(), reason }, { cause: error })
  }
}

/** The parser throws other errors only where a program has changed a built-in. */
function whyParserFailed(): string {
  const names: string[] = []
  for (const name in {}) names.push(name)
  if (names.length === 0) return 'as where a built-in method is replaced'
  return `as Object.prototype has enumerable properties (${names.join(', ')}), which every object inherits`
}

/** @throws {FunctionError} when the text is tied to an object or a class around it. */
function refuseTied(parsed: FunctionText, location: FunctionLocation): void {
  if (parsed.usesSuper) throw new FunctionError('FUNCTION_SUPER', location)
  if (parsed.privateNames.length > 0) {
    throw new FunctionError('FUNCTION_PRIVATE', { ...location, names: parsed.privateNames })
  }
  if (parsed.outerKeyword !== undefined) {
    throw new FunctionError('FUNCTION_OUTER_THIS', { ...location, word: parsed.outerKeyword })
  }
}

/** @throws {FunctionError} when the text depends on its file and the file cannot be known. */
function refuseUnlocated(
  parsed: FunctionText,
  given: readonly Given[],
  origin: Origin | undefined,
  location: FunctionLocation,
): void {
  if (origin !== undefined) return
  const word = parsed.usesImport ? 'import()' : given.find((each) => each !== '__name')
  if (word !== undefined) throw new FunctionError('FUNCTION_FILE_UNKNOWN', { ...location, word })
}

const GIVEN: ReadonlySet<string> = new Set<Given>(['require', '__filename', '__dirname', '__name'])

function givenTo(
  parsed: FunctionText,
  bindings: ReadonlyMap<string, VariableBinding>,
  isByText: boolean,
): Given[] {
  const names = parsed.free.map((each) => each.name)
  const isNodes = (name: string): boolean => isByText && name !== '__name'
  const given = names.filter((name) => GIVEN.has(name) && (isNodes(name) || isGiven(name, bindings)))
  if (parsed.metaName !== undefined) given.push('import.meta')
  if (parsed.importName !== undefined) given.push('import')
  return given as Given[]
}

/** Node's own names are given; `__name` only where a compiler put it beside the function. */
function isGiven(name: string, bindings: ReadonlyMap<string, VariableBinding>): boolean {
  const holds = bindings.get(name)?.holds
  return holds === 'node' || holds === 'helper' || (holds === undefined && name !== '__name')
}

/** Without scopes: a name that is not a global of this thread is captured, unless `typeof` asks for it. */
function isUnknown({ name, isProbed }: FreeName): boolean {
  return !isProbed && !GIVEN.has(name) && !(name in globalThis)
}

interface Position {
  readonly line: number
  readonly column: number
}

/** Where the text begins, computed from the location that the engine reports. */
function startOf(text: string, located: number, origin: Origin | undefined): Position {
  if (origin === undefined) return { line: 0, column: 0 }
  const lines = text.slice(0, located).split('\n')
  if (lines.length === 1) return { line: origin.line, column: Math.max(0, origin.column - located) }
  return { line: origin.line - lines.length + 1, column: 0 }
}

/** The location of `offset` in a text that begins at `start`; from 1, 0 when unknown. */
function locationAt(
  fn: Function,
  origin: Origin | undefined,
  start: Position,
  offset: number,
  text: string,
): FunctionLocation {
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
  const { line, column } = locationAt(fn, origin, start, free.offset, text)
  const from = importedFrom(origin?.file ?? '', free.name)
  return {
    name: free.name,
    line,
    column,
    ...(from === undefined ? {} : { from }),
    ...(free.isAssigned ? { isAssigned: true } : {}),
  }
}
