/**
 * What the file around a function shows: whether it is strict there, and the module a name was imported from.
 *
 * The module of a name is only a hint for an error message, found by a pattern: the file may be TypeScript,
 * which no JavaScript parser reads. Strictness decides how a function is compiled and is found by the parser.
 */
import { readFileSync } from 'node:fs'
import { isAbsolute } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseSource, type SyntaxNode } from './parser.ts'
import { sourceOfScript, type Origin } from './origin.ts'

/** Whether `fn`, with the source `text`, is strict. `plain`: it is a plain `function`. */
export function isStrict(fn: Function, text: string, plain: boolean, origin: Origin | undefined): boolean {
  if (origin?.isModule === true) return true
  if (hasCaller(fn)) return false
  if (plain) return true
  if (origin === undefined) return false
  const onDisk = textOfFile(origin.file)
  const source = onDisk.includes(text) ? onDisk : sourceOfScript(origin.scriptId)
  if (!/use strict|\bclass\b/.test(source)) return false
  return isStrictWithin(source, origin)
}

/** The engine throws when `caller` of any but a plain sloppy function is read. */
function hasCaller(fn: Function): boolean {
  try {
    void (fn as { caller?: unknown }).caller
    return true
  } catch {
    return false
  }
}

/** The module that `name` was imported or required from in `file`; `undefined` when it is not an import. */
export function importedFrom(file: string, name: string): string | undefined {
  const word = new RegExp(`(?<![\\w$])${name.replaceAll('$', '\\$')}(?![\\w$])`)
  for (const [, clause, imported, target, required] of textOfFile(file).matchAll(IMPORTS)) {
    if (word.test(clause ?? target)) return imported ?? required
  }
  return undefined
}

/** `import clause from 'module'` and `const names = require('module')`. */
const IMPORTS = new RegExp(
  /\bimport\s+([\w$*{][^'"`;]*?)\bfrom\s*['"]([^'"\n]+)['"]/.source +
    '|' +
    /\b(?:const|let|var)\s+([^=;]+?)\s*=\s*require\(\s*['"]([^'"\n]+)['"]/.source,
  'g',
)

function textOfFile(file: string): string {
  try {
    if (file.startsWith('file:')) return readFileSync(fileURLToPath(file), 'utf8')
    return isAbsolute(file) ? readFileSync(file, 'utf8') : ''
  } catch {
    return '' // The error then has less detail.
  }
}

function isStrictWithin(source: string, origin: Origin): boolean {
  let tree: SyntaxNode
  try {
    tree = parseSource(source)
  } catch {
    return /^\s*(?:(?:\/\/.*|\/\*[^]*?\*\/)\s*)*['"]use strict['"]/.test(source)
  }
  return strictAt(tree, offsetOf(source, origin), hasDirective(tree)) ?? false
}

function offsetOf(source: string, origin: Origin): number {
  let offset = 0
  for (let line = 0; line < origin.line; line++) offset = source.indexOf('\n', offset) + 1
  return offset + origin.column
}

/** Strictness at an offset, by the directives and classes around it; the innermost decides. */
function strictAt(node: SyntaxNode, at: number, strict: boolean): boolean | undefined {
  if (node.type === 'Program') return strictOfChildren(node, at, strict)
  if (at < node.start || at >= node.end) return undefined
  const directed = isFunctionNode(node) && hasDirective(node.body as SyntaxNode)
  const inner = strict || directed || node.type.startsWith('Class')
  return strictOfChildren(node, at, inner)
}

function strictOfChildren(node: SyntaxNode, at: number, strict: boolean): boolean {
  for (const key in node) {
    const value = node[key]
    for (const each of Array.isArray(value) ? value : [value]) {
      if (typeof each !== 'object' || each === null || typeof (each as SyntaxNode).type !== 'string') continue
      const found = strictAt(each as SyntaxNode, at, strict)
      if (found !== undefined) return found
    }
  }
  return strict
}

function isFunctionNode(node: SyntaxNode): boolean {
  return node.type.includes('Function')
}

function hasDirective(body: SyntaxNode): boolean {
  const statements = body.body
  return Array.isArray(statements) && statements.some((each: SyntaxNode) => each.directive === 'use strict')
}
