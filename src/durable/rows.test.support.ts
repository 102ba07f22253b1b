/**
 * Runs as rows that SQL reads: the statements of docs/guide/durable-operations.md, of SQLite and of Postgres.
 *
 * They are read from the page, so what is documented is what runs.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import type { Fleet } from '../fleet/index.ts'
import { durable, runs, step } from './index.ts'

const PAGE = new URL('../../docs/guide/durable-operations.md', import.meta.url)

type Rows = readonly Readonly<Record<string, unknown>>[]

/**
 * @param index Which of the blocks of the page. @param query Runs a statement.
 */
export async function checkRows(
  fleet: Fleet,
  index: number,
  query: (sql: string) => Promise<Rows> | Rows,
): Promise<void> {
  const checkout = durable('checkout', function* (order: { readonly cents: number }) {
    yield* step('charge', () => ({ paid: order.cents, by: 'Ann "é"' }))
    yield* step('refuse', () => [new Date(0)])
    // Postgres reads no row with one of these as JSON.
    yield* step('odd', () => ['\0', '\ud800'])
    yield* step('odd \0', () => 1)
    return yield* step('large', () => new Uint8Array(order.cents))
  })
  const work = await runs(fleet, { definitions: [checkout] })
  for (const cents of [1, 9000]) await (await work.start('checkout', { cents }, { key: `${cents}` })).result()
  await work.close()
  const block = readFileSync(PAGE, 'utf8').matchAll(/```sql\n(.+?)```/gs)
  const [view, heads, steps] = [...block][index][1].split(';\n')
  await query(view)
  const json = (value: unknown): unknown => (typeof value === 'string' ? JSON.parse(value) : value)
  const [one, large] = await query(heads)
  assert.deepEqual([one['key'], one['status'], json(one['input'])], ['1', 'done', { cents: 1 }])
  // Its frame is too large for JSON.
  assert.deepEqual([large['key'], large['status']], ['9000', null])
  const found = (await query(steps)).map(({ key, step: of, kind, value }) => [key, of, kind, json(value)])
  assert.deepEqual(found, [
    ['1', 'charge#1', 'done', { paid: 1, by: 'Ann "é"' }],
    ['1', 'refuse#1', 'done', null],
    ['1', 'odd#1', 'done', null],
    ['1', 'large#1', 'done', null],
  ])
}
