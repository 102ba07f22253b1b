/**
 * What a host runs for each message of a workflow: a request to this process's own server, repeated until the
 * workflow has no more to do.
 *
 * The message is a durable job, so after a crash it is delivered again, and the workflow is replayed.
 */
import { setTimeout } from 'node:timers/promises'
import { getWorkflowPort } from '@workflow/utils/get-port'

const AGAIN_MS = 1000
/** Longest time of a timer; one that waits for longer is asked again. */
const WAIT_S_MAX = 2_000_000

/** @param headers The name of the queue, and the id of the message, which stays the same. */
export async function deliver(path: string, headers: Record<string, string>, body: string): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    const port =
      process.env['PORT'] ?? (await getWorkflowPort({ endpoint: '/.well-known/workflow/v1/flow?__health' }))
    const response = await fetch(`http://localhost:${port}/.well-known/workflow/v1/${path}`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json', 'x-vqs-message-attempt': String(attempt) },
      body,
    }).catch(() => undefined)
    const answer = (await response?.json().catch(() => undefined)) as { timeoutSeconds?: number } | undefined
    if (response?.ok && answer?.timeoutSeconds === undefined) return
    const waitMs = response?.ok ? Math.min(answer!.timeoutSeconds!, WAIT_S_MAX) * 1000 : AGAIN_MS
    await setTimeout(waitMs)
  }
}
