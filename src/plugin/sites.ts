/**
 * The functions of a module that are certainly sent: arguments of methods of zones, where the zone comes from
 * an import of Corespun.
 *
 * Certain, since a list has `map` too. A zone that arrives as a parameter, or from a module of the program,
 * is not recognised; its functions are sent as without the plugin.
 */
import type { SyntaxNode } from '../transport/internal.ts'
import { bindingOf, isFunction, type ModuleNames, type Scope } from './scopes.ts'

/** The name under which Corespun exports what an identifier refers to; `undefined` for everything else. */
export function importedName(node: SyntaxNode, scope: Scope): unknown {
  const binding = node.type === 'Identifier' ? bindingOf(node.name as string, scope) : undefined
  if (binding?.kind !== 'import') return undefined
  if (!CORESPUN.test((binding.statement.source as SyntaxNode).value as string)) return undefined
  const { imported } = binding.node as { imported?: SyntaxNode }
  return imported?.name ?? imported?.value
}

/** A function that is sent, in the scope of the call. */
export interface Site {
  readonly node: SyntaxNode
  readonly scope: Scope
  /** It goes to another thread: not to the zone of this thread, and not to an arrow, which may run here. */
  readonly isSent: boolean
  /** The name that the function has in an object as `{ name }`. */
  readonly shorthand?: string
}

const METHODS: ReadonlySet<unknown> = new Set(['run', 'execute', 'map', 'forEach', 'reduce', 'broadcast'])
const FUNCTIONS: ReadonlySet<unknown> = new Set(['lift'])
const CORESPUN = /^corespun(\/(zone|arrow))?$/

/** Methods of `zone` that create zones, and the options of these whose functions run in the workers. */
const CREATE: ReadonlySet<unknown> = new Set(['create', 'getOrCreate'])
const HOOKS: ReadonlySet<unknown> = new Set(['setup', 'teardown'])

/** All functions that are sent, in the order of the text. */
export function sitesOf({ calls }: ModuleNames): Site[] {
  const sites = calls.flatMap(([call, scope]) => {
    const callee = call.callee as SyntaxNode
    const args = call.arguments as SyntaxNode[]
    if (sends(callee, scope))
      return args
        .filter((node) => isSendable(node, scope))
        .map((node): Site => ({ node, scope, isSent: isOfWorkers(callee, scope) }))
    return createsZone(callee, scope) ? args.flatMap((node) => hooksOf(node, scope)) : []
  })
  return sites.toSorted((a, b) => a.node.start - b.node.start)
}

function isSendable(node: SyntaxNode, scope: Scope): boolean {
  return isFunction(node) || isNamedFunction(node, scope)
}

function createsZone(callee: SyntaxNode, scope: Scope): boolean {
  if (callee.type !== 'MemberExpression' || callee.computed === true) return false
  const { object, property } = callee as unknown as { object: SyntaxNode; property: SyntaxNode }
  return CREATE.has(property.name) && importedName(object, scope) === 'zone'
}

/** The functions among the options of a zone. A method, `{ setup() {} }`, is not an expression. */
function hooksOf(options: SyntaxNode, scope: Scope): Site[] {
  if (options.type !== 'ObjectExpression') return []
  return (options.properties as SyntaxNode[]).flatMap((property): Site[] => {
    const { key, value: node } = property as unknown as { key: SyntaxNode; value: SyntaxNode }
    if (property.type !== 'Property' || property.computed === true || property.method === true) return []
    if (!HOOKS.has(key.name) || !isSendable(node, scope)) return []
    const site = { node, scope, isSent: true }
    return [property.shorthand === true ? { ...site, shorthand: key.name as string } : site]
  })
}

function isNamedFunction(node: SyntaxNode, scope: Scope): boolean {
  const binding = node.type === 'Identifier' ? bindingOf(node.name as string, scope) : undefined
  if (binding === undefined || binding.isAssigned) return false
  if (binding.kind === 'constant') return isFunction(binding.node.init as SyntaxNode | null)
  // What an import is shows when the program runs: only functions are marked.
  return binding.kind === 'function' || binding.kind === 'import'
}

function sends(callee: SyntaxNode, scope: Scope): boolean {
  if (callee.type === 'Identifier') return FUNCTIONS.has(importedName(callee, scope))
  if (callee.type !== 'MemberExpression' || callee.computed === true) return false
  const name = (callee.property as SyntaxNode).name
  return METHODS.has(name) && isZone(callee.object as SyntaxNode, scope)
}

/** `zone`, what is reached from it, and constants that hold that. */
function isZone(node: SyntaxNode, scope: Scope): boolean {
  switch (node.type) {
    case 'Identifier': {
      if (importedName(node, scope) === 'zone') return true
      const binding = bindingOf(node.name as string, scope)
      const init = binding?.kind === 'constant' ? (binding.node.init as SyntaxNode | null) : null
      return init !== null && binding !== undefined && init.start < node.start && isZone(init, binding.scope)
    }
    case 'MemberExpression':
      return node.computed !== true && isZone(node.object as SyntaxNode, scope)
    case 'CallExpression': {
      const callee = node.callee as SyntaxNode
      if (callee.type !== 'MemberExpression' || callee.computed === true) return false
      return (
        MAKE_ZONES.has((callee.property as SyntaxNode).name) && isZone(callee.object as SyntaxNode, scope)
      )
    }
    default:
      return false
  }
}

/** Whether a zone certainly has workers: one that `create` makes, or `zone.cpu`. */
function isOfWorkers(node: SyntaxNode, scope: Scope): boolean {
  if (node.type === 'Identifier') {
    const { kind, node: declared, scope: own } = bindingOf(node.name as string, scope) ?? {}
    return kind === 'constant' && own !== undefined && isOfWorkers(declared?.init as SyntaxNode, own)
  }
  if (node.type === 'CallExpression') {
    const { object, property } = node.callee as SyntaxNode
    const { name } = property as SyntaxNode
    return name === 'create' || (name === 'with' && isOfWorkers(object as SyntaxNode, scope))
  }
  if (node.type !== 'MemberExpression') return false
  const { object, property } = node as unknown as { object: SyntaxNode; property: SyntaxNode }
  return importedName(object, scope) === 'zone' ? property.name === 'cpu' : isOfWorkers(object, scope)
}

/** Methods whose result is a zone; that of others may be a list, which has `map`. */
const MAKE_ZONES: ReadonlySet<unknown> = new Set(['create', 'get', 'getOrCreate', 'with'])
