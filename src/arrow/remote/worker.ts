/**
 * The worker's side of a hop: run a serialized arrow on an input.
 *
 * Each thread deserializes an arrow once and keeps it; there it is fused and compiled like any other.
 */
import { currentTask } from '../../zone/index.ts'
import { Broken, Raised, Stopped, exitOf } from '../build/failure.ts'
import { valueOf } from '../run/interpreter.ts'
import type { Profile } from '../run/profile.ts'
import { runNode } from '../run/run-node.ts'
import type { ArrowNode } from '../build/node.ts'
import { onWait, type Measured, type Reply } from './hop.ts'
import { deserialize, storedArrow, type SerializedArrow } from './serialize.ts'

/** Arrows kept per thread; the oldest is dropped, and read again when it is needed. */
const KEPT_MAX = 4096

interface Known {
  readonly whole: ArrowNode
  readonly nodes: readonly ArrowNode[]
  /** Measured runs whose figures were sent. */
  reportedRuns: number
}

const known = new Map<string, Known | Promise<Known>>()

/**
 * Run an arrow that this thread has kept, that is in the store, or that comes with the call.
 * @throws the defect of a stage.
 */
export async function runArrow(id: string, input: unknown, sent?: SerializedArrow): Promise<Reply> {
  let found = known.get(id)
  if (found === undefined) {
    const arrow = sent ?? storedArrow(id)
    if (arrow === undefined) return { is: 'unknown' }
    found = deserialize(arrow, onWait as never).then(knownOf)
    remember(id, found)
  }
  if (found instanceof Promise) found = await found
  const signal = currentTask()?.signal
  const startMs = performance.now()
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

function knownOf(nodes: readonly ArrowNode[]): Known {
  return { whole: nodes.at(-1) as ArrowNode, nodes, reportedRuns: 0 }
}

function remember(id: string, found: Promise<Known>): void {
  if (known.size >= KEPT_MAX) known.delete(known.keys().next().value as string)
  known.set(id, found)
  found.then(
    (made) => known.set(id, made),
    () => known.delete(id),
  )
}
