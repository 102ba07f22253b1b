/**
 * How a node runs from inside another one: by its step, by its fused plan, or in an interpreter.
 *
 * Decides which runs are measured.
 */
import { type Fiber } from '../../fiber/index.ts'
import { runningFiber } from '../../fiber/internal.ts'
import { ASYNC, BIG, DYNAMIC, type ArrowNode } from '../build/node.ts'
import { Interpreter } from './interpreter.ts'
import { profileOf } from './profile.ts'

/**
 * The first and every Nth interpreted run is measured, later ones less often: a measured run of an arrow of
 * hundreds of quick stages takes ten times as long as another.
 */
const [MEASURE_EACH, MEASURE_EACH_LATER] = [64, 1024]
const LATER_RUNS = 4096

/**
 * Run a node. Returns its value, or a promise when it waits; pass either to `valueOf`.
 * @param signal Interrupts the run.
 * @param fiber The fiber that the run belongs to. Default: the one whose code runs now.
 * @param isPlain The promise may adopt a value that has a `then`: nobody passes it to `valueOf`.
 * @throws failures wrapped in `Raised`; a promise rejects with the same.
 */
export function runNode(
  node: ArrowNode,
  input: unknown,
  signal: AbortSignal | undefined,
  fiber?: Fiber | undefined,
  isPlain = false,
): unknown {
  if ((node.flags & (ASYNC | DYNAMIC | BIG)) === 0) return node.step(input as never)
  const profile = profileOf(node)
  const measured = profile.runs % (profile.runs < LATER_RUNS ? MEASURE_EACH : MEASURE_EACH_LATER) === 0
  profile.runs += 1
  // Without a interpreter around it the engine has room to compile what it calls together with it.
  if (profile.whole !== undefined && !measured && signal === undefined) return profile.whole(input)
  return new Interpreter(
    node,
    input,
    signal,
    fiber ?? runningFiber(),
    measured ? profile : undefined,
    isPlain,
  ).start()
}

/** Run a small synchronous node once, measuring its stages. */
export function measuredStep(node: ArrowNode, input: unknown): unknown {
  return new Interpreter(node, input, undefined, undefined, profileOf(node), true).start()
}
