/**
 * What a call with streams among its arguments runs in the worker: the function, with them in position.
 *
 * Loaded there as a module. When the function has ended, what it has not read of its streams is left, unless
 * its result contains streams: then they are left when those have ended.
 */
import { assert, onAbort } from '../../../base/index.ts'
import { functionByNumber } from '../../../transport/internal.ts'
import { type Task, currentTask } from '../../ground/task.ts'
import { traceAbout } from '../../context/context.ts'
import { messagesMaxOf } from '../end.ts'
import { linkOf } from '../link.ts'
import type { Ahead } from '../../call/call-options.ts'
import { waitsOf } from '../waits.ts'
import { arrived } from './arrived.ts'
import { Incoming } from './ends.ts'
import { type Position, restored, streamsIn } from './found.ts'
import { afterStreams } from './sent.ts'

type AnyFunction = (this: Task, ...args: unknown[]) => unknown

/** The error of a task that has thrown the error of a stream's source on: its caller has the original. */
export interface SourceFailure {
  /** Which one of the streams. */
  readonly corespunSource: number
}

/** Calls the function of that number with `args` and the streams that belong to `positions`. */
export async function callWithStreams(
  fn: number,
  args: unknown[],
  positions: readonly Position[],
  links: readonly unknown[],
  ahead: Ahead,
): Promise<unknown> {
  const task = currentTask()
  assert(task !== undefined, 'it runs as a task')
  const waits = waitsOf(task)
  const messagesMax = messagesMaxOf(ahead)
  const incoming = links.map((there) => new Incoming(linkOf(there, messagesMax), ahead, undefined, waits))
  const streams = incoming.map((each, index) => arrived(each, positions[index]))
  const { signal } = task
  const aborted = (): void => {
    for (const each of incoming) each.drop({ why: signal.reason as unknown })
  }
  if (signal.aborted) aborted()
  else onAbort(signal, aborted)
  const leave = async (): Promise<void> => {
    signal.removeEventListener('abort', aborted)
    // What the function has started may still read.
    for (const each of incoming) each.drop()
    waits.over()
    await Promise.all(incoming.map((each) => each.over(undefined)))
  }
  let isStreamed = false
  try {
    const called = (await functionByNumber(fn)) as AnyFunction
    traceAbout(called.name)
    const value = await called.apply(task, restored(args, positions, streams) as unknown[])
    isStreamed = typeof value === 'object' && value !== null && streamsIn(value) !== undefined
    if (isStreamed) afterStreams(task, leave)
    return value
  } catch (error) {
    const index = incoming.findIndex((each) => each.isSourceError(error))
    if (index < 0) throw error
    const failure: SourceFailure = { corespunSource: index }
    throw Object.assign(new Error('the source of a stream has failed'), failure)
  } finally {
    if (!isStreamed) await leave()
  }
}
