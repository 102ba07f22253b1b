/**
 * The far side of a hop: what a worker does with a plan's number and an input.
 *
 * A plan is rebuilt once per thread and kept; it is fused and compiled here as any arrow is.
 */
import { currentTask } from '../zone/index.ts'
import { Raised, Stopped } from './failure.ts'
import { runNode } from './machine.ts'
import type { Node } from './node.ts'
import { onWait, type Reply } from './place.ts'
import { fromPlain, type Plain } from './travel.ts'

/** Plans kept per thread; of more the one that came first is asked for again. */
const PLANS_MAX = 4096

const known = new Map<string, Node | Promise<Node>>()

/**
 * Run a plan that this thread knows, or that comes along.
 * @throws whatever a stage threw that is no failure.
 */
export async function runPlan(id: string, input: unknown, plain?: Plain): Promise<Reply> {
  let node = known.get(id)
  if (node === undefined && plain === undefined) return { is: 'unknown' }
  if (node === undefined) {
    node = fromPlain(plain as Plain, onWait as never)
    remember(id, node)
  }
  if (node instanceof Promise) node = await node
  const signal = currentTask()?.signal
  const startMs = performance.now()
  try {
    const value = await runNode(node, input, signal)
    return { is: 'value', value, ms: performance.now() - startMs }
  } catch (thrown) {
    if (thrown instanceof Raised)
      return { is: 'failure', error: thrown.error, ms: performance.now() - startMs }
    throw thrown instanceof Stopped ? thrown.reason : thrown
  }
}

function remember(id: string, node: Promise<Node>): void {
  if (known.size >= PLANS_MAX) known.delete(known.keys().next().value as string)
  known.set(id, node)
  node.then(
    (made) => known.set(id, made),
    () => known.delete(id),
  )
}
