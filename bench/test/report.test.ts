/**
 * The report: the seeds' cells in their order, figures found by tag, units converted, claims never true by
 * chance.
 *
 * Uses records made here, and those of the tree; the page has its plots by Chart.js only from `npm run
 * report`.
 */
import assert from 'node:assert/strict'
import { type SpawnSyncReturns, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { DIST_FOLDER, PACKAGE_FOLDER } from '../harness/paths.ts'
import { type BenchRecord, listRecords, readRecord, writeRecord } from '../harness/record.ts'
import { Samples } from '../harness/rounds.ts'
import type { Row } from '../harness/table.ts'
import { tableNames } from '../harness/tables.ts'
import { recordCharts, seedCharts } from '../report/charts.ts'
import { readAnchors } from '../report/anchors.ts'
import { makeReport, readSeeds } from '../report/model.ts'
import { escaped } from '../report/html.ts'
import { threadStats } from '../tables/http/load.ts'
import { reportPage } from '../report/page.ts'
import { PICTURE, picture } from '../report/picture.ts'
import { reportLines } from '../report/text.ts'
import { rowOf, runOf } from './rows.test.support.ts'

async function recordOf(rows: Row[]): Promise<BenchRecord> {
  const run = async (): Promise<Row[]> => rows
  return runOf({ name: 'execute', title: '', definitions: {}, parameters: {}, run })
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
    'http/threads': 8,
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

test('without records nothing of Corespun is measured and no claim about it is judged', () => {
  const report = makeReport([])
  for (const { corespun } of report.seeds.flatMap((seed) =>
    seed.tables.flatMap((table) => table.rows.flatMap((one) => one.cells)),
  ))
    assert.equal(corespun, undefined)
  for (const { corespun } of report.claims) assert.equal(corespun.holds, undefined)
  const text = reportLines(report).join('\n')
  assert.match(text, /asEffect .*not measured/)
  assert.match(text, /call 1 .*not measured/)
})

test('a tagged row fills its cell, in the unit of the column', async () => {
  const report = makeReport([
    await recordOf([
      rowOf({ unit: 'µs', median: 250, seed: 'napa/first/3/ms' }),
      rowOf({ median: 90, seed: 'napa/overhead/200/ms' }),
      rowOf({ unit: 'µs', median: 0.5, seed: ['napa/transport/1/marshall', 'napa/store/1/set'] }),
    ]),
  ])
  const cells = report.seeds.flatMap((seed) =>
    seed.tables.flatMap((table) => table.rows.flatMap((one) => one.cells)),
  )
  assert.equal(cells.find(({ id }) => id === 'napa/first/3/ms')?.corespun?.median, 0.25)
  assert.equal(cells.find(({ id }) => id === 'napa/overhead/200/ms')?.corespun?.median, 90)
  // One call, as the rows of the tables transport and store are, and as the seed's own figure reads.
  for (const [id, seed] of [
    ['napa/transport/1/marshall', 18.05],
    ['napa/store/1/set', 73.85],
  ]) {
    const cell = cells.find((one) => one.id === id)
    assert.deepEqual([cell?.seed, cell?.corespun?.median, cell?.unit], [seed, 0.5, 'µs'])
  }
  assert.equal(cells.filter(({ corespun }) => corespun !== undefined).length, 4)
})

test('an infinite or undefined quotient is not a ratio: measured, read from a record, shown', async () => {
  const samples = new Samples()
  for (const other of [0, 0, 5]) {
    samples.add('idle', { p99: other })
    samples.add('corespun', { p99: 3 })
  }
  const shape = { figure: 'p99', section: 's', row: 'p99', condition: 'c', threads: 0, unit: 'µs' } as const
  const [idle, own] = samples.rows({ ...shape, better: 'lower', against: 'idle' })
  assert.deepEqual([idle?.ratio, own?.ratio, own?.median], [undefined, undefined, 3])
  const written = rowOf({ ratio: { to: 'idle', median: null, low: 0.5, high: null } as never })
  const ratio = { to: 'idle', median: 2, low: 1, high: 3 }
  const folder = mkdtempSync(join(tmpdir(), 'corespun-bench-'))
  const read = readRecord(writeRecord(await recordOf([written, rowOf({ row: 'b', ratio })]), folder))
  rmSync(folder, { recursive: true })
  assert.deepEqual(
    read.rows.map((one) => one.ratio),
    [undefined, ratio],
  )
  assert.match(reportPage(makeReport([read])), /2\.00 × idle/)
})

test('every record of the tree has its page and its text', () => {
  for (const path of tableNames().flatMap((name) => listRecords(name))) {
    const report = makeReport([readRecord(path)])
    assert.match(reportPage(report), /<table/, path)
    assert.ok(reportLines(report).length > 10, path)
  }
})

test('claims follow the figures both ways', async () => {
  const judged = async (named: number, anonymous: number) => {
    const of = (words: string, median: number): Row =>
      rowOf({ section: 'overhead', row: `10000 calls ${words}, one by one`, median })
    return makeReport([await recordOf([of('named', named), of('anonymous', anonymous)])]).claims.find(
      ({ claim }) => claim.startsWith('An anonymous'),
    )!.corespun.holds
  }
  assert.equal(await judged(100, 104), true)
  assert.equal(await judged(100, 106), false)
})

test('claims about arrows, fibers, HTTP and the store are judged by their rows', async () => {
  const claim = async (part: string, rows: Row[]) =>
    makeReport([await recordOf(rows)]).claims.find((one) => one.claim.includes(part))!.corespun
  const cell = (seed: string, median: number): Row => rowOf({ seed, median })
  const compute = (arrow: number): Row[] => [
    cell('arrow/compute/arrowBench/ops', arrow),
    cell('arrow/compute/zioBench/ops', 10),
  ]
  assert.equal((await claim('more than 10 ×', compute(100))).holds, true)
  assert.equal((await claim('more than 10 ×', compute(99))).holds, false)
  assert.equal((await claim('more than 10 ×', compute(99).slice(1))).holds, undefined)
  const files = (slowest: number): Row[] =>
    ['plain', 'arrow', 'zio'].map((name, at) =>
      cell(`arrow/files/${name}Bench/ops`, at === 0 ? slowest : 115),
    )
  assert.equal((await claim('balanced', files(100))).holds, true)
  assert.equal((await claim('balanced', files(99))).holds, false)
  const fibers = (own: number): Row[] => [
    cell('fiber/setup-1/sequential/default-10/ops', own),
    ...['sequential/blocking', 'sequential/cached', 'sequential/work-stealing'].map((name) =>
      cell(`fiber/setup-1/${name}-10/ops`, 100),
    ),
    cell('fiber/setup-1/parallel/default-10/ops', 100),
    cell('fiber/setup-1/parallel/work-stealing-10/ops', 100),
  ]
  assert.equal((await claim('fastest of all', fibers(101))).holds, true)
  assert.equal((await claim('fastest of all', fibers(99))).holds, false)
  assert.equal((await claim('factor of 5 to 8', fibers(500))).holds, true)
  assert.equal((await claim('factor of 5 to 8', fibers(900))).holds, false)
  const pools = (cached: number): Row[] =>
    [100, cached, 100].map((median, at) =>
      cell(`fiber/setup-1/sequential/${['blocking', 'cached', 'work-stealing'][at]}-20/ops`, median),
    )
  assert.equal((await claim('hardly better than the blocking', pools(199))).holds, true)
  assert.equal((await claim('hardly better than the blocking', pools(200))).holds, false)
  const stored = (us: number): Row[] =>
    ['set', 'get'].flatMap((what) => [
      rowOf({ section: `${what} beyond transport`, row: '1 level - 1 integers', median: us }),
      rowOf({ section: what, row: '1 level - 1 integers', median: us }),
      rowOf({ section: what, row: '1 level - 1 integers', contender: 'Map', median: 1 }),
    ])
  assert.equal((await claim('0.06 ms beyond', stored(60))).holds, true)
  assert.equal((await claim('0.06 ms beyond', stored(0.2))).holds, false)
  assert.equal((await claim('By payload', stored(80))).holds, true)
  assert.equal((await claim('By payload', stored(59))).holds, false)
  assert.equal((await claim('JavaScript variable', stored(2))).holds, true)
  assert.equal((await claim('JavaScript variable', stored(0.5))).holds, false)
  const served = ['corespun', 'node:http'].map((contender, at) =>
    rowOf({ section: 'hello', row: 'requests/s', contender, median: [300, 100][at] }),
  )
  assert.match((await claim('several times what http4s', served)).evidence, /serves 3 × what node:http/)
})

test('a cost below the claimed one is shown as such, and a negative difference as no cost', async () => {
  const call = rowOf({ section: 'sequential', row: 'p50', condition: 'cores spinning', median: 1.9 })
  const differences = [-155, 0.9].flatMap((median) =>
    ['set', 'get'].map((what) => rowOf({ section: `${what} beyond transport`, row: String(median), median })),
  )
  const report = makeReport([await recordOf([call, ...differences])])
  const shown = (part: string) => report.claims.find(({ claim }) => claim.includes(part))!.corespun
  assert.deepEqual([shown('some 0.1 ms').isCheaper, shown('some 0.1 ms').holds], [true, false])
  assert.equal(shown('By payload').evidence, 'set none to 0.9 µs, get none to 0.9 µs over 2 payloads')
  const page = reportPage(report)
  assert.match(page, /<span class="badge yes">costs less<\/span> <span class="note">p50 1.9 µs/)
  assert.doesNotMatch(page.slice(page.indexOf('id="claims"'), page.indexOf('id="records"')), /badge no/)
})

test('columns of a seed name machine and day; every plot is drawn, and the page has no script', async () => {
  const record = await recordOf([rowOf({ seed: 'napa/overhead/200/ms', unit: 'ms', median: 90 })])
  const page = reportPage(makeReport([record]))
  const { date } = readAnchors()
  assert.match(page, new RegExp(`published, their machine</th><th>napajs, rebuilt here ${date}</th>`))
  const { cores, cpu } = record.machine
  assert.ok(page.includes(`Corespun here: ${cores} cores of ${cpu}, `))
  assert.match(page, new RegExp(`<th>Corespun here ${record.startedAt.slice(0, 10)}</th>`))
  assert.equal(page.match(/<figure>/g)?.length, page.match(/<svg [^>]*role="img"/g)?.length)
  assert.match(page, /<span class="key s1">published<\/span>.*<rect /)
  assert.match(page, /<span class="key s0">Corespun<\/span>/)
  assert.match(page, /<span>Corespun: not measured<\/span>/)
  assert.match(page, /<td data-of="Corespun"><span class="badge /)
  assert.doesNotMatch(page, /<script|NaN|Infinity%/)
})

test('the rivals measured here decide the claims on them', () => {
  const word = (part: string) => makeReport([]).claims.find(({ claim }) => claim.includes(part))!.rival.holds
  assert.equal(word('more than 10 ×'), false)
  assert.equal(word('blocking pool costs'), false)
  assert.equal(word('Sequential on the default'), true)
  assert.equal(word('3 × JSON.stringify'), false)
})

test('plots have as many values as labels and at least one figure', async () => {
  const rows = ['corespun', 'piscina'].flatMap((contender) =>
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

test('an unknown word of the report measures nothing', () => {
  const report = (...words: string[]): SpawnSyncReturns<string> =>
    spawnSync(process.execPath, [`${DIST_FOLDER}/main.js`, 'report', ...words], { encoding: 'utf8' })
  const unknown = report('--qick')
  assert.equal(unknown.status, 1)
  assert.equal(
    unknown.stderr.trim(),
    'table report has no parameter --qick; it has: --quick, --missing, --fresh, --picture',
  )
  const help = report('--help')
  assert.equal(help.status, 0)
  assert.match(help.stdout, /npm run report -- /)
})

test('the stats of its threads are read as wrk prints them', () => {
  const summary = `  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency    21.09ms   77.59ms   1.09s    96.59%
    Req/Sec     3.28k   698.69    1.20M    78.99%
`
  assert.deepEqual(threadStats(summary), {
    perThread: { mean: 3280, sd: 698.69, max: 1_200_000, within: 78.99 },
    within: 96.59,
  })
  assert.deepEqual(threadStats(''), {})
})

test('text cannot become markup', () =>
  assert.equal(escaped(`<b a="'">&`), '&lt;b a=&quot;&#39;&quot;&gt;&amp;'))

test('every compiled table is found by its name', () =>
  assert.ok(['execute', 'hop'].every((name) => tableNames().includes(name))))

test('docs/numbers.svg shows the table of the README', () => {
  const made = picture(readFileSync(`${PACKAGE_FOLDER}/README.md`, 'utf8'))
  assert.equal(made.match(/class="own"/g)?.length, 5)
  assert.equal(readFileSync(PICTURE, 'utf8'), made, 'npm run report -- --picture')
})

test('a picture has a bar for each figure, its name before it', () => {
  const others = 'node:http 1,000 s <!-- record: r#b -->, Bun 4 s <!-- record: r#c -->'
  const row = `| one <call>: \`x\` | 2 s <!-- record: r#a --> | ${others} |`
  const made = picture(`## Two numbers\n| what | a | b |\n|---|--:|---|\n${row}\n\n## Next\n`)
  const texts = [...made.matchAll(/<text[^>]*>([^<]*)</g)].map(([, text]) => text)
  assert.deepEqual(texts, ['one &lt;call&gt;', 'Corespun', '2 s', 'node:http', '1,000 s', 'Bun', '4 s'])
})
