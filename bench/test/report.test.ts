/**
 * The report: the seeds' cells in their order, figures found by tag, units converted, claims never true by
 * chance.
 *
 * Uses records made here; the page itself needs Chart.js and is made by `npm run report`.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { BenchRecord } from '../harness/record.ts'
import { runTable } from '../harness/run-table.ts'
import type { Row } from '../harness/table.ts'
import { tableNames } from '../harness/tables.ts'
import { recordCharts, seedCharts } from '../report/charts.ts'
import { readAnchors } from '../report/anchors.ts'
import { makeReport, readSeeds } from '../report/model.ts'
import { escaped } from '../report/html.ts'
import { reportLines } from '../report/text.ts'
import { rowOf } from './rows.test.support.ts'

async function recordOf(rows: Row[]): Promise<BenchRecord> {
  const run = async (): Promise<Row[]> => rows
  return runTable(
    { name: 'execute', title: '', definitions: {}, parameters: {}, run },
    { quick: false, values: {} },
    () => {},
  )
}

test('every table of the seeds is there with all its rows', () => {
  const counts = readSeeds().flatMap((seed) => seed.tables.map((table) => [table.id, table.rows.length]))
  assert.deepEqual(Object.fromEntries(counts), {
    'arrow/api': 14,
    'arrow/files': 3,
    'arrow/compute': 3,
    'fiber/setup-1/future': 2,
    'fiber/setup-1/sequential': 8,
    'fiber/setup-1/parallel': 8,
    'fiber/setup-2/future': 2,
    'fiber/setup-2/sequential': 8,
    'fiber/setup-2/parallel': 8,
    'http/hello': 8,
    'napa/javascript': 1,
    'napa/scaling': 2,
    'napa/overhead': 5,
    'napa/first': 20,
    'napa/transport': 17,
    'napa/store': 18,
  })
  for (const table of readSeeds().flatMap((seed) => seed.tables)) {
    for (const { key, cells } of table.rows) {
      assert.deepEqual(
        Object.keys(cells).sort(),
        table.columns.map(({ id }) => id).sort(),
        `${table.id}/${key}`,
      )
      for (const value of Object.values(cells)) assert.ok(value > 0, `${table.id}/${key}`)
    }
  }
})

test('every anchor belongs to a cell of a seed', () => {
  const anchors = readAnchors()
  const cells = new Set(
    readSeeds().flatMap((seed) =>
      seed.tables.flatMap((table) =>
        table.rows.flatMap(({ key }) => table.columns.map(({ id }) => `${table.id}/${key}/${id}`)),
      ),
    ),
  )
  for (const id of Object.keys(anchors.cells)) assert.ok(cells.has(id), id)
})

test('without records nothing of Skein is measured and no claim about it is judged', () => {
  const report = makeReport([])
  for (const { skein } of report.seeds.flatMap((seed) =>
    seed.tables.flatMap((table) => table.rows.flatMap((one) => one.cells)),
  ))
    assert.equal(skein, undefined)
  for (const { skein } of report.claims) assert.equal(skein.holds, undefined)
  const text = reportLines(report).join('\n')
  assert.match(text, /asEffect .*not measured/)
  assert.match(text, /call 1 .*not measured/)
})

test('a tagged row fills its cell, in the unit of the column', async () => {
  const report = makeReport([
    await recordOf([
      rowOf({ unit: 'µs', median: 250, seed: 'napa/first/3/ms' }),
      rowOf({ median: 90, seed: 'napa/overhead/200/ms' }),
    ]),
  ])
  const cells = report.seeds.flatMap((seed) =>
    seed.tables.flatMap((table) => table.rows.flatMap((one) => one.cells)),
  )
  assert.equal(cells.find(({ id }) => id === 'napa/first/3/ms')?.skein?.median, 0.25)
  assert.equal(cells.find(({ id }) => id === 'napa/overhead/200/ms')?.skein?.median, 90)
  assert.equal(cells.filter(({ skein }) => skein !== undefined).length, 2)
})

test('claims follow the figures both ways', async () => {
  const judged = async (named: number, anonymous: number) => {
    const of = (words: string, median: number): Row =>
      rowOf({ section: 'overhead', row: `10000 calls ${words}, one by one`, median })
    return makeReport([await recordOf([of('named', named), of('anonymous', anonymous)])]).claims.find(
      ({ claim }) => claim.startsWith('An anonymous'),
    )!.skein.holds
  }
  assert.equal(await judged(100, 104), true)
  assert.equal(await judged(100, 106), false)
})

test('the rivals measured here decide the claims on them', () => {
  const word = (part: string) => makeReport([]).claims.find(({ claim }) => claim.includes(part))!.rival.holds
  assert.equal(word('more than 10 ×'), false)
  assert.equal(word('blocking pool costs'), false)
  assert.equal(word('Sequential on the default'), true)
  assert.equal(word('3 × JSON.stringify'), false)
})

test('plots have as many values as labels and at least one figure', async () => {
  const rows = ['skein', 'piscina'].flatMap((contender) =>
    ['one core', 'cores asleep'].map((condition) =>
      rowOf({ section: 'sequential', row: 'p50', contender, condition, cpuUs: 2 }),
    ),
  )
  const report = makeReport([await recordOf(rows)])
  const charts = [...seedCharts(report), ...recordCharts(report.records)]
  assert.ok(charts.length > 8)
  for (const { id, labels, series } of charts) {
    assert.ok(series.length > 0, id)
    for (const { values } of series) assert.equal(values.length, labels.length, id)
  }
})

test('text cannot become markup', () =>
  assert.equal(escaped(`<b a="'">&`), '&lt;b a=&quot;&#39;&quot;&gt;&amp;'))

test('every compiled table is found by its name', () =>
  assert.ok(['execute', 'hop'].every((name) => tableNames().includes(name))))
