/**
 * Why a module failed to load, on one line: the reason, where, and what to do about the reasons that a first
 * program meets.
 *
 * Node's own sentences name what it found. What they leave out is the remedy, which depends on the file's
 * name and its package.json; both are read here, after the failure.
 */
import { readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { reasonOf } from './reasons.ts'
import { stackIn } from './stacks.ts'

/** Where Corespun's own frames lie. */
const OWN = new URL('..', import.meta.url).href

/** Why a module failed to load, and where; V8 puts the location of a syntax error before the stack. */
export function loadReason(thrown: unknown): string {
  const reason = reasonOf(thrown)
  if (!(thrown instanceof Error)) return reason
  const stack = String(stackIn(thrown) ?? '').split(OWN)[0] // from there on it is ours
  const location = /^(file:\/\/\S+:\d+|\/\S+:\d+)$/m.exec(stack) ?? /(file:\/\/[^\s()]+:\d+:\d+)/.exec(stack)
  const advice = adviceOn(thrown, location?.[1].replace(/(:\d+){1,2}$/, ''))
  const end = advice === undefined ? '' : `; ${advice}`
  if (location === null) return `${reason}${end}`
  return `${reason} (${location[1].replace(/^file:\/\//, '')})${end}`
}

/** In V8's sentences about the syntax of modules in a file that Node takes for CommonJS. */
const MODULE_SYNTAX = /import statement outside|Unexpected token 'export'|'import\.meta' outside/

/** @param file The path or URL of the file at fault, where the error has one. */
function adviceOn(error: Error, file: string | undefined): string | undefined {
  switch ((error as NodeJS.ErrnoException).code) {
    case 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX':
      return 'compile the file first, or write an object or a union for an enum'
    case 'ERR_UNSUPPORTED_NODE_MODULES_TYPE_STRIPPING':
      return 'copy the file into your project: Node runs no TypeScript below node_modules'
    case 'ERR_UNKNOWN_FILE_EXTENSION':
      return /\.[jt]sx/.test(error.message)
        ? 'compile it to JavaScript first: erasing the types leaves its JSX'
        : undefined
  }
  const isMeant = error instanceof SyntaxError && MODULE_SYNTAX.test(error.message)
  if (file === undefined || !isMeant) return undefined
  const path = file.startsWith('file:') ? fileURLToPath(file) : file
  const name = basename(path)
  const renamed = name.replace(/\.c?([jt]s)$/, '.m$1')
  if (/\.c[jt]s$/.test(name)) return `${name} is CommonJS by its name: rename it to ${renamed}`
  if (packageType(dirname(path)) !== 'commonjs') return undefined
  const why = `${name} is CommonJS, since package.json has "type": "commonjs"`
  return `${why}: npm pkg set type=module, or name it ${renamed}`
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
    return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { type?: string }
  } catch {
    return undefined // No such file; a broken one is reported by whoever needs it.
  }
}
