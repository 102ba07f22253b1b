/**
 * Where a function was written and which variables around it are real: asked of the engine's own inspector.
 *
 * File, line and column the native core can ask of the engine directly, so a function that takes nothing from
 * around itself needs no inspector. The inspector session lives for one question and is closed before the
 * answer is used, so no debugger stays active. A question costs about a quarter of a millisecond; without the
 * core, finding the file of a script that is nowhere on the calling stack costs tens. Without an inspector (a
 * build or a permission that lacks it) the answer is `undefined` and functions that depend on their place are
 * refused.
 */
import { fileURLToPath } from 'node:url'
import { dirname } from 'node:path'
import type { Session } from 'node:inspector'

/** How a name that a function takes from outside is bound there. */
export interface Binding {
  /**
   * `self`: the function itself; `global`: what the global of that name holds; `node`: what Node gives each
   * file under that name; `helper`: a compiler's.
   */
  readonly holds: 'self' | 'global' | 'node' | 'helper' | 'other'
  /** It exists once per script, so every function made at the same place sees the same variable. */
  readonly once: boolean
}

/** Where a function was written. */
export interface ScriptPlace {
  readonly scriptId: number
  /** URL or path of the script; '' for code made by eval or `new Function`. */
  readonly file: string
  /** Position the engine reports, from 0. */
  readonly line: number
  readonly column: number
  readonly isModule: boolean
}

/** The place of a function and the variables it sees. */
export interface Origin extends ScriptPlace {
  /** Those of the names asked for that are variables of the code around the function. */
  readonly bindings: ReadonlyMap<string, Binding>
}

/** Scripts whose files are remembered per thread: more than a program has unless it makes code endlessly. */
const FILES_MAX = 10_000
/** How deep a stack is searched for the script of a function. */
const FRAMES_MAX = 200

const NO_BINDINGS: ReadonlyMap<string, Binding> = new Map()
const fileOfScript = new Map<number, string>()
const INSPECTED = Symbol.for('corespun.inspected')

type Inspector = typeof import('node:inspector')

let scriptPlaceOf: ((fn: Function) => ScriptPlace | undefined) | undefined

/** Ask `next` for places from now on, before the inspector. */
export function setScriptPlaces(next: typeof scriptPlaceOf): void {
  scriptPlaceOf = next
}

/**
 * The file that `fn` was written in, as the engine has it at hand; `node:…` for what Node itself is made of.
 */
export function fileOfFunction(fn: Function): string | undefined {
  return scriptPlaceOf?.(fn)?.file
}

/**
 * Ask the engine for the place of `fn` and for those of `names` that are bound around it.
 * `undefined` when this process has no inspector, or `fn` has no place (native functions).
 */
export function originOf(fn: Function, names: readonly string[]): Origin | undefined {
  const place = scriptPlaceOf?.(fn)
  // Code made by eval has no file, and its script says nothing of the module that it may stand in.
  if (place !== undefined && place.file !== '' && names.length === 0)
    return { ...place, bindings: NO_BINDINGS }
  return withSession((ask) => {
    const shown = inspect(ask, fn)
    if (shown === undefined) return undefined
    const scopes = shown.scopes === undefined ? [] : scopesOf(ask, shown.scopes)
    const file = place?.file ?? fileOf(ask, shown.scriptId)
    const bindings = bindingsOf(ask, shown.objectId, scopes, names, file)
    const isModule = scopes.some((scope) => scope.kind === 'Module')
    return { scriptId: shown.scriptId, file, line: shown.line, column: shown.column, isModule, bindings }
  })
}

/** The source text of a script as the engine keeps it, or '' without an inspector. */
export function sourceOfScript(scriptId: number): string {
  const source = withSession((ask) => {
    ask('Debugger.enable')
    return ask('Debugger.getScriptSource', { scriptId: String(scriptId) }).scriptSource as string
  })
  return source ?? ''
}

interface Remote {
  readonly objectId?: string
  readonly description?: string
  readonly value?: unknown
}

type Answer = Readonly<Record<string, unknown>>
type Ask = (method: string, parameters?: object) => Answer

function withSession<Found>(question: (ask: Ask) => Found): Found | undefined {
  const inspector = process.getBuiltinModule('node:inspector') as Inspector | undefined
  if (inspector === undefined) return undefined
  let session: Session
  try {
    session = new inspector.Session()
    session.connect()
  } catch {
    return undefined // The permission model forbids it.
  }
  try {
    return question((method, parameters) => posted(session, method, parameters))
  } finally {
    session.disconnect()
  }
}

/** Sessions of the own thread answer before `post` returns. */
function posted(session: Session, method: string, parameters: object = {}): Answer {
  let failure: Error | null = null
  let answer: object | undefined
  const scripts: object[] = []
  const listen = (message: { params: object }): void => void scripts.push(message.params)
  session.on('Debugger.scriptParsed', listen)
  const post = session.post.bind(session) as (
    method: string,
    parameters: object,
    done: (error: Error | null, answer?: object) => void,
  ) => void
  post(method, parameters, (error, value) => {
    failure = error
    answer = value
  })
  session.off('Debugger.scriptParsed', listen)
  if (failure !== null) throw failure
  if (method === 'Debugger.enable') return { scripts }
  return answer as Answer
}

interface Inspected {
  readonly objectId: string
  readonly scriptId: number
  readonly line: number
  readonly column: number
  readonly scopes: string | undefined
}

function inspect(ask: Ask, fn: Function): Inspected | undefined {
  const shared = mainGlobal()
  shared[INSPECTED] = fn
  const expression = "globalThis[Symbol.for('corespun.inspected')]"
  const { objectId } = ask('Runtime.evaluate', { expression }).result as Remote
  delete shared[INSPECTED]
  if (objectId === undefined) return undefined
  const own = ask('Runtime.getProperties', { objectId, ownProperties: true })
  const internal = own.internalProperties as { name: string; value: Remote }[]
  const location = internal.find((each) => each.name === '[[FunctionLocation]]')?.value.value as
    { scriptId: string; lineNumber: number; columnNumber: number } | undefined
  if (location === undefined) return undefined
  const scopes = internal.find((each) => each.name === '[[Scopes]]')?.value.objectId
  const { scriptId, lineNumber, columnNumber } = location
  const place = { scriptId: Number(scriptId), line: lineNumber, column: columnNumber }
  return { objectId, ...place, scopes }
}

let main: { [INSPECTED]?: Function } | undefined

/**
 * The global object of the thread's main context, where the inspector evaluates. This module may run in
 * another one: test runners load a program and its packages into a context of `node:vm`.
 */
function mainGlobal(): { [INSPECTED]?: Function } {
  const vm = process.getBuiltinModule('node:vm')
  return (main ??= vm.runInThisContext('globalThis') as { [INSPECTED]?: Function })
}

interface ScopeShown {
  /** `Module`, `Closure`, `Block`, `Script`, ... as the engine names it. */
  readonly kind: string
  /** It is of a function with a name. */
  readonly named: boolean
  readonly objectId: string
}

/** The scopes around a function, innermost first, without the global one. */
function scopesOf(ask: Ask, listId: string): ScopeShown[] {
  const list = ask('Runtime.getProperties', { objectId: listId, ownProperties: true }).result
  const scopes: ScopeShown[] = []
  for (const { value } of list as { value?: Remote }[]) {
    const [kind, ...name] = value?.description?.split(' ') ?? []
    if (value?.objectId === undefined || kind === undefined || kind === 'Global') continue
    scopes.push({ kind, named: name.length > 0, objectId: value.objectId })
  }
  return scopes
}

function bindingsOf(
  ask: Ask,
  functionId: string,
  scopes: readonly ScopeShown[],
  names: readonly string[],
  file: string,
): ReadonlyMap<string, Binding> {
  const found = new Map<string, Binding>()
  const path = file.startsWith('file:') ? fileURLToPath(file) : file
  const given = [{ objectId: functionId }, { value: path }, { value: dirname(path) }]
  // The function that Node puts around a CommonJS module has no name and nothing around it.
  const outermost = scopes.findLast((scope) => scope.kind === 'Module' || scope.kind === 'Closure')
  for (const scope of scopes) {
    const open = names.filter((name) => !found.has(name))
    if (open.length === 0) break
    const answer = ask('Runtime.callFunctionOn', {
      functionDeclaration: PROBE,
      objectId: scope.objectId,
      arguments: [{ value: open }, ...given],
      returnByValue: true,
    }).result as { value: { held: (Binding['holds'] | null)[]; ofModule: boolean } }
    const { held, ofModule } = answer.value
    const wrapper = ofModule && scope === outermost && !scope.named
    const once = wrapper || scope.kind === 'Module' || scope.kind === 'Script'
    for (const [index, holds] of held.entries()) {
      if (holds !== null) found.set(open[index], { holds, once })
    }
  }
  return found
}

/** Runs with a scope of the inspector for `this`. Reading a variable not yet initialised throws. */
const PROBE = `function (names, fn, path, folder) {
  const has = (object, name) => Object.prototype.hasOwnProperty.call(object, name)
  const variables = this.object
  const held = names.map((name) => {
    if (!has(variables, name)) return null
    let value
    try { value = variables[name] } catch { return 'other' }
    if (value === fn) return 'self'
    const callable = typeof value === 'function'
    switch (name) {
      case 'require': return callable && 'resolve' in value && 'cache' in value ? 'node' : 'other'
      case '__filename': return value === path ? 'node' : 'other'
      case '__dirname': return value === folder ? 'node' : 'other'
      case '__name': return callable ? 'helper' : 'other'
    }
    return value !== undefined && has(globalThis, name) && globalThis[name] === value ? 'global' : 'other'
  })
  const given = ['require', 'module', 'exports', '__filename', '__dirname']
  const ofModule = given.some((name) => has(variables, name))
  return { held, ofModule }
}`

/** The file of a script: from the stack of this call where it can be, else from the list of all scripts. */
function fileOf(ask: Ask, scriptId: number): string {
  const known = fileOfScript.get(scriptId)
  if (known !== undefined) return known
  if (fileOfScript.size >= FILES_MAX) fileOfScript.clear()
  learnFromStack()
  if (!fileOfScript.has(scriptId)) learnFromEngine(ask)
  const file = fileOfScript.get(scriptId) ?? ''
  fileOfScript.set(scriptId, file)
  return file
}

interface Frame {
  readonly scriptId?: string
  readonly scriptName?: string
}

function learnFromStack(): void {
  const util = process.getBuiltinModule('node:util') as { getCallSites?: (frames: number) => Frame[] }
  for (const { scriptId, scriptName } of util.getCallSites?.(FRAMES_MAX) ?? []) {
    if (scriptId && scriptName) fileOfScript.set(Number(scriptId), scriptName)
  }
}

/** Enabling the debugger makes the engine tell every script it knows. */
function learnFromEngine(ask: Ask): void {
  const scripts = ask('Debugger.enable').scripts as readonly { scriptId: string; url: string }[]
  for (const { scriptId, url } of scripts) fileOfScript.set(Number(scriptId), url)
  ask('Debugger.disable')
}
