/**
 * What a client can change: the actions that the process allows.
 * Its main thread performs them, since what they are about is there.
 */
import type { MessagePort } from 'node:worker_threads'
import { isPlainObject } from '../../base/index.ts'
import { ObserveError, type SentError, receivedError } from '../errors.ts'
import type { Method } from '../protocol.ts'

/** A request to the main thread. */
export interface ControlRequest {
  readonly id: number
  /** `undefined`: look at the fleets. */
  readonly action: string | undefined
  readonly params: Readonly<Record<string, unknown>>
}

export type ControlReply = { readonly id: number } & (
  | { readonly result: unknown }
  | { readonly error: SentError }
)

export interface Actions {
  readonly run: Method
  /** What the main thread finds in its fleets. */
  look(): Promise<unknown>
}

/** @param allowed The names of all actions. */
export function controlOf(port: MessagePort, allowed: readonly string[]): Actions {
  const waiting = new Map<number, (reply: ControlReply) => void>()
  let last = 0
  port.on('message', (reply: ControlReply) => {
    waiting.get(reply.id)?.(reply)
    waiting.delete(reply.id)
  })
  const asked = async (
    action: string | undefined,
    params: Readonly<Record<string, unknown>> = {},
  ): Promise<unknown> => {
    const id = ++last
    const reply = await new Promise<ControlReply>((resolve) => {
      waiting.set(id, resolve)
      port.postMessage({ id, action, params } satisfies ControlRequest)
    })
    if ('error' in reply) throw receivedError(reply.error, action ?? 'reading the fleets')
    return reply.result ?? null
  }
  return {
    look: () => asked(undefined),
    run: async ({ params: { action, params = {} } }) => {
      if (typeof action !== 'string' || !allowed.includes(action))
        throw new ObserveError('OBSERVE_FORBIDDEN', { action: String(action).slice(0, 100), allowed })
      if (!isPlainObject(params))
        throw new ObserveError('OBSERVE_REQUEST', { problem: 'the params of the action are not an object' })
      return asked(action, params)
    },
  }
}
