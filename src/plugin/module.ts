/**
 * A file as the tools hand it over: which files are looked at, and TypeScript without its types.
 *
 * Erased types leave blanks, so positions in what is lifted are those of the file.
 */
import { createHash } from 'node:crypto'
import { basename, extname, relative } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { isTypeScript, stripTypes } from '../zone/internal.ts'
import { liftable, type Liftable } from './transform.ts'
import { importsZone } from './zones/modules.ts'

/** A module of the program, at a path. */
export interface ProgramModule extends Liftable {
  readonly path: string
  /** Its URL on the machine that builds. */
  readonly url: string
}

/**
 * The module of a tool's id, if functions of it are sent; `undefined` for all others, for packages, and for
 * TypeScript that cannot be erased.
 * @param original The same with its types, if another tool has erased them and left blanks.
 */
export function moduleOf(
  code: string,
  id: string,
  isBundled: boolean,
  original = code,
): ProgramModule | undefined {
  const path = (id.startsWith('file:') ? fileURLToPath(id) : id).replace(/[?#].*$/s, '')
  if (!/\.[cm]?[jt]s$/.test(path) || /[\\/]node_modules[\\/]/.test(path)) return undefined
  if (!original.includes('corespun') && !importsZone(code, path)) return undefined
  const found = liftable(isTypeScript(path) ? erased(code, path) : code, path, isBundled, original)
  return found && { ...found, path, url: pathToFileURL(path).href }
}

/** The name of an emitted file, without its extension: two files of one name must not be one. */
export function emittedName(path: string): string {
  const hash = createHash('sha256').update(relative(process.cwd(), path)).digest('hex').slice(0, 8)
  return `${basename(path, extname(path))}-${hash}`
}

function erased(code: string, path: string): string {
  try {
    return stripTypes(code, path)
  } catch {
    // Enums and the like: the tool compiles them, and the functions are sent as it writes them.
    return ''
  }
}
