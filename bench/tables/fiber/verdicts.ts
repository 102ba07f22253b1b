/**
 * The demands on fibers, judged on the rows of one run.
 *
 * Against ZIO a row is judged by the ratio to the ZIO of the same run; where none was measured, against its
 * anchor of another machine (bench/anchors.json), and the bar names it. Everything else is measured here.
 */
import { SPINNING } from '../../harness/conditions.ts'
import { findRow, type Row, type Verdict } from '../../harness/table.ts'
import { judge, judgeRatio } from '../../harness/verdicts.ts'
import { BESIDE_PROMISES } from './beside-promises.ts'
import { ZIO } from './zio.ts'

/** Figures of ZIO 2 on the JVM, ops/s, by row, where no run has its own. */
const ANCHORS: Readonly<Record<string, number>> = {
  'sequential|default, 0..10': 2_186_000,
  'sequential|default, 0..20': 1_141_000,
  'sequential|blocking, 0..10': 56_000,
  'sequential|blocking, 0..20': 53_000,
  'sequential|cached, 0..10': 52_000,
  'sequential|cached, 0..20': 34_000,
  'sequential|work-stealing, 0..10': 18_500,
  'sequential|work-stealing, 0..20': 23_400,
  'fibers|blocking, 0..10': 9_700,
  'fibers|blocking, 0..20': 7_700,
  'fibers|cached, 0..10': 9_100,
  'fibers|cached, 0..20': 7_500,
  'fibers|work-stealing, 0..10': 51_000,
  'fibers|work-stealing, 0..20': 38_000,
}

/** All demands of the table. */
export function verdicts(rows: readonly Row[]): Verdict[] {
  return [...costs(rows), ...besidePromises(rows), ...bytes(rows), ...here(rows), ...there(rows)]
}

function find(rows: readonly Row[], section: string, row: string, contender: string): Row | undefined {
  const all = rows.filter((one) => one.section.endsWith(section) && one.row === row)
  return (
    findRow(all, { contender, condition: SPINNING.name }) ?? all.find((one) => one.contender === contender)
  )
}

/** Fork and join: bounds in ns, and four times Effect. */
function costs(rows: readonly Row[]): Verdict[] {
  const bounds = [
    ['a function that never waits', 'a body that never waits', 60],
    ['a generator that never waits', 'a generator that never waits', 200],
    ['waits once', 'a body that waits once', 200],
  ] as const
  const of = (row: string, contender: string): Row | undefined => find(rows, 'fork+join', row, contender)
  return [
    ...bounds.map(([row, what, most]) =>
      value(`fork+join of ${what} ≤ ${most} ns`, of(row, 'corespun'), (ns) => ns <= most),
    ),
    ...bounds.map(([row]) =>
      judgeRatio(`fork+join, ${row}: ≥ 4 × Effect`, [of(row, 'effect'), of(row, 'corespun')], (x) => x >= 4),
    ),
  ]
}

/** At most so many times what promises take. */
function besidePromises(rows: readonly Row[]): Verdict[] {
  const bounds = [
    [BESIDE_PROMISES.settled, 2],
    [BESIDE_PROMISES.items, 3],
    [BESIDE_PROMISES.sleepers, 1.2],
    [BESIDE_PROMISES.stream, 1.5],
    [BESIDE_PROMISES.folded, 1.2],
    [BESIDE_PROMISES.looped, 1.2],
    [BESIDE_PROMISES.array, 1],
  ] as const
  const section = 'beside promises'
  const of = (program: string, contender: string): Row | undefined =>
    find(rows, section, program.slice(section.length + 2), contender)
  return [
    ...bounds.map(([row, most]) =>
      judgeRatio(
        `${row}: ≤ ${most} × promises`,
        [of(row, 'corespun'), of(row, 'promises')],
        (times) => times <= most,
      ),
    ),
    value(`${BESIDE_PROMISES.called} ≤ 200 ns`, of(BESIDE_PROMISES.called, 'corespun'), (ns) => ns <= 200),
  ]
}

/** The most bytes of a parked fiber. */
const BYTES = { 'generator that waits': 250, 'generator that joins': 250, 'call with an argument': 260 }

function bytes(rows: readonly Row[]): Verdict[] {
  return Object.entries(BYTES).map(([row, most]) =>
    value(
      `a parked ${row} ≤ ${most} bytes`,
      find(rows, 'parked fiber', row, 'corespun'),
      (size) => size <= most,
    ),
  )
}

/** Rows of one thread: the rival, the demand in words, the least quotient that it allows. */
const HERE = [
  ['sequential', 'promises', 'ahead of promises', (x: number) => x > 1],
  ['sequential', 'effect', 'ahead of effect', (x: number) => x > 1],
  ['sequential', 'effect forEach', 'ahead of effect forEach', (x: number) => x > 1],
  ['fibers', 'effect', '≥ 4 × effect', (x: number) => x >= 4],
  ['fibers', 'effect forEach', '≥ 4 × effect forEach', (x: number) => x >= 4],
  ['fibers', 'promises', 'not behind Promise.all', (x: number) => x >= 1],
] as const

function here(rows: readonly Row[]): Verdict[] {
  return ['default, 0..10', 'default, 0..20'].flatMap((row) => [
    besideZio(rows, 'sequential', row, 'ahead of', (times) => times > 1),
    ...HERE.map(([section, rival, words, holds]) => {
      const pair = ['corespun', rival].map((contender) => find(rows, section, row, contender))
      return judgeRatio(`${section} ${row}: ${words}`, pair, holds)
    }),
  ])
}

function there(rows: readonly Row[]): Verdict[] {
  return Object.keys(ANCHORS)
    .filter((key) => !key.includes('default'))
    .flatMap((key) => {
      const [section, row] = key.split('|') as [string, string]
      const pair = ['corespun', 'piscina'].map((name) => find(rows, section, row, name))
      const least = row.startsWith('work-stealing') ? 1 : 4
      return [
        besideZio(rows, section, row, `≥ ${least} ×`, (times) => times >= least),
        judgeRatio(`${section} ${row}: ≥ 5 × piscina`, pair, (x) => x >= 5),
      ]
    })
}

/** By the ZIO of the same run and condition, else by its anchor. */
function besideZio(
  rows: readonly Row[],
  section: string,
  row: string,
  words: string,
  holds: (times: number) => boolean,
): Verdict {
  const own = find(rows, section, row, 'corespun')
  const zio = findRow(rows, {
    section: own?.section,
    row,
    contender: ZIO,
    condition: own?.condition,
  } as Partial<Row>)
  const bar = `${section} ${row}: ${words} ZIO 2`
  if (zio !== undefined) return judgeRatio(`${bar} in this run`, [own, zio], holds)
  const anchor = ANCHORS[`${section}|${row}`]
  return value(`${bar}'s ${anchor} on another machine`, own, (rate) => holds(rate / anchor))
}

function value(bar: string, row: Row | undefined, holds: (median: number) => boolean): Verdict {
  return judge(bar, [row], ({ median, unit }) => [`${Math.round(median)} ${unit}`, holds(median)])
}
