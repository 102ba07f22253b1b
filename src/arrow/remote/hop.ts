/**
 * `on(zone)`: a part of an arrow that runs in a zone, in one hop.
 *
 * The caller sends the id of the serialized arrow and the input. A worker that has not run it reads it from a
 * store of the process. When the store has dropped it the worker returns so before it has run anything, and
 * receives it with a second task; so every task runs the arrow at most once. In a worker of that zone, and in
 * threads that have called {@link disableHops}, there is no hop.
 */
import type { Failed } from '../../fiber/index.ts'
import { type AnyZone, zone as zones } from '../../zone/index.ts'
import { containsStreams, isLimited, isThisThread } from '../../zone/internal.ts'
import { TransportError } from '../../transport/index.ts'
import { shown } from '../../base/index.ts'
import { Raised, Stopped, thrownFor } from '../build/failure.ts'
import { profileOf } from '../run/profile.ts'
import { runNode } from '../run/run-node.ts'
import { makeNode } from '../build/make.ts'
import { Op, type ArrowNode, type RunContext, type Wait } from '../build/node.ts'
import { serialize, type Serialized } from './serialize.ts'

/** What a worker has measured of the nodes since its last reply. */
export type Measured = readonly (readonly [index: number, calls: number, ms: number])[]

/** The reply of a worker. `ms` is the time of the run; `measured` is present when it is new. */
export type Reply =
  | { readonly is: 'value'; readonly value: unknown; readonly ms: number; readonly measured?: Measured }
  | { readonly is: 'failed'; readonly exit: Failed; readonly ms: number; readonly measured?: Measured }
  | { readonly is: 'unknown' }

/** The measurements of a hop. */
export interface Hop {
  readonly serialized: Serialized
  hops: number
  /** From the call to its result. */
  totalMs: number
  /** Of that, running in the worker. */
  workerMs: number
}

const WORKER_URL = new URL('./worker.js', import.meta.url).href

let hopsAreDisabled = false

/** Run remote stages in this thread, without a hop: it is a worker that runs the whole arrow. */
export function disableHops(): void {
  hopsAreDisabled = true
}

const hops = new WeakMap<Wait, { readonly zone: AnyZone; readonly hop: Hop }>()

/** The measurements of a remote stage; `undefined` for one without a hop. */
export function hopOf(wait: Wait): Hop | undefined {
  return hops.get(wait)?.hop
}

/**
 * The stage that runs `inner` in a zone.
 * @throws {FunctionError} naming the variables that a stage captures.
 * @throws {TransportError} for a value that cannot be transported.
 */
export function onWait(zone: AnyZone, inner: ArrowNode): Wait {
  if (isThisThread(zone)) {
    const start = (input: unknown, context: RunContext): unknown =>
      runNode(inner, input, context.givenSignal, context.fiber)
    return { kind: 'on', start, parts: [zone], inner, shown: () => 'this thread' }
  }
  const hop: Hop = { serialized: serialize(inner), hops: 0, totalMs: 0, workerMs: 0 }
  const start = (input: unknown, context: RunContext): unknown =>
    hopsAreDisabled || zones.current.id === zone.id
      ? runNode(inner, input, context.givenSignal, context.fiber)
      : runInZone(zone, hop, input, context.givenSignal)
  const wait: Wait = {
    kind: 'on',
    start,
    parts: [zone],
    inner,
    // Hops with limits of their own are not joined.
    ...(isLimited(zone) ? {} : { row: { key: zone.id, join: joinedHops } }),
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
    const { arrow } = hop.serialized
    // A stream is read once, so the first task that receives it must have the arrow.
    const given = isStream(input) ? [arrow.id, input, arrow] : [arrow.id, input]
    let reply = (await zone.execute(WORKER_URL, 'runArrow', given, options)).value as Reply
    if (reply.is === 'unknown' && (await containsStreams(input))) throw lost(input)
    if (reply.is === 'unknown')
      reply = (await zone.execute(WORKER_URL, 'runArrow', [arrow.id, input, arrow], options)).value as Reply
    if (reply.is === 'unknown') throw new Raised(undefined)
    hop.workerMs += reply.ms
    if (reply.measured !== undefined) addMeasures(hop.serialized.nodes, reply.measured)
    // A single synchronous stage is not interpreted, so not measured: its time is that of the run.
    else if (hop.serialized.nodes.length === 1) addMeasures(hop.serialized.nodes, [[0, 1, reply.ms]])
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

/** Whether an input is read item by item. */
function isStream(input: unknown): boolean {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) return false
  return Symbol.asyncIterator in input || typeof (input as { next?: unknown }).next === 'function'
}

/** The worker has received a stream inside of an input without the arrow, which its store had dropped. */
function lost(input: unknown): TransportError {
  const why = 'the stream in it was received without the arrow; pass the stream itself as the input'
  return new TransportError('TRANSPORT_REFUSED', { path: 'input', what: shown(input), why })
}

/** Add a worker's measurements to those of this thread. */
function addMeasures(nodes: readonly ArrowNode[], measured: Measured): void {
  const { measures } = profileOf(nodes.at(-1) as ArrowNode)
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

/** A tree of the rows that have been joined: the path to a row is the hops that it consists of. */
interface Link {
  next: WeakMap<ArrowNode, Link> | undefined
  whole: ArrowNode | undefined
}

const joined: Link = { next: undefined, whole: undefined }

/**
 * Adjacent hops to one zone as one. Returns the same node for the same row, so that its hops are counted
 * together. A row is serialized once, as a whole.
 */
function joinedHops(row: readonly ArrowNode[]): ArrowNode {
  let link = joined
  for (const node of row) {
    const known = (link.next ??= new WeakMap())
    let next = known.get(node)
    if (next === undefined) known.set(node, (next = { next: undefined, whole: undefined }))
    link = next
  }
  return (link.whole ??= joinHops(row))
}

function joinHops(row: readonly ArrowNode[]): ArrowNode {
  const { zone } = hops.get(row[0].data as Wait) as { readonly zone: AnyZone }
  const inner = row.map((node) => (node.data as Wait).inner as ArrowNode)
  const chain = inner.reduce((one, other) => makeNode(Op.chain, one, other, undefined))
  return makeNode(Op.wait, null, null, onWait(zone, chain))
}
