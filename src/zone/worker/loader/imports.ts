/**
 * The files that a module consists of: itself and what it imports, with their texts.
 *
 * Read from the source and not from a loader, so no Node needs hooks and modules that run only in workers are
 * found: imports, `import('./a.js')`, `require('./a.js')` and `new URL('./a.js', import.meta.url)`. Packages
 * are left out, except those that lie outside of node_modules, as in a workspace. A name that the program
 * computes is not seen.
 */
import { readFileSync, realpathSync } from 'node:fs'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseSource, type SyntaxNode } from '../../../transport/internal.ts'
import { isTypeScript, stripTypes } from './strip.ts'

/** Beyond these no more are searched for imports. */
const FILES_MAX = 10_000

/** Path and text of each file; `undefined` for one that cannot be read, which may appear. */
export type Sources = ReadonlyMap<string, string | undefined>

/** The files of a module. @param entry Its path. */
export function sourcesOf(entry: string): Sources {
  const found = new Map<string, string | undefined>()
  const left = [entry]
  while (left.length > 0 && found.size < FILES_MAX) {
    const path = left.pop()!
    if (found.has(path)) continue
    const text = textOf(path)
    found.set(path, text)
    if (text !== undefined && /\.[cm]?[jt]s$/.test(path)) left.push(...importsOf(text, path))
  }
  return found
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

function importsOf(text: string, path: string): string[] {
  const names = new Set<string>()
  try {
    collect(parseSource(isTypeScript(path) ? stripTypes(text, path) : text, 'module'), names)
  } catch {
    // It does not load either, and the worker reports why; its own text is watched.
  }
  return [...names].flatMap((name) => pathOf(name, path) ?? [])
}

/** The modules that a tree names, as written. */
function collect(node: SyntaxNode, names: Set<string>): void {
  const name = nameIn(node)
  if (typeof name === 'string') names.add(name)
  for (const value of Object.values(node)) {
    for (const child of Array.isArray(value) ? value : [value]) if (isNode(child)) collect(child, names)
  }
}

function isNode(value: unknown): value is SyntaxNode {
  return value !== null && typeof value === 'object' && 'type' in value
}

function nameIn(node: SyntaxNode): unknown {
  const { source, callee, arguments: given } = node as Partial<Record<string, SyntaxNode>>
  switch (node.type) {
    case 'ImportDeclaration':
    case 'ImportExpression':
    case 'ExportAllDeclaration':
    case 'ExportNamedDeclaration':
      return source?.['value']
    case 'CallExpression':
    case 'NewExpression': {
      const called = callee?.['name']
      const [first, second] = given as unknown as readonly SyntaxNode[]
      if (called === 'require') return first?.['value']
      const isHere = called === 'URL' && isNode(second) && second.type === 'MemberExpression'
      return isHere ? first?.['value'] : undefined
    }
    default:
      return undefined
  }
}

/** The file that a name means in a module; `undefined` for modules of Node and of packages. */
function pathOf(name: string, from: string): string | undefined {
  // Taken here: an import of zones is not to load it.
  const { createRequire, isBuiltin } = process.getBuiltinModule('node:module')
  if (isBuiltin(name) || name.startsWith('data:')) return undefined
  try {
    if (/^(\.{0,2}\/|file:)/.test(name)) {
      const path = fileURLToPath(new URL(name, pathToFileURL(from)))
      return /\.[\w-]+$/.test(path) ? path : createRequire(from).resolve(path)
    }
    const path = realpathSync(createRequire(from).resolve(name))
    return /[\\/]node_modules[\\/]/.test(path) ? undefined : path
  } catch {
    return undefined // the worker reports a module that is missing
  }
}
