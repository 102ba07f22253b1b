/**
 * Where a module names a file of the program that its bundle does not have there: `new URL('./a.ts',
 * import.meta.url)`, and the URL of the module itself in `exported()`.
 *
 * The tool emits such a file as one that workers can load, and the expression becomes its location.
 */
import { basename } from 'node:path'
import { bindingOf, type ModuleNames, type Scope, type SyntaxNode } from '../transport/internal.ts'
import { importedName } from './zones/zones.ts'

/** An expression that becomes the location of an emitted file. */
export interface Location {
  readonly start: number
  readonly end: number
  /** The file, relative to the module. */
  readonly specifier: string
  /** Written behind the URL, which is an object. */
  readonly suffix: string
}

/** All such expressions of the module `path`, ordered. */
export function locationsOf(names: ModuleNames, path: string): Location[] {
  const found = [...urls(names), ...exportedUrls(names, path)]
  return found.toSorted((a, b) => a.start - b.start)
}

const MODULE = /^\.{1,2}\/.*\.[cm]?[jt]s$/s

function* urls({ news }: ModuleNames): Iterable<Location> {
  // `new Worker(new URL(...))` is what bundlers look for themselves.
  const taken = new Set(news.flatMap(([{ arguments: given }]) => given as SyntaxNode[]))
  for (const [node, scope] of news) {
    const { callee, arguments: given } = node as unknown as { callee: SyntaxNode; arguments: SyntaxNode[] }
    const [file, base] = given
    if (callee.name !== 'URL' || bindingOf('URL', scope) !== undefined || taken.has(node)) continue
    if (typeof file?.value !== 'string' || !MODULE.test(file.value) || !isModuleUrl(base)) continue
    yield { start: node.start, end: node.end, specifier: file.value, suffix: '' }
  }
}

/** `exported(import.meta.url, fn)`: a bundler may rename `fn`, so the name is written as well. */
function* exportedUrls({ calls, exports }: ModuleNames, path: string): Iterable<Location> {
  for (const [call, scope] of calls) {
    if (importedName(call.callee as SyntaxNode, scope) !== 'exported') continue
    const [url, fn, name] = call.arguments as SyntaxNode[]
    if (!isModuleUrl(url) || fn === undefined) continue
    yield { start: url.start, end: url.end, specifier: `./${basename(path)}`, suffix: '.href' }
    const exportedAs = nameOf(fn, scope, exports)
    if (name === undefined && exportedAs !== undefined)
      yield { start: fn.end, end: fn.end, specifier: '', suffix: `, ${JSON.stringify(exportedAs)}` }
  }
}

function nameOf(fn: SyntaxNode, scope: Scope, exports: ReadonlyMap<string, string>): string | undefined {
  if (fn.type !== 'Identifier' || bindingOf(fn.name as string, scope)?.scope.parent !== undefined)
    return undefined
  return exports.get(fn.name as string)
}

function isModuleUrl(node: SyntaxNode | undefined): node is SyntaxNode {
  const { object, property } = (node ?? {}) as { object?: SyntaxNode; property?: SyntaxNode }
  return object?.type === 'MetaProperty' && property?.name === 'url'
}
