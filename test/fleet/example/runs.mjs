/**
 * How often each job has run, by the notes that the work of the example makes.
 *
 * All hosts append to one file, a line for each run, before they compute anything.
 */
import { readFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'

const POLL_MS = 100
const WAIT_MS = 120_000

export class Runs {
  #path

  /** @param {string} path */
  constructor(path) {
    this.#path = path
  }

  /** The keys of jobs that ran more than once. */
  twice() {
    const counts = new Map()
    for (const key of readFileSync(this.#path, 'utf8').trim().split('\n'))
      counts.set(key, (counts.get(key) ?? 0) + 1)
    return new Set([...counts].filter(([, count]) => count > 1).map(([key]) => key))
  }

  /** Resolves when a job has run twice that had not `before`. @param {Set<string>} before */
  async again(before) {
    const endMs = performance.now() + WAIT_MS
    while (this.twice().size <= before.size) {
      if (performance.now() > endMs) throw new Error('no job of a host that was cut off ran anew elsewhere')
      await setTimeout(POLL_MS)
    }
  }
}
