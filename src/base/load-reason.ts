/**
 * Why a module failed to load, on one line: the reason, where, and what to do about the reasons that a first
 * program meets.
 *
 * Node's own sentences name what it found. What they leave out is the remedy, which depends on the file's
 * name and its package.json; both are read here, after the failure.
 */
import { readFileSync, statSync } from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { reasonOf } from './reasons.ts'
import { stackIn } from './stacks.ts'

/** Where Corespun's own frames lie. A function, since in a bundle of CommonJS this module has no URL. */
const own = (): string => new URL('..', import.meta.url).href

/**
 * Why a module failed to load, and where; V8 puts the location of a syntax error before the stack.
 * @param url The module that was imported: where V8 has no location, it and its imports are searched.
 */
export function loadReason(thrown: unknown, url = ''): string {
  const [reason] = reasonOf(thrown).split(' Require stack:')
  if (!(thrown instanceof Error)) return reason
  const stack = String(stackIn(thrown) ?? '').split(own())[0] // from there on it is ours
  const [, text] = LOCATION.exec(stack) ?? FRAME.exec(stack) ?? []
  const fault = text === undefined ? faultFor(thrown, url) : undefined
  const location = fault ?? located(text)
  const advice =
    fault?.isDecorator === true
      ? 'no Node runs decorators: compile the file first'
      : adviceOn(thrown, location?.path)
  const at = location === undefined ? '' : ` (${location.path}:${location.line})`
  return `${reason}${missingOf(thrown, reason)}${at}${advice === undefined ? '' : `; ${advice}`}`
}

/** A file, and a line of it, perhaps with a column. */
interface Location {
  readonly path: string
  readonly line: string
}

/** A whole line of V8's: a URL or a path, which may contain anything, and the line. */
const LOCATION = /^((?:file:\/\/|\/|[A-Za-z]:[\\/]).*:\d+)$/m
/** The first frame that is in a file. */
const FRAME = /^ +at (?:async |.*?\()?((?:file:\/\/|\/|[A-Za-z]:[\\/]).*:\d+:\d+)\)?$/m

function located(text: string | undefined): Location | undefined {
  const [, file, line] = /^(.*?):(\d+(?::\d+)?)$/.exec(text ?? '') ?? []
  return file === undefined ? undefined : { path: pathOf(file), line }
}

/** A path is returned as it is. */
function pathOf(file: string): string {
  try {
    return file.startsWith('file:') ? fileURLToPath(file) : file
  } catch {
    return file // No URL: a program makes its own stacks.
  }
}

/** The file of an error of the system, whose reason has no name. */
function missingOf({ path }: NodeJS.ErrnoException, reason: string): string {
  return typeof path !== 'string' || path === '' || reason.includes(path) ? '' : `: ${path}`
}

/** In V8's sentences about the syntax of modules in a file that Node takes for CommonJS. */
const MODULE_SYNTAX =
  /import statement outside|Unexpected token 'export'|'import\.meta' outside|await is only valid .* modules/

/** @param path The file at fault, where the error has one. */
function adviceOn(error: Error, path: string | undefined): string | undefined {
  switch ((error as NodeJS.ErrnoException).code) {
    case 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX':
      return `${inErasableSyntax(error.message)}compile the file first`
    case 'ERR_UNSUPPORTED_NODE_MODULES_TYPE_STRIPPING':
      return 'copy the file into your project: Node runs no TypeScript below node_modules'
    case 'ERR_UNKNOWN_FILE_EXTENSION':
      return /\.[jt]sx/.test(error.message)
        ? 'compile it to JavaScript first: erasing the types leaves its JSX'
        : undefined
    case 'ERR_MODULE_NOT_FOUND':
    case 'ERR_UNSUPPORTED_DIR_IMPORT':
    case 'MODULE_NOT_FOUND':
      return adviceOnName(error)
  }
  if (path === undefined || !(error instanceof SyntaxError)) return undefined
  const [, type] = /not provide an export named '(\w+)'/.exec(error.message) ?? []
  if (type !== undefined) return `if ${type} is a type, import it as one: import { type ${type} }`
  return MODULE_SYNTAX.test(error.message) ? adviceOnType(path) : undefined
}

/** Beyond these no more are searched. */
const SEARCHED_MAX = 100

/**
 * Where a module, or what it imports by a relative name, has a syntax error. V8 names no file for one in an
 * ES module.
 */
function faultFor(error: Error, url: string): (Location & { readonly isDecorator: boolean }) | undefined {
  if (!(error instanceof SyntaxError)) return undefined
  const searched = new Set(url.startsWith('file:') ? [url] : [])
  for (const each of searched) {
    const text = textOf(new URL(each))
    if (text === undefined) continue
    const decorator = text.split('\n').findIndex((words) => /^\s*@\w/.test(words)) + 1
    const isDecorator = decorator > 0 && error.message === 'Invalid or unexpected token'
    const line = isDecorator ? String(decorator) : lineOf(error, text)
    if (line !== undefined) return { path: fileURLToPath(each), line, isDecorator }
    for (const [, name] of text.matchAll(/\b(?:from|import)\s*\(?\s*['"](\.[^'"]+)/g))
      if (searched.size < SEARCHED_MAX) searched.add(new URL(name, each).href)
  }
  return undefined
}

/** The line at which a module has that syntax error: a script has it too, without its imports and exports. */
function lineOf(error: SyntaxError, module: string): string | undefined {
  const blank = (text: string): string => text.replaceAll(/[^\n]/g, '')
  const script = module
    .replace(/^#!.*/, '')
    .replaceAll(/^[ \t]*import\b(?!\s*[.(])[^'"]*(['"])[^'"\n]*\1(?:\s*with\s*\{[^}]*\})?/gm, blank)
    .replaceAll(/^[ \t]*export\s*(?:\*[^'"\n]*|\{[^}]*\}(?:\s*from\b\s*)?)(?:(['"])[^'"\n]*\1)?/gm, blank)
    .replaceAll(/^([ \t]*)export\s+default\b/gm, '$1_ =')
    .replaceAll(/^([ \t]*)export\b/gm, '$1')
    .replaceAll('import.meta', '_')
  const { Script } = process.getBuiltinModule('node:vm')
  // What is not closed ends with the file, and `await` needs a function.
  for (const [before, after] of [
    ["'use strict';", ''],
    ["async () => { 'use strict';", '\n}'],
  ] as const)
    try {
      void new Script(before + script + after, { filename: 'm' })
    } catch (thrown) {
      const { message, stack = '' } = thrown as Error
      if (message === error.message) return /^m:(\d+)$/m.exec(stack)?.[1]
    }
  return undefined
}

/** What to write for syntax that is more than types. */
function inErasableSyntax(message: string): string {
  if (message.includes('enum')) return 'write an object or a union for the enum, or '
  if (message.includes('parameter property')) return 'declare the field and assign it in the constructor, or '
  return message.includes('namespace') ? 'write a module for the namespace, or ' : ''
}

/** @param path A file with the syntax of modules that Node takes for CommonJS. */
function adviceOnType(path: string): string | undefined {
  const name = basename(path)
  const renamed = name.replace(/\.c?([jt]s)$/, '.m$1')
  if (/\.c[jt]s$/.test(name)) return `${name} is CommonJS by its name: rename it to ${renamed}`
  if (packageType(dirname(path)) !== 'commonjs') return undefined
  const why = `${name} is CommonJS, since package.json has "type": "commonjs"`
  return `${why}: npm pkg set type=module, or name it ${renamed}`
}

/** An import that only a compiler or a bundler finds: a name without its extension, a folder, an alias. */
function adviceOnName(error: Error): string | undefined {
  const { requireStack } = error as { readonly requireStack?: readonly string[] }
  const [, name, importer = requireStack?.[0]] =
    /^[^']*'(.+)'(?:[^']*? imported from (.+))?$/m.exec(error.message) ?? []
  if (name === undefined || importer === undefined) return undefined
  const folder = dirname(pathOf(importer))
  if (!/^([./]|[a-z]:)/i.test(name)) return aliasIn(folder, `${name}/`) ?? installOf(name)
  const path = resolve(folder, name)
  const stem = path.replace(/\.([cm]?)js$/, '')
  const found = ENDINGS.flatMap((end) => [path + end, stem + end, join(path, `index${end}`)]).find(isFile)
  if (found === undefined) return undefined
  const written = relative(folder, found).replaceAll('\\', '/')
  return `name the file itself: '${written.startsWith('.') ? '' : './'}${written}'`
}

/** What installs a package; a name such as `~/lib` is not one. */
function installOf(name: string): string | undefined {
  const [, found] = /^((?:@[\w-]+\/)?[\w-][\w.-]*)(?:\/|$)/.exec(name) ?? []
  return found === undefined ? undefined : `npm install ${found}`
}

const ENDINGS = ['.ts', '.mts', '.cts', '.tsx', '.js', '.mjs', '.cjs']

const isFile = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isFile() === true

/** Advice where the nearest tsconfig.json, which may have comments, has a path for the name. */
function aliasIn(folder: string, name: string): string | undefined {
  const text = textOf(join(folder, 'tsconfig.json'))
  if (text === undefined) return dirname(folder) === folder ? undefined : aliasIn(dirname(folder), name)
  const aliases = [...text.matchAll(/"([^"*]+)\*"\s*:\s*\[/g)].map(([, prefix]) => prefix)
  if (!aliases.some((prefix) => name.startsWith(prefix))) return undefined
  return 'it is a path of tsconfig.json, which only compilers apply: use "imports" of package.json'
}

const typeOfFolder = new Map<string, 'module' | 'commonjs' | undefined>()

/** The `type` of the nearest package.json; `undefined` when it has no valid one. */
export function packageType(folder: string): 'module' | 'commonjs' | undefined {
  if (typeOfFolder.has(folder)) return typeOfFolder.get(folder)
  const parent = dirname(folder)
  const own = packageOf(folder)
  const type = own === undefined && parent !== folder ? packageType(parent) : own?.type
  const known = type === 'module' || type === 'commonjs' ? type : undefined
  typeOfFolder.set(folder, known)
  return known
}

function packageOf(folder: string): { type?: string } | undefined {
  try {
    return JSON.parse(textOf(join(folder, 'package.json')) ?? '') as { type?: string }
  } catch {
    return undefined // No such file; a broken one is reported by whoever needs it.
  }
}

function textOf(path: string | URL): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined // No such file.
  }
}
