/**
 * The worker side of Effect's own pool.
 *
 * Runs only inside a worker thread.
 */
import { NodeRuntime, NodeWorkerRunner } from '@effect/platform-node'
import * as Effect from 'effect/Effect'
import * as Layer from 'effect/Layer'
import { RpcServer } from 'effect/rpc'
import { Calls } from './effect-calls.ts'
import { WORK, type Work } from './work.ts'

const Handlers = Calls.toLayer({
  call: ({ name, input }: { readonly name: keyof Work; readonly input: unknown }) =>
    Effect.sync(() => WORK[name](input as never) ?? null),
})
const protocol = Layer.provide(RpcServer.layerProtocolWorkerRunner, NodeWorkerRunner.layer)
const served = Layer.provide(Layer.provide(RpcServer.layer(Calls), Handlers), protocol)
NodeRuntime.runMain(Layer.launch(served))
