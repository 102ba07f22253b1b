/**
 * The steps of a transaction and their commit, which is one call of the core for all stores.
 *
 * What is added and not committed is dropped: the next commit must not contain it.
 */
import { Found, Written, thisScratch } from '../../bridge/index.ts'
import { native } from '../../native/index.ts'
import { type Entry, NONE, SET } from '../entry.ts'
import { wrong } from '../errors.ts'
import { Store } from '../store.ts'

const STATUS_WIDTH = 4
const STATUS_BITS = (1 << STATUS_WIDTH) - 1
const { done: DONE, conflict: CONFLICT } = Written

/** Whether entries have the versions that were read, all at this moment. */
export function areCurrent(entries: readonly Entry<Store>[]): boolean {
  adding(() => entries.forEach((entry) => Store.step(entry.store, entry, true)))
  return (commit() & STATUS_BITS) === DONE
}

/** Takes all entries at one moment; false if one has another version now. */
export function committed(entries: readonly Entry<Store>[]): boolean {
  const scratch = thisScratch()
  const lent = new Set<ArrayBuffer>()
  const steps: Entry<Store>[] = []
  adding(() => {
    for (const entry of entries) {
      if (entry.action === NONE && !entry.isRead) continue
      Store.step(entry.store, entry, false)
      steps.push(entry)
      if (entry.action === SET) keepLent(lent, scratch.takeLent())
    }
  })
  const outcome = commit()
  const status = outcome & STATUS_BITS
  if (status === CONFLICT) return false
  if (status !== DONE) {
    const { store, key } = steps[outcome >>> STATUS_WIDTH]
    throw Store.refused(store, status, key)
  }
  if (lent.size > 0) scratch.detach(lent)
  return true
}

/** Adds steps for the next commit: all of them, or none. */
function adding(add: () => void): void {
  try {
    add()
  } catch (error) {
    native.storeAbandon()
    throw error
  }
}

/** The status of a commit, and above it which step was refused. */
function commit(): number {
  const scratch = thisScratch()
  if (scratch.busy) return scratch.aside(commit, undefined, [])
  native.storeCommit()
  return scratch.words[Found.status] | (scratch.words[Found.step] << STATUS_WIDTH)
}

function keepLent(all: Set<ArrayBuffer>, lent: readonly ArrayBuffer[]): void {
  for (const buffer of lent) {
    if (all.has(buffer))
      throw wrong('a value of a transaction', 'the only one into which a buffer is moved', buffer)
    all.add(buffer)
  }
}
