/**
 * Items of `corespun run --journal` as durable runs: of an export that `durable()` has made.
 *
 * Each worker offers the definition on the file of the journal, so another worker, or the next command,
 * goes on with a run whose process has died, at the step that it had reached. An item has the run of its text
 * and content, of this function and folder; one that has failed is run again at the step that failed, or from
 * the beginning if it has undone what it had done, or was cancelled. The journal has the line of an item once
 * its run has ended, so runs are deleted some time later.
 */
import { type Durable, type Run, RunError, type RunState, runs } from '../../durable/index.ts'
import { connect } from '../../fleet/index.ts'
import { type Identifying, identityOf, storeName } from './kept.ts'

/** How long a run is kept behind its end, for `corespun runs`; one that has failed goes on for so long. */
const KEPT_MS = 7 * 86_400_000
/** How long a step of a run that is not of this command may take yet. */
const CLOSE_MS = 1000
/** How soon it is looked whether a run waits for other code; twice as long each time. */
const LOOK_MS = { first: 1000, max: 30_000 }

/** The file of the journal, and what its items are. */
export interface DurableJournal extends Identifying {
  readonly file: string
}

/**
 * The function that runs an item, and what ends with the worker: otherwise the next command waits for leases.
 * @throws {FleetError} The codes of a file that cannot be used.
 */
export async function durableCall(
  definition: Durable,
  journal: DurableJournal,
  of: { readonly url: string; readonly exportName: string },
): Promise<{ run(item: unknown, text: string): Promise<unknown>; close(): Promise<void> }> {
  const fleet = await connect(`sqlite:${journal.file}`)
  const offered = await runs(fleet, { definitions: [definition] })
  const { name } = definition
  const store = storeName(journal.file, { ...of, folder: process.cwd() })
  const run = async (item: unknown, text: string): Promise<unknown> => {
    const key = await keyOf(text, store, journal)
    const found = offered.get(name, key)
    for (let isForgotten = false; ; isForgotten = true)
      try {
        const before = isForgotten ? undefined : await stateOf(found)
        const isThere = before !== undefined && (await goesOn(found, before.status))
        if (!isThere) await offered.start(name, item as never, { key, ttlMs: KEPT_MS })
        return await resultOf(found, isThere ? before.resumedCount : 0)
      } catch (error) {
        // Its duplicate, or another command, begins it anew.
        if (!isOf(found, error, 'RUN_UNKNOWN')) throw error
      }
  }
  const close = async (): Promise<void> => {
    await offered.close({ timeoutMs: CLOSE_MS })
    await fleet.close()
  }
  return { run, close }
}

/** The key of an item's run. A file that cannot be looked at has one of its own. */
async function keyOf(text: string, store: string, journal: DurableJournal): Promise<string> {
  const identity = await identityOf(text, journal)
  if (identity === undefined) return crypto.randomUUID()
  const { createHash } = process.getBuiltinModule('node:crypto')
  const { key, content } = identity
  return createHash('sha256')
    .update(JSON.stringify([store, key, content]))
    .digest('hex')
    .slice(0, 40)
}

/** Whether there is a run that goes on or is done. */
async function goesOn(run: Run, status: string): Promise<boolean> {
  try {
    if (status === 'failed' || status === 'diverged') await run.again()
    return !(status === 'cancelled' && (await run.forget()))
  } catch (error) {
    if (!isOf(run, error, 'RUN_NOT_AGAIN', 'RUN_UNKNOWN')) throw error
    // Its duplicate, or another command, has it run again; or behind what has failed its finalizers have run.
    const found = (await stateOf(run))?.status
    return found !== undefined && !(found === 'failed' && (await run.forget()))
  }
}

/**
 * What it returns, or throws what it has failed with, or why it waits for other code.
 * @param resumedCount Before this command: what it has waited for until then may be there now.
 */
async function resultOf(run: Run, resumedCount: number): Promise<unknown> {
  for (let timeoutMs = LOOK_MS.first; ; timeoutMs = Math.min(2 * timeoutMs, LOOK_MS.max))
    try {
      return await run.result({ timeoutMs })
    } catch (error) {
      if (!isOf(run, error, 'RUN_TIMEOUT')) throw error
      const { status, error: why, ...state } = await run.state()
      const isTried = state.resumedCount > resumedCount || isOf(run, why, 'RUN_UNREADABLE')
      if (status === 'diverged' && isTried) throw why
    }
}

/** `undefined`: there is no such run. */
async function stateOf(run: Run): Promise<RunState | undefined> {
  try {
    return await run.state()
  } catch (error) {
    if (isOf(run, error, 'RUN_UNKNOWN')) return undefined
    throw error
  }
}

/** Whether it is one of these errors of this run, and not of one that it has failed with. */
function isOf({ key }: Run, error: unknown, ...codes: readonly string[]): boolean {
  if (!(error instanceof RunError) || !codes.includes(error.code)) return false
  return 'key' in error.facts && error.facts.key === key
}
