/**
 * Which declaration each name of a module, or of a function's text, refers to.
 *
 * Implements the scoping rules of the language: hoisted `var`, block scopes, parameters, classes, patterns.
 * Names of patterns count as references to their own declaration. A name without a declaration is taken from
 * outside (free-names.ts).
 */
import type { SyntaxNode } from './parser.ts'

export interface Binding {
  readonly name: string
  /** The identifier that declares it. */
  readonly id: SyntaxNode
  readonly kind: 'import' | 'function' | 'constant' | 'other'
  /** An import's specifier, a function, the declarator of a variable. */
  readonly node: SyntaxNode
  /** The declaration around `node`; that of an import has its `source`. */
  readonly statement: SyntaxNode
  readonly scope: Scope
  isAssigned: boolean
}

/** Where names are declared: a module, a function, a block. */
export interface Scope {
  readonly node: SyntaxNode
  readonly parent: Scope | undefined
  readonly bindings: Map<string, Binding>
}

export interface Reference {
  readonly name: string
  readonly start: number
  readonly scope: Scope
}

/** The names of a module, and its calls. */
export interface ModuleNames {
  readonly references: readonly Reference[]
  /** Each call with the scope that it is in. */
  readonly calls: readonly (readonly [call: SyntaxNode, scope: Scope])[]
  /** Each `new` expression, those around before those inside. */
  readonly news: readonly (readonly [made: SyntaxNode, scope: Scope])[]
  /** Each name that is assigned, incremented or decremented. */
  readonly assigned: readonly (readonly [name: SyntaxNode, scope: Scope])[]
  /** Each assignment by `=`. */
  readonly assignments: readonly (readonly [assignment: SyntaxNode, scope: Scope])[]
  /** The scope of what the module declares. */
  readonly module: Scope
  /** The name of the export of each variable that is exported. */
  readonly exports: ReadonlyMap<string, string>
}

/** Read the tree of a module, or of a function. */
export function namesOf(program: SyntaxNode): ModuleNames {
  const found = new Walk(program)
  for (const [{ name, start }, scope] of found.assigned) {
    const binding = bindingOf(name as string, scope)
    if (binding !== undefined && !isInHead(binding, start)) binding.isAssigned = true
  }
  return found
}

/** The declaration of a name as seen from a scope; `undefined` for globals. */
export function bindingOf(name: string, scope: Scope): Binding | undefined {
  for (let each: Scope | undefined = scope; each !== undefined; each = each.parent) {
    const found = each.bindings.get(name)
    if (found !== undefined) return found
  }
  return undefined
}

/** Is this a function that can be written as an expression or a declaration? */
export function isFunction(node: SyntaxNode | null | undefined): boolean {
  return node?.type === 'ArrowFunctionExpression' || node?.type === 'FunctionExpression'
}

/** Is it assigned between two turns of a loop? Each turn has a variable of its own. */
function isInHead({ scope: { node }, statement }: Binding, at: number): boolean {
  const update = node.type === 'ForStatement' && statement.kind === 'let' ? node.update : undefined
  return isNode(update) && at >= update.start && at < update.end
}

class Walk implements ModuleNames {
  readonly references: Reference[] = []
  readonly calls: [SyntaxNode, Scope][] = []
  readonly news: [SyntaxNode, Scope][] = []
  readonly exports = new Map<string, string>()
  readonly assigned: [SyntaxNode, Scope][] = []
  readonly assignments: [SyntaxNode, Scope][] = []
  readonly module: Scope

  constructor(program: SyntaxNode) {
    this.module = this.#scope(program, undefined)
  }

  /** Walk a node that has names of its own. */
  #scope(node: SyntaxNode, parent: Scope | undefined): Scope {
    const scope: Scope = { node, parent, bindings: new Map() }
    const isFunction = FUNCTIONS.has(node.type)
    if (isFunction) declareFunction(node, scope)
    else if (node.type === 'ClassExpression' && isNode(node.id)) declare(node.id, 'other', node, node, scope)
    else if (node.type === 'CatchClause' && isNode(node.param))
      declare(node.param, 'other', node, node, scope)
    else if (node.type === 'ForInStatement' || node.type === 'ForOfStatement') this.#assigns(node, scope)
    // A function has its parameters alone, since defaults do not see what its body declares.
    if (!isFunction) {
      const isOutermost = parent === undefined || FUNCTIONS.has(parent.node.type)
      const hasVars = isOutermost || node.type === 'StaticBlock'
      for (const each of childrenOf(node)) hoist(each, scope, hasVars)
    }
    this.#children(node, scope)
    return scope
  }

  #visit(node: SyntaxNode, scope: Scope): void {
    const { type } = node
    if (OWN_SCOPE.has(type)) return void this.#scope(node, scope)
    if (type === 'Identifier') {
      this.references.push({ name: node.name as string, start: node.start, scope })
      return
    }
    if (type === 'CallExpression') this.calls.push([node, scope])
    if (type === 'NewExpression') this.news.push([node, scope])
    if (type === 'AssignmentExpression' && node.operator === '=') this.assignments.push([node, scope])
    this.#assigns(node, scope)
    if (type === 'ImportDeclaration' || type === 'ExportAllDeclaration') return
    if (type === 'ExportNamedDeclaration' && isNode(node.source)) return
    if (EXPORTS.has(type)) for (const [name, as] of exportsOf(node)) this.exports.set(name, as)
    this.#children(node, scope)
  }

  #assigns(node: SyntaxNode, scope: Scope): void {
    const target = node[TARGETS[node.type]]
    if (!isNode(target) || target.type === 'VariableDeclaration') return
    for (const each of identifiersOf(target)) this.assigned.push([each, scope])
  }

  #children(node: SyntaxNode, scope: Scope): void {
    if (node.type === 'MetaProperty') return
    const skipped = NAMES_ONLY[node.type]
    for (const key in node) {
      if (key === skipped && node.computed !== true) continue
      const value = node[key]
      if (Array.isArray(value)) {
        for (const each of value) if (isNode(each)) this.#visit(each, scope)
      } else if (isNode(value)) this.#visit(value, scope)
    }
  }
}

const EXPORTS = new Set(['ExportNamedDeclaration', 'ExportDefaultDeclaration'])
const FUNCTIONS = new Set(['ArrowFunctionExpression', 'FunctionExpression', 'FunctionDeclaration'])
const OWN_SCOPE = new Set([
  ...FUNCTIONS,
  'BlockStatement',
  'CatchClause',
  'ClassDeclaration',
  'ClassExpression',
  'ForInStatement',
  'ForOfStatement',
  'ForStatement',
  'StaticBlock',
  'SwitchStatement',
])
const TARGETS: Readonly<Record<string, string>> = {
  __proto__: null as never,
  AssignmentExpression: 'left',
  UpdateExpression: 'argument',
  ForInStatement: 'left',
  ForOfStatement: 'left',
}
/** Fields that hold a name which is not a variable, unless computed. */
const NAMES_ONLY: Readonly<Record<string, string>> = {
  __proto__: null as never,
  MemberExpression: 'property',
  Property: 'key',
  MethodDefinition: 'key',
  PropertyDefinition: 'key',
  LabeledStatement: 'label',
  BreakStatement: 'label',
  ContinueStatement: 'label',
  ExportSpecifier: 'exported',
}

function declareFunction(node: SyntaxNode, scope: Scope): void {
  if (node.type === 'FunctionExpression' && isNode(node.id)) declare(node.id, 'other', node, node, scope)
  for (const param of node.params as SyntaxNode[]) declare(param, 'other', node, node, scope)
  if (node.type !== 'ArrowFunctionExpression') put({ ...node, name: 'arguments' }, 'other', node, node, scope)
}

/** Declare what a statement of `scope` declares; `hasVars`: also each `var` of the blocks inside. */
function hoist(node: SyntaxNode, scope: Scope, hasVars: boolean, isInner = false): void {
  const { type } = node
  if (type === 'VariableDeclaration') {
    if (node.kind === 'var' ? !hasVars : isInner) return
    for (const each of node.declarations as SyntaxNode[]) {
      const isPlain = CONSTANT.test(node.kind as string) && (each.id as SyntaxNode).type === 'Identifier'
      declare(each.id as SyntaxNode, isPlain ? 'constant' : 'other', each, node, scope)
    }
  } else if (type === 'FunctionDeclaration' || type === 'ClassDeclaration') {
    if (isInner || !isNode(node.id)) return
    declare(node.id, type === 'FunctionDeclaration' ? 'function' : 'other', node, node, scope)
  } else if (type === 'ImportDeclaration') {
    for (const each of node.specifiers as SyntaxNode[])
      declare(each.local as SyntaxNode, 'import', each, node, scope)
  } else if (EXPORTS.has(type) && isNode(node.declaration)) hoist(node.declaration, scope, hasVars)
  else if (HOISTS_VAR.test(type) || type === 'SwitchCase') {
    // Cases of a `switch` are one block.
    const isBlock = type !== 'SwitchCase' || scope.node.type !== 'SwitchStatement'
    for (const each of childrenOf(node)) hoist(each, scope, hasVars, isInner || isBlock)
  }
}

/** `using` and `await using` are constants that are closed at the end of their block. */
const CONSTANT = /^const$|using$/
const HOISTS_VAR = /Statement$|^CatchClause$/

function declare(
  pattern: SyntaxNode,
  kind: Binding['kind'],
  node: SyntaxNode,
  statement: SyntaxNode,
  scope: Scope,
): void {
  for (const id of identifiersOf(pattern)) put(id, kind, node, statement, scope)
}

function put(
  id: SyntaxNode,
  kind: Binding['kind'],
  node: SyntaxNode,
  statement: SyntaxNode,
  scope: Scope,
): void {
  // Declared twice: a `var` or a function of sloppy code. Neither is the only one.
  const name = id.name as string
  const isTwice = scope.bindings.has(name)
  scope.bindings.set(name, {
    name,
    id,
    kind: isTwice ? 'other' : kind,
    node,
    statement,
    scope,
    isAssigned: isTwice,
  })
}

/** The variables that a statement exports, and as what. */
function exportsOf({ type, declaration, specifiers = [] }: SyntaxNode): [name: string, as: string][] {
  if (type === 'ExportDefaultDeclaration') {
    const { id, name } = declaration as { id?: SyntaxNode; name?: string }
    const local = name ?? id?.name
    return local === undefined ? [] : [[local as string, 'default']]
  }
  const named = (specifiers as SyntaxNode[]).map(({ local, exported }): [string, string] => {
    const { name, value } = exported as { name?: string; value?: string }
    return [(local as SyntaxNode).name as string, (name ?? value) as string]
  })
  if (!isNode(declaration)) return named
  const declared = (declaration.declarations as SyntaxNode[] | undefined) ?? [declaration]
  return declared.flatMap(({ id }) =>
    identifiersOf(id as SyntaxNode).map(({ name }): [string, string] => [name as string, name as string]),
  )
}

/** The names that a pattern binds or assigns. */
function identifiersOf(pattern: SyntaxNode): SyntaxNode[] {
  switch (pattern.type) {
    case 'Identifier':
      return [pattern]
    case 'AssignmentPattern':
      return identifiersOf(pattern.left as SyntaxNode)
    case 'RestElement':
      return identifiersOf(pattern.argument as SyntaxNode)
    case 'ArrayPattern':
      return (pattern.elements as (SyntaxNode | null)[]).flatMap((each) => (each ? identifiersOf(each) : []))
    case 'ObjectPattern':
      return (pattern.properties as SyntaxNode[]).flatMap((each) =>
        identifiersOf((each.type === 'Property' ? each.value : each) as SyntaxNode),
      )
    default:
      return []
  }
}

export function childrenOf(node: SyntaxNode): SyntaxNode[] {
  const children: SyntaxNode[] = []
  for (const key in node) {
    const value = node[key]
    if (Array.isArray(value)) {
      for (const each of value) if (isNode(each)) children.push(each)
    } else if (isNode(value)) children.push(value)
  }
  return children
}

export function isNode(value: unknown): value is SyntaxNode {
  return typeof value === 'object' && value !== null && typeof (value as { type?: unknown }).type === 'string'
}
