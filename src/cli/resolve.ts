/**
 * Which module the user means: a file from here, a URL, or an installed package.
 *
 * Only looks; nothing is loaded in the main thread, which stays free for moving items.
 */
import { readdirSync, statSync } from 'node:fs'
import { createRequire, isBuiltin } from 'node:module'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { nearestOf, reasonOf } from '../base/index.ts'
import { CliError } from './errors.ts'

/**
 * The URL that `import()` takes in any thread.
 * @param module As written: `score.ts`, `./score.ts`, `/a/score.ts`, `file:///a/score.ts`, `node:path`,
 * `lodash`.
 * @param folder What relative names start from.
 * @throws {CliError} `CLI_MODULE_MISSING` when there is no such file and no such package.
 */
export function resolveModule(module: string, folder: string): string {
  if (module.startsWith('data:') || module.startsWith('node:')) return module
  const path = pathOf(module, folder)
  if (isFile(path)) return pathToFileURL(path).href
  // A path is a path: only a bare name is looked for among the packages.
  if (!/^(\.{0,2}\/|file:)/.test(module)) {
    const found = isBuiltin(module) ? `node:${module}` : packageUrl(module, folder)
    if (found !== undefined) return found
  }
  throw new CliError('CLI_MODULE_MISSING', { module, hint: hintFor(path, folder) })
}

/** What was probably meant: a file in that folder, or of nearly that name; '' where nothing is near. */
function hintFor(path: string, folder: string): string {
  try {
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return 'it is a folder: name a file in it'
    const names = readdirSync(dirname(path)).filter((name) => /\.[cm]?[jt]sx?$/.test(name))
    const near = nearestOf(basename(path), names)
    return near === undefined ? '' : `did you mean ${relative(folder, join(dirname(path), near))}?`
  } catch (error) {
    const isMissing = ['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')
    return isMissing ? '' : `it cannot be read: ${reasonOf(error)}`
  }
}

/** Whether `module`, as written, is a file, with a `#` in its path or without. */
export function isModuleFile(module: string, folder: string): boolean {
  return !module.startsWith('file:') && isFile(resolve(folder, module))
}

function pathOf(module: string, folder: string): string {
  return module.startsWith('file:') ? pathOfUrl(module) : resolve(folder, module)
}

function packageUrl(name: string, folder: string): string | undefined {
  const require = createRequire(join(folder, 'corespun-run.js'))
  try {
    return pathToFileURL(require.resolve(name)).href
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code !== 'ERR_PACKAGE_PATH_NOT_EXPORTED') return undefined
    return importOnlyUrl(name, require)
  }
}

/** A package whose "exports" have only the condition `import`. */
function importOnlyUrl(name: string, require: NodeJS.Require): string | undefined {
  const packageName = name.split('/', name.startsWith('@') ? 2 : 1).join('/')
  for (const modules of require.resolve.paths(name) ?? []) {
    const folder = join(modules, packageName)
    if (!isFile(join(folder, 'package.json'))) continue
    const manifest = require(join(folder, 'package.json')) as { readonly exports?: unknown }
    const target = importTarget(manifest.exports, `.${name.slice(packageName.length)}`)
    if (target !== undefined && isFile(join(folder, target))) return pathToFileURL(join(folder, target)).href
  }
  return undefined
}

/** The file of `subpath` in "exports" on import. Patterns are not supported. */
function importTarget(exports: unknown, subpath: string): string | undefined {
  if (typeof exports === 'string') return subpath === '.' ? exports : undefined
  if (typeof exports !== 'object' || exports === null) return undefined
  if (Array.isArray(exports)) return importTarget(exports[0], subpath)
  const entries = exports as Readonly<Record<string, unknown>>
  if (Object.keys(entries).some((key) => key.startsWith('.'))) {
    const entry = entries[subpath]
    return entry === undefined ? undefined : importTarget(entry, '.')
  }
  for (const condition of Object.keys(entries)) {
    if (!['node', 'import', 'module-sync', 'default'].includes(condition)) continue
    const target = importTarget(entries[condition], '.')
    if (target !== undefined) return target
  }
  return undefined
}

function pathOfUrl(url: string): string {
  try {
    return fileURLToPath(url)
  } catch {
    throw new CliError('CLI_MODULE_MISSING', { module: url, hint: '' })
  }
}

function isFile(path: string): boolean {
  try {
    return statSync(path).isFile()
  } catch {
    return false
  }
}
