/**
 * A host's side of `on(zone)`: a graph of names from another machine, made of exports and run.
 *
 * The graph is not trusted: whatever is not one is refused before anything of it is made, and its functions
 * are looked up by the host. Small ones are kept, so that they are fused and compiled like any other.
 */
import { TIMER_MS_MAX } from '../../base/index.ts'
import { decode } from '../../transport/index.ts'
import { OpCode } from '../build/node.ts'
import { ArrowError } from '../errors.ts'
import type { Reply } from './reply.ts'
import type { Datum, NodeData } from './serialize.ts'
import { keep, made, runMade, type Kept } from './worker.ts'

/** Parts kept per thread, and the bytes of one that is. */
const KEPT_MAX = 256
const KEPT_BYTES_MAX = 65_536

const kept: Kept = new Map()

/**
 * Run a part of an arrow on an input.
 * @param module Its URL: the same bytes for another one are another part.
 * @param functionOf Returns the export of that name, or throws.
 * @throws {ArrowError} `ARROW_PLAN` for bytes that are no such part; the defect of a stage.
 */
export async function runPart(
  part: unknown,
  input: unknown,
  module: string,
  functionOf: (name: string) => Function,
): Promise<Reply> {
  if (!(part instanceof Uint8Array)) throw malformed('it has no graph')
  const id = part.length > KEPT_BYTES_MAX ? '' : `${module} ${Buffer.from(part).toString('latin1')}`
  let found = kept.get(id)
  if (found === undefined) {
    const hopTo = (): never => {
      throw malformed('it hops')
    }
    found = made(checked(decode(part)), { functionOf: (ref) => functionOf(ref as string), hopTo })
    if (id !== '') keep(kept, KEPT_MAX, id, found)
  }
  return runMade(found instanceof Promise ? await found : found, input)
}

const malformed = (reason: string): ArrowError => new ArrowError('ARROW_PLAN', { reason })

/** Children of operations that have any. */
const CHILDREN = new Map<unknown, number>([
  ...[OpCode.chain, OpCode.zip, OpCode.merge, OpCode.split, OpCode.choice, OpCode.branch, OpCode.loop].map(
    (op) => [op, 2] as const,
  ),
  ...[OpCode.first, OpCode.second, OpCode.left, OpCode.right, OpCode.test].map((op) => [op, 1] as const),
  ...[OpCode.flatMap, OpCode.effect, OpCode.mapError, OpCode.catchAll, OpCode.named].map(
    (op) => [op, 1] as const,
  ),
])
/** The data of operations that have any. */
const DATA = new Map<unknown, Datum['is']>([
  ...[OpCode.call, OpCode.tap, OpCode.zip, OpCode.flatMap, OpCode.mapError, OpCode.catchAll].map(
    (op) => [op, 'function'] as const,
  ),
  ...[OpCode.constant, OpCode.fail, OpCode.named].map((op) => [op, 'value'] as const),
  [OpCode.attempt, 'attempt'],
  [OpCode.branch, 'node'],
  [OpCode.wait, 'wait'],
])
const CODES: ReadonlySet<unknown> = new Set<OpCode>(Object.values(OpCode))

/** @throws {ArrowError} `ARROW_PLAN`. */
function checked(data: unknown): NodeData {
  if (!Array.isArray(data) || data.length === 0) throw malformed('it has no nodes')
  for (const [index, node] of data.entries()) {
    const [op, a, b, datum] = Array.isArray(node) ? (node as unknown[]) : []
    const isChild = (child: unknown): boolean =>
      Number.isInteger(child) && (child as number) >= 0 && (child as number) < index
    const count = CHILDREN.get(op) ?? 0
    const areChildren = (count > 0 ? isChild(a) : a === -1) && (count > 1 ? isChild(b) : b === -1)
    if (!CODES.has(op) || !areChildren || !isDatum(op, Object(datum) as Datum, isChild))
      throw malformed(`node ${index} is malformed`)
  }
  return data as NodeData
}

function isDatum(op: unknown, datum: Datum, isChild: (child: unknown) => boolean): boolean {
  if (datum.is !== (DATA.get(op) ?? 'nothing')) return false
  switch (datum.is) {
    case 'function':
      return typeof datum.ref === 'string'
    case 'attempt':
      return typeof datum.body === 'string' && typeof datum.catcher === 'string'
    case 'node':
      return isChild(datum.index)
    case 'value':
      return op !== OpCode.named || typeof datum.value === 'string'
    case 'wait':
      return isWait(datum, isChild)
    default:
      return true
  }
}

function isWait(
  { kind, functions, values, inner }: Datum & { readonly is: 'wait' },
  isChild: (child: unknown) => boolean,
): boolean {
  if (!Array.isArray(functions) || !Array.isArray(values)) return false
  const [first, second = 0] = functions as unknown[]
  switch (kind) {
    case 'async':
      return typeof first === 'string' && (second === 0 || typeof second === 'string') && inner === -1
    case 'fiber':
      return typeof first === 'string' && inner === -1
    case 'timeout': {
      const [ms] = values as unknown[]
      const isTime = ms === Infinity || (typeof ms === 'number' && ms >= 0 && ms <= TIMER_MS_MAX)
      return first === 0 && isTime && isChild(inner)
    }
    default:
      return false
  }
}
