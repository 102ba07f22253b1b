/**
 * The arrows of this thread that run often, as long as they exist: those that were compiled for it.
 *
 * An arrow is entered once, when its code or its fused plan is made, which takes a thousand times as long.
 */
import type { ArrowNode } from '../build/node.ts'

/** Entries beyond which those of collected arrows are removed; then as many again. */
const PRUNED_MIN = 256
const HOT_MAX = 4096

let hot: WeakRef<ArrowNode>[] = []
let prunedAt = PRUNED_MIN

/** An arrow was compiled. */
export function noteHot(node: ArrowNode): void {
  if (hot.length >= prunedAt) {
    hot = hot.filter((each) => each.deref() !== undefined)
    prunedAt = Math.max(PRUNED_MIN, 2 * hot.length)
  }
  if (hot.length < HOT_MAX) hot.push(new WeakRef(node))
}

export function hotArrows(): ArrowNode[] {
  return hot.flatMap((each) => each.deref() ?? [])
}
