/**
 * The fleets of a process, by the threads that are connected to them: each fleet is asked once, whichever of
 * them does it.
 *
 * Those threads count their connections, so others are not asked. One that does not respond is a problem in
 * the figures, and what it alone is connected to is missing.
 */
import { messageOf, oneLine } from '../../base/index.ts'
import { Questions } from '../../metrics/internal.ts'
import { type Found, together } from '../figures/fleets.ts'

const FUNCTIONS = new URL('../figures/fleets.js', import.meta.url).href
/** A thread that takes longer for its next turn of the event loop is busy or stuck. */
const LIST_MS = 500
/** What servers take is not the thread's fault. */
const ANSWER_MS = 10_000

export class ConnectedThreads {
  readonly #questions = new Questions(FUNCTIONS)
  /** Those that had connections when somebody looked last. */
  threads: readonly string[] = []

  async look(): Promise<Found> {
    const lists = await Promise.allSettled(
      this.threads.map((thread) => this.#questions.ask(thread, 'fleetsHere', [], LIST_MS)),
    )
    const known = new Set<string>()
    const problems: string[] = []
    const asked = lists.flatMap((list, index) => {
      const thread = this.threads[index]
      if (list.status === 'rejected') {
        problems.push(`fleets: ${oneLine(messageOf(list.reason))}`)
        return []
      }
      // Engines in memory belong to their thread.
      const keyOf = (where: string): string => (where.startsWith('["memory:') ? thread + where : where)
      const own = (list.value as string[]).filter((where) => known.size < known.add(keyOf(where)).size)
      return own.length === 0 ? [] : [this.#questions.ask(thread, 'lookHere', [own], ANSWER_MS)]
    })
    const found = together(await Promise.allSettled(asked as Promise<Found>[]))
    return { ...found, problems: [...problems, ...found.problems] }
  }

  /** @returns Whether a fleet had the dead job. */
  async retry(zone: string, key: string): Promise<boolean> {
    let failed: unknown
    for (const thread of this.threads)
      try {
        if (await this.#questions.ask(thread, 'retryHere', [zone, key], ANSWER_MS)) return true
      } catch (error) {
        failed = error // another one may have it
      }
    if (failed !== undefined) throw failed
    return false
  }
}
