/**
 * What of a process fits on a terminal: each size, from one cell to a wall.
 * What is chosen is in sight.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type View, viewOf } from '../../observe/internal.ts'
import { hostile, sample } from '../../observe/view.test.support.ts'
import { type Choice, printed, screenOf } from './layout.ts'

const ALL: Choice = { table: undefined, row: 0, question: undefined, note: '', mayDrain: false }
// oxlint-disable-next-line no-control-regex -- what a screen writes itself
const plain = (line: string): string => line.replaceAll(/\u001B\[\dm/g, '')
const routes = (count: number): View =>
  viewOf(
    sample({
      routes: Array.from({ length: count }, (_, n) => ({ ...sample().routes[0], route: `/route/${n}` })),
      leftOut: { routes: 9000 },
    }),
  )

test('a screen never has more lines or columns than its terminal', () => {
  const views = [viewOf(sample()), viewOf(hostile(), hostile({ upMs: 1 })), routes(1000)]
  views.push(
    viewOf(sample({ name: '名前名前名前', zones: [{ ...sample().zones[0], zone: '👩‍👩‍👧'.repeat(30) }] })),
  )
  for (const view of views)
    for (const columns of [1, 2, 5, 20, 39, 80, 200])
      for (const rows of [1, 2, 3, 6, 24, 60])
        for (const table of [undefined, 'routes', 'dead', 'closed']) {
          const lines = screenOf(view, { ...ALL, table, row: 500 }, columns, rows)
          assert.ok(lines.length <= rows, `${lines.length} lines of ${rows}`)
          for (const line of lines) {
            assert.ok([...plain(line)].length <= Math.max(1, columns), `${columns}: ${plain(line)}`)
            assert.doesNotMatch(plain(line), /[\p{Cc}\p{Zl}]/u)
          }
        }
})

test('80 columns and 24 rows have all tables that matter', () => {
  const lines = screenOf(viewOf(sample()), ALL, 80, 24).map(plain)
  assert.equal(lines[0].trim(), 'orders (4711) on one, Corespun 0.2.0, Node v24.0.0')
  for (const word of [
    '1 WORKER',
    '2 ZONE',
    '4 FUNCTION',
    '5 ROUTE',
    '6 SLOW',
    'JOBS OF',
    'DEAD JOB',
    'q quit',
  ])
    assert.ok(
      lines.some((line) => line.includes(word)),
      `${word}\n${lines.join('\n')}`,
    )
})

test('a chosen row is in sight, with its details', () => {
  const view = routes(1000)
  for (const row of [0, 1, 500, 998, 999]) {
    const lines = screenOf(view, { ...ALL, table: 'routes', row }, 80, 24)
    const [line, ...others] = lines.filter((each) => each.includes('\u001B[7m'))
    assert.match(line, new RegExp(`/route/${row} `))
    assert.deepEqual(others, [])
    assert.match(plain(lines.find((each) => each.includes('ROUTE'))!), /\d+ of 10000/)
  }
  const dead = screenOf(viewOf(sample()), { ...ALL, table: 'dead' }, 80, 24).map(plain)
  assert.ok(dead.includes('ECONNRESET: first') && dead.includes('TypeError: last'), dead.join('\n'))
})

test('a question is in the last line', () => {
  const { tables } = viewOf(sample({ actions: ['retry'] }))
  const { act: question } = tables.find(({ id }) => id === 'dead')!.rows[0]
  const lines = screenOf(viewOf(sample()), { ...ALL, question }, 80, 24)
  assert.equal(plain(lines[23]), 'run the job invoice-17 of mail anew? y/n')
})

test('printed, there are no sequences at all, and twenty rows of each table', () => {
  const text = printed(routes(1000), Infinity)
  assert.doesNotMatch(text, /[^\P{Cc}\n]/u)
  assert.equal(text.match(/\/route\//g)?.length, 20)
  assert.match(text, /ROUTE 20 of 10000/)
  assert.match(printed(viewOf(sample()), 40), /^5 ROUTE/m)
})
