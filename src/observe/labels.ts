/**
 * In a thread that is profiled: under which label it runs, and since when.
 *
 * Loaded by the observer, and only while it profiles. Requests and tasks run under the label of their route
 * or function (`here.labels`); what they cause is followed through its callbacks, as CPU time is. A label
 * lasts until the next callback begins, so what the event loop does after one belongs to it.
 */
import { AsyncLocalStorage, createHook } from 'node:async_hooks'
import { type Labelling, here } from '../zone/internal.ts'

/** Changes of the label of a thread. */
export interface LabelTimes {
  /** Names by number; 0: without a label. */
  readonly names: readonly string[]
  /** When each began, in µs of the machine's monotonic clock, rising. */
  readonly times: readonly number[]
  readonly labels: readonly number[]
}

/** Later changes are not noted. */
const CHANGES_MAX = 2 ** 20

class ThreadLabels implements Labelling {
  readonly #storage = new AsyncLocalStorage<number>()
  readonly #names = ['']
  readonly #numbers = new Map([['', 0]])
  readonly #times: number[] = []
  readonly #labels: number[] = []
  #now = 0
  readonly #hook = createHook({ before: () => this.#change(this.#storage.getStore() ?? 0) })

  constructor() {
    this.#hook.enable()
  }

  run<R>(label: string, body: () => R): R {
    const outer = this.#storage.getStore()
    const number = this.#number(label)
    this.#change(number)
    try {
      return this.#storage.run(number, body)
    } finally {
      if (outer !== undefined) this.#change(outer)
    }
  }

  prepare(label: string): void {
    this.#change(this.#number(label))
  }

  about(label: string): void {
    const number = this.#number(label)
    this.#storage.enterWith(number)
    this.#change(number)
  }

  end(): LabelTimes {
    this.#hook.disable()
    this.#storage.disable()
    return { names: this.#names, times: this.#times, labels: this.#labels }
  }

  #number(label: string): number {
    let number = this.#numbers.get(label)
    if (number === undefined) {
      number = this.#names.push(label) - 1
      this.#numbers.set(label, number)
    }
    return number
  }

  #change(number: number): void {
    if (number === this.#now || this.#times.length === CHANGES_MAX) return
    this.#now = number
    const [seconds, ns] = process.hrtime()
    this.#times.push(seconds * 1e6 + Math.round(ns / 1e3))
    this.#labels.push(number)
  }
}

/** Label what this thread runs from now on. */
export function begin(): void {
  here.labels = new ThreadLabels()
}

/** The labels since `begin`, as JSON. */
export function end(): string {
  const labels = here.labels as ThreadLabels | undefined
  here.labels = undefined
  return JSON.stringify(labels?.end() ?? { names: [''], times: [], labels: [] })
}
