/**
 * The samples of a thread with their stacks and labels, as both formats of a profile need them.
 *
 * A sample has the label that its thread had at that moment. A garbage collection without one has the last
 * one: it removes what that has left.
 */
import type { CallFrame, ThreadProfile } from '../../observe/internal.ts'

/** Time that a thread spent in one stack under one label. */
export interface Sample {
  /** The innermost frame: a node of `frames`. */
  readonly node: number
  readonly us: number
  readonly label: string
}

/** What one thread did, in the order of time. */
export interface Lane {
  readonly name: string
  /** By node: its frame, and the node that called it. */
  readonly frames: ReadonlyMap<number, { readonly frame: CallFrame; readonly parent: number | undefined }>
  readonly samples: readonly Sample[]
}

const IDLE = '(idle)'
const COLLECTOR = '(garbage collector)'
const ROOT = '(root)'

/** `undefined` for a thread without samples. */
export function laneOf({ thread, name, cpu, labels, first }: ThreadProfile): Lane | undefined {
  if (cpu === undefined) return undefined
  const parents = new Map<number, number>()
  for (const { id, children = [] } of cpu.nodes) for (const child of children) parents.set(child, id)
  const frames = new Map(
    cpu.nodes.map(({ id, callFrame }) => [id, { frame: callFrame, parent: parents.get(id) }]),
  )
  const { samples = [], timeDeltas = [] } = cpu
  let at = 0
  let label = first
  let last = first
  let now = cpu.startTime
  // A sample lasts until the next one.
  const found = samples.map((node, index): Sample => {
    now += timeDeltas[index] ?? 0
    for (; labels !== undefined && at < labels.times.length && labels.times[at] <= now; at++)
      label = labels.names[labels.labels[at]]
    const end = index + 1 < samples.length ? (timeDeltas[index + 1] ?? 0) : cpu.endTime - now
    const name = nameOf(frames, node)
    if (label !== '') last = label
    const own = name === IDLE ? '' : name === COLLECTOR ? last : label
    return { node, us: Math.max(0, end), label: own }
  })
  return { name: `thread ${thread}, ${name}`, frames, samples: found }
}

/** The frames of a stack, outermost first: without the root. */
export function stackOf({ frames }: Lane, node: number): CallFrame[] {
  const stack: CallFrame[] = []
  for (let id: number | undefined = node; id !== undefined;) {
    const found = frames.get(id)
    if (found === undefined || found.frame.functionName === ROOT) break
    stack.unshift(found.frame)
    id = found.parent
  }
  return stack
}

/** CPU time of all threads, and the share of each label, the largest first; `''` is without one. */
export function sharesOf(lanes: readonly Lane[]): { busyMs: number; shares: readonly [string, number][] } {
  const byLabel = new Map<string, number>()
  let total = 0
  for (const { frames, samples } of lanes)
    for (const { node, us, label } of samples) {
      if (nameOf(frames, node) === IDLE) continue
      total += us
      byLabel.set(label, (byLabel.get(label) ?? 0) + us)
    }
  const shares = [...byLabel].map(([label, us]): [string, number] => [label, us / (total || 1)])
  return { busyMs: total / 1000, shares: shares.sort(([, a], [, b]) => b - a) }
}

function nameOf(frames: Lane['frames'], node: number): string | undefined {
  return frames.get(node)?.frame.functionName
}
