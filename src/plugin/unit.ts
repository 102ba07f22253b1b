/**
 * A function with the declarations of its module that it needs, as text of its own at the same positions.
 *
 * Taken along are functions and constants of primitive values, since a copy of those is as good as the
 * original; imports are listed. Of other variables the values are sent, when nothing assigns them after their
 * declaration. A function that takes anything else from around itself is not lifted: a copy of a variable
 * that changes is another variable. It is sent as written, and refused at the call with the variable's name.
 */
import {
  type Binding,
  bindingOf,
  isFunction,
  type ModuleNames,
  readFunctionText,
  type Scope,
  type SyntaxNode,
} from '../transport/internal.ts'
import type { Site } from './sites.ts'
import { edited, type Edit } from './source-map.ts'

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
  /** What `code` has of the module, in the order of the text. */
  readonly pieces: readonly Piece[]
}

/** From where to where a declaration or a function is written. */
export type Piece = Pick<SyntaxNode, 'start' | 'end'>

/**
 * The unit of a function; `undefined` when the function cannot be lifted.
 * @param marks Edits of the module that are made in the unit's code, too.
 */
export function unitOf(
  site: Pick<Site, 'node' | 'scope'>,
  names: ModuleNames,
  source: string,
  marks: readonly Edit[] = [],
): Unit | undefined {
  const needs = new Needs(names, source, marks)
  return needs.site(site) && needs.areSeenFrom(site.scope) ? needs.unit(site) : undefined
}

/** What replaces `import.meta`: of the same length, so that columns stay what they were. */
const META_NAME = '$importMeta'
const PREFIX = 'const $lifted = (0,'
/** What may follow `import.meta`. */
const OF_NODE = /^(?!\??\.(?!(?:url|filename|dirname|resolve|main)\b))/

class Needs {
  readonly #names: ModuleNames
  readonly #source: string
  /** Declarations taken along, by name. */
  readonly #taken = new Map<string, Binding>()
  readonly #captured = new Map<string, Binding>()
  /** What is changed in the text of the module. */
  readonly #edits: Edit[]
  #hasMeta = false
  #usesImport = false

  constructor(names: ModuleNames, source: string, marks: readonly Edit[]) {
    this.#names = names
    this.#source = source
    this.#edits = [...marks]
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
    const statements = bindings.filter(({ kind }) => kind !== 'import').map(({ statement }) => statement)
    const pieces = [...new Set(statements)]
    const isWritten = isFunction(node)
    if (isWritten) pieces.push(node)
    pieces.sort((a, b) => a.start - b.start)
    if (pieces.some((piece, at) => at > 0 && piece.start < (pieces[at - 1] as Piece).end)) return undefined
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
      metaName: this.#hasMeta ? META_NAME : undefined,
      captured: [...this.#captured.keys()],
      pieces,
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
        // Others (`env`, `hot`) are the tool's own: it writes them where the function is.
        if (!OF_NODE.test(text.slice(at + META_NAME.length))) return false
        const start = node.start + at
        this.#edits.push({ start, end: start + META_NAME.length, text: META_NAME })
        this.#hasMeta = true
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
    if (kind === 'constant' && isCopied(statement, init)) return this.#statement(binding)
    // Classes do not travel: the refusal at the call names the remedy.
    if (name === 'arguments' || node.type.startsWith('Class') || isFunction(init)) return false
    this.#captured.set(name, binding)
    return true
  }

  /** Take all constants of a statement, with what their functions need. */
  #statement({ statement, scope }: Binding): boolean {
    const all = (statement.declarations as SyntaxNode[]).map(
      ({ id }) => scope.bindings.get((id as SyntaxNode).name as string) as Binding,
    )
    for (const each of all) {
      const known = this.#taken.get(each.name) ?? this.#captured.get(each.name)
      if (known !== undefined && known !== each) return false
      this.#captured.delete(each.name)
      this.#taken.set(each.name, each)
    }
    return all.every(
      ({ node: { init } }) => !isFunction(init as SyntaxNode) || this.#function(init as SyntaxNode),
    )
  }

  /** The pieces where they are in the module, and blanks between them. */
  #text(
    pieces: readonly Piece[],
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

  #renamed({ start, end }: Piece): string {
    const inside = this.#edits.filter((edit) => edit.start >= start && edit.end <= end)
    return edited(this.#source, inside, start, end)
  }
}

/** Is a declaration taken for one of its values? All are copied, other functions only for a function. */
function isCopied({ declarations }: SyntaxNode, value: SyntaxNode | null | undefined): boolean {
  return (declarations as SyntaxNode[]).every(({ id, init }) => {
    const isPlain = (id as SyntaxNode).type === 'Identifier'
    return (
      isPlain && (isPrimitive(init as SyntaxNode) || (isFunction(init as SyntaxNode) && isFunction(value)))
    )
  })
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
