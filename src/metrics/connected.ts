/**
 * The fleets of a process, by the threads that are connected to them: each fleet is asked once, whichever of
 * them does it, first of all the one that looks.
 *
 * Those threads count their connections, so others are not asked. One that does not respond is a problem of
 * the look, and what it alone is connected to is missing.
 */
import { messageOf, oneLine } from '../base/index.ts'
import type { JobQueue } from './collect.ts'
import { numberOf } from './instruments.ts'
import { ask } from './questions.ts'
import { QUEUES_MS_MAX, all, fleetsHere, queuesHere } from './queues.ts'
import { readSheets } from './sheet.ts'
import { threadName } from './slow.ts'
import { look } from './thread.ts'

const OWN = new URL('./queues.js', import.meta.url).href
/** A thread that takes longer for its next turn of the event loop is busy or stuck. */
const LIST_MS = 500
/** For so long a thread with as many connections is taken to have the same ones. */
const SAME_MS = 60_000
const CONNECTIONS = numberOf('fleetConnections')

/** A function of a module: looks at those fleets of its thread that lead there. */
export interface Look<Found> {
  readonly module: string
  readonly name: string
  /** The same one, in this thread. */
  here(where: readonly string[]): Promise<Found>
}

/** The names of all threads that are connected to a fleet now. */
export function connectedThreads(): string[] {
  return [...connections().keys()]
}

/** How many connections they have. */
function connections(): Map<string, number> {
  look()
  const counts = new Map<string, number>()
  for (const { instrument, values, cells } of readSheets())
    if (instrument === CONNECTIONS && cells[0] > 0) counts.set(String(values[0]), cells[0])
  for (const thread of lastLists.keys()) if (!counts.has(thread)) lastLists.delete(thread)
  return counts
}

/** What threads have responded: one whose fleets this thread has, too, is not interrupted again. */
const lastLists = new Map<string, { where: readonly string[]; count: number | undefined; untilMs: number }>()

/** Has each fleet looked at by one of the threads that are connected to it. */
export async function lookAtConnected<Found>(
  { module, name, here }: Look<Found>,
  timeoutMs: number,
): Promise<{ readonly found: readonly PromiseSettledResult<Found>[]; readonly problems: readonly string[] }> {
  const own = fleetsHere()
  const isOwn = (where: string): boolean => !isInMemory(where) && own.includes(where)
  const mine = Promise.allSettled(own.length === 0 ? [] : [here(own)])
  const counts = connections()
  const isCovered = (thread: string): boolean => {
    const { where = [], count, untilMs = 0 } = lastLists.get(thread) ?? {}
    // One that has just closed its last connection may have another one soon.
    return (
      where.length > 0 && where.every(isOwn) && count === counts.get(thread) && performance.now() < untilMs
    )
  }
  const others = [...counts.keys()].filter((thread) => thread !== threadName() && !isCovered(thread))
  const lists = await listsOf(others)
  const known = new Set(own.filter(isOwn))
  const problems: string[] = []
  const asked: Record<string, [string[]]> = {}
  for (const [index, list] of lists.entries()) {
    if (list.status === 'rejected') {
      problems.push(`fleets: ${oneLine(messageOf(list.reason))}`)
      continue
    }
    const thread = others[index]
    const untilMs = performance.now() + SAME_MS
    lastLists.set(thread, { where: list.value, count: counts.get(thread), untilMs })
    const where = list.value.filter((each) => isInMemory(each) || known.size < known.add(each).size)
    if (where.length > 0) asked[thread] = [where]
  }
  const rest = await ask<Found>({ module, name }, asked, timeoutMs)
  return { found: [...(await mine), ...rest], problems }
}

/** Engines in memory belong to their thread. */
function isInMemory(where: string): boolean {
  return where.startsWith('memory:')
}

/**
 * Asks the threads one after the other, until one has it. Those that do not respond at once are not asked,
 * since they would do it later, when nobody waits for it.
 */
export async function anyConnected(
  { module, name }: Pick<Look<unknown>, 'module' | 'name'>,
  args: readonly unknown[],
  timeoutMs: number,
): Promise<boolean> {
  const threads = connectedThreads().filter((each) => each !== threadName())
  let failed: PromiseRejectedResult | undefined
  for (const [index, list] of (await listsOf(threads)).entries()) {
    const thread = threads[index]
    const [answered] =
      list.status === 'rejected'
        ? [list]
        : await ask<boolean>({ module, name }, { [thread]: args }, timeoutMs)
    if (answered.status === 'rejected') failed = answered // another one may have it
    else if (answered.value) return true
  }
  if (failed !== undefined) throw failed.reason
  return false
}

/** Where the connections of these threads lead. */
function listsOf(threads: readonly string[]): Promise<PromiseSettledResult<string[]>[]> {
  const listed = { module: OWN, name: 'fleetsHere' }
  return ask<string[]>(listed, Object.fromEntries(threads.map((each) => [each, []])), LIST_MS)
}

/** What waits in the queues of the fleets of all threads. */
export async function queuesConnected(): Promise<JobQueue[]> {
  const look = { module: OWN, name: 'queuesHere', here: queuesHere }
  return all((await lookAtConnected(look, 2 * QUEUES_MS_MAX)).found)
}
