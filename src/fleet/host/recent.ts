/**
 * Which ids have been seen of late: the last `min` of them at least, and less than twice as many.
 *
 * Two sets, of which the older one is dropped as a whole. To drop the oldest of one set would look for it
 * among all that were dropped before it.
 */
export class Recent {
  readonly #min: number
  #now = new Set<string>()
  #before = new Set<string>()

  constructor(min: number) {
    this.#min = min
  }

  /** Remember an id; false for one that is remembered. */
  add(id: string): boolean {
    if (this.#now.has(id) || this.#before.has(id)) return false
    this.#now.add(id)
    if (this.#now.size < this.#min) return true
    this.#before = this.#now
    this.#now = new Set()
    return true
  }
}
