/**
 * How the workers of a server begin: the first one by a call, and all of them by broadcasts.
 *
 * Broadcasts are replayed in workers that replace others, which therefore serve, too.
 */
import type { Task, Zone } from '../../zone/index.ts'
import type { Board } from './board.ts'
import { INVITATIONS, type Job, type Listening } from './protocol.ts'

export const WORKER_URL = new URL('./worker.js', import.meta.url).href

/** Make the first worker serve. @throws {HttpError} As `serve` and `HTTP_APP`. */
export async function begin(zone: Zone, job: Job, board: Board): Promise<Listening> {
  return (await zone.execute(WORKER_URL, 'beginHere', [job, board.memory])).value as Listening
}

/**
 * Make every worker serve, also later ones. Two broadcasts: a function can carry shared memory, and code can
 * import (an `import()` in TypeScript's output may call a helper of its file, and such a function cannot be
 * sent).
 */
export async function joinAll(zone: Zone, job: Job, memory: SharedArrayBuffer): Promise<void> {
  const left = zone.broadcast(leaveInvitation, [INVITATIONS, job, memory])
  const id = JSON.stringify(job.id)
  const call = `import(${JSON.stringify(WORKER_URL)}).then((module) => module.joinHere(${id}))`
  await Promise.all([left, zone.broadcast(call)])
}

/** Runs in the workers: stores the invitation for `joinHere`. */
function leaveInvitation(this: Task, key: string, job: Job, memory: SharedArrayBuffer): void {
  const global = globalThis as unknown as Record<symbol, Map<string, unknown>>
  const invitations = (global[Symbol.for(key)] ??= new Map())
  invitations.set(job.id, { job, memory, worker: this.worker })
}
