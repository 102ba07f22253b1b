/**
 * What `stream` runs in a worker: the function, between the items it receives and those it returns.
 *
 * Loaded there as a module. The task ends when the last item was sent and the function's iterator is closed.
 * A caller that needs no more, or a cancelled call, aborts the task's signal, ends the items that the
 * function receives with the reason, and closes its iterator.
 */
import { assert, onAbort, turn } from '../../base/index.ts'
import { type Task, currentTask } from '../ground/task.ts'
import { traceAbout } from '../context/context.ts'
import { End, messagesMaxOf } from './end.ts'
import { Kind, isLocal, linkOf } from './link.ts'
import { type Ahead, checkSource } from '../call/call-options.ts'
import { waitsOf } from './waits.ts'

/** What the task returns when the function throws the source's error on: the caller has the original. */
export const SOURCE_FAILED = 1

type AnyFunction = (this: Task, items: AsyncIterable<unknown>) => unknown

/** Runs `fn`; `there` is the task's end of the link. */
export async function streamTask(
  fn: AnyFunction,
  there: unknown,
  ahead: Ahead,
): Promise<typeof SOURCE_FAILED | undefined> {
  const task = currentTask()
  assert(task !== undefined, 'it runs as a task')
  traceAbout(fn.name)
  const link = linkOf(there, messagesMaxOf(ahead))
  let hasLeft = false
  let isOver = false
  const leaves = (): void => void link.send([Kind.left])
  const left = async (): Promise<void> => {
    // An item that came just before may still make the function fail: its reader has not requested that.
    await turn()
    if (isOver) return
    hasLeft = true
    link.send([Kind.noticed])
    task.abandon(new DOMException('The reader of the stream needs no more', 'AbortError'))
  }
  const waits = isLocal(there) ? undefined : waitsOf(task)
  const end = new End(link, ahead, { leaves, left: () => void left() }, waits)
  const { sender, receiver } = end
  const { signal } = task
  const aborted = (): void => {
    receiver.drop({ why: signal.reason as unknown })
    // Its outcome is that of the second call, below.
    void sender.stop().catch(() => {})
  }
  if (signal.aborted) aborted()
  else onAbort(signal, aborted)
  const listening = end.listen().catch((error: unknown) => task.abandon(error))
  try {
    await run(task, fn, end)
  } catch (error) {
    if (receiver.isSourceError(error)) return SOURCE_FAILED
    if (!hasLeft || error !== signal.reason) throw error
  } finally {
    isOver = true
    // What the function has started may still read.
    receiver.drop()
    waits?.over()
    link.close()
    await listening
  }
  if (signal.aborted && !hasLeft) throw signal.reason
  return undefined
}

async function run(task: Task, fn: AnyFunction, { sender, receiver }: End): Promise<void> {
  try {
    const out: unknown = await fn.call(task, receiver)
    checkSource('zone.stream(): the value of the function', out)
    await sender.send(out)
  } catch (error) {
    // An iterator that is still open was closed by its error; of an item that cannot travel it is not.
    await sender.stop().catch(() => {})
    throw error
  }
  await sender.stop()
}
