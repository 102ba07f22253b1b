/**
 * What a function's syntax tree takes from outside: names, `this`, `super`, #private names, `import`.
 *
 * scopes.ts applies the scoping rules; words that are no names are found here.
 */
import type { SyntaxNode } from './parser.ts'
import { bindingOf, childrenOf, isNode, namesOf } from './scopes.ts'

/** The result of one walk over a function. */
export class Scan {
  /** Where each name from outside is used first. */
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
  usesSuper = false
  /** `this`, `arguments` or `new.target` of the code around an arrow function: the first of them. */
  outerKeyword: string | undefined
  #outerAt = Infinity

  constructor(node: SyntaxNode) {
    const isArrow = node.type === 'ArrowFunctionExpression'
    const { references, assigned } = namesOf(node)
    for (const { name, start, scope } of references) {
      if (bindingOf(name, scope) !== undefined) continue
      if (name === 'arguments' && isArrow) this.#word(name, start)
      else if (start < (this.free.get(name) ?? Infinity)) this.free.set(name, start)
    }
    for (const [{ name }, scope] of assigned)
      if (bindingOf(name as string, scope) === undefined) this.assigned.add(name as string)
    this.#inside(node, { isOuter: isArrow, isInMethod: false, depth: 1 })
  }

  #word(word: string, at: number): void {
    if (at > this.#outerAt) return
    this.#outerAt = at
    this.outerKeyword = word
  }

  #inside(node: SyntaxNode, position: Position): void {
    for (const each of childrenOf(node)) this.#visit(each, position)
  }

  #visit(node: SyntaxNode, position: Position): void {
    const { type, start } = node
    const { isOuter, depth } = position
    switch (type) {
      case 'FunctionExpression':
      case 'FunctionDeclaration':
        return this.#inside(node, { ...position, isOuter: false, depth: depth + 1 })
      case 'ArrowFunctionExpression':
        return this.#inside(node, { ...position, depth: depth + 1 })
      case 'ClassExpression':
      case 'ClassDeclaration':
        return this.#class(node, position)
      case 'Property': {
        const isMethod = node.method === true || node.kind !== 'init'
        if (node.computed === true) this.#visit(node.key as SyntaxNode, position)
        // A method takes its `super` along.
        return this.#visit(node.value as SyntaxNode, isMethod ? { ...position, isInMethod: true } : position)
      }
      case 'MetaProperty':
        if ((node.meta as SyntaxNode).name === 'import') this.metas.push(node)
        else if (isOuter) this.#word('new.target', start)
        return
      case 'ThisExpression':
        if (isOuter) this.#word('this', start)
        return
      case 'Super':
        this.usesSuper ||= !position.isInMethod
        return
      case 'PrivateIdentifier':
        this.privateUsed.add(`#${node.name as string}`)
        return
      case 'ImportExpression': {
        this.usesImport = true
        const { source, options } = node as unknown as Readonly<Record<string, SyntaxNode | null | undefined>>
        if (typeof source?.value === 'string' && !options && depth === 1) this.namedImports.push(node)
        break
      }
      case 'UnaryExpression': {
        const { type, name } = node.argument as SyntaxNode
        if (node.operator === 'typeof' && type === 'Identifier') this.probed.add(name as string)
      }
    }
    this.#inside(node, position)
  }

  /** Fields, methods and static blocks have the `this` of the class; its base and computed keys do not. */
  #class(node: SyntaxNode, position: Position): void {
    if (isNode(node.superClass)) this.#visit(node.superClass, position)
    const own = { ...position, isOuter: false, isInMethod: true }
    for (const member of (node.body as SyntaxNode).body as SyntaxNode[]) {
      const key = member.key as SyntaxNode | undefined
      if (key?.type === 'PrivateIdentifier') this.privateDeclared.add(`#${key.name as string}`)
      if (member.computed === true) this.#visit(key!, position)
      if (member.type === 'StaticBlock') this.#inside(member, own)
      else if (isNode(member.value)) this.#visit(member.value, own)
    }
  }
}

interface Position {
  /** Whether `this` and `arguments` are those of the code around the text. */
  readonly isOuter: boolean
  readonly isInMethod: boolean
  /** Functions around it. */
  readonly depth: number
}
