/**
 * The demands on table tls: against hyper with rustls, and on the memory of a socket alone.
 *
 * The rows are made here instead of by a run.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import table from '../tables/tls.ts'
import { rowOf } from './rows.test.support.ts'

test('requests and handshakes are judged against hyper, sockets by their memory', () => {
  const of = (section: string, row: string, contender: string, median: number) =>
    rowOf({ section, row, contender, median })
  const rows = [
    of('hello', 'CPU per 100,000', 'corespun with TLS', 1.09),
    of('hello', 'CPU per 100,000', 'hyper with rustls', 1),
    of('handshakes', 'CPU per 1,000', 'corespun with TLS', 1.01),
    of('handshakes', 'CPU per 1,000', 'hyper with rustls', 1),
    of('idle', 'memory of a socket', 'node:https', 60),
  ]
  const judged = (some: typeof rows) => table.verdicts(some).map(({ holds }) => holds)
  assert.deepEqual(judged(rows), [true, false, undefined])
  assert.deepEqual(judged([of('idle', 'memory of a socket', 'corespun with TLS', 20)]), [
    undefined,
    undefined,
    true,
  ])
})
