/**
 * What the tests of bursts run in workers: tasks that note what they find, and change it.
 *
 * Not a test itself. The module registers two storages in every thread that imports it.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { carry, currentTask, currentTrace } from '../index.ts'

export const one = carry<unknown>('one')

/** As much of an AsyncLocalStorage as `carry` demands. */
class Wrapped {
  readonly #inner = new AsyncLocalStorage<unknown>()

  getStore(): unknown {
    return this.#inner.getStore()
  }

  run<R>(store: unknown, body: () => R): R {
    return this.#inner.run(store, body)
  }
}

export const other = carry('other', new Wrapped())

export interface Found {
  readonly one: unknown
  readonly other: unknown
  readonly traceparent: string | undefined
  readonly isLimited: boolean
}

export function find(): Found {
  return {
    one: one.getStore(),
    other: other.getStore(),
    traceparent: currentTrace()?.traceparent,
    isLimited: currentTask()?.remainingMs !== undefined,
  }
}

/** Notes what a task finds, and changes what it can. */
export function findAndChange(): Found {
  const found = find()
  const copy = structuredClone(found)
  if (typeof found.one === 'object' && found.one !== null) (found.one as { changed?: true }).changed = true
  return copy
}

/** The same after others have had a turn. */
export async function findLater(): Promise<[before: Found, after: Found]> {
  const before = find()
  await new Promise((resolve) => setImmediate(resolve))
  return [before, find()]
}

/** Ends the worker, at once or after others have had a turn. */
export async function die(isLater: boolean): Promise<never> {
  if (isLater) await new Promise((resolve) => setImmediate(resolve))
  process.exit(3)
}
