/**
 * `on(zone)` for a zone of other machines: the part travels as a graph of names.
 *
 * Code is not sent. Each function must be declared by `exported` to be an export of the module that the hosts
 * of the zone run, so what is called there is what would be called here. All of that is checked when the
 * arrow is built. The graph has a frame of its own, which is sent with each input.
 */
import { encode } from '../../transport/internal.ts'
import { FAR, type AnyFarZone } from '../../zone/internal.ts'
import type { ArrowNode, Wait } from '../build/node.ts'
import { ArrowError, wrong } from '../errors.ts'
import type { Ask, Reply } from './reply.ts'
import { exportOf, graphOf, type Naming } from './serialize.ts'

interface FarHop {
  readonly ask: Ask
  readonly nodes: readonly ArrowNode[]
  /** Neighbours with the same one are one hop. */
  readonly key: string
}

/** Stages that belong to the process that has made them, and why. */
const BOUND: Readonly<Partial<Record<Wait['kind'], string>>> = {
  on: 'on() inside of it names a zone of this process',
  retry: 'a schedule cannot be transported',
  through: 'through() uses a store of this process',
}

/**
 * How `inner` runs on a host.
 * @throws {ArrowError} `ARROW_NOT_HOSTED`; `ARROW_ARGUMENT` for a zone whose module is not known.
 * @throws {TransportError} for a value that cannot be transported.
 */
export function askFar(target: AnyFarZone, inner: ArrowNode): FarHop {
  const { key, module } = target[FAR]
  if (module === undefined)
    throw wrong('on(): zone', 'made with its module for an arrow, as by fleet.zone(name, { module })', target)
  const { data, nodes } = graphOf(inner, namingFor(target.name, module))
  const part = encode(data)
  const ask: Ask = async (input, signal) => checkedReply(await target[FAR].run(part, input, signal), nodes)
  return { ask, nodes, key }
}

function namingFor(zone: string, module: string): Naming {
  const refused = (stage: string, reason: string, remedy: string): ArrowError =>
    new ArrowError('ARROW_NOT_HOSTED', { zone, stage, reason, remedy })
  return {
    refOf(fn, of) {
      const found = exportOf(fn)
      if (found?.module === module) return found.name
      const name = fn.name === '' ? 'its function' : `function ${fn.name}`
      const reason =
        found === undefined
          ? `${name} is not declared as an export of ${module}, and code is not sent to other machines`
          : `${name} is an export of ${found.module}, and hosts run ${module}`
      const remedy = `export it there, and declare it there: exported(import.meta.url, ${fn.name || 'fn'})`
      throw refused(of(), reason, remedy)
    },
    isValue: () => false,
    checkWait({ kind }, of) {
      const reason = BOUND[kind]
      if (reason !== undefined) throw refused(of(), reason, `put ${kind}() behind the on() of the far zone`)
    },
  }
}

/** What a host has replied, as far as this thread reads it. */
function checkedReply(reply: unknown, nodes: readonly ArrowNode[]): Reply {
  const { is, ms, exit, measured = [] } = Object(reply) as Record<string, unknown>
  const isReply = is === 'value' || (is === 'failed' && Array.isArray((Object(exit) as Failing).others))
  const isRow = (row: unknown): boolean =>
    Array.isArray(row) && row.every(isFigure) && Object.hasOwn(nodes, row[0] as number)
  if (!isReply || !isFigure(ms) || !Array.isArray(measured) || !measured.every(isRow))
    throw new ArrowError('ARROW_PLAN', { reason: 'the reply of the host is malformed' })
  return reply as Reply
}

const isFigure = (value: unknown): boolean => typeof value === 'number' && value >= 0 && value < Infinity

interface Failing {
  readonly others?: unknown
}
