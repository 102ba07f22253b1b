/**
 * A result that contains streams, in the worker: they are sent while the task goes on.
 *
 * The task's caller is notified of a control link, over which the value follows; it opens a link for each
 * stream, and returns their other ends. The task ends when each stream has, so a worker that dies, a deadline
 * and a closing zone end the streams as they end any task.
 */
import { onAbort } from '../../../base/index.ts'
import { TransportError } from '../../../transport/internal.ts'
import type { Task } from '../../ground/task.ts'
import { messagesMaxOf } from '../end.ts'
import { Kind, type Link, type StreamedResult, linkOf, localLinks, numberedLink } from '../link.ts'
import type { Ahead } from '../../call/call-options.ts'
import { Outgoing } from './ends.ts'
import { type Found, streamsIn } from './found.ts'
import { depthOf, waitsOf } from '../waits.ts'

/** Messages of a control link. */
const CONTROL_MESSAGES = 4

/** What runs when the streams of a task's result have ended. */
const cleanUps = new WeakMap<Task, () => Promise<void>>()

/** The streams that a task has received may be read until those of its result have ended. */
export function afterStreams(task: Task, cleanUp: () => Promise<void>): void {
  cleanUps.set(task, cleanUp)
}

export interface SentSettings {
  readonly ahead: Ahead
  readonly graceMs: number
  /** What only this process has does not travel: it is one of the zone's. */
  readonly isOutside: boolean
}

/**
 * Sends the streams of `value`; resolves when all have ended.
 * @param refusal Why the value cannot be sent as it is.
 * @param notify Notifies the caller; returns 0 when its thread has ended.
 * @throws `refusal` when the value contains no stream.
 * @throws What a stream fails with, or the reason of the task's signal.
 */
export async function sendStreams(
  task: Task,
  value: unknown,
  refusal: unknown,
  { ahead, graceMs, isOutside }: SentSettings,
  notify: (to: number, from: number) => number,
): Promise<void> {
  const found = streamsIn(value)
  if (found === undefined) throw refusal
  const [control, to, from] = numberedLink(CONTROL_MESSAGES, isOutside)
  let outgoing: readonly Outgoing[] = []
  const { signal } = task
  const waits = waitsOf(task)
  const stop = (): void => {
    control.close()
    for (const each of outgoing) each.stop()
  }
  try {
    sendResult(control, found, { ahead, graceMs, depth: depthOf(task) })
    onAbort(signal, stop)
    if (signal.aborted || notify(to, from) === 0) stop()
    // The caller's thread may be blocked, as by a broadcast that waits for this worker.
    waits.begin()
    const links = await openedLinks(control, messagesMaxOf(ahead))
    waits.end()
    outgoing = found.sources.map(
      (source, index) => new Outgoing(links?.[index] ?? nowhere(), ahead, source, waits),
    )
    if (links === undefined || signal.aborted) stop()
    await Promise.all(outgoing.map((each) => each.begin()))
    signal.throwIfAborted()
    const failed = outgoing.find(({ failure }) => failure !== undefined)
    if (failed?.failure !== undefined) throw failed.failure.why
  } finally {
    signal.removeEventListener('abort', stop)
    control.close()
    for (const each of outgoing) each.close()
    waits.over()
    await cleanUps.get(task)?.()
  }
}

/** The task's ends of the links that the caller has opened; `undefined` when it has left. */
async function openedLinks(control: Link, messagesMax: number): Promise<readonly Link[] | undefined> {
  const first = control.received()[Symbol.asyncIterator]().next()
  const links = first.then(({ done, value: message }) =>
    done === true || message[0] !== Kind.opened
      ? undefined
      : message[1].map((there) => linkOf(there, messagesMax)),
  )
  // One that has closed them since has left as well.
  return await links.catch(() => undefined)
}

/** The link of a source that nobody reads: it is closed without being read. */
function nowhere(): Link {
  const [link] = localLinks(1, false)
  link.close()
  return link
}

/** @throws {TransportError} for a part that is not a stream and cannot travel, by its path in the value. */
function sendResult(
  control: Link,
  { value, positions }: Found,
  rest: Omit<StreamedResult, 'value' | 'positions'>,
): void {
  try {
    control.send([Kind.result, { value, positions, ...rest }])
  } catch (error) {
    if (!(error instanceof TransportError)) throw error
    const facts = error.facts as { readonly path?: string }
    const path = facts.path?.replace(/^value\[1\]\.value/, 'value')
    throw path === undefined
      ? error
      : new TransportError(error.code, { ...facts, path }, { cause: error.cause })
  }
}
