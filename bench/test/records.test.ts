/**
 * Records: what is written is what is read, the newest is found, two compare, and a wrong answer leaves none.
 *
 * Uses a table of its own that measures nothing, so it needs neither competitors nor the package.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { Jobs } from '../contenders/jobs.ts'
import { checkAnswer } from '../harness/errors.ts'
import { RECORDS_FOLDER } from '../harness/paths.ts'
import { changeLines, recordLines } from '../harness/print.ts'
import {
  type BenchRecord,
  compareRecords,
  findRecord,
  listRecords,
  newestRecord,
  newestRecords,
  readRecord,
  sectionRecords,
  writeRecord,
} from '../harness/record.ts'
import type { Words } from '../harness/run-table.ts'
import type { Row, Table } from '../harness/table.ts'
import { rowOf, runOf } from './rows.test.support.ts'

function row(median: number, traits: Partial<Row> = {}): Row {
  const spread = { median, low: median * 0.99, high: median * 1.01 }
  return rowOf({ condition: 'one core', unit: 'µs', ...spread, ...traits })
}

function table(rows: readonly Row[], answer = 42): Table {
  return {
    name: 'tested',
    title: 'A table of the tests',
    definitions: { one: 'nothing' },
    parameters: {
      rounds: { value: 11, quick: 3, doc: '' },
      pools: { value: 'all', doc: '' },
      only: { value: false, doc: '' },
    },
    run: async (context) => {
      context.skip('a pool', 'not installed')
      checkAnswer({ contender: 'liar', work: 'the question', got: answer, expected: 42 })
      return [...rows]
    },
    verdicts: ([first]) => [{ bar: 'below 10', measured: `${first.median}`, holds: first.median < 10 }],
  }
}

async function inFolder(body: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'corespun-bench-'))
  try {
    await body(folder)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

test('a record is read as it was written', () =>
  inFolder(async (folder) => {
    const record = await runOf(table([row(5), row(7, { row: 'p99', note: 'é "quoted"' })]))
    const path = writeRecord(record, folder)
    assert.match(path, /\d{4}-\d\d-\d\dT\d{6}-tested-node\d+\.json$/)
    assert.deepEqual(readRecord(path), record)
    assert.deepEqual(readdirSync(folder).length, 1, 'nothing is left beside it')
    assert.deepEqual(record.skipped, [{ what: 'a pool', why: 'not installed' }])
    assert.equal(record.verdicts[0].holds, true)
    assert.ok(
      record.machine.node === process.version && record.machine.cores >= 1 && record.machine.cpu !== '',
    )
  }))

test('records of the repository name no file of the machine that made them', () => {
  const naming = readdirSync(RECORDS_FOLDER).filter((name) =>
    /file:\/\/|\/(home|root|tmp|Users|work)\/|[A-Z]:\\/.test(
      readFileSync(join(RECORDS_FOLDER, name), 'utf8'),
    ),
  )
  assert.deepEqual(naming, [])
})

test('the newest record is found, full ones before quick ones', () =>
  inFolder(async (folder) => {
    const full = await runOf(table([row(5)]))
    const at = (startedAt: string, quick: boolean): string =>
      writeRecord({ ...full, startedAt, quick }, folder)
    const old = at('2026-01-01T10:00:00.000Z', false)
    const newer = at('2026-01-02T10:00:00.000Z', false)
    const quick = at('2026-01-03T10:00:00.000Z', true)
    assert.deepEqual(listRecords('tested', folder), [old, newer, quick])
    assert.equal(newestRecord('tested', undefined, folder)?.startedAt, '2026-01-02T10:00:00.000Z')
    assert.equal(newestRecord('other', undefined, folder), undefined)
    assert.equal(findRecord('2026-01-01', folder).startedAt, '2026-01-01T10:00:00.000Z')
    assert.throws(() => findRecord('2031', folder), { code: 'NO_RECORD' })
  }))

test('a newer run of some sections hides no section of an older one', () =>
  inFolder(async (folder) => {
    const full = await runOf(table([row(5), row(6, { section: 'two' })]))
    const at = (startedAt: string, traits: Partial<BenchRecord> = {}): string =>
      writeRecord({ ...full, startedAt, ...traits }, folder)
    const newer = [row(7, { section: 'two' }), row(8, { section: 'three' })]
    at('2026-01-01T10:00:00.000Z')
    at('2026-01-02T10:00:00.000Z', { rows: newer })
    at('2026-01-03T10:00:00.000Z', { quick: true })
    at('2026-01-04T10:00:00.000Z', { machine: { ...full.machine, cpu: 'another' } })
    at('2026-01-05T10:00:00.000Z', { machine: { ...full.machine, node: 'v9.0.0' } })
    const major = process.versions.node.split('.')[0]
    const found = sectionRecords('tested', { major, cpu: full.machine.cpu }, folder)
    assert.deepEqual(
      found.map(({ rows, verdicts }) => [rows.map(({ median }) => median), verdicts.length]),
      [
        [[7, 8], 1],
        [[5], 0],
      ],
    )
  }))

test('a machine without records of its own has all sections of where the newest was made', () =>
  inFolder(async (folder) => {
    const full = await runOf(table([row(5), row(6, { section: 'two' })]))
    const there = { ...full.machine, cpu: 'another', node: 'v9.1.0' }
    const at = (startedAt: string, traits: Partial<BenchRecord>): string =>
      writeRecord({ ...full, startedAt, ...traits }, folder)
    assert.deepEqual(newestRecords('tested', folder), [])
    at('2026-01-01T10:00:00.000Z', { quick: true })
    assert.equal(newestRecords('tested', folder).length, 1)
    at('2026-01-02T10:00:00.000Z', { machine: there })
    at('2026-01-03T10:00:00.000Z', { machine: there, rows: [row(7, { section: 'two' })] })
    assert.deepEqual(
      newestRecords('tested', folder).map(({ rows }) => rows.map(({ median }) => median)),
      [[7], [5]],
    )
  }))

test('a file that is not a record is refused with its path', () =>
  inFolder(async (folder) => {
    const path = join(folder, 'broken.json')
    for (const text of ['', '{', '{"format":2,"rows":[]}', '{"format":1}']) {
      writeFileSync(path, text)
      assert.throws(() => readRecord(path), { code: 'BAD_RECORD' })
    }
  }))

test('two records compare row by row: better, worse, same, and rows of one only are left out', async () => {
  const make = (rows: readonly Row[]) => runOf(table(rows))
  const fast = { row: 'rate', better: 'higher' } as const
  const before = await make([row(10), row(10, { row: 'p99' }), row(10, fast), row(1, { row: 'removed' })])
  const after = await make([row(5), row(10.05, { row: 'p99' }), row(5, fast), row(1, { row: 'new' })])
  const changes = compareRecords(before, after)
  assert.deepEqual(
    changes.map(({ judgement, quotient }) => [judgement, Number(quotient.toFixed(3))]),
    [
      ['better', 0.5],
      ['same', 1.005],
      ['worse', 0.5],
    ],
  )
  assert.equal(changeLines(changes).length, 4)
  assert.equal(changeLines(changes, true).length, 5)
})

test('overlapping intervals are the same however far the medians are', async () => {
  const before = await runOf(table([row(10, { low: 5, high: 21 })]))
  const after = await runOf(table([row(20, { low: 11, high: 40 })]))
  assert.equal(compareRecords(before, after)[0].judgement, 'same')
})

test('a wrong answer refuses the whole run', async () => {
  await assert.rejects(runOf(table([row(5)], 41)), {
    code: 'WRONG_ANSWER',
    message: /liar answered the question with 41 instead of 42; nothing is reported/,
  })
})

test('a pool that answers wrongly is refused by every job', async () => {
  const liar = {
    nothing: async () => 1,
    anonymous: async () => 1,
    call: async () => 1,
    close: async () => {},
  }
  const jobs = new Jobs({ name: 'liar', open: async () => liar })
  await assert.rejects(jobs.open({ threads: 1, spin: true }), { code: 'WRONG_ANSWER' })
  const refused = [
    jobs.loop({ form: 'named', calls: 3 }),
    jobs.batch({ form: 'anonymous', calls: 3 }),
    jobs.firsts({ form: 'named', calls: 1 }),
    jobs.crc({ text: 'abc', count: 1, calls: 2, expected: 5 }),
    jobs.mixedThere({ rounds: 1, expected: 5 }),
    jobs.prove({ threads: 1 }),
  ]
  for (const job of refused) await assert.rejects(job, { code: 'WRONG_ANSWER' })
})

test('a pool that runs in the calling thread is refused', async () => {
  const { WORK } = await import('../contenders/work.ts')
  const cheat = {
    nothing: async () => undefined,
    call: async (name: keyof typeof WORK, input: unknown) => WORK[name](input as never),
    close: async () => {},
  }
  const jobs = new Jobs({ name: 'cheat', open: async () => cheat })
  await jobs.open({ threads: 1, spin: true })
  await assert.rejects(jobs.prove({ threads: 1 }), { code: 'WRONG_ANSWER', message: /main thread did it/ })
})

test('parameters are typed by their defaults, and --quick has its own', async () => {
  const parametersOf = async (words: Words) => (await runOf(table([row(5)]), words)).parameters
  assert.deepEqual(await parametersOf({ quick: false, values: {} }), {
    rounds: 11,
    pools: 'all',
    only: false,
  })
  assert.deepEqual(await parametersOf({ quick: true, values: {} }), { rounds: 3, pools: 'all', only: false })
  assert.deepEqual(
    await parametersOf({ quick: true, values: { rounds: '1_000', pools: 'corespun', only: true } }),
    { rounds: 1000, pools: 'corespun', only: true },
  )
  for (const [name, value] of [
    ['rounds', 'many'],
    ['rounds', '0'],
    ['rounds', true],
    ['only', 'yes'],
    ['pools', true],
  ] as const) {
    await assert.rejects(parametersOf({ quick: false, values: { [name]: value } }), { code: 'BAD_PARAMETER' })
  }
  await assert.rejects(parametersOf({ quick: false, values: { round: '3' } }), {
    code: 'UNKNOWN_PARAMETER',
    message: /--rounds --pools --only/,
  })
})

test('a printed record shows every row, its interval, what was left out and every verdict', async () => {
  const record = await runOf(
    table([
      row(5, { cpuUs: 3, ratio: { to: 'piscina', median: 0.5, low: 0.4, high: 0.6 } }),
      row(1234.5, { row: 'p99' }),
    ]),
  )
  const text = recordLines(record).join('\n')
  for (const part of [
    /\[4\.95–5\.05\]/,
    /0\.50 × piscina/,
    /1,235/,
    /left out: a pool: not installed/,
    /met\s+below 10/,
    /governor/,
  ])
    assert.match(text, part)
})

test('a run on a busy machine is marked', async () => {
  const record = await runOf(table([row(5)]))
  const on = (loadBefore: number): string =>
    recordLines({ ...record, machine: { ...record.machine, cores: 2, loadBefore } }).join('\n')
  assert.match(on(4), /BUSY MACHINE/)
  assert.doesNotMatch(on(0.4), /BUSY MACHINE/)
})
