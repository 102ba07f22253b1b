/**
 * What the writer knows of a value in which an object is met more than once.
 *
 * Made only for the second and third attempt at a frame; trees, which are nearly all values, never have one.
 */

/** What the second and third attempt know about a value that is no tree. */
export class Graph {
  /** True in the attempt that only learns. */
  isLearning = true
  readonly #seen = new Set<object>()
  readonly #repeated = new Set<object>()
  readonly #numbers = new Map<object, number>()
  /** Objects being written whose load hook must finish before they exist: no cycle may lead back to them. */
  readonly open = new Set<object>()

  /** -2: met once only, as far as is known. -1: to be defined now. 0 and more: defined under this number. */
  meet(object: object): number {
    if (this.isLearning) {
      if (!this.#seen.has(object)) {
        this.#seen.add(object)
        return -2
      }
      this.#repeated.add(object)
      return 0
    }
    if (!this.#repeated.has(object)) return -2
    const number = this.#numbers.get(object)
    if (number !== undefined) return number
    this.#numbers.set(object, this.#numbers.size)
    return -1
  }
}
