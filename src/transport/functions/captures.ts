/**
 * What the source text of one function shows: the names it takes from outside, what binds it to its file.
 *
 * Nothing is guessed from strings: parser.ts parses, free-names.ts applies the scoping rules. Whether a free
 * name is a global, an import or a variable of the code around it is settled by origin.ts, which sees the
 * real scopes.
 */
import { Scan } from './free-names.ts'
import { parseSource, type SyntaxNode } from './parser.ts'

/** A name the function uses and does not declare; `offset` is its first use, in the original text. */
export interface FreeName {
  readonly name: string
  readonly offset: number
  readonly isAssigned: boolean
  /** A `typeof` asks whether it is declared. */
  readonly isProbed: boolean
}

/** What the source text of a function shows. */
export interface FunctionText {
  /** The text to compile: the original line for line, with `import.meta` and `import` made plain names. */
  readonly code: string
  /** Methods and accessors are compiled in an object literal, all other functions as an expression. */
  readonly form: 'expression' | 'method'
  /** A plain `function`: the engine shows whether it is strict. */
  readonly plain: boolean
  /** Offset of the position that the engine reports as the function's location. */
  readonly located: number
  readonly free: readonly FreeName[]
  readonly usesImport: boolean
  /** The name that replaces `import.meta` in `code`, if it occurs. */
  readonly metaName: string | undefined
  /** The name that replaces `import` in `code` where a literal is imported, if one is. */
  readonly importName: string | undefined
  /** `this`, `arguments` or `new.target` of the function around an arrow. */
  readonly outerKeyword: string | undefined
  readonly usesSuper: boolean
  /** `#names` that no class inside the text declares. */
  readonly privateNames: readonly string[]
}

/**
 * Parse what `Function.prototype.toString` returns for a function that is not native and not a class.
 * @throws {SyntaxError} when the text does not parse.
 */
export function readFunctionText(text: string): FunctionText {
  const { node, form, shift, key } = parseFunction(text)
  const arrow = node.type === 'ArrowFunctionExpression'
  const scan = new Scan(node)
  const metaName = scan.metas.length === 0 ? undefined : metaNameFor(text)
  const importName = scan.namedImports.length === 0 ? undefined : unusedName(text, IMPORT_NAMES)
  const edits = [
    ...scan.metas.map(({ start, end }) => ({ start, end, name: metaName as string })),
    ...(importName === undefined ? [] : scan.namedImports).map(({ start }) => ({
      start,
      end: start + 'import'.length,
      name: importName as string,
    })),
  ].sort((one, other) => other.start - one.start)
  let code = text
  for (const { start, end, name } of edits) code = replaced(code, start - shift, end - shift, name)
  if (key !== undefined) code = replaced(code, key.start - shift, key.end - shift, METHOD_NAME)
  return {
    code,
    form,
    plain: node.type === 'FunctionExpression' && form === 'expression' && !node.async && !node.generator,
    located: arrow ? 0 : parenthesisOf(text, node, shift, key),
    free: [...scan.free].map(([name, at]) => ({
      name,
      offset: at - shift,
      isAssigned: scan.assigned.has(name),
      isProbed: scan.probed.has(name),
    })),
    usesImport: scan.usesImport,
    metaName,
    importName,
    outerKeyword: scan.outerKeyword,
    usesSuper: scan.usesSuper,
    privateNames: [...scan.privateUsed].filter((name) => !scan.privateDeclared.has(name)),
  }
}

/** Replaces a computed or private key of a method; not longer than the shortest of those. */
const METHOD_NAME = '_m'
/** As long as `import.meta`, so that columns stay what they were. */
const META_NAMES = ['$importMeta', '$$importmet', '$_importMet', '$__importMe']
/** As long as `import`. */
const IMPORT_NAMES = ['$imprt', '_imprt', '$mport', '_mport']

interface ParsedFunction {
  readonly node: SyntaxNode
  readonly form: 'expression' | 'method'
  readonly shift: number
  /** The key of a method when it must be replaced: computed or private. */
  readonly key: { readonly start: number; readonly end: number } | undefined
}

function parseFunction(text: string): ParsedFunction {
  try {
    const before = '(function(){(' // Inside a function, where new.target is allowed.
    const node = firstExpression(firstExpression(parseSource(`${before}${text}\n)})`)).body as SyntaxNode)
    if (!node.type.includes('Function')) throw new SyntaxError(`${node.type} where a function should be`)
    return { node, form: 'expression', shift: before.length, key: undefined }
  } catch (error) {
    const method = parseMethod(text)
    if (method === undefined) throw error
    return method
  }
}

function firstExpression(block: SyntaxNode): SyntaxNode {
  return (block.body as SyntaxNode[])[0].expression as SyntaxNode
}

function parseMethod(text: string): ParsedFunction | undefined {
  const before = '(class{'
  let tree: SyntaxNode
  try {
    tree = parseSource(`${before}${text}\n})`)
  } catch {
    return undefined
  }
  const made = firstExpression(tree)
  const members = made.type === 'ClassExpression' ? ((made.body as SyntaxNode).body as SyntaxNode[]) : []
  const member = members[0]
  if (members.length !== 1 || member?.type !== 'MethodDefinition') return undefined
  const key = member.key as SyntaxNode
  const node = member.value as SyntaxNode
  const shift = before.length
  if (member.computed === true) {
    const start = text.lastIndexOf('[', key.start - shift - 1) + shift
    const end = text.indexOf(']', key.end - shift) + shift + 1
    return { node, form: 'method', shift, key: { start, end } }
  }
  return { node, form: 'method', shift, key: key.type === 'PrivateIdentifier' ? key : undefined }
}

/** The engine locates every function but an arrow at the parenthesis that opens its parameters. */
function parenthesisOf(
  text: string,
  node: SyntaxNode,
  shift: number,
  key: { readonly end: number } | undefined,
): number {
  const id = node.id as SyntaxNode | null
  if (id) return text.indexOf('(', id.end - shift)
  if (key !== undefined) return text.indexOf('(', key.end - shift)
  return node.start === shift ? text.indexOf('(') : node.start - shift
}

/** `text` with [start, end) replaced by `name`: as many lines, and on one line as many columns. */
function replaced(text: string, start: number, end: number, name: string): string {
  const breaks = text.slice(start, end).match(/\r\n|[\n\r\u2028\u2029]/g)
  const filled = breaks === null ? name.padEnd(end - start) : name + breaks.join('')
  return text.slice(0, start) + filled + text.slice(end)
}

function metaNameFor(text: string): string {
  const free = unusedName(text, META_NAMES)
  if (free === undefined) throw new SyntaxError('it uses every name that could replace import.meta')
  return free
}

function unusedName(text: string, names: readonly string[]): string | undefined {
  return names.find((name) => !text.includes(name))
}
