/**
 * The calls of Effect's own worker pool: one procedure, for both sides.
 *
 * Effect 4 has its pool as a protocol of its RPC. Payload and value are unchecked, as in the other pools.
 */
import * as Schema from 'effect/Schema'
import { Rpc, RpcGroup } from 'effect/rpc'

export const Calls = RpcGroup.make(
  Rpc.make('call', {
    payload: { name: Schema.String, input: Schema.Unknown },
    success: Schema.Unknown,
  }),
)
