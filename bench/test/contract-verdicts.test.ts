/**
 * The demands on table contract: against the route without a schema, the schemas called by hand, and others.
 *
 * The rows are made here instead of by a run.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ORDER } from '../contenders/contract/order.ts'
import table from '../tables/contract.ts'
import { holdsOf, rowOf } from './rows.test.support.ts'

const of = (contender: string, median: number) =>
  rowOf({ section: 'order', row: 'CPU per 100,000', contender, median })

test('a checked route is judged by its rate without a schema and by the CPU of others', () => {
  const plain = of('corespun without a schema', 1)
  const rivals = [
    of('zod called by hand', 1.2),
    of('fastify with JSON Schema', 2.3),
    of('elysia on bun', 1.1),
  ]
  assert.deepEqual(holdsOf(table, [plain, of('corespun with zod', 1.1), ...rivals]), [true, true, true, true])
  const slower = [plain, of('corespun with zod', 1.21), ...rivals.slice(0, 2)]
  assert.deepEqual(holdsOf(table, slower), [false, false, false, undefined])
})

test('the order is a KiB of ASCII', () => {
  const text = JSON.stringify(ORDER)
  assert.ok(Math.abs(text.length - 1024) < 32, `${text.length}`)
  assert.match(text, /^[\x20-\x7e]*$/)
})
