/**
 * One long SQL statement, which no other thread can end: what a zone does with it is part of the table in
 * docs/guide/heavy.md. It runs in the project, where the libraries are.
 */
const SUM = `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?)
  SELECT sum(n) AS sum FROM numbers`

/** @param {'node:sqlite' | 'better-sqlite3'} library @param {number} to */
export async function sum(library, to) {
  const { DatabaseSync, default: Database = DatabaseSync } = await import(library)
  const database = new (DatabaseSync ?? Database)(':memory:')
  return database.prepare(SUM).get(to).sum
}
