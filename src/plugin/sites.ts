/**
 * The functions of a module that are certainly sent: arguments of methods of zones (zones/zones.ts), stages
 * of arrows, steps of fibers.
 *
 * Certain, since a list has `map` too. The functions of other calls are sent as without the plugin.
 */
import {
  bindingOf,
  isFunction,
  type ModuleNames,
  type Scope,
  type SyntaxNode,
} from '../transport/internal.ts'
import { importedName, type Zones } from './zones/zones.ts'

/** A function that is sent, in the scope of the call. */
export interface Site {
  readonly node: SyntaxNode
  readonly scope: Scope
  /** It goes to another thread: not to the zone of this thread, and not to an arrow, which may run here. */
  readonly isSent: boolean
  /** The name that the function has in an object as `{ name }`. */
  readonly shorthand?: string
}

const METHODS: ReadonlySet<unknown> = new Set([
  'run',
  'execute',
  'map',
  'forEach',
  'reduce',
  'broadcast',
  'broadcastSync',
])
/** Functions of arrows and fibers: how many of the arguments are sent. */
const FUNCTIONS: ReadonlyMap<unknown, number> = new Map([
  ['lift', 1],
  ['liftAsync', 1],
  ['effect', 1],
  ['effectTotal', 1],
  ['fromFiber', 1],
  ['liftM', 1],
  ['on', Infinity],
])
/** Methods of arrows whose function is a stage. */
const STAGES: ReadonlySet<unknown> = new Set(['map', 'tap'])

/** Methods of `zone` that create zones, and the options of these whose functions run in the workers. */
const CREATE: ReadonlySet<unknown> = new Set(['create', 'getOrCreate'])
const HOOKS: ReadonlySet<unknown> = new Set(['setup', 'teardown'])

/** All functions that are sent, in the order of the text. */
export function sitesOf({ calls }: ModuleNames, zones: Zones): Site[] {
  const sites = calls.flatMap(([call, scope]) => {
    const callee = call.callee as SyntaxNode
    const args = call.arguments as SyntaxNode[]
    if (createsZone(callee, scope)) return args.flatMap((node) => hooksOf(node, scope))
    return args
      .slice(0, sentArguments(callee, scope, zones))
      .filter((node) => isSendable(node, scope))
      .map((node): Site => ({ node, scope, isSent: isOfWorkers(callee, scope) }))
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

/** How many of a call's arguments are sent: none of most calls. */
function sentArguments(callee: SyntaxNode, scope: Scope, zones: Zones): number {
  const count = FUNCTIONS.get(importedName(callee, scope))
  if (count !== undefined) return count
  if (callee.type !== 'MemberExpression' || callee.computed === true) return 0
  const { object, property } = callee as unknown as { object: SyntaxNode; property: SyntaxNode }
  const isSent =
    (METHODS.has(property.name) && zones.isZone(object, scope)) ||
    (STAGES.has(property.name) && isArrow(object, scope))
  return isSent ? Infinity : 0
}

/** Whether an expression is certainly an arrow: what `lift` and the like return, and `map` and `tap`. */
function isArrow(node: SyntaxNode, scope: Scope): boolean {
  if (node.type === 'Identifier') {
    const { kind, node: declared, scope: own } = bindingOf(node.name as string, scope) ?? {}
    const init = kind === 'constant' ? (declared?.init as SyntaxNode | null) : null
    return init != null && own !== undefined && init.start < node.start && isArrow(init, own)
  }
  if (node.type !== 'CallExpression') return false
  const callee = node.callee as SyntaxNode
  const name = importedName(callee, scope)
  if (FUNCTIONS.has(name)) return name !== 'on'
  const { object, property } = callee as unknown as { object?: SyntaxNode; property?: SyntaxNode }
  return object !== undefined && STAGES.has(property?.name) && isArrow(object, scope)
}

function isNamedFunction(node: SyntaxNode, scope: Scope): boolean {
  const binding = node.type === 'Identifier' ? bindingOf(node.name as string, scope) : undefined
  if (binding === undefined || binding.isAssigned) return false
  if (binding.kind === 'constant') return isFunction(binding.node.init as SyntaxNode | null)
  // What an import is shows when the program runs: only functions are marked.
  return binding.kind === 'function' || binding.kind === 'import'
}

/** Whether a zone certainly has workers: one that `create` makes, or `zone.cpu`. */
function isOfWorkers(node: SyntaxNode | null | undefined, scope: Scope): boolean {
  if (node == null) return false
  if (node.type === 'Identifier') {
    const { kind, node: declared, scope: own } = bindingOf(node.name as string, scope) ?? {}
    return kind === 'constant' && own !== undefined && isOfWorkers(declared?.init as SyntaxNode | null, own)
  }
  if (node.type === 'CallExpression') {
    const { object, property } = node.callee as { object?: SyntaxNode; property?: SyntaxNode }
    const name = property?.name
    return name === 'create' || (name === 'with' && isOfWorkers(object, scope))
  }
  if (node.type !== 'MemberExpression') return false
  const { object, property } = node as unknown as { object: SyntaxNode; property: SyntaxNode }
  return importedName(object, scope) === 'zone' ? property.name === 'cpu' : isOfWorkers(object, scope)
}
