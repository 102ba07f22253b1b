/**
 * The owner's part in `setup` and `teardown`: their time, which a worker that blocks cannot watch itself.
 *
 * A worker posts a message when a hook begins and when it has ended. One that takes longer than it may is
 * reported, and the owner ends its thread.
 */
import { valueOf } from '../../bridge/index.ts'
import type { ZoneSettings } from '../ground/settings.ts'
import { stackless } from '../call/stacks.ts'
import { ZoneError } from '../errors.ts'
import type { HookNote } from '../worker/run-hooks.ts'
import type { WorkerThread } from './thread.ts'

export interface HookedWorker {
  readonly zone: string
  readonly worker: string
  readonly settings: ZoneSettings
  readonly thread: WorkerThread
  /** Its setup has failed or takes too long. */
  setupFailed(error: unknown): void
  /** Its teardown takes too long. */
  teardownFailed(error: unknown): void
}

/** Receives the messages of one worker; returns false for those that are of no hook. */
export function watchHooks(watched: HookedWorker): (message: unknown) => boolean {
  const { zone, worker, settings, thread } = watched
  let timer: NodeJS.Timeout | undefined
  const late = (kind: 'setup' | 'teardown'): void => {
    const { setup, teardown, hookMs } = settings
    if (kind === 'setup') {
      const facts = { zone, worker, setup: setup?.name ?? '', hookMs }
      watched.setupFailed(stackless(() => new ZoneError('SETUP_TIMEOUT', facts)))
    } else {
      const facts = { zone, worker, teardown: teardown?.name ?? '', hookMs }
      watched.teardownFailed(stackless(() => new ZoneError('TEARDOWN_TIMEOUT', facts)))
    }
    void thread.terminate()
  }
  thread.once('exit', () => clearTimeout(timer))
  return (message) => {
    const note = (message as Partial<HookNote> | null)?.corespunHook
    if (note === undefined) return false
    clearTimeout(timer)
    if (typeof note !== 'string') watched.setupFailed(valueOf(note, 0, note.length))
    else if (note !== 'ended') timer = setTimeout(late, settings.hookMs, note).unref()
    return true
  }
}

/** Whether a zone breaks with this error itself, and not with `ZONE_START_FAILED`. */
export function isOfSetup(error: unknown): error is ZoneError {
  return error instanceof ZoneError && (error.code === 'SETUP_FAILED' || error.code === 'SETUP_TIMEOUT')
}
