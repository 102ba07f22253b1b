/**
 * The workers of a zone whose layer has an end, for zones.test.ts.
 *
 * The layer counts its end in memory that a task has passed on, since a layer has no arguments.
 */
import * as Effect from 'effect/Effect'
import * as Layer from 'effect/Layer'
import * as ManagedRuntime from 'effect/ManagedRuntime'

let ends: Int32Array | undefined

const Resource = Layer.effectDiscard(
  Effect.acquireRelease(Effect.void, () => Effect.sync(() => ends && Atomics.add(ends, 0, 1))),
)

export async function setup(): Promise<ManagedRuntime.ManagedRuntime<never, never>> {
  const runtime = ManagedRuntime.make(Resource)
  await runtime.context()
  return runtime
}

export const holds = (memory: Int32Array): Effect.Effect<void> => Effect.sync(() => void (ends = memory))
