/**
 * Placement: a part of an arrow that runs in a zone, in one hop.
 *
 * The caller sends the plan's id and the input. A worker that does not have the plan reads it from the store
 * of plans. If the store has dropped it, the worker returns so before it has run anything, and receives the
 * plan with a second task; so whatever worker takes a task, the plan runs once.
 * In a worker of that zone, and in threads told to stay where they are, there is no hop.
 */
import type { Failed } from '../../fiber/index.ts'
import { type AnyZone, zone as zones } from '../../zone/index.ts'
import { Raised, Stopped, thrownFor } from '../build/failure.ts'
import { profileOf } from '../run/profile.ts'
import { runNode } from '../run/run-node.ts'
import { makeNode } from '../build/make.ts'
import { Op, type Node, type RunContext, type Wait } from '../build/node.ts'
import { serialize, type Serialized } from './serialize.ts'

/** What a worker has measured of a plan's nodes since it last told. */
export type Measured = readonly (readonly [index: number, calls: number, ms: number])[]

/** What comes back from a worker. `ms` is the time it ran there; `measured` comes when there is news. */
export type Reply =
  | { readonly is: 'value'; readonly value: unknown; readonly ms: number; readonly measured?: Measured }
  | { readonly is: 'failed'; readonly exit: Failed; readonly ms: number; readonly measured?: Measured }
  | { readonly is: 'unknown' }

/** What a hop knows of itself. */
export interface Hop {
  readonly packed: Serialized
  hops: number
  /** From the call to its result. */
  totalMs: number
  /** Of that, running in the worker. */
  workerMs: number
}

const WORKER_URL = new URL('./worker.js', import.meta.url).href

let stays = false

/** In this thread placed parts run where they are, without a hop: it is a worker made for the whole arrow. */
export function disableHops(): void {
  stays = true
}

/** What a hop is joined with and shown by. */
const hops = new WeakMap<Wait, { readonly zone: AnyZone; readonly hop: Hop }>()

/** What has been measured of a placed part; `undefined` for one that makes no hop. */
export function hopOf(wait: Wait): Hop | undefined {
  return hops.get(wait)?.hop
}

/**
 * Run `inner` in a zone.
 * @throws {FunctionError} naming the variables that a stage captures. @throws {TransportError} for a value.
 */
export function onWait(zone: AnyZone, inner: Node): Wait {
  if (zone.id === 'node') {
    const start = (input: unknown, context: RunContext): unknown =>
      runNode(inner, input, context.givenSignal, context.fiber)
    return { kind: 'on', start, parts: [zone], inner, shown: () => 'this thread' }
  }
  const hop: Hop = { packed: serialize(inner), hops: 0, totalMs: 0, workerMs: 0 }
  const start = (input: unknown, context: RunContext): unknown =>
    stays || zones.current.id === zone.id
      ? runNode(inner, input, context.givenSignal, context.fiber)
      : runInZone(zone, hop, input, context.givenSignal)
  const wait: Wait = {
    kind: 'on',
    start,
    parts: [zone],
    inner,
    row: { key: zone.id, join: joinedHops },
    shown: () => `zone ${zone.id}`,
  }
  hops.set(wait, { zone, hop })
  return wait
}

async function runInZone(
  zone: AnyZone,
  hop: Hop,
  input: unknown,
  signal: AbortSignal | undefined,
): Promise<unknown> {
  const options = signal === undefined ? {} : { signal }
  const startMs = performance.now()
  try {
    const { plain } = hop.packed
    let reply = (await zone.execute(WORKER_URL, 'runArrow', [plain.id, input], options)).value as Reply
    if (reply.is === 'unknown')
      reply = (await zone.execute(WORKER_URL, 'runArrow', [plain.id, input, plain], options)).value as Reply
    if (reply.is === 'unknown') throw new Raised(undefined)
    hop.workerMs += reply.ms
    if (reply.measured !== undefined) addMeasures(hop.packed.nodes, reply.measured)
    // A synchronous stage alone runs as it is, without a interpreter that measures: what took time there
    // was it.
    else if (hop.packed.nodes.length === 1) addMeasures(hop.packed.nodes, [[0, 1, reply.ms]])
    if (reply.is === 'failed') throw thrownFor(reply.exit)
    return reply.value
  } catch (thrown) {
    if (signal?.aborted === true && thrown === signal.reason) throw new Stopped(thrown)
    throw thrown
  } finally {
    hop.hops += 1
    hop.totalMs += performance.now() - startMs
  }
}

/** Workers measure stages as this thread would: what they tell is added to the placed part's own figures. */
function addMeasures(nodes: readonly Node[], measured: Measured): void {
  const { measures } = profileOf(nodes.at(-1) as Node)
  for (const [index, calls, ms] of measured) {
    const node = nodes[index]
    const known = measures.get(node)
    if (known === undefined) measures.set(node, { calls, ms })
    else {
      known.calls += calls
      known.ms += ms
    }
  }
}

/** Rows of hops that have been joined, a link for each hop: a row is found by the hops that it is made of. */
interface Link {
  next: WeakMap<Node, Link> | undefined
  whole: Node | undefined
}

const joined: Link = { next: undefined, whole: undefined }

/**
 * Hops to one zone, one right behind the other, as one: the same node whoever asks, so that all of its hops
 * are counted in one place. The whole row becomes data once; nothing is made for parts of it.
 */
function joinedHops(row: readonly Node[]): Node {
  let link = joined
  for (const node of row) {
    const known = (link.next ??= new WeakMap())
    let next = known.get(node)
    if (next === undefined) known.set(node, (next = { next: undefined, whole: undefined }))
    link = next
  }
  return (link.whole ??= joinHops(row))
}

function joinHops(row: readonly Node[]): Node {
  const { zone } = hops.get(row[0].data as Wait) as { readonly zone: AnyZone }
  const inner = row.map((node) => (node.data as Wait).inner as Node)
  const chain = inner.reduce((one, other) => makeNode(Op.chain, one, other, undefined))
  return makeNode(Op.wait, null, null, onWait(zone, chain))
}
