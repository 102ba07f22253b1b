/**
 * Tables of a snapshot: rates and quantiles beside sorted lists, names that attack who shows them, and
 * snapshots of which most is missing.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pageOf } from '../dashboard/page.ts'
import type { Durations, Snapshot } from './snapshot.ts'
import { type View, bytesOf, countOf, quantileOf, textOf, timeOf, viewOf } from './view.ts'
import { RUNS, hostile, sample } from '../view.test.support.ts'

const cellsOf = ({ tables }: View, id: string): readonly (readonly string[])[] =>
  tables.find((table) => table.id === id)?.rows.map(({ cells }) => cells) ?? []

test('a rate is what was added between two snapshots, by the second', () => {
  const route = (requests: number) => ({ ...sample().routes[0], requests })
  const before = sample({ upMs: 10_000, routes: [route(1000)] })
  const now = sample({ upMs: 12_000, routes: [route(1500)] })
  assert.equal(cellsOf(viewOf(now, before), 'routes')[0][1], '250')
  assert.equal(cellsOf(viewOf(now), 'routes')[0][1], '-')
  // Another process, or one that began to count anew.
  assert.equal(cellsOf(viewOf(now, { ...before, pid: 2 }), 'routes')[0][1], '-')
  assert.equal(cellsOf(viewOf(before, now), 'routes')[0][1], '-')
})

test('shares of a thread are known from its second look on, while it goes on counting', () => {
  const thread = (cpuMs: number, activeMs: number) => ({ ...sample().threads[0], cpuMs, activeMs, idleMs: 0 })
  const before = sample({ upMs: 10_000, threads: [thread(5000, 100)] })
  const cpuOf = (threads: Snapshot['threads'], earlier: Snapshot): string =>
    cellsOf(viewOf(sample({ upMs: 12_000, threads }), earlier), 'threads')[0][1]
  assert.equal(cpuOf([thread(6000, 1100)], before), '50')
  assert.equal(cpuOf([thread(6000, 1100)], { ...before, threads: [] }), '-')
  assert.equal(cpuOf([thread(6000, 100)], before), '-')
})

test('what was slow has its waits, and a dash for what is not known', () => {
  const view = viewOf(sample())
  assert.deepEqual(cellsOf(view, 'slow'), [
    ['GET /score/:id', 'main', '4.0 s', '1.2 s', '100 ms', '-', '-', '1.1 s', '3.0 ms', '-'],
    ['score', 'cpu/0', '3.0 s', '900 ms', '200 ms', '500 ms', '390 ms', '-', '-', '1.0 ms'],
  ])
  const details = view.tables.find(({ id }) => id === 'slow')!.rows.map((row) => row.details)
  assert.deepEqual(details, [
    ['status 200', 'ended 1970-01-01T00:00:00.000Z'],
    ['file:///app/tasks.ts:12', 'ended 1970-01-01T00:00:01.000Z'],
  ])
})

test('a quantile is in the bucket that a sorted list has it in', () => {
  const bounds = [1, 5, 20, 100]
  let seed = 7
  const random = (): number => (seed = (seed * 48_271) % 2_147_483_647) / 2_147_483_647
  for (let round = 0; round < 200; round++) {
    const values = Array.from({ length: 1 + Math.floor(random() * 50) }, () => random() ** 3 * 99).sort(
      (a, b) => a - b,
    )
    const buckets = [...bounds, Infinity].map(
      (bound, index) => values.filter((value) => value <= bound && value > (bounds[index - 1] ?? -1)).length,
    )
    const durations: Durations = { count: values.length, sumMs: 0, buckets }
    for (const q of [0.5, 0.9, 0.99]) {
      const exact = values[Math.ceil(values.length * q) - 1]
      const index = bounds.findIndex((bound) => exact <= bound)
      const shown = quantileOf(durations, bounds, q)
      const [, number, unit] = /^([\d.]+) (µs|ms)$/.exec(shown)!
      const ms = Number(number) / (unit === 'µs' ? 1000 : 1)
      assert.ok(ms <= bounds[index] + 0.5 && ms >= (bounds[index - 1] ?? 0) - 0.5, `${shown} of ${exact}`)
    }
  }
  assert.equal(quantileOf({ count: 1, sumMs: 0, buckets: [0, 0, 0, 0, 1] }, bounds, 0.5), '>100 ms')
  assert.equal(quantileOf({ count: 0, sumMs: 0, buckets: [0, 0, 0, 0, 0] }, bounds, 0.5), '-')
})

for (const [ms, text] of [
  [0.0004, '0 µs'],
  [0.25, '250 µs'],
  [9.94, '9.9 ms'],
  [999, '999 ms'],
  [9_940, '9.9 s'],
  [100_000, '100 s'],
  [3_599_000, '59 min'],
  [90_000_000, '25 h 0 min'],
  [400_000_000, '4 days'],
  [NaN, '-'],
] as const)
  test(`${ms} ms are shown as ${text}`, () => assert.equal(timeOf(ms), text))

test('counts and bytes are short', () => {
  assert.deepEqual([0, 999, 1_234_567, NaN].map(countOf), ['0', '999', '1,234,567', '-'])
  assert.deepEqual([0, 999, 1500, 999_600, 2.5e10].map(bytesOf), [
    '0 B',
    '999 B',
    '1.5 kB',
    '1.0 MB',
    '25 GB',
  ])
})

test('no character of a name is obeyed by a terminal', () => {
  const attacks = [
    '\u001B[2J\u001B]0;owned\u0007',
    '\u009B31m',
    'a\r\nb\tc',
    '\u202Etxt.exe',
    '\u2066x\u2069',
    '\u0000',
    '\u2028',
  ]
  for (const attack of attacks) assert.doesNotMatch(textOf(attack), /[\p{C}\p{Zl}\p{Zp}]/u)
  assert.equal(textOf('a'.repeat(1000)).length, 119)
  const { title, facts, problems, tables } = viewOf(hostile(), hostile())
  const rows = tables.flatMap((table) => table.rows)
  const shown = rows.flatMap(({ cells, details = [], act }) => [...cells, ...details, act?.question ?? ''])
  assert.ok(shown.length > 50)
  for (const text of [title, ...facts, ...problems, ...shown])
    assert.doesNotMatch(text, /[\p{C}\p{Zl}\p{Zp}]/u)
})

test('what another version does not send leaves tables out, and throws nothing', () => {
  for (const name of Object.keys(sample())) {
    const { [name as keyof Snapshot]: _, ...less } = sample()
    if (name !== 'boundsMs') viewOf(less as Snapshot, sample())
  }
  const { tables, title } = viewOf({ version: 1, pid: 7, name: 'old' } as Snapshot)
  assert.deepEqual(tables, [])
  assert.equal(title, 'old (7) on ')
})

test('actions are those that the process allows', () => {
  const actsOf = (actions: readonly string[]): unknown[] =>
    viewOf(sample({ actions })).tables.flatMap(({ rows }) => rows.map(({ act }) => act?.action ?? ''))
  assert.deepEqual([...new Set(actsOf([]))], [''])
  assert.deepEqual(new Set(actsOf(['retry', 'reload'])), new Set(['', 'retry', 'reload']))
})

test('a run is a row for each step, with its share of the time', () => {
  const { tables } = viewOf(sample({ runs: RUNS }))
  const rows = tables.find(({ id }) => id === 'steps')!.rows.map(({ cells, span }) => [...cells, span])
  assert.deepEqual(rows, [
    ['import night 1', 'failed', '-', '4.0 s', '-', '', [0, 1]],
    ['parse#1', 'done', '0 µs', '1.0 s', '-', '', [0, 0.25]],
    ['save#1', 'retrying', '3.0 s', '6.0 s', '2', '', [0.75, 1]],
  ])
  const acts = (id: string): unknown[] =>
    tables
      .find((table) => table.id === id)!
      .rows.map(({ cells, act }) => [cells[0], act?.action, act?.params])
  assert.deepEqual(acts('runs'), [
    ['checkout', 'show', { name: 'checkout' }],
    ['import', 'hide', {}],
  ])
  assert.deepEqual(acts('listed'), [['night 2', 'show', { name: 'import', key: 'night 2' }]])
  assert.equal(tables.find(({ id }) => id === 'steps')!.leftOut, 3)
})

test('the page has the same tables', async () => {
  const { html } = await pageOf()
  const [, script] = /<script>([^]*)<\/script>/.exec(html)!
  const inPage = script.replace(
    /begin\w*\(window, [\w$]+\)\n\}\)\(\)$/,
    `return ${viewOf.name}(now, before)\n})()`,
  )
  assert.notEqual(inPage, script)
  // oxlint-disable-next-line no-new-func -- as a browser runs it: without this module's scope
  const there = new Function('now', 'before', `return ${inPage}`) as typeof viewOf
  const before = sample({ upMs: 1000 })
  for (const now of [sample({ runs: RUNS }), hostile({ runs: RUNS })])
    assert.deepEqual(there(now, before), viewOf(now, before))
})
