/**
 * Arrows that go to another thread: a graph as plain data, and plain data as a graph.
 *
 * Functions are numbers (src/transport), children are indices, so a part that occurs twice is sent once.
 * Plans are in a store of the process, from which each worker reads a plan once; only the plan's id travels.
 */
import { threadId } from 'node:worker_threads'
import type { Schedule } from '../../fiber/index.ts'
import { store, StoreError, type Store } from '../../store/index.ts'
import { functionByNumber, functionNumber, moduleFunctionNumber } from '../../transport/internal.ts'
import { ArrowError } from '../errors.ts'
import { makeNode } from '../build/make.ts'
import { Op, type Attempt, type Node, type OpCode, type Wait } from '../build/node.ts'
import {
  asyncWait,
  fiberWait,
  retryWait,
  throughWait,
  timeoutWait,
  type AsyncFunction,
} from '../run/waits.ts'

/** What a node has beside its children. */
type Datum =
  | { readonly is: 'nothing' }
  | { readonly is: 'value'; readonly value: unknown }
  | { readonly is: 'function'; readonly number: number }
  | { readonly is: 'attempt'; readonly body: number; readonly catcher: number }
  | { readonly is: 'node'; readonly index: number }
  | {
      readonly is: 'wait'
      readonly kind: Wait['kind']
      /** 0: none. */
      readonly functions: readonly number[]
      readonly values: readonly unknown[]
      /** -1: none. */
      readonly inner: number
    }

/** A graph as data: children before parents, the whole last. */
export interface SerializedArrow {
  /** Process-wide. */
  readonly id: string
  readonly nodes: readonly (readonly [op: number, a: number, b: number, datum: Datum])[]
}

const homes = new WeakMap<Function, { readonly module: string; readonly name: string }>()

/**
 * Say where other threads find a function: it is the export `name` of a module. Such a function may use
 * whatever its module has; there it is imported instead of copied.
 * @param url The module's own `import.meta.url`. @param fn The function. @param name Default: the function's.
 * @returns `fn` itself.
 */
export function exported<Fn extends Function>(url: string, fn: Fn, name: string = fn.name): Fn {
  homes.set(fn, { module: url, name })
  return fn
}

/**
 * The number by which another thread finds a function.
 * @throws {FunctionError} that names what it captures, or why else it cannot travel.
 */
function numberOf(fn: Function): number {
  const home = homes.get(fn)
  return home === undefined ? functionNumber(fn) : moduleFunctionNumber(home.module, home.name)
}

/** Plans that workers can read; of more the ones that were used longest ago travel with a call instead. */
const PLANS_MAX = 4096
const PLANS_BYTES_MAX = 64 * 1024 * 1024
let plansMade = 0
let plans: Store<SerializedArrow> | undefined
/** Arrows that nothing refers to any more need no plan. */
const unused = new FinalizationRegistry<string>((id) => withPlans((stored) => stored.delete(id)))

/** Use the store of plans; `undefined` when it refuses, as one that somebody has closed does. */
function withPlans<Found>(use: (stored: Store<SerializedArrow>) => Found): Found | undefined {
  try {
    plans ??= store.getOrCreate('corespun.arrow.plans', { entriesMax: PLANS_MAX, bytesMax: PLANS_BYTES_MAX })
    return use(plans)
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
    plans = undefined
    return undefined
  }
}

/** The plan of that id, as another thread has stored it; `undefined` when the store does not hold it. */
export function storedPlan(id: string): SerializedArrow | undefined {
  return withPlans((stored) => stored.get(id))
}

/** A graph as data, and its nodes by their index there. */
export interface Serialized {
  readonly plain: SerializedArrow
  readonly nodes: readonly Node[]
}

/**
 * A graph as data.
 * @throws {FunctionError} for a function that cannot travel. @throws {TransportError} for a value.
 */
export function serialize(node: Node): Serialized {
  const nodes: [number, number, number, Datum][] = []
  const indices = new Map<Node, number>()
  const open: Node[] = [node]
  const indexOf = (child: Node | null | undefined): number => (child ? (indices.get(child) as number) : -1)
  for (let next = open.at(-1); next !== undefined; next = open.at(-1)) {
    const missing = childrenOf(next).filter((child) => !indices.has(child))
    if (missing.length > 0) {
      open.push(...missing)
      continue
    }
    open.pop()
    if (indices.has(next)) continue
    indices.set(next, nodes.length)
    nodes.push([next.op, indexOf(next.a), indexOf(next.b), datumOf(next, indexOf)])
  }
  const plain = { id: `${threadId}.${++plansMade}`, nodes }
  // What cannot travel is refused now, where it is built, and not at its first run.
  withPlans((stored) => {
    stored.set(plain.id, plain)
    unused.register(plain, plain.id)
  })
  return { plain, nodes: [...indices.keys()] }
}

function childrenOf(node: Node): Node[] {
  const third =
    node.op === Op.branch ? (node.data as Node) : node.op === Op.wait ? (node.data as Wait).inner : null
  return [node.a, node.b, third].filter((child) => child !== null && child !== undefined)
}

function datumOf(node: Node, indexOf: (node: Node | undefined) => number): Datum {
  const { data } = node
  switch (node.op) {
    case Op.attempt: {
      const { body, catcher } = data as Attempt
      return { is: 'attempt', body: numberOf(body), catcher: numberOf(catcher) }
    }
    case Op.branch:
      return { is: 'node', index: indexOf(data as Node) }
    case Op.constant:
    case Op.fail:
    case Op.named:
      return { is: 'value', value: data }
    case Op.wait: {
      const { kind, parts, inner } = data as Wait
      const functions = parts.map((part) => (typeof part === 'function' ? numberOf(part) : 0))
      const values = parts.map((part) => (typeof part === 'function' ? undefined : part))
      return { is: 'wait', kind, functions, values, inner: indexOf(inner) }
    }
    default:
      return typeof data === 'function' ? { is: 'function', number: numberOf(data) } : { is: 'nothing' }
  }
}

/** How a hop is made of a zone and what goes there; place.ts has it, which imports this. */
type Place = (zone: never, inner: Node) => Wait

/**
 * The nodes of plain data by their index, the whole last.
 * @throws {ArrowError} `ARROW_PLAN` when it is not what {@link serialize} makes.
 * @throws {FunctionError} for a function that this thread cannot get.
 */
export async function deserialize(plain: SerializedArrow, place: Place): Promise<readonly Node[]> {
  const nodes: Node[] = []
  for (const [op, a, b, datum] of plain.nodes) {
    const child = (index: number): Node | null => (index < 0 ? null : at(nodes, index))
    nodes.push(makeNode(op as OpCode, child(a), child(b), await dataOf(datum, nodes, place)))
  }
  at(nodes, nodes.length - 1)
  return nodes
}

function at(nodes: readonly Node[], index: number): Node {
  const node = nodes[index]
  if (node === undefined) throw new ArrowError('ARROW_PLAN', { reason: `there is no node ${index}` })
  return node
}

async function dataOf(datum: Datum, nodes: readonly Node[], place: Place): Promise<unknown> {
  switch (datum.is) {
    case 'nothing':
      return undefined
    case 'value':
      return datum.value
    case 'function':
      return functionByNumber(datum.number)
    case 'attempt': {
      const [body, catcher] = await Promise.all([datum.body, datum.catcher].map(functionByNumber))
      return { body, catcher }
    }
    case 'node':
      return at(nodes, datum.index)
    default:
      return waitOf(datum, nodes, place)
  }
}

async function waitOf(
  datum: Datum & { readonly is: 'wait' },
  nodes: readonly Node[],
  place: Place,
): Promise<Wait> {
  const functions = await Promise.all(
    datum.functions.map((number) => (number === 0 ? undefined : functionByNumber(number))),
  )
  const [value] = datum.values
  const inner = (): Node => at(nodes, datum.inner)
  switch (datum.kind) {
    case 'async':
      return asyncWait(
        functions[0] as AsyncFunction,
        functions[1] as ((thrown: unknown) => unknown) | undefined,
      )
    case 'fiber':
      return fiberWait(functions[0] as (input: unknown) => unknown)
    case 'retry':
      return retryWait(value as Schedule<never>, inner())
    case 'timeout':
      return timeoutWait(value as number, inner())
    case 'through':
      return throughWait(
        value as Store<never>,
        functions[1] as ((input: never) => string) | undefined,
        inner(),
      )
    default:
      return place(value as never, inner())
  }
}
