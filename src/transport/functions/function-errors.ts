/**
 * Why a function, a module's export or a piece of code cannot travel to another thread.
 *
 * Every refusal happens at the call, in the thread that sends, and names what is wrong and where. A class of
 * its own beside TransportError, because a function is refused for reasons no other value has.
 */
import { CorespunError, type Sentences } from '../../base/index.ts'
import { rewritingToolOf } from './rewriting-tools.ts'

/** A function as errors show it. Lines and columns count from 1; both are 0 where the place is unknown. */
export interface FunctionPlace {
  /** Its name, or '' for an anonymous function. */
  readonly name: string
  /** The URL or path of the script it was written in, or ''. */
  readonly file: string
  readonly line: number
  readonly column: number
}

/** A variable that a function uses and that lives outside it. */
export interface Captured {
  readonly name: string
  /** Where the function uses it first, in its file; from 1, 0 where unknown. */
  readonly line: number
  readonly column: number
  /** The module it was imported (or required) from; absent for any other variable. */
  readonly from?: string
}

/** The codes of {@link FunctionError} and their facts. */
export interface FunctionCodes {
  /** It uses variables of the code around it. */
  FUNCTION_CAPTURES: FunctionPlace & { readonly captured: readonly Captured[] }
  /** It has no JavaScript source: part of the engine, of an add-on, or a Proxy. */
  FUNCTION_NATIVE: FunctionPlace
  /** It was made by `bind`: the receiver and the arguments it holds would not travel. */
  FUNCTION_BOUND: FunctionPlace
  /** A class; register it instead. */
  FUNCTION_CLASS: FunctionPlace
  /** An arrow function that uses the `this`, `arguments` or `new.target` of the function around it. */
  FUNCTION_OUTER_THIS: FunctionPlace & { readonly word: string }
  /** A method that uses `super`. */
  FUNCTION_SUPER: FunctionPlace
  /** It uses a #private name of the class around it. */
  FUNCTION_PRIVATE: FunctionPlace & { readonly names: readonly string[] }
  /** Its source text could not be read back by the parser. */
  FUNCTION_SYNTAX: FunctionPlace & { readonly reason: string }
  /** It loads modules or asks for its file, and the inspector, which knows that file, is not available. */
  FUNCTION_ORIGIN: FunctionPlace & { readonly word: string }
  /** The process-wide table of functions is full. */
  FUNCTION_TABLE_FULL: { readonly what: string }
  /** A number that no thread of this process has given out. */
  FUNCTION_UNKNOWN: { readonly number: number }
  /** A relative or bare module name without the file it is relative to, or a name that is no URL. */
  FUNCTION_MODULE_NAME: { readonly module: string; readonly reason: string }
  /** The module could not be loaded; `cause` says why. */
  FUNCTION_MODULE: { readonly module: string; readonly reason: string }
  /** The module has no such export. */
  FUNCTION_EXPORT_MISSING: {
    readonly module: string
    readonly export: string
    /** What it does export. */
    readonly exports: readonly string[]
  }
  /** The export is not a function. */
  FUNCTION_EXPORT_KIND: { readonly module: string; readonly export: string; readonly received: string }
  /** Code that does not parse; `cause` is the SyntaxError. */
  FUNCTION_CODE: { readonly file: string; readonly reason: string }
}

/** A function, export or piece of code that cannot travel. */
export class FunctionError<Code extends keyof FunctionCodes = keyof FunctionCodes> extends CorespunError<
  FunctionCodes,
  Code
> {
  /**
   * @param code What is wrong.
   * @param facts Which function, and where.
   * @param options `cause`: the error that led to this one.
   */
  constructor(code: Code, facts: FunctionCodes[Code], options?: ErrorOptions) {
    super(sentences, code, facts, options)
  }
}

const sentences: Sentences<FunctionCodes> = {
  FUNCTION_CAPTURES: (f) =>
    `${named(f)} uses ${f.captured.length === 1 ? 'a variable' : 'variables'} from outside itself, which ` +
    `cannot travel to another thread: ${f.captured.map(capturedText).join(', ')}. ${advice(f.captured)}`,
  FUNCTION_NATIVE: (f) =>
    `${named(f)} has no JavaScript source, so it cannot travel to another thread; ` +
    'wrap it: (...args) => name(...args)',
  FUNCTION_BOUND: (f) =>
    `${named(f)} was made by bind(); what it is bound to cannot travel to another thread: ` +
    'pass those values as arguments',
  FUNCTION_CLASS: (f) =>
    `${named(f)} is a class and cannot travel as a function: register it for its objects to travel, ` +
    'or send a function that makes them',
  FUNCTION_OUTER_THIS: (f) =>
    `${named(f)} uses the ${f.word} of the function around it, which cannot travel to another thread: ` +
    'pass it as an argument',
  FUNCTION_SUPER: (f) => `${named(f)} uses super, which exists only in its class: send a plain function`,
  FUNCTION_PRIVATE: (f) =>
    `${named(f)} uses ${f.names.join(', ')}, private to its class: send a plain function`,
  FUNCTION_SYNTAX: (f) => `the source of ${named(f)} cannot be read: ${f.reason}`,
  FUNCTION_ORIGIN: (f) =>
    `${named(f)} uses ${f.word}, but this process runs without the inspector, so the file it was written ` +
    'in is unknown: move it into a module and execute that',
  FUNCTION_TABLE_FULL: (f) =>
    `no room for another function (${f.what}): functions are kept for the life of the process; ` +
    'send values as arguments instead of making new source text for each call',
  FUNCTION_UNKNOWN: (f) => `no function has the number ${f.number}`,
  FUNCTION_MODULE_NAME: (f) => `module ${f.module}: ${f.reason}`,
  FUNCTION_MODULE: (f) => `module ${f.module} cannot be loaded: ${f.reason}`,
  FUNCTION_EXPORT_MISSING: (f) =>
    `module ${f.module} has no export "${f.export}"; it has ` +
    (f.exports.length === 0 ? 'none' : f.exports.join(', ')),
  FUNCTION_EXPORT_KIND: (f) => `"${f.export}" of module ${f.module} is ${f.received}, not a function`,
  FUNCTION_CODE: (f) => `the code${f.file === '' ? '' : ` of ${f.file}`} cannot be read: ${f.reason}`,
}

function named(place: FunctionPlace): string {
  const name = place.name === '' ? 'an anonymous function' : `function ${place.name}`
  if (place.file === '') return name
  return `${name} (${place.file}${place.line === 0 ? '' : `:${place.line}:${place.column}`})`
}

function capturedText(captured: Captured): string {
  const origin = captured.from === undefined ? '' : `, imported from ${JSON.stringify(captured.from)}`
  const place = captured.line === 0 ? '' : ` (line ${captured.line}, column ${captured.column}${origin})`
  return captured.name + place
}

function advice(captured: readonly Captured[]): string {
  const tools = new Map(captured.map(({ name }) => [name, rewritingToolOf(name)]))
  const own = captured.filter(({ name }) => tools.get(name) === undefined)
  const sentences = new Set(own.length === 0 ? [] : [ownAdvice(own)])
  for (const [name, tool] of tools) {
    if (tool !== undefined) sentences.add(`${name} is in no source file: ${tool.adds}; ${tool.remedy}`)
  }
  return [...sentences].join('. ')
}

/** What helps with the variables that the author wrote. */
function ownAdvice(captured: readonly Captured[]): string {
  const imported = captured.find((each) => each.from !== undefined)
  const others = captured.some((each) => each.from === undefined)
  const parts: string[] = []
  if (imported !== undefined) parts.push(`import inside it: await import(${JSON.stringify(imported.from)})`)
  if (others) parts.push('pass the value as an argument')
  parts.push('move the function to a module and execute(module, name)')
  const sentence = parts.join(', or ')
  return sentence.charAt(0).toUpperCase() + sentence.slice(1)
}
