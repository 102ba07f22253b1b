/**
 * The demands on fibers, judged on the rows of one run.
 *
 * Against ZIO a row is judged by the ratio to the ZIO of the same run; where none was measured, against its
 * anchor of another machine (bench/anchors.json), and the bar says so. Everything else is measured here.
 */
import { SPINNING } from '../../harness/conditions.ts'
import { findRow, type Row, type Verdict } from '../../harness/table.ts'
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
  return [...costs(rows), ...bytes(rows), ...here(rows), ...there(rows)]
}

function find(rows: readonly Row[], section: string, row: string, contender: string): Row | undefined {
  const all = rows.filter((one) => one.section.endsWith(section) && one.row === row)
  return (
    findRow(all, { contender, condition: SPINNING.name }) ?? all.find((one) => one.contender === contender)
  )
}

function costs(rows: readonly Row[]): Verdict[] {
  const of = (row: string, contender = 'skein'): Row | undefined => find(rows, 'fork+join', row, contender)
  const [plain, generator, once] = [
    'a function that never waits',
    'a generator that never waits',
    'waits once',
  ] as const
  const effects = [plain, generator, once].map((row) => {
    return ratio(`fork+join, ${row}: ≥ 4 × Effect`, of(row, 'effect'), of(row), (times) => times >= 4)
  })
  return [
    value('fork+join of a body that never waits ≤ 60 ns', of(plain), (ns) => ns <= 60),
    value('fork+join of a generator that never waits ≤ 200 ns', of(generator), (ns) => ns <= 200),
    value('fork+join of a body that waits once ≤ 200 ns', of(once), (ns) => ns <= 200),
    ...effects,
  ]
}

function bytes(rows: readonly Row[]): Verdict[] {
  return ['generator that waits', 'generator that joins'].map((row) =>
    value(`a parked ${row} ≤ 250 bytes`, find(rows, 'parked fiber', row, 'skein'), (size) => size <= 250),
  )
}

function here(rows: readonly Row[]): Verdict[] {
  return ['default, 0..10', 'default, 0..20'].flatMap((row) => {
    const sequential = (contender: string): Row | undefined => find(rows, 'sequential', row, contender)
    const fibers = (contender: string): Row | undefined => find(rows, 'fibers', row, contender)
    const effects = ['effect', 'effect forEach'] as const
    return [
      besideZio(rows, 'sequential', row, 'ahead of', (times) => times > 1),
      ratio(
        `sequential ${row}: ahead of promises`,
        sequential('skein'),
        sequential('promises'),
        (x) => x > 1,
      ),
      ...effects.map((name) =>
        ratio(`sequential ${row}: ahead of ${name}`, sequential('skein'), sequential(name), (x) => x > 1),
      ),
      ...effects.map((name) =>
        ratio(`fibers ${row}: ≥ 4 × ${name}`, fibers('skein'), fibers(name), (x) => x >= 4),
      ),
      ratio(`fibers ${row}: not behind Promise.all`, fibers('skein'), fibers('promises'), (x) => x >= 1),
    ]
  })
}

function there(rows: readonly Row[]): Verdict[] {
  return Object.keys(ANCHORS)
    .filter((key) => !key.includes('default'))
    .flatMap((key) => {
      const [section, row] = key.split('|') as [string, string]
      const [own, piscina] = ['skein', 'piscina'].map((name) => find(rows, section, row, name))
      const least = row.startsWith('work-stealing') ? 1 : 4
      return [
        besideZio(rows, section, row, `≥ ${least} ×`, (times) => times >= least),
        ratio(`${section} ${row}: ≥ 5 × piscina`, own, piscina, (x) => x >= 5),
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
  const own = find(rows, section, row, 'skein')
  const zio = findRow(rows, {
    section: own?.section,
    row,
    contender: ZIO,
    condition: own?.condition,
  } as Partial<Row>)
  const bar = `${section} ${row}: ${words} ZIO 2`
  if (zio !== undefined) return ratio(`${bar} in this run`, own, zio, holds)
  const anchor = ANCHORS[`${section}|${row}`]
  return value(`${bar}'s ${anchor} on another machine`, own, (rate) => holds(rate / anchor))
}

function value(bar: string, row: Row | undefined, holds: (median: number) => boolean): Verdict {
  if (row === undefined) return { bar, measured: 'not measured', holds: undefined }
  return { bar, measured: `${Math.round(row.median)} ${row.unit}`, holds: holds(row.median) }
}

function ratio(
  bar: string,
  above: Row | undefined,
  below: Row | undefined,
  holds: (times: number) => boolean,
): Verdict {
  if (above === undefined || below === undefined) return { bar, measured: 'not measured', holds: undefined }
  const times = above.median / below.median
  return { bar, measured: `${times.toFixed(2)} ×`, holds: holds(times) }
}
