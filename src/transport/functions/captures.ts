/**
 * Reads the source text of one function: which names it takes from outside, what else ties it to its place.
 *
 * A real parser (acorn) and the scoping rules of the language, nothing guessed from strings. It knows only
 * the text: whether a free name is a global, an import or a variable of the code around it is settled by
 * origin.ts, which sees the real scopes. The parser is loaded on first use, so threads that only run
 * functions never pay for it.
 */
import { createRequire } from 'node:module'
import type { parse as Parse } from 'acorn'

/** A name the function uses and does not declare; `offset` is its first use, in the original text. */
export interface FreeName {
  readonly name: string
  readonly offset: number
}

/** What the text of a function says about it. */
export interface FunctionText {
  /** The text to compile: the original line for line, with `import.meta` made a plain name. */
  readonly code: string
  /** `method` and accessor texts stand in an object literal, every other is an expression. */
  readonly form: 'expression' | 'method'
  /** A plain `function`, for which the engine itself tells strict from sloppy. */
  readonly plain: boolean
  /** Offset of the position that the engine reports as the function's location. */
  readonly located: number
  readonly free: readonly FreeName[]
  readonly usesImport: boolean
  /** Set when `import.meta` occurs: the name that stands for it in `code`. */
  readonly metaName: string | undefined
  /** `this`, `arguments` or `new.target` of the function around an arrow. */
  readonly outerWord: string | undefined
  readonly usesSuper: boolean
  /** `#names` that no class inside the text declares. */
  readonly privateNames: readonly string[]
}

/** A node of the syntax tree; its further fields depend on `type`. */
export interface SyntaxNode {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [field: string]: unknown
}

let loaded: typeof Parse | undefined

/**
 * Parse a whole script or an expression.
 * @throws {SyntaxError} of the parser.
 */
export function parseSource(source: string): SyntaxNode {
  loaded ??= (createRequire(import.meta.url)('acorn') as { parse: typeof Parse }).parse
  const tree = loaded(source, {
    ecmaVersion: 'latest',
    sourceType: 'script',
    allowHashBang: true,
    allowReturnOutsideFunction: true,
    allowImportExportEverywhere: true,
    allowSuperOutsideMethod: true,
    checkPrivateFields: false,
  })
  return tree as unknown as SyntaxNode
}

/**
 * Read the text that `Function.prototype.toString` gives for a function that is no class and not native.
 * @throws {SyntaxError} when the text is beyond the parser.
 */
export function readFunctionText(text: string): FunctionText {
  const { node, form, shift, key } = parseFunction(text)
  const arrow = node.type === 'ArrowFunctionExpression'
  const scan = new Scan()
  scan.function(node, undefined, arrow)
  const edits = scan.metas.map((meta) => ({ start: meta.start - shift, end: meta.end - shift }))
  const metaName = edits.length === 0 ? undefined : unusedName(text)
  let code = text
  for (const edit of edits.toReversed()) code = replaced(code, edit.start, edit.end, metaName as string)
  if (key !== undefined) code = replaced(code, key.start - shift, key.end - shift, METHOD_NAME)
  return {
    code,
    form,
    plain: node.type === 'FunctionExpression' && form === 'expression' && !node.async && !node.generator,
    located: arrow ? 0 : parenthesisOf(text, node, shift, key),
    free: [...scan.free].map(([name, at]) => ({ name, offset: at - shift })),
    usesImport: scan.usesImport,
    metaName,
    outerWord: scan.outerWord,
    usesSuper: scan.usesSuper,
    privateNames: [...scan.privateUsed].filter((name) => !scan.privateDeclared.has(name)),
  }
}

/** Stands for a computed or private key of a method; no longer than the shortest of those. */
const METHOD_NAME = '_m'
/** As long as `import.meta`, so that columns stay what they were. */
const META_NAMES = ['$importMeta', '$$importmet', '$_importMet', '$__importMe']

interface ParsedFunction {
  readonly node: SyntaxNode
  readonly form: 'expression' | 'method'
  readonly shift: number
  /** The key of a method when it must be replaced: computed or private. */
  readonly key: { readonly start: number; readonly end: number } | undefined
}

function parseFunction(text: string): ParsedFunction {
  try {
    const before = '(function(){(' // Inside a function, where the text may say new.target.
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

function unusedName(text: string): string {
  const free = META_NAMES.find((name) => !text.includes(name))
  if (free === undefined) throw new SyntaxError('it uses every name that could stand for import.meta')
  return free
}

/** The names one scope declares. */
interface Scope {
  readonly names: Set<string>
  readonly parent: Scope | undefined
}

/** One walk over a function: fills in everything the text can say. */
class Scan {
  readonly free = new Map<string, number>()
  readonly metas: SyntaxNode[] = []
  readonly privateUsed = new Set<string>()
  readonly privateDeclared = new Set<string>()
  usesImport = false
  usesSuper = false
  outerWord: string | undefined
  /** True while `this` and `arguments` are those of the function around the text. */
  #outer = false
  #inMethod = false

  /** Walk a function; `outer` says that `this` inside it is that of the code around the text. */
  function(node: SyntaxNode, parent: Scope | undefined, outer: boolean): void {
    const before = this.#outer
    this.#outer = outer
    const scope: Scope = { names: new Set(), parent }
    const id = node.id as SyntaxNode | null
    if (id && node.type === 'FunctionExpression') scope.names.add(id.name as string)
    if (node.type !== 'ArrowFunctionExpression') scope.names.add('arguments')
    const params = node.params as SyntaxNode[]
    for (const param of params) declarePattern(param, scope.names)
    for (const param of params) this.#pattern(param, scope)
    const body = node.body as SyntaxNode
    const inner: Scope = { names: new Set(), parent: scope }
    if (body.type === 'BlockStatement') {
      declareVars(body, inner.names)
      this.#block(body.body as SyntaxNode[], inner)
    } else this.#visit(body, inner)
    this.#outer = before
  }

  #visit(node: SyntaxNode, scope: Scope): void {
    const special = visitors[node.type]
    if (special !== undefined) special(this.#walker, node, scope)
    else this.#children(node, scope)
  }

  #children(node: SyntaxNode, scope: Scope): void {
    for (const key in node) {
      const value = node[key]
      if (Array.isArray(value)) {
        for (const each of value) if (isNode(each)) this.#visit(each, scope)
      } else if (isNode(value)) this.#visit(value, scope)
    }
  }

  #block(statements: readonly SyntaxNode[], scope: Scope): void {
    for (const statement of statements) declareLexical(statement, scope.names)
    for (const statement of statements) this.#visit(statement, scope)
  }

  /** Default values and computed keys inside a pattern are expressions; the names it binds are not uses. */
  #pattern(node: SyntaxNode, scope: Scope): void {
    if (node.type === 'Identifier') return
    if (node.type === 'AssignmentPattern') {
      this.#pattern(node.left as SyntaxNode, scope)
      this.#visit(node.right as SyntaxNode, scope)
    } else if (node.type === 'RestElement') this.#pattern(node.argument as SyntaxNode, scope)
    else if (node.type === 'ArrayPattern') {
      for (const each of node.elements as (SyntaxNode | null)[]) if (each) this.#pattern(each, scope)
    } else if (node.type === 'ObjectPattern') {
      for (const each of node.properties as SyntaxNode[]) {
        if (each.computed === true) this.#visit(each.key as SyntaxNode, scope)
        this.#pattern((each.type === 'Property' ? each.value : each) as SyntaxNode, scope)
      }
    } else this.#visit(node, scope)
  }

  #use(name: string, at: number, scope: Scope): void {
    for (let each: Scope | undefined = scope; each !== undefined; each = each.parent) {
      if (each.names.has(name)) return
    }
    if (name === 'arguments' && this.#outer) this.outerWord ??= 'arguments'
    else if (!this.free.has(name)) this.free.set(name, at)
  }

  #word(word: string): void {
    if (this.#outer) this.outerWord ??= word
  }

  /** Parts of a class run with the `this` of the class: fields and static blocks. */
  #ownThis(run: () => void): void {
    const before = this.#outer
    this.#outer = false
    run()
    this.#outer = before
  }

  /** A method written inside the text takes its `super` along. */
  #ownSuper(run: () => void): void {
    const before = this.#inMethod
    this.#inMethod = true
    run()
    this.#inMethod = before
  }

  readonly #walker: Walker = {
    function: (node, scope) =>
      this.function(node, scope, node.type === 'ArrowFunctionExpression' && this.#outer),
    visit: (node, scope) => this.#visit(node, scope),
    children: (node, scope) => this.#children(node, scope),
    block: (statements, scope) => this.#block(statements, scope),
    pattern: (node, scope) => this.#pattern(node, scope),
    use: (name, at, scope) => this.#use(name, at, scope),
    word: (word) => this.#word(word),
    super: () => void (this.usesSuper ||= !this.#inMethod),
    ownThis: (run) => this.#ownThis(run),
    ownSuper: (run) => this.#ownSuper(run),
    found: this,
  }
}

/** What the visitors of single node types may do. */
interface Walker {
  function(node: SyntaxNode, scope: Scope): void
  visit(node: SyntaxNode, scope: Scope): void
  children(node: SyntaxNode, scope: Scope): void
  block(statements: readonly SyntaxNode[], scope: Scope): void
  pattern(node: SyntaxNode, scope: Scope): void
  use(name: string, at: number, scope: Scope): void
  word(word: string): void
  super(): void
  ownThis(run: () => void): void
  ownSuper(run: () => void): void
  readonly found: {
    usesImport: boolean
    readonly metas: SyntaxNode[]
    readonly privateUsed: Set<string>
    readonly privateDeclared: Set<string>
  }
}

type Visitor = (walk: Walker, node: SyntaxNode, scope: Scope) => void

const visitors: Readonly<Record<string, Visitor>> = {
  __proto__: null as never,
  FunctionExpression: (walk, node, scope) => walk.function(node, scope),
  FunctionDeclaration: (walk, node, scope) => walk.function(node, scope),
  ArrowFunctionExpression: (walk, node, scope) => walk.function(node, scope),
  Identifier: (walk, node, scope) => walk.use(node.name as string, node.start, scope),
  ThisExpression: (walk) => walk.word('this'),
  Super: (walk) => walk.super(),
  ImportExpression: (walk, node, scope) => {
    walk.found.usesImport = true
    walk.children(node, scope)
  },
  MetaProperty: (walk, node) => {
    if ((node.meta as SyntaxNode).name === 'import') walk.found.metas.push(node)
    else walk.word('new.target')
  },
  PrivateIdentifier: (walk, node) => void walk.found.privateUsed.add(`#${node.name as string}`),
  MemberExpression: (walk, node, scope) => {
    walk.visit(node.object as SyntaxNode, scope)
    const property = node.property as SyntaxNode
    if (node.computed === true || property.type === 'PrivateIdentifier') walk.visit(property, scope)
  },
  Property: (walk, node, scope) => {
    if (node.computed === true) walk.visit(node.key as SyntaxNode, scope)
    const method = node.method === true || node.kind !== 'init'
    if (method) walk.ownSuper(() => walk.visit(node.value as SyntaxNode, scope))
    else walk.visit(node.value as SyntaxNode, scope)
  },
  VariableDeclarator: (walk, node, scope) => {
    walk.pattern(node.id as SyntaxNode, scope)
    if (isNode(node.init)) walk.visit(node.init, scope)
  },
  BlockStatement: (walk, node, scope) =>
    walk.block(node.body as SyntaxNode[], { names: new Set(), parent: scope }),
  SwitchStatement: (walk, node, scope) => {
    walk.visit(node.discriminant as SyntaxNode, scope)
    const inner: Scope = { names: new Set(), parent: scope }
    const cases = node.cases as SyntaxNode[]
    for (const each of cases) {
      for (const statement of each.consequent as SyntaxNode[]) declareLexical(statement, inner.names)
    }
    for (const each of cases) walk.children(each, inner)
  },
  ForStatement: loop,
  ForInStatement: loop,
  ForOfStatement: loop,
  CatchClause: (walk, node, scope) => {
    const inner: Scope = { names: new Set(), parent: scope }
    if (isNode(node.param)) {
      declarePattern(node.param, inner.names)
      walk.pattern(node.param, inner)
    }
    walk.visit(node.body as SyntaxNode, inner)
  },
  LabeledStatement: (walk, node, scope) => walk.visit(node.body as SyntaxNode, scope),
  BreakStatement: () => {},
  ContinueStatement: () => {},
  ClassExpression: classBody,
  ClassDeclaration: classBody,
}

function loop(walk: Walker, node: SyntaxNode, scope: Scope): void {
  const inner: Scope = { names: new Set(), parent: scope }
  const head = node.type === 'ForStatement' ? node.init : node.left
  if (isNode(head)) declareLexical(head, inner.names)
  walk.children(node, inner)
}

function classBody(walk: Walker, node: SyntaxNode, scope: Scope): void {
  const inner: Scope = { names: new Set(), parent: scope }
  const id = node.id as SyntaxNode | null
  if (id) inner.names.add(id.name as string)
  if (isNode(node.superClass)) walk.visit(node.superClass, inner)
  const members = (node.body as SyntaxNode).body as SyntaxNode[]
  for (const member of members) {
    const key = member.key as SyntaxNode | undefined
    if (key?.type === 'PrivateIdentifier') walk.found.privateDeclared.add(`#${key.name as string}`)
  }
  for (const member of members) {
    if (member.computed === true) walk.visit(member.key as SyntaxNode, inner)
    walk.ownSuper(() =>
      walk.ownThis(() => {
        if (member.type === 'StaticBlock') {
          const block: Scope = { names: new Set(), parent: inner }
          declareVars(member, block.names)
          walk.block(member.body as SyntaxNode[], block)
        } else if (isNode(member.value)) walk.visit(member.value, inner)
      }),
    )
  }
}

/** Names bound by let, const, class and function statements, which belong to the block they stand in. */
function declareLexical(node: SyntaxNode, names: Set<string>): void {
  if (node.type === 'VariableDeclaration' && node.kind !== 'var') {
    for (const each of node.declarations as SyntaxNode[]) declarePattern(each.id as SyntaxNode, names)
  } else if (node.type === 'ClassDeclaration' || node.type === 'FunctionDeclaration') {
    names.add((node.id as SyntaxNode).name as string)
  } else if (node.type === 'LabeledStatement') declareLexical(node.body as SyntaxNode, names)
}

/** Names bound by `var` anywhere inside, not crossing into other functions or classes. */
function declareVars(node: SyntaxNode, names: Set<string>): void {
  if (node.type === 'VariableDeclaration' && node.kind === 'var') {
    for (const each of node.declarations as SyntaxNode[]) declarePattern(each.id as SyntaxNode, names)
  }
  for (const key in node) {
    const value = node[key]
    for (const each of Array.isArray(value) ? value : [value]) {
      if (isNode(each) && !ownsVars(each.type)) declareVars(each, names)
    }
  }
}

function ownsVars(type: string): boolean {
  return type.startsWith('Function') || type.startsWith('ArrowFunction') || type.startsWith('Class')
}

function declarePattern(node: SyntaxNode, names: Set<string>): void {
  switch (node.type) {
    case 'Identifier':
      names.add(node.name as string)
      break
    case 'AssignmentPattern':
      declarePattern(node.left as SyntaxNode, names)
      break
    case 'RestElement':
      declarePattern(node.argument as SyntaxNode, names)
      break
    case 'ArrayPattern':
      for (const each of node.elements as (SyntaxNode | null)[]) if (each) declarePattern(each, names)
      break
    case 'ObjectPattern':
      for (const each of node.properties as SyntaxNode[]) {
        declarePattern((each.type === 'Property' ? each.value : each) as SyntaxNode, names)
      }
  }
}

function isNode(value: unknown): value is SyntaxNode {
  return typeof value === 'object' && value !== null && typeof (value as { type?: unknown }).type === 'string'
}
