/**
 * One transaction of SQLite: all that `work` writes, or nothing.
 * `work` is synchronous, so that nothing else of this process is in it.
 */
import type { DatabaseSync } from 'node:sqlite'

export function transaction<Value>(db: DatabaseSync, work: () => Value): Value {
  db.exec('BEGIN IMMEDIATE')
  try {
    const value = work()
    db.exec('COMMIT')
    return value
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK') // SQLite may have done so
    throw error
  }
}
