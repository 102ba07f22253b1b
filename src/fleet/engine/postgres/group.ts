/**
 * Requests of one kind that become one statement, and so one commit: what waits while the last one runs.
 *
 * One statement of a group is on its way at a time, so groups grow with the load and without a timer. When a
 * statement of several is refused, each is tried alone, so that one that does not fit, or waits for a
 * transaction of somebody else, fails alone.
 */
import { isLost } from './failures.ts'

/** How requests of a kind are run. */
export interface Grouping<Asked, Value> {
  /** All of them; as many values in their order. */
  run(all: readonly Asked[]): Promise<readonly Value[]>
  /** Of two with one key the second is in a later statement. Absent: they may be in one. */
  keyOf?(asked: Asked): string
  bytesOf?(asked: Asked): number
  failed(cause: unknown): Error
}

interface Waiting<Asked, Value> {
  readonly asked: Asked
  resolve(value: Value): void
  reject(error: unknown): void
}

const ITEMS_MAX = 1000
const BYTES_MAX = 8 * 2 ** 20

export class Group<Asked, Value> {
  readonly #how: Grouping<Asked, Value>
  #waiting: Waiting<Asked, Value>[] = []
  #running = 0
  #isBegun = false
  #idle: (() => void)[] = []

  constructor(how: Grouping<Asked, Value>) {
    this.#how = how
  }

  ask(asked: Asked): Promise<Value> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ asked, resolve, reject })
      if (this.#isBegun) return
      this.#isBegun = true
      // What one turn asks for is together.
      setImmediate(() => void this.#go())
    })
  }

  /** Resolves when nothing waits or runs. */
  async idle(): Promise<void> {
    if (this.#isBegun || this.#running > 0) await new Promise<void>((resolve) => this.#idle.push(resolve))
  }

  async #go(): Promise<void> {
    while (this.#waiting.length > 0) {
      const part = this.#next()
      this.#running++
      const isApart = await this.#run(part)
      // Who waits for a transaction of somebody else holds nobody up.
      if (isApart) void Promise.all(part.map((one) => this.#run([one]))).finally(() => this.#ended())
      else this.#ended()
    }
    this.#isBegun = false
    this.#ended(0)
  }

  #ended(count = 1): void {
    this.#running -= count
    if (this.#isBegun || this.#running > 0) return
    for (const resolve of this.#idle.splice(0)) resolve()
  }

  #next(): Waiting<Asked, Value>[] {
    const { keyOf, bytesOf } = this.#how
    const keys = new Set<string>()
    let [count, bytes] = [0, 0]
    for (const { asked } of this.#waiting) {
      const key = keyOf?.(asked)
      if (count >= ITEMS_MAX || bytes >= BYTES_MAX || (key !== undefined && keys.has(key))) break
      if (key !== undefined) keys.add(key)
      bytes += bytesOf?.(asked) ?? 0
      count++
    }
    return this.#waiting.splice(0, count)
  }

  /** @returns Whether each is to be tried alone. */
  async #run(part: readonly Waiting<Asked, Value>[]): Promise<boolean> {
    try {
      const found = await this.#how.run(part.map(({ asked }) => asked))
      for (const [index, { resolve }] of part.entries()) resolve(found[index])
    } catch (error) {
      if (part.length > 1 && !isLost(error)) return true
      for (const { reject } of part) reject(this.#how.failed(error))
    }
    return false
  }
}
