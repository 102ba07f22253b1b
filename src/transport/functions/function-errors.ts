/**
 * Why a function, a module's export or code cannot run in another thread.
 *
 * A function is refused at the call, in the sending thread. The class is separate from TransportError because
 * only functions are refused for these reasons.
 */
import { CorespunError, loadReason, type Sentences, nearestOf } from '../../base/index.ts'
import { isMainModule, RAN_MAIN_AGAIN } from './main-module.ts'
import { callByModule, rewritingToolOf } from './rewriting-tools.ts'

/** Where a function is in the source. Lines and columns count from 1; both are 0 when unknown. */
export interface FunctionLocation {
  /** The name of the function; '' for an anonymous one. */
  readonly name: string
  /** The URL or path of its script; '' when unknown. */
  readonly file: string
  readonly line: number
  readonly column: number
  /** Its part in an arrow: `stage 2 of the arrow`; absent for a function that is sent itself. */
  readonly of?: string
}

/** A variable from outside the function that uses it. */
export interface Captured {
  readonly name: string
  /** Its first use in the function's file; from 1, 0 when unknown. */
  readonly line: number
  readonly column: number
  /** The module it was imported (or required) from; absent for any other variable. */
  readonly from?: string
  /** The function assigns it; absent for a variable that it only reads. */
  readonly isAssigned?: boolean
}

/** The codes of {@link FunctionError} with the facts of each. */
export interface FunctionCodes {
  /** It uses variables of the code around it. */
  FUNCTION_CAPTURES: FunctionLocation & { readonly captured: readonly Captured[] }
  /** It has no JavaScript source: a function of the engine or an add-on, or a Proxy. */
  FUNCTION_NATIVE: FunctionLocation
  /** It was made by `bind`: its receiver and its bound arguments would not travel. */
  FUNCTION_BOUND: FunctionLocation
  /** It is a class; register the class instead. */
  FUNCTION_CLASS: FunctionLocation
  /** An arrow function that uses the `this`, `arguments` or `new.target` of the function around it. */
  FUNCTION_OUTER_THIS: FunctionLocation & { readonly word: string }
  /** A method that uses `super`. */
  FUNCTION_SUPER: FunctionLocation
  /** It uses a #private name of the class around it. */
  FUNCTION_PRIVATE: FunctionLocation & { readonly names: readonly string[] }
  /** Its source text does not parse. */
  FUNCTION_SYNTAX: FunctionLocation & { readonly reason: string }
  /** It uses `import()` or its file's path, and without the inspector that file is unknown. */
  FUNCTION_FILE_UNKNOWN: FunctionLocation & { readonly word: string }
  /** `corespun/plugin/register` in a runtime that ignores hooks for modules, as Bun does. */
  FUNCTION_HOOKS: { readonly runtime: string }
  /** The process-wide table of functions is full. */
  FUNCTION_TABLE_FULL: { readonly what: string }
  /** A number that this process has not assigned. */
  FUNCTION_UNKNOWN: { readonly number: number }
  /** A relative or bare module name without the file it is relative to, or an invalid URL. */
  FUNCTION_MODULE_NAME: { readonly module: string; readonly reason: string }
  /** The module could not be loaded; `cause` is the error. */
  FUNCTION_MODULE: { readonly module: string; readonly reason: string }
  /** The module has no such export. */
  FUNCTION_EXPORT_MISSING: {
    readonly module: string
    readonly export: string
    /** The names that it exports, 30 at most. */
    readonly exports: readonly string[]
    /** The module is the main module of the program, which the worker has run again. */
    readonly isMain?: boolean
  }
  /** The export is not a function. */
  FUNCTION_EXPORT_KIND: { readonly module: string; readonly export: string; readonly received: string }
  /** Code that does not parse; `cause` is the SyntaxError. */
  FUNCTION_CODE: { readonly file: string; readonly reason: string }
}

function meant(f: { readonly export: string; readonly exports: readonly string[] }): string {
  const nearest = nearestOf(f.export, f.exports)
  return nearest === undefined ? '' : `did you mean "${nearest}"? `
}

const SENTENCES: Sentences<FunctionCodes> = {
  FUNCTION_CAPTURES: (f) =>
    f.file.startsWith('node:')
      ? `function ${f.name} of ${f.file} uses variables of its module, which cannot travel to another ` +
        `thread. Call zone.module<typeof import('${f.file}')>('${f.file}').${f.name}(...), ` +
        'or import it inside a function'
      : `${named(f)} uses ${f.captured.length === 1 ? 'a variable' : 'variables'} from outside itself, ` +
        `which cannot travel to another thread: ${f.captured.map(capturedText).join(', ')}. ${advice(f)}`,
  FUNCTION_NATIVE: (f) =>
    `${named(f)} has no JavaScript source, so it cannot travel to another thread; ` +
    'send a function that calls it, as in (n) => Math.sqrt(n)',
  FUNCTION_BOUND: (f) =>
    `${named(f)} was made by bind(), and bound values cannot travel to another thread: ` +
    'pass them as arguments',
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
  FUNCTION_FILE_UNKNOWN: (f) =>
    `${named(f)} uses ${f.word}, but without the inspector its file is unknown: ` +
    `move it to a module and call ${callByModule(f.name)}`,
  FUNCTION_HOOKS: ({ runtime }) =>
    `corespun/plugin/register needs Node's hooks for modules, and this is ${runtime}: ` +
    'build the program with corespun/plugin, or call functions of modules by name',
  FUNCTION_TABLE_FULL: (f) =>
    `the table of functions is full (${f.what}): its entries are kept until the process ends; ` +
    'pass values as arguments instead of making new source text for each call',
  FUNCTION_UNKNOWN: (f) => `no function has the number ${f.number}`,
  FUNCTION_MODULE_NAME: (f) => `module ${f.module}: ${f.reason}`,
  FUNCTION_MODULE: (f) => `module ${f.module} cannot be loaded: ${f.reason}`,
  FUNCTION_EXPORT_MISSING: (f) =>
    `module ${f.module} has no export "${f.export}"; ` +
    (f.exports.length === 0 ? 'it exports nothing' : `${meant(f)}its exports: ${f.exports.join(', ')}`) +
    (f.isMain === true ? RAN_MAIN_AGAIN : ''),
  FUNCTION_EXPORT_KIND: (f) =>
    `"${f.export}" of module ${f.module} is ${f.received}, not a function; ` +
    'export a function that returns it',
  FUNCTION_CODE: (f) => `the code${f.file === '' ? '' : ` of ${f.file}`} cannot be read: ${f.reason}`,
}

/**
 * A function, a module's export or code that cannot run in another thread. Compare `code`; read `facts`.
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { zone } from 'corespun'
 * import { FunctionError } from 'corespun/transport'
 *
 * const cpu = zone.create('cpu', { workers: 1 })
 * const rate = Math.random()
 * const error = await (async () => cpu.run((price: number) => price * rate, 1))().catch((error) => error)
 * assert.ok(error instanceof FunctionError)
 * assert.equal(error.code, 'FUNCTION_CAPTURES')
 * await cpu.close()
 * ```
 */
export class FunctionError<Code extends keyof FunctionCodes = keyof FunctionCodes> extends CorespunError<
  FunctionCodes,
  Code
> {
  /** @internal */
  static readonly sentences = SENTENCES
}

/** Why a module cannot be loaded: `loadReason`, and what only the caller of a zone can do. */
export function moduleReason(error: unknown, module: string): string {
  const { code, url } = Object(error) as { code?: unknown; url?: unknown }
  // Node would name a file of this package as the importing one.
  if (code === 'ERR_MODULE_NOT_FOUND' && url === module) return `no such file ${WITHOUT_FILE}`
  return loadReason(error, module) + (isMainModule(module) ? RAN_MAIN_AGAIN : '')
}

const WITHOUT_FILE =
  '(a relative name starts at the calling file, or at the option from; ' +
  'of a bundle the file is part only if it is built with corespun/plugin)'

function named(location: FunctionLocation): string {
  const of = location.of === undefined ? '' : `${location.of}: `
  const name = of + (location.name === '' ? 'an anonymous function' : `function ${location.name}`)
  if (location.file === '') return name
  return `${name} (${location.file}${location.line === 0 ? '' : `:${location.line}:${location.column}`})`
}

function capturedText(captured: Captured): string {
  const origin = captured.from === undefined ? '' : `, imported from ${JSON.stringify(captured.from)}`
  const location = captured.line === 0 ? '' : ` (line ${captured.line}, column ${captured.column}${origin})`
  return captured.name + location
}

/** A remedy, but not for variables that are assigned: the plugin leaves those out. */
const PLUGIN =
  'With corespun/plugin in the build, or with node --import corespun/plugin/register, ' +
  'a function can use imports and captured values where its file creates or imports the zone, or declares ' +
  "it with the type Zone of 'corespun' (TypeScript or JSDoc)"

function advice({ captured, name }: FunctionCodes['FUNCTION_CAPTURES']): string {
  const tools = new Map(captured.map(({ name }) => [name, rewritingToolOf(name)]))
  const own = captured.filter(({ name }) => tools.get(name) === undefined)
  const sentences = new Set(own.length === 0 ? [] : [ownAdvice(own, name)])
  for (const [name, tool] of tools) {
    if (tool !== undefined) sentences.add(`${name} is in no source file: ${tool.adds}; ${tool.remedy}`)
  }
  if (captured.every(({ isAssigned }) => isAssigned !== true)) sentences.add(PLUGIN)
  return [...sentences].join('. ')
}

function ownAdvice(captured: readonly Captured[], name: string): string {
  const imported = captured.find((each) => each.from !== undefined)
  const assigned = captured.find((each) => each.isAssigned === true)
  const others = captured.some((each) => each.from === undefined && each.isAssigned !== true)
  const parts: string[] = []
  if (imported !== undefined) parts.push(`import inside it: await import(${JSON.stringify(imported.from)})`)
  if (others) parts.push('pass the value as an argument')
  if (assigned !== undefined) {
    parts.push(`pass ${assigned.name} as an argument and return its new value`)
    parts.push('share it in an AtomicCounter or a store')
  }
  let inArrow = ''
  // In a module, every worker would assign a variable of its own.
  if (assigned === undefined) {
    parts.push(`move the function to a module and call ${callByModule(name)}`)
    inArrow = `; for an arrow, mark it there: exported(import.meta.url, ${name || 'fn'})`
  }
  const sentence = parts.join(', or ') + inArrow
  return sentence.charAt(0).toUpperCase() + sentence.slice(1)
}
