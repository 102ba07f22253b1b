/**
 * What a client can change: the actions that the process allows.
 * Its main thread performs them, since what they are about is there; `retry` the thread that has the fleet.
 */
import type { MessagePort } from 'node:worker_threads'
import { isPlainObject } from '../../base/index.ts'
import { ObserveError, type SentError, receivedError } from '../errors.ts'
import type { Method } from '../protocol.ts'
import { jobOf } from '../figures/fleets.ts'

/** The start data of the thread. */
export interface ObserverStart {
  readonly path: string
  readonly name: string
  readonly parent: number | undefined
  readonly version: string
  /** Names of what the main thread does when it is asked. */
  readonly actions: readonly string[]
  /** Whether `retry` is among them, and not an action of the program. */
  readonly retries: boolean
  /** Those that the main thread was given, those that threads are connected to, or none. */
  readonly fleets: 'given' | 'connected' | 'none'
}

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

export function controlOf(port: MessagePort, start: ObserverStart): Actions {
  const allowed = start.actions
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
      if (action !== 'retry' || !start.retries) return asked(action, params)
      const job = jobOf(params)
      return (await import('./snapshot.ts')).retried(start, ...job)
    },
  }
}
