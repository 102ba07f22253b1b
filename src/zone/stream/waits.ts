/**
 * Tasks whose streams wait, and the depth of those that read them: so that none waits for ever.
 *
 * A task waits while it may send no further item, or reads an item that has not come. What ends that may have
 * to run on its worker: the next stage, what feeds the stream, what its reader calls. So the wait counts as
 * one for a call does, once for each task, and the worker may begin another task. Beyond the zone's
 * `waitingPerWorkerMax`, and on a worker that is being replaced, only deeper tasks begin: so a task that is
 * called with a stream of another one is deeper than that, as is one whose items another has begun to read.
 * Orders that depths do not show end after 100 ms in which no stream of the worker has moved: then one more
 * task may begin there.
 */
import { thisBridge } from '../../bridge/index.ts'
import { DEPTH_MASK, Given, native } from '../../native/index.ts'
import type { Task } from '../ground/task.ts'
import { here } from '../ground/current.ts'

/** Those of this thread before its modules are loaded, which may replace them. */
const { setInterval, clearInterval } = globalThis

/** After so long without an item for any task of this worker one more may begin. */
const STALL_MS = 100

/** Tasks of this thread whose streams wait. */
let waiting = 0
/** Since it was last looked at, a wait has begun or ended. */
let hasMoved = false
let watch: NodeJS.Timeout | undefined

function note(change: 1 | -1): void {
  watch ??= setInterval(lookForStall, STALL_MS).unref()
  waiting += change
  native.streamWaits(change === 1 ? 1 : 0)
}

function lookForStall(): void {
  if (waiting === 0) {
    clearInterval(watch)
    watch = undefined
  } else if (!hasMoved) native.streamsStalled()
  hasMoved = false
}

export class StreamWaits {
  #count = 0
  #isOver = false

  begin(): void {
    hasMoved = true
    if (!this.#isOver && this.#count++ === 0) note(1)
  }

  end(): void {
    hasMoved = true
    if (!this.#isOver && --this.#count === 0) note(-1)
  }

  /** What has come ends no wait, as its reader has requested more. */
  moved(): void {
    hasMoved = true
  }

  /** The task ends: nobody may wait for what still waits. */
  over(): void {
    if (this.#isOver) return
    this.#isOver = true
    if (this.#count > 0) note(-1)
    native.streamsOver()
  }
}

/** Shared by all copies of the package: one of them may run a stream of the task, and another end it. */
const waits = here.streamWaits as WeakMap<Task, StreamWaits>

/** The waits of a task of this worker. */
export function waitsOf(task: Task): StreamWaits {
  let known = waits.get(task)
  if (known === undefined) {
    thisBridge()
    waits.set(task, (known = new StreamWaits()))
  }
  return known
}

/** A task has ended whose function may go on. */
export function endWaits(task: Task): void {
  waitsOf(task).over()
}

/** By stream: the least depth of a task that reads it, or, before it has begun, of its own. */
const depths = new WeakMap<object, number>()

/** The depth of a task, without the chain. */
export function depthOf({ depth = 0 }: Task): number {
  return depth & DEPTH_MASK
}

/** By stream that has not begun: its source, which may be one. */
const sourcesOf = new WeakMap<object, object>()

export function readsFrom(stream: object, source: object): void {
  sourcesOf.set(stream, source)
}

/** The least depth of a task that reads `stream`, or, before it has begun, of its own. */
export function leastDepth(stream: object): number {
  let least = 0
  for (let at: object | undefined = stream; at !== undefined; at = sourcesOf.get(at))
    least = Math.max(least, depths.get(at) ?? 0)
  return least
}

export function deepen(stream: object, least: number): void {
  if (least > leastDepth(stream)) depths.set(stream, least)
}

/**
 * Makes a call that reads `sources`, by `send`: deeper than the tasks that have made them, and at least
 * `least`. Those that have not begun will be deeper than it. Returns its depth, and what `send` returns.
 * @throws What `send` throws.
 */
export function sendDeeper<Sent>(
  sources: readonly object[],
  least: number,
  send: () => Sent,
): readonly [depth: number, sent: Sent] {
  const bridge = thisBridge()
  const { given, notesDepth, depthMin } = bridge
  let depth = sources.reduce((most, source) => Math.max(most, leastDepth(source)), least)
  let sent: Sent
  bridge.depthMin = depth
  bridge.notesDepth = true
  // It stays where the call runs in this thread.
  given[Given.depth] = depth
  try {
    sent = send()
    depth = given[Given.depth] & DEPTH_MASK
  } finally {
    bridge.depthMin = depthMin
    bridge.notesDepth = notesDepth
    if (!notesDepth) given[Given.depth] = 0
  }
  for (const source of sources) deepen(source, depth + 1)
  return [depth, sent]
}
