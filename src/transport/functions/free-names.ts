/**
 * Walks a function's syntax tree for the names it takes from outside, `this`, `super` and #private names.
 *
 * Implements the scoping rules of the language: hoisted `var`, block scopes, parameters, classes, patterns.
 */
import type { SyntaxNode } from './parser.ts'

/** The names one scope declares. */
interface Scope {
  readonly names: Set<string>
  readonly parent: Scope | undefined
}

/** The result of one walk over a function. */
export class Scan {
  readonly free = new Map<string, number>()
  /** Names from outside that are assigned, incremented or decremented. */
  readonly assigned = new Set<string>()
  /** Names that are the operand of a `typeof`: the function works without them. */
  readonly probed = new Set<string>()
  readonly metas: SyntaxNode[] = []
  /** Each `import()` of a literal name, without options; not in functions inside, which may be sent on. */
  readonly namedImports: SyntaxNode[] = []
  readonly privateUsed = new Set<string>()
  readonly privateDeclared = new Set<string>()
  usesImport = false
  /** Functions around what is walked. */
  depth = 0
  usesSuper = false
  outerKeyword: string | undefined
  /** True while `this` and `arguments` are those of the function around the text. */
  #outer = false
  #inMethod = false

  /** Walk a function; `outer`: its `this` is that of the code around the text. */
  function(node: SyntaxNode, parent: Scope | undefined, outer: boolean): void {
    const before = this.#outer
    this.#outer = outer
    this.depth++
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
    this.depth--
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

  #isDeclared(name: string, scope: Scope): boolean {
    for (let each: Scope | undefined = scope; each !== undefined; each = each.parent) {
      if (each.names.has(name)) return true
    }
    return false
  }

  #use(name: string, at: number, scope: Scope): void {
    if (this.#isDeclared(name, scope)) return
    if (name === 'arguments' && this.#outer) this.outerKeyword ??= 'arguments'
    else if (!this.free.has(name)) this.free.set(name, at)
  }

  #assign(target: SyntaxNode, scope: Scope): void {
    const names = new Set<string>()
    declarePattern(target, names)
    for (const name of names) if (!this.#isDeclared(name, scope)) this.assigned.add(name)
  }

  #word(word: string): void {
    if (this.#outer) this.outerKeyword ??= word
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
    assign: (target, scope) => this.#assign(target, scope),
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
  /** What is assigned: a name, a member or a pattern of them. */
  assign(target: SyntaxNode, scope: Scope): void
  word(word: string): void
  super(): void
  ownThis(run: () => void): void
  ownSuper(run: () => void): void
  readonly found: {
    usesImport: boolean
    readonly depth: number
    readonly probed: Set<string>
    readonly metas: SyntaxNode[]
    readonly namedImports: SyntaxNode[]
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
  AssignmentExpression: (walk, node, scope) => {
    walk.assign(node.left as SyntaxNode, scope)
    walk.children(node, scope)
  },
  UpdateExpression: (walk, node, scope) => {
    walk.assign(node.argument as SyntaxNode, scope)
    walk.children(node, scope)
  },
  UnaryExpression: (walk, node, scope) => {
    const operand = node.argument as SyntaxNode
    if (node.operator === 'typeof' && operand.type === 'Identifier')
      walk.found.probed.add(operand.name as string)
    walk.visit(operand, scope)
  },
  ThisExpression: (walk) => walk.word('this'),
  Super: (walk) => walk.super(),
  ImportExpression: (walk, node, scope) => {
    walk.found.usesImport = true
    const { source, options } = node as unknown as Readonly<Record<string, SyntaxNode | null | undefined>>
    const isNamed = typeof source?.value === 'string' && !options
    if (isNamed && walk.found.depth === 1) walk.found.namedImports.push(node)
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
  if (node.type !== 'ForStatement' && isNode(head)) walk.assign(head, inner)
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

/** Names that let, const, class and function declarations bind in the block around them. */
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
