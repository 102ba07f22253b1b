/**
 * In a thread that is profiled: under which label it runs, and since when.
 *
 * Loaded by the observer, and only while it profiles. Requests and tasks run under the label of their route
 * or function (`here.labels`); what they cause is followed through its callbacks, as CPU time is. A label
 * lasts until the next callback begins, so what the event loop does after one belongs to it.
 */
import { AsyncLocalStorage, createHook, executionAsyncResource } from 'node:async_hooks'
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

/** The label of a request or task, wherever its callbacks run. */
interface Label {
  number: number
}

class ThreadLabels implements Labelling {
  readonly #storage = new AsyncLocalStorage<Label>()
  readonly #names = ['']
  readonly #numbers = new Map([['', 0]])
  readonly #times: number[] = []
  readonly #labels: number[] = []
  #now = 0
  /** Of what has run last. */
  #last: Label = { number: 0 }
  /** Since which change a task is prepared or has begun; -1 once something else has. */
  #begun = -1
  /** Since when a callback without a label runs; 0 once it has one. */
  #freeUs = 0
  readonly #hook = createHook({
    before: () => {
      const { number } = this.#storage.getStore() ?? NO_LABEL
      this.#begun = -1
      // What a callback has settled, such as the result of a call, is continued behind it.
      const isCaused = number !== 0 && this.#freeUs !== 0 && executionAsyncResource() instanceof Promise
      this.#change(number, isCaused ? this.#freeUs : 0)
      this.#freeUs = number === 0 ? nowUs() : 0
    },
  })

  constructor() {
    this.#hook.enable()
  }

  run<R>(label: string, body: () => R): R {
    const outer = this.#storage.getStore()
    const number = this.#number(label)
    // Also where it was prepared under that label.
    if (number !== this.#now || this.#begun < 0) this.#begin(number)
    this.#last = { number }
    try {
      return this.#storage.run(this.#last, body)
    } finally {
      if (outer !== undefined) this.#change(outer.number)
    }
  }

  follow(body: () => void): void {
    this.#storage.run(this.#last, body)
  }

  prepare(label: string): void {
    this.#last = { number: 0 }
    this.#begin(this.#number(label))
  }

  about(label: string): void {
    const number = this.#number(label)
    const own = this.#storage.getStore()
    // The promise of the task was made before.
    if (own === undefined) this.#storage.enterWith({ number })
    else own.number = number
    const from = this.#begun
    this.#begun = -1
    if (from < 0) return this.#change(number)
    // Its arguments were read for the same.
    this.#labels.fill(number, from)
    this.#now = number
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

  #begin(number: number): void {
    const { length } = this.#times
    // What has led to it in the same callback, such as reading a request, is for it.
    this.#change(number, this.#freeUs)
    this.#freeUs = 0
    // A task before it may have ended under the same label.
    this.#begun = this.#times.length > length ? length : -1
  }

  /** @param us Since when; 0: now. */
  #change(number: number, us = 0): void {
    if (number === this.#now || this.#times.length === CHANGES_MAX) return
    this.#now = number
    this.#times.push(us === 0 ? nowUs() : Math.max(us, this.#times.at(-1) ?? 0))
    this.#labels.push(number)
  }
}

const NO_LABEL: Label = { number: 0 }

function nowUs(): number {
  const [seconds, ns] = process.hrtime()
  return seconds * 1e6 + Math.round(ns / 1e3)
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
