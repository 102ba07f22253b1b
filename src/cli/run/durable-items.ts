/**
 * Items of `corespun run --journal` as durable runs: of an export that `durable()` has made.
 *
 * Each worker offers the definition on the file of the journal, so another worker, or the next command,
 * goes on with a run whose process has died, at the step that it had reached. An item has the run of its text
 * and content; one that has failed is run again at the step that failed. The journal has the line of an item
 * once its run has ended, so runs are deleted some time later.
 */
import { type Durable, RunError, runs } from '../../durable/index.ts'
import { connect } from '../../fleet/index.ts'
import { type Identifying, identityOf } from './kept.ts'

/** How long a run is kept behind its end, for `corespun runs`. */
const KEPT_MS = 86_400_000

/** The file of the journal, and what its items are. */
export interface DurableJournal extends Identifying {
  readonly file: string
}

/**
 * The function that runs an item.
 * @throws {FleetError} The codes of a file that cannot be used.
 */
export async function durableCall(
  definition: Durable,
  journal: DurableJournal,
): Promise<(item: unknown, text: string) => Promise<unknown>> {
  const offered = await runs(await connect(`sqlite:${journal.file}`), { definitions: [definition] })
  const { name } = definition
  return async (item, text) => {
    const key = await keyOf(text, journal)
    const status = await statusOf(offered.get(name, key).state())
    if (status === 'failed' || status === 'diverged') await offered.get(name, key).again()
    else if (status === undefined) await offered.start(name, item as never, { key, ttlMs: KEPT_MS })
    return offered.get(name, key).result()
  }
}

/** The key of an item's run. A file that cannot be looked at has one of its own. */
async function keyOf(text: string, journal: DurableJournal): Promise<string> {
  const identity = await identityOf(text, journal)
  if (identity === undefined) return crypto.randomUUID()
  const { createHash } = process.getBuiltinModule('node:crypto')
  return createHash('sha256').update(JSON.stringify(identity)).digest('hex').slice(0, 40)
}

/** The status of a run; `undefined` without one. */
async function statusOf(state: Promise<{ readonly status: string }>): Promise<string | undefined> {
  try {
    return (await state).status
  } catch (error) {
    if (error instanceof RunError && error.code === 'RUN_UNKNOWN') return undefined
    throw error
  }
}
