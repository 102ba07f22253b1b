/**
 * What a host runs for each message of a workflow: a request to this process's own server, repeated until the
 * workflow has no more to do.
 *
 * The message is a durable job, so after a crash it is delivered again, and the workflow is replayed.
 */
import { type IncomingMessage, request } from 'node:http'
import { json } from 'node:stream/consumers'
import { setTimeout } from 'node:timers/promises'
import { getWorkflowPort } from '@workflow/utils/get-port'

/** After a failure. */
const AGAIN_S = 1
/** Longest time of a timer; one that waits for longer is asked again. */
const WAIT_S_MAX = 2_000_000

/** @param headers The name of the queue, and the id of the message, which stays the same. */
export async function deliver(path: string, headers: Record<string, string>, body: string): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    const port =
      process.env['PORT'] ?? (await getWorkflowPort({ endpoint: '/.well-known/workflow/v1/flow?__health' }))
    const url = `http://localhost:${port}/.well-known/workflow/v1/${path}`
    const answer = await post(url, { ...headers, 'x-vqs-message-attempt': String(attempt) }, body).catch(
      () => ({ timeoutSeconds: AGAIN_S }),
    )
    if (answer.timeoutSeconds === undefined) return
    await setTimeout(Math.min(answer.timeoutSeconds, WAIT_S_MAX) * 1000)
  }
}

/** As long as it takes; `fetch` fails when a response has not begun after five minutes. */
async function post(
  url: string,
  headers: Record<string, string>,
  body: string,
): Promise<{ readonly timeoutSeconds?: number }> {
  const options = { method: 'POST', headers: { ...headers, 'content-type': 'application/json' } }
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    request(url, options, resolve).on('error', reject).end(body)
  })
  const answer = (await json(response)) as { readonly timeoutSeconds?: number }
  if (response.statusCode !== 200) throw new Error(`status ${response.statusCode}`)
  return answer
}
