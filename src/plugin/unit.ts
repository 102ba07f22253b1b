/**
 * A function with the declarations of its module that it needs, as text of its own at the same positions.
 *
 * Taken along are functions and constants of primitive values, since a copy of those is as good as the
 * original; imports are listed. Of other variables the values are sent, when nothing assigns them after their
 * declaration. A function that takes anything else from around itself is not lifted: a copy of a variable
 * that changes is another variable. It is sent as written, and refused at the call with the variable's name.
 */
import { readFunctionText, type SyntaxNode } from '../transport/internal.ts'
import type { Site } from './sites.ts'
import { bindingOf, isFunction, type Binding, type ModuleNames, type Scope } from './scopes.ts'

/** The text of a lifted function. */
export interface Unit {
  readonly code: string
  /** Where `code` begins in the module, from 0. */
  readonly line: number
  readonly column: number
  readonly imports: readonly { readonly local: string; readonly from: string; readonly name: string }[]
  /** Modules that the text imports itself; they are relative to the file. */
  readonly usesImport: boolean
  readonly metaName: string | undefined
  /** Variables whose values are sent. */
  readonly captured: readonly string[]
}

/** The unit of a function; `undefined` when the function cannot be lifted. */
export function unitOf(
  site: Pick<Site, 'node' | 'scope'>,
  names: ModuleNames,
  source: string,
): Unit | undefined {
  const needs = new Needs(names, source)
  return needs.site(site) && needs.areSeenFrom(site.scope) ? needs.unit(site) : undefined
}

/** What replaces `import.meta`: of the same length, so that columns stay what they were. */
const META_NAME = '$importMeta'
const PREFIX = 'const $lifted = (0,'

class Needs {
  readonly #names: ModuleNames
  readonly #source: string
  /** Declarations taken along, by name. */
  readonly #taken = new Map<string, Binding>()
  readonly #captured = new Map<string, Binding>()
  readonly #metas: { readonly start: number; readonly end: number }[] = []
  #usesImport = false

  constructor(names: ModuleNames, source: string) {
    this.#names = names
    this.#source = source
  }

  site({ node, scope }: Pick<Site, 'node' | 'scope'>): boolean {
    if (isFunction(node)) return this.#function(node)
    return this.#name(bindingOf(node.name as string, scope) as Binding)
  }

  /** Whether the captured names mean the same at the call, where their values are read. */
  areSeenFrom(scope: Scope): boolean {
    return [...this.#captured].every(([name, binding]) => bindingOf(name, scope) === binding)
  }

  unit({ node }: Pick<Site, 'node'>): Unit | undefined {
    const bindings = [...this.#taken.values()]
    const pieces = bindings
      .filter(({ kind }) => kind !== 'import')
      .map(({ statement }) => statement as { readonly start: number; readonly end: number })
    const isWritten = isFunction(node)
    if (isWritten) pieces.push(node)
    pieces.sort((a, b) => a.start - b.start)
    if (pieces.some((piece, at) => at > 0 && piece.start < (pieces[at - 1] as { end: number }).end))
      return undefined
    const start = pieces[0]?.start ?? node.start
    const before = this.#source.slice(0, start)
    const column = start - (before.lastIndexOf('\n') + 1)
    const { code, prefixed } = this.#text(pieces, isWritten ? node : undefined)
    return {
      code: `${code}\n;return ${isWritten ? '$lifted' : (node.name as string)}`,
      line: before.split('\n').length - 1,
      column: column - prefixed,
      imports: bindings.filter(({ kind }) => kind === 'import').map(importOf),
      usesImport: this.#usesImport,
      metaName: this.#metas.length === 0 ? undefined : META_NAME,
      captured: [...this.#captured.keys()],
    }
  }

  /** Take what a function needs; false when it cannot be taken. */
  #function(node: SyntaxNode): boolean {
    const text = this.#source.slice(node.start, node.end)
    if (text.includes(META_NAME) || text.includes('$lifted')) return false
    const read = readFunctionText(text)
    if (read.outerKeyword !== undefined || read.usesSuper || read.privateNames.length > 0) return false
    if (/\beval\b/.test(text) && read.free.some(({ name }) => name === 'eval')) return false
    this.#usesImport ||= read.usesImport
    if (read.metaName !== undefined) {
      for (const found of text.matchAll(/\bimport\.meta\b/g)) {
        const at = found.index
        if (read.code.slice(at, at + META_NAME.length) !== META_NAME) continue
        this.#metas.push({ start: node.start + at, end: node.start + at + META_NAME.length })
      }
    }
    return this.#names.references
      .filter(({ start }) => start >= node.start && start < node.end)
      .every(({ name, scope }) => {
        const binding = bindingOf(name, scope)
        return binding === undefined || isInside(binding.scope, node) || this.#name(binding)
      })
  }

  #name(binding: Binding): boolean {
    const { name, kind, node, statement } = binding
    const known = this.#taken.get(name) ?? this.#captured.get(name)
    if (known !== undefined) return known === binding
    if (binding.isAssigned) return false
    if (kind === 'import' || kind === 'function') {
      this.#taken.set(name, binding)
      return kind === 'import' || this.#function(node)
    }
    const init = node.init as SyntaxNode | null | undefined
    const isAlone = kind === 'constant' && (statement.declarations as SyntaxNode[]).length === 1
    if (isAlone && (isFunction(init) || isPrimitive(init))) {
      this.#taken.set(name, binding)
      return !isFunction(init) || this.#function(init as SyntaxNode)
    }
    // Classes do not travel: the refusal at the call names the remedy.
    if (name === 'arguments' || node.type.startsWith('Class') || isFunction(init)) return false
    this.#captured.set(name, binding)
    return true
  }

  /** The pieces where they are in the module, and blanks between them. */
  #text(
    pieces: readonly { readonly start: number; readonly end: number }[],
    written: SyntaxNode | undefined,
  ): { readonly code: string; readonly prefixed: number } {
    let code = ''
    let prefixed = 0
    let end = pieces[0]?.start ?? 0
    for (const piece of pieces) {
      let blank = this.#source.slice(end, piece.start).replace(/[^\n\r\u2028\u2029]/g, ' ')
      if (piece === written) {
        if (code === '') prefixed = PREFIX.length
        blank = withPrefix(blank)
      }
      code += blank + this.#renamed(piece) + (piece === written ? ');' : '')
      end = piece === written ? this.#afterCall(piece.end) : piece.end
    }
    return { code, prefixed }
  }

  /** The two characters after a written function are those of its call, or the end of the line. */
  #afterCall(end: number): number {
    const rest = /^[^\n\r\u2028\u2029]{0,2}/.exec(this.#source.slice(end, end + 2))
    return end + (rest?.[0].length ?? 0)
  }

  #renamed({ start, end }: { readonly start: number; readonly end: number }): string {
    let text = this.#source.slice(start, end)
    for (const meta of this.#metas) {
      if (meta.start < start || meta.end > end) continue
      text = text.slice(0, meta.start - start) + META_NAME + text.slice(meta.end - start)
    }
    return text
  }
}

/** `blank` ends with the prefix if that fits into its last line; otherwise the line before has it. */
function withPrefix(blank: string): string {
  const lineStart = Math.max(...['\n', '\r', '\u2028', '\u2029'].map((end) => blank.lastIndexOf(end))) + 1
  if (blank.length - lineStart >= PREFIX.length) return blank.slice(0, -PREFIX.length) + PREFIX
  const breakStart = blank.endsWith('\r\n', lineStart) ? lineStart - 2 : lineStart - 1
  if (lineStart === 0) return blank + PREFIX
  return blank.slice(0, breakStart) + PREFIX + blank.slice(breakStart)
}

function isInside(scope: Scope, node: SyntaxNode): boolean {
  return scope.node.start >= node.start && scope.node.end <= node.end
}

/** Is this a literal whose value is the same in each thread? */
function isPrimitive(node: SyntaxNode | null | undefined): boolean {
  if (node == null) return false
  if (node.type === 'Literal') return !('regex' in node)
  if (node.type === 'TemplateLiteral') return (node.expressions as SyntaxNode[]).length === 0
  return node.type === 'UnaryExpression' && isPrimitive(node.argument as SyntaxNode)
}

function importOf({ name, node, statement }: Binding): Unit['imports'][number] {
  const from = (statement.source as SyntaxNode).value as string
  const imported = node.imported as SyntaxNode | undefined
  const exported = imported?.name ?? imported?.value
  const isWhole = node.type === 'ImportNamespaceSpecifier'
  return { local: name, from, name: isWhole ? '*' : ((exported as string | undefined) ?? 'default') }
}
