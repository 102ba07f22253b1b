/**
 * The demands of table fleet, and that its work is the known one.
 *
 * The rows are made here instead of by a run, which needs servers.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import table from '../tables/fleet.ts'
import { double, echo, primes } from '../tables/fleet/work.ts'
import { holdsOf, rowOf } from './rows.test.support.ts'

test('each demand compares with its own rival, and none holds unmeasured', () => {
  const of = (section: string, row: string, contender: string, median: number) =>
    rowOf({ section, row, contender, median })
  const rivals = [
    of('call', 'p50', 'NATS request', 100),
    of('call', '64 in flight', 'NATS request', 100),
    of('job', '64 in flight', 'JetStream', 100),
    of('job', '64 in flight', 'BullMQ', 20),
    of('hosts', '10 ms', 'two processes', 100),
  ]
  const own = (p50: number, calls: number, jobs: number, tasks: number) => [
    of('call', 'p50', 'corespun', p50),
    of('call', '64 in flight', 'corespun', calls),
    of('job', '64 in flight', 'corespun', jobs),
    of('hosts', '10 ms', 'corespun', tasks),
  ]
  const judged = (...rows: ReturnType<typeof rowOf>[]) => holdsOf(table, rows)
  assert.deepEqual(judged(...rivals, ...own(125, 80, 100, 95)), Array(5).fill(true))
  assert.deepEqual(judged(...rivals, ...own(126, 79, 79, 94)), Array(5).fill(false))
  assert.deepEqual(judged(...rivals), Array(5).fill(undefined))
})

test('the work of all contenders has the known answers', () => {
  assert.deepEqual([echo('a'), double(21), primes(100), primes(20_000)], ['a', 42, 25, 2262])
})
