/**
 * The objects of a value that is not a tree: which occur again, and their reference numbers.
 *
 * Made only for the second and third attempt at a frame; nearly all values are trees and need none.
 */

export class Graph {
  /** True in the second attempt, which only counts. */
  isLearning = true
  readonly #seen = new Set<object>()
  readonly #repeated = new Set<object>()
  readonly #numbers = new Map<object, number>()
  /** Objects being written whose load hook must finish before they exist: no cycle may lead back to them. */
  readonly open = new Set<object>()

  /** -2: met once so far. -1: to be defined now. 0 and more: defined under this number. */
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
