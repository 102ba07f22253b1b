/**
 * The worker's side of a hop: run a serialized arrow on an input.
 *
 * Each thread deserializes an arrow once and keeps it; there it is fused and compiled like any other.
 */
import { currentTask } from '../../zone/index.ts'
import { here } from '../../zone/internal.ts'
import { Broken, Raised, Stopped, exitOf } from '../build/failure.ts'
import { valueOf } from '../run/interpreter.ts'
import type { Profile } from '../run/profile.ts'
import { runNode } from '../run/run-node.ts'
import type { ArrowNode } from '../build/node.ts'
import { functionByNumber } from '../../transport/internal.ts'
import { onWait } from './hop.ts'
import type { Measured, Reply } from './reply.ts'
import { titleOf } from './title.ts'
import { deserialize, storedArrow, type Making, type NodeData, type SerializedArrow } from './serialize.ts'

/** Arrows kept per thread; the oldest is dropped, and read again when it is needed. */
const KEPT_MAX = 4096

export interface Known {
  readonly whole: ArrowNode
  readonly nodes: readonly ArrowNode[]
  /** Measured runs whose figures were sent. */
  reportedRuns: number
  /** What a profile calls it, once it was asked for. */
  title: string | undefined
}

/** Arrows by their ids. */
export type Kept = Map<string, Known | Promise<Known>>

const known: Kept = new Map()
const MAKING: Making = { functionOf: functionByNumber, hopTo: onWait }

/**
 * Run an arrow that this thread has kept, that is in the store, or that comes with the call.
 * @throws the defect of a stage.
 */
export async function runArrow(id: string, input: unknown, sent?: SerializedArrow): Promise<Reply> {
  let found = known.get(id)
  if (found === undefined) {
    const arrow = sent ?? storedArrow(id)
    if (arrow === undefined) return { is: 'unknown' }
    found = made(arrow.nodes, MAKING)
    keep(known, KEPT_MAX, id, found)
  }
  return runMade(found instanceof Promise ? await found : found, input)
}

/** An arrow of this thread. @throws what `deserialize` throws. */
export async function made(data: NodeData, making: Making): Promise<Known> {
  const nodes = await deserialize(data, making)
  return { whole: nodes.at(-1) as ArrowNode, nodes, reportedRuns: 0, title: undefined }
}

/** @throws what has ended the task, and what the interpreter cannot handle. */
export async function runMade(found: Known, input: unknown): Promise<Reply> {
  const signal = currentTask()?.signal
  const startMs = performance.now()
  here.labels?.about(`stage ${(found.title ??= titleOf(found.whole))}`)
  try {
    const value = valueOf(await runNode(found.whole, input, signal))
    return { is: 'value', value, ms: performance.now() - startMs, ...news(found) }
  } catch (thrown) {
    const isCancelled = signal?.aborted === true
    if (thrown instanceof Raised || thrown instanceof Broken || (thrown instanceof Stopped && !isCancelled))
      return { is: 'failed', exit: exitOf(thrown), ms: performance.now() - startMs, ...news(found) }
    throw thrown instanceof Stopped ? thrown.reason : thrown
  }
}

/** What was measured since the last reply; most runs measure nothing. */
function news(found: Known): { readonly measured?: Measured } {
  const profile = found.whole.profile as Profile | undefined
  if (profile === undefined || profile.measuredRuns === found.reportedRuns) return {}
  found.reportedRuns = profile.measuredRuns
  const { measures } = profile
  const measured = found.nodes.flatMap((node, index) => {
    const measure = measures.get(node)
    return measure === undefined ? [] : [[index, measure.calls, measure.ms] as const]
  })
  profile.measures = new WeakMap()
  return { measured }
}

/** Keep what is made; the oldest is dropped, and what could not be made is made again. */
export function keep(kept: Kept, keptMax: number, id: string, found: Promise<Known>): void {
  if (kept.size >= keptMax) kept.delete(kept.keys().next().value as string)
  kept.set(id, found)
  found.then(
    (whole) => kept.set(id, whole),
    () => kept.delete(id),
  )
}
