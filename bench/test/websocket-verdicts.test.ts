/**
 * The demands of table websocket: CPU time of an echo, and of a message to a room by two workers.
 *
 * The rows are made here instead of by a run.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import table from '../tables/websocket.ts'
import { holdsOf, rowOf } from './rows.test.support.ts'

test('both demands compare CPU time per message with that of Bun', () => {
  const of = (section: string, contender: string, median: number) =>
    rowOf({ section, contender, row: 'CPU per message', unit: 'µs', median })
  const judged = (...rows: ReturnType<typeof rowOf>[]) => holdsOf(table, rows)
  const bun = [of('echo', 'bun', 4), of('room', 'bun', 4), of('room', 'corespun', 1)]
  const two = 'corespun, two workers'
  assert.deepEqual(judged(...bun, of('echo', 'corespun', 4), of('room', two, 2)), [true, true])
  assert.deepEqual(judged(...bun, of('echo', 'corespun', 4.1), of('room', two, 2.1)), [false, false])
  assert.deepEqual(judged(...bun), [undefined, undefined])
})
