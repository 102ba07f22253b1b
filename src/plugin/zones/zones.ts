/**
 * Which expressions of a module are certainly zones, by where they come from: an import of Corespun, what is
 * made of it, a module of the program that exports one, or a type that the author wrote.
 *
 * Certain, since a list has `map` too. A variable counts if one of the values that are written to it is a
 * zone; nothing is followed through calls.
 */
import {
  type Binding,
  bindingOf,
  type ModuleNames,
  type Scope,
  type SyntaxNode,
} from '../../transport/internal.ts'
import type { ZoneTypes } from './types.ts'

/** Whether a module of the program exports a zone under a name; `*` is for none. */
export type ExportsZone = (specifier: string, name: string) => boolean

const CORESPUN = /^corespun(\/(zone|arrow|fiber))?$/
/** Exports of the root that are modules. */
const MODULES: ReadonlySet<unknown> = new Set(['arrow', 'fiber'])
/** Methods whose result is a zone; that of others may be a list, which has `map`. */
const MAKE_ZONES: ReadonlySet<unknown> = new Set(['create', 'get', 'getOrCreate', 'with'])

/** The name under which Corespun exports what an expression refers to; `undefined` for everything else. */
export function importedName(node: SyntaxNode, scope: Scope): unknown {
  if (node.type === 'MemberExpression' && node.computed !== true) {
    const { object, property } = node as unknown as { object: SyntaxNode; property: SyntaxNode }
    const found = importOf(object, scope)
    if (found === undefined || !CORESPUN.test(found.from)) return undefined
    return found.name === '*' || MODULES.has(found.name) ? property.name : undefined
  }
  const found = importOf(node, scope)
  return found !== undefined && CORESPUN.test(found.from) && found.name !== '*' ? found.name : undefined
}

/** What an identifier imports; the name of a whole module is `*`. */
function importOf(
  node: SyntaxNode,
  scope: Scope,
): { readonly from: string; readonly name: unknown } | undefined {
  const binding = node.type === 'Identifier' ? bindingOf(node.name as string, scope) : undefined
  if (binding?.kind !== 'import') return undefined
  const { type, imported } = binding.node as { type: string; imported?: SyntaxNode }
  const name = type === 'ImportNamespaceSpecifier' ? '*' : (imported?.name ?? imported?.value ?? 'default')
  return { from: (binding.statement.source as SyntaxNode).value as string, name }
}

/** The zones of one module. */
export class Zones {
  readonly #names: ModuleNames
  readonly #types: ZoneTypes
  readonly #exportsZone: ExportsZone
  /** Variables whose values are being looked at: they may refer to each other. */
  readonly #asked = new Set<unknown>()

  constructor(names: ModuleNames, types: ZoneTypes, exportsZone: ExportsZone) {
    this.#names = names
    this.#types = types
    this.#exportsZone = exportsZone
  }

  /** Whether an expression is certainly a zone. */
  isZone(node: SyntaxNode | null | undefined, scope: Scope): boolean {
    if (node == null) return false
    if (this.#types.isAnnotated(node.end) || importedName(node, scope) === 'zone') return true
    switch (node.type) {
      case 'Identifier': {
        const binding = bindingOf(node.name as string, scope)
        return binding !== undefined && this.#isKept(binding, () => this.#isHeld(binding))
      }
      case 'MemberExpression':
        return node.computed !== true && this.#isMember(node, scope)
      case 'CallExpression': {
        const { object, property, computed } = node.callee as SyntaxNode & Record<string, SyntaxNode>
        return computed !== (true as never) && MAKE_ZONES.has(property?.name) && this.isZone(object, scope)
      }
      case 'LogicalExpression':
        return this.isZone(node.left as SyntaxNode, scope) || this.isZone(node.right as SyntaxNode, scope)
      case 'ConditionalExpression':
        return (
          this.isZone(node.consequent as SyntaxNode, scope) ||
          this.isZone(node.alternate as SyntaxNode, scope)
        )
      case 'ChainExpression':
        return this.isZone(node.expression as SyntaxNode, scope)
      default:
        return false
    }
  }

  /** Ask about a variable, which is not a zone merely because it holds itself. */
  #isKept(variable: unknown, ask: () => boolean): boolean {
    if (this.#asked.has(variable)) return false
    this.#asked.add(variable)
    try {
      return ask()
    } finally {
      this.#asked.delete(variable)
    }
  }

  /** Whether a variable holds a zone, by its type or by one of its values. */
  #isHeld({ id, kind, node, statement, scope }: Binding): boolean {
    if (kind === 'import') {
      const { from, name } = importOf(id, scope) as { from: string; name: string }
      return name !== '*' && this.#exportsZone(from, name)
    }
    if (this.#types.isAnnotated(id.end) || this.#types.isDocumented(id.start)) return true
    if (node === statement) return this.#isParameter(node, id, scope)
    const { id: pattern, init } = node as unknown as { id?: SyntaxNode; init?: SyntaxNode | null }
    if (pattern !== undefined && this.#isPart(pattern, init, id, scope)) return true
    return this.#names.assignments.some(([{ left, right }, at]) => {
      const target = left as SyntaxNode
      if (target.type !== 'Identifier' || target.name !== id.name) return false
      return bindingOf(id.name as string, at)?.id === id && this.isZone(right as SyntaxNode, at)
    })
  }

  #isParameter(fn: SyntaxNode, id: SyntaxNode, scope: Scope): boolean {
    const params = (fn.params ?? []) as SyntaxNode[]
    if (params.some((param) => this.#isPart(param, undefined, id, scope))) return true
    const isWhole = params.some((param) => param === id || param.left === id)
    return isWhole && this.#types.isDocumentedParameter(fn.start, id.name as string)
  }

  /** Whether a pattern that takes `value` apart sets the name `id` to a zone. */
  #isPart(pattern: SyntaxNode, value: SyntaxNode | null | undefined, id: SyntaxNode, scope: Scope): boolean {
    if (pattern === id) return this.isZone(value, scope)
    if (pattern.type === 'AssignmentPattern') {
      const { left, right } = pattern as unknown as { left: SyntaxNode; right: SyntaxNode }
      return left === id && (this.isZone(right, scope) || this.isZone(value, scope))
    }
    if (pattern.type !== 'ObjectPattern') return false
    return (pattern.properties as SyntaxNode[]).some(({ type, key, computed, value: part }) => {
      if (type !== 'Property' || computed === true) return false
      const name = (key as SyntaxNode).name
      if (part === id) return value != null && this.#isNamed(value, name, scope)
      return this.#isPart(part as SyntaxNode, undefined, id, scope)
    })
  }

  #isMember({ object, property }: SyntaxNode, scope: Scope): boolean {
    const { type, name } = property as SyntaxNode
    if ((object as SyntaxNode).type === 'ThisExpression') {
      const own = classOf(scope)
      return own !== undefined && this.#isField(own, type, name)
    }
    return this.#isNamed(object as SyntaxNode, name, scope)
  }

  /** Whether the member `name` of an expression is a zone: of a zone, of a module, of an object. */
  #isNamed(object: SyntaxNode, name: unknown, scope: Scope): boolean {
    if (this.isZone(object, scope)) return true
    const found = importOf(object, scope)
    if (found !== undefined) {
      const isCorespun = CORESPUN.test(found.from) && name === 'zone'
      return found.name === '*' && (isCorespun || this.#exportsZone(found.from, name as string))
    }
    const binding = object.type === 'Identifier' ? bindingOf(object.name as string, scope) : undefined
    const init = binding?.kind === 'constant' ? (binding.node.init as SyntaxNode | null) : null
    if (binding === undefined || init?.type !== 'ObjectExpression') return false
    return (init.properties as SyntaxNode[]).some(
      ({ key, value, computed }) =>
        (key as SyntaxNode | undefined)?.name === name &&
        computed !== true &&
        this.isZone(value as SyntaxNode, binding.scope),
    )
  }

  /** Whether a field of a class holds a zone, by its declaration or by what the class assigns to it. */
  #isField(own: Scope, type: string, name: unknown): boolean {
    const isSame = (key: SyntaxNode): boolean => key.type === type && key.name === name
    const { body } = own.node.body as { body: SyntaxNode[] }
    const declared = body.find(
      ({ type, key, computed }) =>
        type === 'PropertyDefinition' && computed !== true && isSame(key as SyntaxNode),
    )
    return this.#isKept(declared ?? own.node, () => {
      if (declared !== undefined) {
        const key = declared.key as SyntaxNode
        if (this.#types.isAnnotated(key.end) || this.#types.isDocumented(declared.start)) return true
        if (this.isZone(declared.value as SyntaxNode | null, own)) return true
      }
      return this.#names.assignments.some(([{ left, right }, at]) => {
        const { object, property, computed } = left as SyntaxNode & Record<string, SyntaxNode>
        if (object?.type !== 'ThisExpression' || computed === (true as never) || !isSame(property))
          return false
        return classOf(at) === own && this.isZone(right as SyntaxNode, at)
      })
    })
  }
}

/** The class whose object `this` is; arrow functions and blocks have that of the code around them. */
function classOf(scope: Scope): Scope | undefined {
  for (let each: Scope | undefined = scope; each !== undefined; each = each.parent) {
    const { type } = each.node
    if (type.startsWith('Class')) return each
    if (type === 'FunctionExpression') {
      // Its class has it as a method only if nothing is between them.
      const { parent } = each
      const isMethod =
        parent?.node.type.startsWith('Class') === true &&
        ((parent.node.body as SyntaxNode).body as SyntaxNode[]).some(({ value }) => value === each.node)
      return isMethod ? parent : undefined
    }
    if (type === 'FunctionDeclaration' || type === 'StaticBlock') return undefined
  }
  return undefined
}
