/**
 * The far side of a hop: what a worker does with a plan's number and an input.
 *
 * A plan is rebuilt once per thread and kept; it is fused and compiled here as any arrow is.
 */
import { currentTask } from '../../zone/index.ts'
import { Broken, Raised, Stopped, exitOf } from '../build/failure.ts'
import { valueOf } from '../run/interpreter.ts'
import type { Profile } from '../run/profile.ts'
import { runNode } from '../run/run-node.ts'
import type { Node } from '../build/node.ts'
import { onWait, type Measured, type Reply } from './hop.ts'
import { deserialize, storedPlan, type SerializedArrow } from './serialize.ts'

/** Plans kept per thread; of more the one that came first is read again. */
const PLANS_MAX = 4096

/** A plan that this thread has rebuilt. */
interface Known {
  readonly whole: Node
  readonly nodes: readonly Node[]
  /** Measured runs that the caller was told of. */
  toldRuns: number
}

const known = new Map<string, Known | Promise<Known>>()

/**
 * Run a plan that this thread knows, that is stored, or that comes along.
 * @throws whatever a stage threw that is no failure.
 */
export async function runArrow(id: string, input: unknown, plain?: SerializedArrow): Promise<Reply> {
  let found = known.get(id)
  if (found === undefined) {
    const plan = plain ?? storedPlan(id)
    if (plan === undefined) return { is: 'unknown' }
    found = deserialize(plan, onWait as never).then(knownOf)
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

/** What was measured since the last time; most runs measure nothing. */
function news(found: Known): { readonly measured?: Measured } {
  const plan = found.whole.profile as Profile | undefined
  if (plan === undefined || plan.measuredRuns === found.toldRuns) return {}
  found.toldRuns = plan.measuredRuns
  const { measures } = plan
  const measured = found.nodes.flatMap((node, index) => {
    const measure = measures.get(node)
    return measure === undefined ? [] : [[index, measure.calls, measure.ms] as const]
  })
  plan.measures = new WeakMap()
  return { measured }
}

function knownOf(nodes: readonly Node[]): Known {
  return { whole: nodes.at(-1) as Node, nodes, toldRuns: 0 }
}

function remember(id: string, found: Promise<Known>): void {
  if (known.size >= PLANS_MAX) known.delete(known.keys().next().value as string)
  known.set(id, found)
  found.then(
    (made) => known.set(id, made),
    () => known.delete(id),
  )
}
