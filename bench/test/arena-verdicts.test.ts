/**
 * The demands on table arena: against fastify and Elysia, in each profile.
 *
 * The rows are made here instead of by a run.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import table from '../tables/arena.ts'
import { holdsOf, rowOf } from './rows.test.support.ts'

test('each profile is judged against fastify and against Elysia', () => {
  const of = (profile: string, contender: string, median: number) =>
    rowOf({
      section: `arena ${profile}`,
      row: 'CPU per 100,000',
      contender: `${contender} in the arena`,
      median,
    })
  const rows = [
    of('baseline', 'corespun', 1),
    of('baseline', 'fastify', 2),
    of('baseline', 'elysia', 0.9),
    of('pipelined', 'corespun', 1.1),
    of('pipelined', 'fastify', 2),
    of('json', 'corespun', 1),
    of('json', 'fastify', 1),
  ]
  const judged = [true, false, false, undefined, true]
  assert.deepEqual(holdsOf(table, rows), judged)
})
