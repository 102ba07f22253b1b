/**
 * What SQLite refuses, as codes of a fleet; transactions, and how long those of others are waited for.
 *
 * What may pass is `FLEET_TIMEOUT`, `FLEET_ENGINE` or `FLEET_DISK_FULL`, which hosts repeat. The others are
 * about the file itself.
 */
/* c8 ignore start: another Node runs it where this one lacks SQLite; the counts of two do not add up */
import type { DatabaseSync } from 'node:sqlite'
import { Refusal } from './tables.ts'

/** How long another process that writes is waited for, and how often it is looked whether it has ended. */
const BUSY_MS = 5000
const PAUSE_MS = 0.25
const CELL = new Int32Array(new SharedArrayBuffer(4))

/** The primary result code of SQLite; `undefined` for another error. */
const resultOf = (error: unknown): number | undefined => {
  const { errcode } = Object(error) as { errcode?: unknown }
  return typeof errcode === 'number' ? errcode & 0xff : undefined
}
const [BUSY, LOCKED, READONLY, CORRUPT, FULL, CANTOPEN, NOTADB] = [5, 6, 8, 11, 13, 14, 26]

export const isBusy = (error: unknown): boolean => {
  const result = resultOf(error)
  return result === BUSY || result === LOCKED
}

/**
 * Repeat what another connection is in the way of, which changes nothing then. SQLite's own wait would pause
 * longer and longer, so that who writes all the time is never overtaken.
 */
export function whenFree<Value>(nowMs: () => number, work: () => Value): Value {
  const begunMs = nowMs()
  for (;;) {
    try {
      return work()
    } catch (error) {
      if (!isBusy(error) || nowMs() - begunMs >= BUSY_MS) throw error
    }
    Atomics.wait(CELL, 0, 0, PAUSE_MS)
  }
}

/** All of `work`, or nothing of it. */
export function transaction<Value>(db: DatabaseSync, isWrite: boolean, work: () => Value): Value {
  db.exec(isWrite ? 'BEGIN IMMEDIATE' : 'BEGIN')
  try {
    const value = work()
    db.exec('COMMIT')
    return value
  } catch (error) {
    try {
      db.exec('ROLLBACK')
    } catch {
      // SQLite has done it already, as where the disk is full.
    }
    throw error
  }
}

/** @param operation What was refused. */
export function failureOf(error: unknown, file: string, operation: string): Refusal {
  if (error instanceof Refusal) return error
  const what = error instanceof Error ? error.message : String(error)
  switch (resultOf(error)) {
    case BUSY:
    case LOCKED:
      return new Refusal('FLEET_TIMEOUT', { operation, timeoutMs: BUSY_MS })
    case READONLY:
    case CANTOPEN:
      return new Refusal('FLEET_FILE_DENIED', { file, what })
    case CORRUPT:
      return new Refusal('FLEET_FILE_CORRUPT', { file, what })
    case NOTADB:
      return new Refusal('FLEET_FILE_FOREIGN', { file, what })
    case FULL:
      return new Refusal('FLEET_DISK_FULL', { file, what })
    default:
      return new Refusal('FLEET_ENGINE', { operation, reason: `${what} (${file})` })
  }
}
