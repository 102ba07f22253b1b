/**
 * `setup` and `teardown` in a worker: run once each, before its first task and before it leaves.
 *
 * A worker joins its zone when its setup has returned, so no task begins before, and a zone whose setups fail
 * breaks as one whose workers do not start. The owner watches the time, since a hook may block this thread.
 * Both run outside of tasks: a call to the worker's own zone, which may wait for this worker, is refused.
 */
import { functionByNumber, processFrame, readFrame } from '../../transport/internal.ts'
import type { HookSettings } from '../ground/hooks.ts'
import type { ZoneSettings } from '../ground/settings.ts'
import { portable, stringOf } from '../call/portable.ts'
import { hideOwnFrames } from '../call/stacks.ts'
import { Task } from '../ground/task.ts'
import { ZoneError } from '../errors.ts'
import { here, setCurrent } from '../ground/current.ts'

/** A worker's message to its owner: a hook begins, has ended, or its error, as a frame. */
export interface HookNote {
  readonly corespunHook: 'setup' | 'teardown' | 'ended' | Uint8Array
}

/** The worker that runs a hook. */
export interface HookWorker {
  readonly zone: string
  /** Its name. */
  readonly worker: string
  readonly settings: ZoneSettings
  post(note: HookNote): void
}

/** Run the setup. Returns false when it has failed and the owner has the error. */
export async function runSetup(worker: HookWorker, setup: HookSettings): Promise<boolean> {
  try {
    here.state = { value: await run(worker, 'setup', setup, []) }
    return true
  } catch (cause) {
    const facts = { zone: worker.zone, worker: worker.worker, setup: setup.name, reason: reasonOf(cause) }
    worker.post({ corespunHook: frameOf(new ZoneError('SETUP_FAILED', facts, { cause })) })
    return false
  }
}

/** Run the teardown, if there is one. Returns its error, as a frame. */
export async function runTeardown(worker: HookWorker): Promise<Uint8Array | undefined> {
  const { teardown } = worker.settings
  if (teardown === null) return undefined
  try {
    await run(worker, 'teardown', teardown, [here.state?.value])
    return undefined
  } catch (cause) {
    const facts = { zone: worker.zone, worker: worker.worker, teardown: teardown.name }
    return frameOf(new ZoneError('TEARDOWN_FAILED', { ...facts, reason: reasonOf(cause) }, { cause }))
  }
}

async function run(
  { zone, worker, post }: HookWorker,
  kind: 'setup' | 'teardown',
  hook: HookSettings,
  args: readonly unknown[],
): Promise<unknown> {
  setCurrent(zone, worker, () => {
    throw new ZoneError('ZONE_DEADLOCK', { zone, call: `a call from its own ${kind}` })
  })
  // A promise alone does not keep a thread alive.
  const alive = setInterval(() => {}, 2 ** 31 - 1)
  post({ corespunHook: kind })
  try {
    const fn = await functionByNumber(hook.number)
    return (await fn.apply(new Task(zone, worker, undefined), [...args, ...capturedOf(hook)])) as unknown
  } finally {
    clearInterval(alive)
    post({ corespunHook: 'ended' })
  }
}

function capturedOf({ captured }: HookSettings): readonly unknown[] {
  if (captured === null) return []
  const frame = Uint8Array.from(Buffer.from(captured, 'base64'))
  return readFrame(frame, 0, frame.length) as unknown[]
}

function reasonOf(cause: unknown): string {
  return stringOf(cause instanceof Error ? cause.message : cause)
}

function frameOf(error: ZoneError): Uint8Array {
  hideOwnFrames(error)
  try {
    return processFrame(error)
  } catch (why) {
    return processFrame(portable(error, why))
  }
}

/**
 * What the `setup` of this worker's zone has returned in this worker, or resolved to.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { zone } from 'corespun/zone'
 *
 * const words = zone.create('words', { workers: 1, setup: () => new Set(['corespun', 'zone']) })
 * const isWord = async (word: string) => {
 *   const { workerState } = await import('corespun/zone')
 *   return workerState<Set<string>>().has(word)
 * }
 * assert.deepEqual(await words.map(['zone', 'zoo'], isWord), [true, false])
 * await words.close()
 * ```
 * @throws {ZoneError} `SETUP_MISSING` outside of the workers of a zone with a `setup`.
 */
export function workerState<State = unknown>(): State {
  if (here.state === undefined) throw new ZoneError('SETUP_MISSING', { zone: here.zone ?? 'node' })
  return here.state.value as State
}
