/**
 * Arrows for another thread: a graph as plain data, and plain data as a graph.
 *
 * Functions are numbers (src/transport), or names for another machine; children are indices, so a part that
 * occurs twice is sent once. An arrow for this process is kept in a store of it, from which each worker reads
 * it once; calls carry its id.
 */
import { threads } from '../../base/index.ts'
import type { Schedule } from '../../fiber/index.ts'
import { store, StoreError, type Store } from '../../store/index.ts'
import { capturesOf, functionNumber, moduleFunctionNumber, FunctionError } from '../../transport/internal.ts'
import { ArrowError, wrong } from '../errors.ts'
import { makeNode } from '../run/make.ts'
import { OpCode, partsOf, type Attempt, type ArrowNode, type Wait } from '../build/node.ts'
import {
  asyncWait,
  fiberWait,
  retryWait,
  throughWait,
  timeoutWait,
  type AsyncFunction,
} from '../run/waits.ts'

/** A function where the arrow runs: its number in this process, or its name in the module of a host. */
export type Ref = number | string

/** The data of a node beside its children. */
export type Datum =
  | { readonly is: 'nothing' }
  | { readonly is: 'value'; readonly value: unknown }
  | { readonly is: 'function'; readonly ref: Ref }
  | { readonly is: 'attempt'; readonly body: Ref; readonly catcher: Ref }
  | { readonly is: 'node'; readonly index: number }
  | {
      readonly is: 'wait'
      readonly kind: Wait['kind']
      /** 0: none. */
      readonly functions: readonly Ref[]
      readonly values: readonly unknown[]
      /** -1: none. */
      readonly inner: number
    }

/** A graph as data: children before parents, the whole last. */
export type NodeData = readonly (readonly [op: number, a: number, b: number, datum: Datum])[]

export interface SerializedArrow {
  /** Process-wide. */
  readonly id: string
  readonly nodes: NodeData
}

/** What may be in a graph, and how its functions are named. */
export interface Naming {
  /**
   * @param of Returns its part in the arrow, for the error.
   * @throws for a function that cannot run there.
   */
  refOf(fn: Function, of: () => string): Ref
  /** Whether it travels as a value: what it captures goes with it. */
  isValue(fn: Function): boolean
  /** @throws for a stage that cannot run there. */
  checkWait(wait: Wait, of: () => string): void
}

const exportsOf = new WeakMap<Function, { readonly module: string; readonly name: string }>()

/**
 * Declare that `fn` is the export `name` of a module, so that other threads import it and do not copy it, and
 * hosts of that module on other machines find it. Such a function may use everything in its module. Call it
 * in that module, which must not be the program's main module: a worker imports it.
 * @param url The module's `import.meta.url`.
 * @param fn The function.
 * @param name The name of the export. Default: the function's name.
 * @returns `fn`.
 * @throws {ArrowError} `ARROW_ARGUMENT` when `url` is not a string or `fn` is not a function.
 * @example
 * ```ts
 * import { exported, lift } from 'corespun/arrow'
 *
 * const rates = new Map([['tea', 3]])
 * export function price(item: string): number {
 *   return rates.get(item) ?? 0
 * }
 * export const priced = lift(exported(import.meta.url, price)) // may be followed by .on(zone)
 * console.log(priced.run('tea')) // 3
 * ```
 */
export function exported<Fn extends Function>(url: string, fn: Fn, name: string = fn?.name): Fn {
  if (typeof url !== 'string') throw wrong('exported(): url', 'import.meta.url', url)
  if (typeof fn !== 'function') throw wrong('exported(): fn', 'a function that the module exports', fn)
  exportsOf.set(fn, { module: url, name })
  return fn
}

/** What {@link exported} has declared of a function. */
export function exportOf(fn: Function): { readonly module: string; readonly name: string } | undefined {
  return exportsOf.get(fn)
}

const HERE: Naming = {
  refOf: numberOf,
  isValue: (fn) => capturesOf(fn) !== undefined,
  checkWait: () => {},
}

/** @throws {FunctionError} that names the stage and what the function captures, or another reason. */
function numberOf(fn: Function, of: () => string): number {
  const found = exportsOf.get(fn)
  if (found !== undefined) return moduleFunctionNumber(found.module, found.name)
  try {
    return functionNumber(fn)
  } catch (error) {
    if (!(error instanceof FunctionError) || !('line' in error.facts)) throw error
    const facts = { ...error.facts, of: of() }
    throw new FunctionError(error.code, facts, error.cause === undefined ? {} : { cause: error.cause })
  }
}

/** Nodes of an arrow whose stages are counted for an error; one that contains itself may have billions. */
const NODES_COUNTED_MAX = 100_000

/** The stage of the arrow `root` that contains `node`, for errors. */
function stageOf(root: ArrowNode, node: ArrowNode): string {
  if (root.size > NODES_COUNTED_MAX) return 'a stage of the arrow'
  const parts = partsOf(root)
  const at = parts.findIndex((part) => contains(part, node))
  const name = nameOf(parts[at])
  return `stage ${at + 1} of the arrow${name === '' ? '' : ` (${JSON.stringify(name)})`}`
}

function contains(root: ArrowNode, node: ArrowNode): boolean {
  const seen = new Set([root])
  for (const each of seen) for (const child of childrenOf(each)) seen.add(child)
  return seen.has(node)
}

/** What the program calls a stage, beside its function. */
function nameOf({ op, data }: ArrowNode): string {
  if (op === OpCode.named) return data as string
  return op === OpCode.attempt ? (data as Attempt).body.name : ''
}

/** Serialized arrows in the store; those that are evicted travel with a call. */
const STORED_MAX = 4096
const STORED_BYTES_MAX = 64 * 1024 * 1024
let arrowsSerialized = 0
let arrows: Store<SerializedArrow> | undefined
/** Removes the arrows that nothing refers to any more. */
const unused = new FinalizationRegistry<string>((id) => withStore((stored) => stored.delete(id)))

/** Use the store; `undefined` when it refuses, for example because it was closed. */
function withStore<Found>(use: (stored: Store<SerializedArrow>) => Found): Found | undefined {
  try {
    arrows ??= store.getOrCreate('corespun.arrow.plans', {
      entriesMax: STORED_MAX,
      bytesMax: STORED_BYTES_MAX,
    })
    return use(arrows)
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
    arrows = undefined
    return undefined
  }
}

/** The serialized arrow with that id; `undefined` when the store has dropped it. */
export function storedArrow(id: string): SerializedArrow | undefined {
  return withStore((stored) => stored.get(id))
}

/** A graph as data, and its nodes by their indices there. */
export interface Graph {
  readonly data: NodeData
  readonly nodes: readonly ArrowNode[]
}

/**
 * A graph for the threads of this process.
 * @throws {FunctionError} for a function that cannot be transported.
 * @throws {TransportError} for a value that cannot be transported.
 */
export function serialize(node: ArrowNode): Pick<Graph, 'nodes'> & { readonly arrow: SerializedArrow } {
  const { data, nodes } = graphOf(node, HERE)
  const arrow = { id: `${threads().threadId}.${++arrowsSerialized}`, nodes: data }
  // What cannot be transported is refused when the arrow is built, not at its first run.
  withStore((stored) => {
    stored.set(arrow.id, arrow)
    unused.register(arrow, arrow.id)
  })
  return { arrow, nodes }
}

/** @throws what `naming` throws. */
export function graphOf(node: ArrowNode, naming: Naming): Graph {
  const nodes: [number, number, number, Datum][] = []
  const indices = new Map<ArrowNode, number>()
  const open: ArrowNode[] = [node]
  const indexOf = (child: ArrowNode | null | undefined): number =>
    child ? (indices.get(child) as number) : -1
  for (let next = open.at(-1); next !== undefined; next = open.at(-1)) {
    const missing = childrenOf(next).filter((child) => !indices.has(child))
    if (missing.length > 0) {
      open.push(...missing)
      continue
    }
    open.pop()
    if (indices.has(next)) continue
    indices.set(next, nodes.length)
    const of = (): string => stageOf(node, next)
    nodes.push([next.op, indexOf(next.a), indexOf(next.b), datumOf(next, naming, indexOf, of)])
  }
  return { data: nodes, nodes: [...indices.keys()] }
}

function childrenOf(node: ArrowNode): ArrowNode[] {
  const third =
    node.op === OpCode.branch
      ? (node.data as ArrowNode)
      : node.op === OpCode.wait
        ? (node.data as Wait).inner
        : null
  return [node.a, node.b, third].filter((child) => child !== null && child !== undefined)
}

/** @param of Returns the stage of the node, for errors. */
function datumOf(
  node: ArrowNode,
  naming: Naming,
  indexOf: (node: ArrowNode | undefined) => number,
  of: () => string,
): Datum {
  const { data } = node
  switch (node.op) {
    case OpCode.attempt: {
      const { body, catcher } = data as Attempt
      return {
        is: 'attempt',
        body: naming.refOf(body, of),
        catcher: naming.refOf(catcher, () => `the catcher of ${of()}`),
      }
    }
    case OpCode.branch:
      return { is: 'node', index: indexOf(data as ArrowNode) }
    case OpCode.constant:
    case OpCode.fail:
    case OpCode.named:
      return { is: 'value', value: data }
    case OpCode.wait: {
      const { kind, parts, inner } = data as Wait
      naming.checkWait(data as Wait, of)
      const functions = parts.map((part) => (typeof part === 'function' ? naming.refOf(part, of) : 0))
      const values = parts.map((part) => (typeof part === 'function' ? undefined : part))
      return { is: 'wait', kind, functions, values, inner: indexOf(inner) }
    }
    default:
      if (typeof data !== 'function') return { is: 'nothing' }
      return naming.isValue(data)
        ? { is: 'value', value: data }
        : { is: 'function', ref: naming.refOf(data, of) }
  }
}

/** What a thread makes of what it has received. */
export interface Making {
  functionOf(ref: Ref): Function | Promise<Function>
  /** `onWait` of hop.ts, which imports this module. */
  hopTo(zone: never, inner: ArrowNode): Wait
}

/**
 * The nodes by their indices, the root last.
 * @throws {ArrowError} `ARROW_PLAN` when the data is not what {@link serialize} returns.
 * @throws {FunctionError} for a function that this thread cannot get.
 */
export async function deserialize(data: NodeData, making: Making): Promise<readonly ArrowNode[]> {
  const nodes: ArrowNode[] = []
  for (const [op, a, b, datum] of data) {
    const child = (index: number): ArrowNode | null => (index < 0 ? null : at(nodes, index))
    nodes.push(makeNode(op as OpCode, child(a), child(b), await dataOf(datum, nodes, making)))
  }
  at(nodes, nodes.length - 1)
  return nodes
}

function at(nodes: readonly ArrowNode[], index: number): ArrowNode {
  const node = nodes[index]
  if (node === undefined) throw new ArrowError('ARROW_PLAN', { reason: `node ${index} is missing` })
  return node
}

async function dataOf(datum: Datum, nodes: readonly ArrowNode[], making: Making): Promise<unknown> {
  switch (datum.is) {
    case 'nothing':
      return undefined
    case 'value':
      return datum.value
    case 'function':
      return making.functionOf(datum.ref)
    case 'attempt': {
      const [body, catcher] = [await making.functionOf(datum.body), await making.functionOf(datum.catcher)]
      return { body, catcher }
    }
    case 'node':
      return at(nodes, datum.index)
    default:
      return waitOf(datum, nodes, making)
  }
}

async function waitOf(
  datum: Datum & { readonly is: 'wait' },
  nodes: readonly ArrowNode[],
  making: Making,
): Promise<Wait> {
  const functions = await Promise.all(
    datum.functions.map((ref) => (ref === 0 ? undefined : making.functionOf(ref))),
  )
  const [value] = datum.values
  const inner = (): ArrowNode => at(nodes, datum.inner)
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
      return making.hopTo(value as never, inner())
  }
}
