/**
 * The worker's side of `fork(generator, { on: zone })`: loaded by its URL, in the worker.
 *
 * The body runs there as a fiber of that thread. Its exit travels back as a value, so that a failure is still
 * a failure on the other side.
 */
import { currentTask } from '../../zone/index.ts'
import type { Exit } from '../core/exit.ts'
import { fork } from '../core/fork.ts'

/** Run `body` with `args` as a fiber; interrupted when the caller cancels the task. */
export async function runBody(
  body: (...args: unknown[]) => unknown,
  args: readonly unknown[],
): Promise<Exit<unknown, unknown>> {
  const fiber = fork(() => body(...args))
  const signal = currentTask()?.signal
  const interrupt = (): void => void fiber.interrupt(signal?.reason)
  if (signal?.aborted === true) interrupt()
  signal?.addEventListener('abort', interrupt)
  return fiber.await()
}
