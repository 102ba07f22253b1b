/**
 * The location of a function and the variables around it, from the engine's inspector.
 *
 * File, line and column come from the native core, so a function that takes nothing from outside needs no
 * inspector. An inspector session is open for one query only, so that no debugger stays active. A query takes
 * about a quarter of a millisecond; without the core, finding the file of a script that is not on the stack
 * takes tens. Without an inspector (a build or a permission that lacks it) the result is `undefined`, and
 * functions that depend on their location are refused.
 */
import { fileURLToPath } from 'node:url'
import { dirname } from 'node:path'
import type { Session } from 'node:inspector'

/** How a name that a function takes from outside is bound there. */
export interface VariableBinding {
  /**
   * The value of the variable. `self`: the function itself; `global`: the global of that name; `node`: the
   * value that Node passes to each file under that name; `helper`: a compiler's function.
   */
  readonly holds: 'self' | 'global' | 'node' | 'helper' | 'other'
  /** It exists once per script: every function made at the same location sees the same variable. */
  readonly once: boolean
}

export interface ScriptLocation {
  readonly scriptId: number
  /** URL or path of the script; '' for code made by eval or `new Function`. */
  readonly file: string
  /** Position the engine reports, from 0. */
  readonly line: number
  readonly column: number
  readonly isModule: boolean
}

/** The location of a function and the variables it sees. */
export interface Origin extends ScriptLocation {
  /** The requested names that are variables of the code around the function. */
  readonly bindings: ReadonlyMap<string, VariableBinding>
}

/** Scripts whose files are cached per thread: more than a program has unless it generates code endlessly. */
const FILES_MAX = 10_000
/** Stack frames that are searched for the script of a function. */
const FRAMES_MAX = 200

const NO_BINDINGS: ReadonlyMap<string, VariableBinding> = new Map()
const fileOfScript = new Map<number, string>()
const INSPECTED = Symbol.for('corespun.inspected')

type Inspector = typeof import('node:inspector')

let scriptLocationOf: ((fn: Function) => ScriptLocation | undefined) | undefined

export function setScriptLocations(next: typeof scriptLocationOf): void {
  scriptLocationOf = next
}

/** The file of `fn` in the engine's records; `node:…` for Node's own functions. */
export function fileOfFunction(fn: Function): string | undefined {
  return scriptLocationOf?.(fn)?.file
}

/**
 * The location of `fn`, and those of `names` that are bound around it. `undefined` without an inspector, and
 * for native functions.
 */
export function originOf(fn: Function, names: readonly string[]): Origin | undefined {
  const location = scriptLocationOf?.(fn)
  // Code made by eval has no file, and its script does not show the module around it.
  if (location !== undefined && location.file !== '' && names.length === 0)
    return { ...location, bindings: NO_BINDINGS }
  return withSession((ask) => {
    const shown = inspect(ask, fn)
    if (shown === undefined) return undefined
    const scopes = shown.scopes === undefined ? [] : scopesOf(ask, shown.scopes)
    const file = location?.file ?? fileOf(ask, shown.scriptId)
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

type Reply = Readonly<Record<string, unknown>>
type Ask = (method: string, parameters?: object) => Reply

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
  } catch (error) {
    if (error === SILENT) return undefined
    throw error
  } finally {
    session.disconnect()
  }
}

/** Thrown when an inspector has no such command, as that of Bun. */
const SILENT = new Error('the inspector does not reply')

/** A session of the same thread calls back before `post` returns. */
function posted(session: Session, method: string, parameters: object = {}): Reply {
  let failure: Error | null = null
  let reply: object | undefined
  const scripts: object[] = []
  const listen = (message: { params: object }): void => void scripts.push(message.params)
  session.on('Debugger.scriptParsed', listen)
  const post = session.post.bind(session) as (
    method: string,
    parameters: object,
    done: (error: Error | null, reply?: object) => void,
  ) => void
  post(method, parameters, (error, value) => {
    failure = error
    reply = value
  })
  session.off('Debugger.scriptParsed', listen)
  if (failure !== null) throw failure
  if (reply === undefined) throw SILENT
  if (method === 'Debugger.enable') return { scripts }
  return reply as Reply
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
    | { scriptId: string; lineNumber: number; columnNumber: number }
    | undefined
  if (location === undefined) return undefined
  const scopes = internal.find((each) => each.name === '[[Scopes]]')?.value.objectId
  const { scriptId, lineNumber, columnNumber } = location
  return { objectId, scriptId: Number(scriptId), line: lineNumber, column: columnNumber, scopes }
}

let main: { [INSPECTED]?: Function } | undefined

/**
 * The global object of the thread's main context, in which the inspector evaluates. This module may run in
 * another one: test runners load a program and its packages into a `node:vm` context.
 */
function mainGlobal(): { [INSPECTED]?: Function } {
  const vm = process.getBuiltinModule('node:vm')
  return (main ??= vm.runInThisContext('globalThis') as { [INSPECTED]?: Function })
}

interface ScopeShown {
  /** `Module`, `Closure`, `Block`, `Script`, ... as the engine names it. */
  readonly kind: string
  /** Whether it is the scope of a function with a name. */
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
): ReadonlyMap<string, VariableBinding> {
  const found = new Map<string, VariableBinding>()
  const path = file.startsWith('file:') ? fileURLToPath(file) : file
  const given = [{ objectId: functionId }, { value: path }, { value: dirname(path) }]
  // The function that Node puts around a CommonJS module has no name and nothing around it.
  const outermost = scopes.findLast((scope) => scope.kind === 'Module' || scope.kind === 'Closure')
  for (const scope of scopes) {
    const open = names.filter((name) => !found.has(name))
    if (open.length === 0) break
    const reply = ask('Runtime.callFunctionOn', {
      functionDeclaration: PROBE,
      objectId: scope.objectId,
      arguments: [{ value: open }, ...given],
      returnByValue: true,
    }).result as { value: { held: (VariableBinding['holds'] | null)[]; ofModule: boolean } }
    const { held, ofModule } = reply.value
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

/** Enabling the debugger makes the engine report every script. */
function learnFromEngine(ask: Ask): void {
  const scripts = ask('Debugger.enable').scripts as readonly { scriptId: string; url: string }[]
  for (const { scriptId, url } of scripts) fileOfScript.set(Number(scriptId), url)
  ask('Debugger.disable')
}
