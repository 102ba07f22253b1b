/**
 * First in, first out, without moving what is left at each step.
 *
 * An array's `shift` copies a long array each time; here the head moves, and the free half is cut off.
 */
/** Shorter arrays are cut when they are empty. */
const CUT_MIN = 1024

export class Fifo<A> {
  readonly #items: (A | undefined)[] = []
  #head = 0

  get length(): number {
    return this.#items.length - this.#head
  }

  push(item: A): void {
    this.#items.push(item)
  }

  /** Removes the first; there is one. */
  shift(): A {
    const item = this.#items[this.#head] as A
    this.#items[this.#head++] = undefined
    if (
      this.#head === this.#items.length ||
      (this.#head >= CUT_MIN && this.#head * 2 >= this.#items.length)
    ) {
      this.#items.splice(0, this.#head)
      this.#head = 0
    }
    return item
  }
}
