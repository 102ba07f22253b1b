/**
 * An arrow as the body of runs: each of its named stages is a step.
 *
 * The stages between are computed again after a crash, as code between steps is. A name inside of another
 * operation, such as a branch or a retry, would be of no step, so it is refused.
 */
import { type ArrowNode, OpCode, partsOf } from '../arrow/internal.ts'
import { type Operation, attempt } from '../fiber/index.ts'
import { wrong } from './errors.ts'
import { isStepName } from './keys.ts'
import { step } from './operations.ts'

interface Stage {
  /** `undefined`: it is no step. */
  readonly name: string | undefined
  readonly node: ArrowNode
}

/** Whether a value is an arrow, which need not be of this copy of the package. */
export const isArrow = (value: unknown): value is ArrowNode =>
  typeof (value as Partial<ArrowNode> | null)?.op === 'number' &&
  typeof (value as ArrowNode).run === 'function'

/** What runs, and the names of its steps. @throws {RunError} `RUN_ARGUMENT` if its stages cannot be steps. */
export function bodyOf(arrow: ArrowNode): {
  readonly body: (input: unknown) => Operation<unknown, unknown>
  readonly stages: readonly string[]
} {
  const stages = stagesOf(arrow)
  const names = stages.flatMap(({ name }) => name ?? [])
  if (names.length === 0)
    throw wrong('durable(): the arrow', 'an arrow with named stages: .named("charge")', 'one without')
  return { body: runOf(stages), stages: names }
}

function runOf(stages: readonly Stage[]): (input: unknown) => Operation<unknown, unknown> {
  return function* (input) {
    let value = input
    for (const { name, node } of stages) {
      const run = (of: unknown, signal?: AbortSignal): unknown => node.run(of as never, signal as never)
      const before = value
      if (name === undefined) value = yield* attempt(async (signal) => run(before, signal))
      else value = yield* step(name, (of: unknown, info) => run(of, info.signal), [before])
    }
    return value
  }
}

function stagesOf(node: ArrowNode): Stage[] {
  return partsOf(node).flatMap((part): Stage[] => {
    const name = part.op === OpCode.named ? part.data : undefined
    const inside = nameInside(part)
    const inner = part.a as ArrowNode
    if (name !== undefined && inside !== undefined && areJoined(inner)) return stagesOf(inner)
    if (name === undefined && inside !== undefined)
      throw wrong(
        'durable(): the named stage',
        'one of those that andThen() joins; name the operation around it instead',
        inside,
      )
    if (name !== undefined && !isStepName(name))
      throw wrong('durable(): the name of a stage', 'a string of 1 to 200 characters without #/()', name)
    return [{ name, node: part }]
  })
}

/** Whether its named stages follow each other. */
function areJoined(node: ArrowNode): boolean {
  return partsOf(node).every((part) => part.op === OpCode.named || nameInside(part) === undefined)
}

/** The name of a stage inside. */
function nameInside(node: ArrowNode): unknown {
  const seen = new Set<unknown>([node])
  // A node that occurs twice is looked at once.
  for (const one of seen) {
    const { op, a, b, data } = one as ArrowNode
    if (op === OpCode.named && one !== node) return data
    const { inner } = Object(data) as { readonly inner?: unknown }
    for (const next of [a, b, inner, data]) if (isArrow(next)) seen.add(next)
  }
  return undefined
}
