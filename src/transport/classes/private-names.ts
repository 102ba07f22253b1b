/**
 * Finds the private members of a class in its source text: as they are written, and as compilers lower them.
 *
 * TypeScript below ES2022, esbuild, Babel, swc and oxc turn `#x` into an entry of a WeakMap that the
 * constructor makes, which no object shows. The text of the constructor does: each compiler calls its helper
 * with `this`, and TypeScript sets the WeakMap itself. A WeakMap that an author fills is not found,
 * nor are helpers whose names a minifier has replaced.
 */
import { parseSource } from '../functions/parser.ts'
import type { Class } from '../class-entry.ts'

/** Helpers of esbuild; of Babel and oxc; of swc. `)` closes what a bundler writes around an imported one. */
const HELPER = new RegExp(
  '(?:__privateAdd|_class_?private_?(?:field|method)_?init(?:_?spec)?)\\d*' +
    String.raw`(?:\.\w+)?\)?\(\s*this,\s*([\w$]+)`,
  'gi',
)
/** TypeScript, by its own hands. */
const ADDED = /([\w$]+)\.(?:set\(\s*this\s*,|add\(\s*this\s*\))/g
/** The loose form of Babel and swc: a property whose key nobody else has. */
const LOOSE = /Object\.defineProperty\(\s*this,\s*([\w$]+)/g

/**
 * Names of the private fields, methods and accessors of the objects of a class and the classes it extends.
 * Only the constructor adds them to an object. Static ones belong to no object.
 */
export function privateNames(constructor: Class): string[] {
  const names: string[] = []
  for (let up: unknown = constructor; typeof up === 'function'; up = Object.getPrototypeOf(up)) {
    const source = Function.prototype.toString.call(up)
    for (const element of classElements(source)) {
      if (element.static !== true && element.key?.type === 'PrivateIdentifier')
        names.push(`#${element.key.name}`)
    }
    for (const name of loweredNames(source, up.name)) names.push(name)
  }
  return names
}

/** The names of private members that a compiler has lowered. */
function loweredNames(source: string, className: string): Set<string> {
  const variables = new Set<string>()
  for (const [, variable] of source.matchAll(HELPER)) variables.add(variable)
  for (const [, variable] of source.matchAll(ADDED))
    if (
      variable.startsWith(`_${className}_`) ||
      isUsedBy(/__classPrivateField(?:Get|Set|In)/, variable, source)
    )
      variables.add(variable)
  for (const [, variable] of source.matchAll(LOOSE))
    if (isUsedBy(/[lL]oose_?[bB]ase\d*/, variable, source)) variables.add(variable)
  return new Set([...variables].map((variable) => writtenName(variable, className)))
}

/** Whether a helper of that name is called with the variable, as in `helper(this, variable)`. */
function isUsedBy(helper: RegExp, variable: string, source: string): boolean {
  const name = variable.replaceAll('$', '\\$')
  return new RegExp(`${helper.source}(?:\\.\\w+)?\\)?\\([^()]*\\b${name}\\b`).test(source)
}

/** `#x` for `_Account_x` and `_x`; the variable of all private methods of a class has no name of one. */
function writtenName(variable: string, className: string): string {
  if (/_(?:instances|brand)\d*$/.test(variable)) return 'private methods'
  const prefix = variable.startsWith(`_${className}_`) ? className.length + 2 : 0
  return `#${variable.slice(prefix).replace(/^_+/, '')}`
}

interface ClassElement {
  readonly type: string
  readonly static?: boolean
  readonly key?: { readonly type: string; readonly name?: string }
}

function classElements(source: string): readonly ClassElement[] {
  // Loading the parser is slow, and without a "#" there are no private names.
  if (!source.startsWith('class') || !source.includes('#')) return []
  try {
    const program = parseSource(`(${source})`) as unknown as {
      body: [{ expression: { body: { body: ClassElement[] } } }]
    }
    return program.body[0].expression.body.body
  } catch {
    // Syntax newer than the parser, or a class in a generator or an async function.
    return []
  }
}
