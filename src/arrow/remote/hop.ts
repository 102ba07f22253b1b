/**
 * `on(zone)`: a part of an arrow that runs in a zone, in one hop. Zones of other machines: far.ts.
 *
 * The caller sends the id of the serialized arrow and the input. A worker that has not run it reads it from a
 * store of the process. When the store has dropped it the worker returns so before it has run anything, and
 * receives it with a second task; so every task runs the arrow at most once. In a worker of that zone, and in
 * threads that have called {@link disableHops}, there is no hop.
 */
import { type AnyZone, zone as zones } from '../../zone/index.ts'
import { type AnyFarZone, containsStreams, isFar, isLimited, isThisThread } from '../../zone/internal.ts'
import { TransportError } from '../../transport/index.ts'
import { shown } from '../../base/index.ts'
import { Raised, Stopped, thrownFor } from '../build/failure.ts'
import { profileOf } from '../run/profile.ts'
import { runNode } from '../run/run-node.ts'
import { makeNode } from '../run/make.ts'
import { OpCode, type ArrowNode, type RunContext, type Wait } from '../build/node.ts'
import { askFar } from './far.ts'
import type { Ask, Measured, Reply } from './reply.ts'
import { serialize, type SerializedArrow } from './serialize.ts'

export interface Hop {
  readonly ask: Ask
  readonly nodes: readonly ArrowNode[]
  hops: number
  /** From the call to its result. */
  totalMs: number
  /** The part of it that ran in the worker. */
  workerMs: number
}

const WORKER_URL = new URL('./worker.js', import.meta.url).href

let hopsAreDisabled = false

/** Run remote stages in this thread, without a hop: it is a worker that runs the whole arrow. */
export function disableHops(): void {
  hopsAreDisabled = true
}

const hops = new WeakMap<Wait, { readonly zone: AnyZone | AnyFarZone; readonly hop: Hop }>()

/** The measurements of a remote stage; `undefined` for one without a hop. */
export function hopOf(wait: Wait): Hop | undefined {
  return hops.get(wait)?.hop
}

/**
 * The stage that runs `inner` in a zone.
 * @throws {FunctionError} naming the variables that a stage captures.
 * @throws {TransportError} for a value that cannot be transported.
 * @throws {ArrowError} for what another machine cannot run.
 */
export function onWait(zone: AnyZone | AnyFarZone, inner: ArrowNode): Wait {
  if (isFar(zone)) {
    const { key, ...made } = askFar(zone, inner)
    return hopWait(zone, inner, key, made, `far zone ${zone.name}`)
  }
  if (isThisThread(zone)) {
    const start = (input: unknown, context: RunContext): unknown =>
      runNode(inner, input, context.givenSignal, context.fiber)
    return { kind: 'on', start, parts: [zone], inner, shown: () => 'this thread' }
  }
  const { arrow, nodes } = serialize(inner)
  const ask: Ask = (input, signal) => askZone(zone, arrow, input, signal)
  // Hops with limits of their own are not joined.
  return hopWait(zone, inner, isLimited(zone) ? undefined : zone.id, { ask, nodes }, `zone ${zone.id}`)
}

function hopWait(
  zone: AnyZone | AnyFarZone,
  inner: ArrowNode,
  key: string | undefined,
  { ask, nodes }: Pick<Hop, 'ask' | 'nodes'>,
  text: string,
): Wait {
  const hop: Hop = { ask, nodes, hops: 0, totalMs: 0, workerMs: 0 }
  const isHere = (): boolean => !isFar(zone) && (hopsAreDisabled || zones.current.id === zone.id)
  const start = (input: unknown, context: RunContext): unknown =>
    isHere()
      ? runNode(inner, input, context.givenSignal, context.fiber)
      : runElsewhere(hop, input, context.givenSignal)
  const wait: Wait = {
    kind: 'on',
    start,
    parts: [zone],
    inner,
    ...(key === undefined ? {} : { row: { key, join: joinedHops } }),
    shown: () => text,
  }
  hops.set(wait, { zone, hop })
  return wait
}

async function runElsewhere(hop: Hop, input: unknown, signal: AbortSignal | undefined): Promise<unknown> {
  const startMs = performance.now()
  try {
    const reply = await hop.ask(input, signal)
    if (reply.is === 'unknown') throw new Raised(undefined)
    hop.workerMs += reply.ms
    if (reply.measured !== undefined) addMeasures(hop.nodes, reply.measured)
    // A single synchronous stage is not interpreted, so not measured: its time is that of the run.
    else if (hop.nodes.length === 1) addMeasures(hop.nodes, [[0, 1, reply.ms]])
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

async function askZone(
  zone: AnyZone,
  arrow: SerializedArrow,
  input: unknown,
  signal: AbortSignal | undefined,
): Promise<Reply> {
  const options = signal === undefined ? {} : { signal }
  // A stream is read once, so the first task that receives it must have the arrow.
  const given = isStream(input) ? [arrow.id, input, arrow] : [arrow.id, input]
  const reply = (await zone.execute(WORKER_URL, 'runArrow', given, options)).value as Reply
  if (reply.is !== 'unknown') return reply
  if (await containsStreams(input)) throw lost(input)
  return (await zone.execute(WORKER_URL, 'runArrow', [arrow.id, input, arrow], options)).value as Reply
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
  const { zone } = hops.get(row[0].data as Wait) as { readonly zone: AnyZone | AnyFarZone }
  const inner = row.map((node) => (node.data as Wait).inner as ArrowNode)
  const chain = inner.reduce((one, other) => makeNode(OpCode.chain, one, other, undefined))
  return makeNode(OpCode.wait, null, null, onWait(zone, chain))
}
