/**
 * Zones that other modules of the program export: `import { cpu } from './zones.ts'`.
 *
 * Read from the files, since the tools hand over one module at a time. Relative names only: what an alias or
 * a package means is known to the tool. A module is read again when its file changes.
 */
import { readFileSync, statSync } from 'node:fs'
import { dirname, extname, join } from 'node:path'
import { isTypeScript, stripTypes } from '../../zone/internal.ts'
import { namesOf, parseSource, type SyntaxNode } from '../../transport/internal.ts'
import { ZoneTypes } from './types.ts'
import { importedName, Zones } from './zones.ts'

/** Larger modules are tables, not modules that make zones. */
const FILE_BYTES_MAX = 256 * 1024
/** Re-exports of re-exports are followed as far. */
const DEPTH_MAX = 8
/** Answers that are kept; beyond these all are asked for again. */
const ANSWERS_MAX = 10_000

const SENDS = /\.\s*(?:run|execute|map|forEach|reduce|broadcast|broadcastSync)\s*[(<]/
const IMPORTS = /\bimport\s+(?!type\b)([\w$*{}\s,]+?)\s*from\s*['"](\.{1,2}\/[^'"]+)['"]/g
/** What such a module has in its text: it makes a zone, or it passes on what others export. */
const MAY_EXPORT = /\bcorespun\b|\bexport\s*(?:\*|\{[^}]*\})\s*from\b/

const answers = new Map<string, boolean>()

/** Whether a module without an import of Corespun may send functions to a zone that another one exports. */
export function importsZone(code: string, path: string): boolean {
  if (!SENDS.test(code)) return false
  return [...code.matchAll(IMPORTS)].some(([, what, specifier]) =>
    importedNames(what).some((name) => exportsZone(path, specifier, name)),
  )
}

/** The names that an import statement takes of a module; of `* as zones` all that the module exports. */
function importedNames(what: string): string[] {
  if (what.includes('*')) return ['*']
  const [, first = '', list = ''] = /^\s*([\w$]*)\s*,?\s*(?:\{([^}]*)\})?/.exec(what) ?? []
  const named = list.split(',').flatMap((each) => /^\s*([\w$]+)/.exec(each)?.[1] ?? [])
  return first === '' ? named : ['default', ...named]
}

/** Whether the module that `path` names so exports a zone under `name`; `*`: under any name. */
export function exportsZone(path: string, specifier: string, name: string, depth = 0): boolean {
  if (!specifier.startsWith('.') || depth > DEPTH_MAX) return false
  const file = fileOf(join(dirname(path), specifier))
  if (file === undefined || file.bytes > FILE_BYTES_MAX) return false
  const key = `${file.path}\0${file.changedMs}\0${name}`
  let answer = answers.get(key)
  if (answer === undefined) {
    if (answers.size >= ANSWERS_MAX) answers.clear()
    answers.set(key, false) // modules may import each other
    answer = exported(file.path, name, depth + 1)
    answers.set(key, answer)
  }
  return answer
}

function exported(path: string, name: string, depth: number): boolean {
  try {
    const original = readFileSync(path, 'utf8')
    if (!MAY_EXPORT.test(original)) return false
    const code = isTypeScript(path) ? stripTypes(original, path) : original
    const program = parseSource(code, 'module')
    const names = namesOf(program)
    const ask = (specifier: string, asked: string): boolean => exportsZone(path, specifier, asked, depth)
    const zones = new Zones(names, new ZoneTypes(original, code), ask)
    return (program.body as SyntaxNode[]).some((statement) =>
      isExport(statement, name, { zones, scope: names.module, ask }),
    )
  } catch {
    // The tool reports what cannot be read or does not parse.
    return false
  }
}

interface Asking {
  readonly zones: Zones
  readonly scope: Parameters<typeof importedName>[1]
  ask(specifier: string, name: string): boolean
}

/** Whether a statement exports a zone under a name. */
function isExport(statement: SyntaxNode, name: string, { zones, scope, ask }: Asking): boolean {
  const { type, declaration, source, specifiers = [], exported: whole } = statement as ExportStatement
  const isAsked = (as: SyntaxNode): boolean => name === '*' || (as.name ?? as.value) === name
  if (type === 'ExportDefaultDeclaration')
    return (name === 'default' || name === '*') && zones.isZone(declaration, scope)
  const from = source?.value as string | undefined
  if (type === 'ExportAllDeclaration') return whole == null && ask(from as string, name)
  if (type !== 'ExportNamedDeclaration') return false
  if (declaration != null)
    return ((declaration.declarations as SyntaxNode[] | undefined) ?? []).some(({ id }) => {
      const bound = id as SyntaxNode
      return bound.type === 'Identifier' && isAsked(bound) && zones.isZone(bound, scope)
    })
  return specifiers.some(({ local, exported: as }) => {
    if (!isAsked(as)) return false
    if (from === undefined) return zones.isZone(local, scope)
    const passed = (local.name ?? local.value) as string
    return isCorespun(from) ? passed === 'zone' : ask(from, passed)
  })
}

type ExportStatement = SyntaxNode & {
  readonly declaration?: SyntaxNode | null
  readonly source?: SyntaxNode | null
  readonly exported?: SyntaxNode | null
  readonly specifiers?: readonly { readonly local: SyntaxNode; readonly exported: SyntaxNode }[]
}

function isCorespun(specifier: string): boolean {
  return /^corespun(\/zone)?$/.test(specifier)
}

interface Found {
  readonly path: string
  readonly bytes: number
  readonly changedMs: number
}

/** Tools take `./zones` and `./zones.js` for `./zones.ts`, too. */
function fileOf(path: string): Found | undefined {
  const bare = /\.[cm]?js$/.test(path) ? path.slice(0, -extname(path).length) : path
  const ending = path.slice(bare.length).replace('j', 't')
  const candidates = [path, ...(ending === '' ? ENDINGS.map((each) => path + each) : [bare + ending])]
  for (const each of candidates) {
    const found = statSync(each, { throwIfNoEntry: false })
    if (found?.isFile() === true) return { path: each, bytes: found.size, changedMs: found.mtimeMs }
  }
  return undefined
}

const ENDINGS = ['.ts', '.mts', '.js', '.mjs', '/index.ts', '/index.js']
