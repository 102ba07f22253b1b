/**
 * The demands on zones, judged on the rows of one run.
 *
 * A demand whose rows were not measured is 'not measured', never true.
 */
import os from 'node:os'
import { ASLEEP, ONE_CORE, SPINNING } from '../../harness/conditions.ts'
import { FLOOR } from '../../harness/floor.ts'
import { findRow, type Row, type Verdict } from '../../harness/table.ts'
import { judge, type Judged } from '../../harness/verdicts.ts'
import { COUNTS } from './overhead.ts'
import { SUM_ROW } from './parts.ts'
import { KNITTING, POOLS } from './plan.ts'

/** All demands of the table. */
export function verdicts(rows: readonly Row[]): Verdict[] {
  return [...latency(rows), ...throughput(rows), ...first(rows), ...scalingVerdicts(rows)]
}

type Find = (contender: string) => Row | undefined

function latency(rows: readonly Row[]): Verdict[] {
  const forms = [
    ['corespun', 'execute by name'],
    ['corespun run(fn)', 'run(fn)'],
  ] as const
  return [...forms.flatMap(([own, form]) => latencyOf(rows, own, form)), ...cpuVerdicts(rows)]
}

function latencyOf(rows: readonly Row[], own: string, form: string): Verdict[] {
  const p50 = (condition: string): Find => {
    return (contender) => findRow(rows, { section: 'sequential', row: 'p50', condition, contender })
  }
  const [one, spinning, asleep] = [p50(ONE_CORE.name), p50(SPINNING.name), p50(ASLEEP.name)]
  const isBelow = (value: number): boolean => value < 1
  const all = [
    quotient('one core: p50 ≤ 1.8 × the ping-pong', one(own), one(FLOOR), (value) => value <= 1.8),
    quotient('one core: p50 below piscina', one(own), one('piscina'), isBelow),
    quotient('one core: p50 below postMessage', one(own), one('postMessage'), isBelow),
    absolute('cores spinning: p50 ≤ 2.5 µs', spinning(own), (value) => value <= 2.5),
    quotient(
      'cores spinning: piscina takes ≥ 30 ×',
      spinning('piscina'),
      spinning(own),
      (value) => value >= 30,
    ),
    quotient('cores asleep: p50 ≤ 1.2 × the ping-pong', asleep(own), asleep(FLOOR), (value) => value <= 1.2),
  ]
  return all.map((verdict) => ({ ...verdict, bar: `${verdict.bar} (${form})` }))
}

function cpuVerdicts(rows: readonly Row[]): Verdict[] {
  const chosen = rows.filter(
    (row) => row.cpuUs !== undefined && (row.row === 'p50' || row.row.endsWith('at once, each')),
  )
  const groups = new Map<string, Row[]>()
  for (const row of chosen) {
    const group = `${row.section}, ${row.condition}, ${row.contender === 'direct' ? 1 : row.threads} threads`
    groups.set(group, [...(groups.get(group) ?? []), row])
  }
  return [...groups].flatMap(([group, members]) =>
    ['corespun', 'corespun run(fn)'].flatMap((contender) => {
      const own = members.find((row) => row.contender === contender)
      return own === undefined ? [] : [cpuVerdict(`${group}, ${formOf(contender)}`, own, members)]
    }),
  )
}

function formOf(contender: string): string {
  return contender === 'corespun' ? 'execute by name' : 'run(fn)'
}

/**
 * Below every pool: not so as soon as one is below, and not known to be so while one that can be installed
 * everywhere has no figure.
 */
function cpuVerdict(what: string, own: Row, members: readonly Row[]): Verdict {
  const others = POOLS.filter((name) => name !== 'corespun')
  const pools = members.filter((row) => others.includes(row.contender))
  const best = pools.reduce<Row | undefined>(
    (least, row) => (least === undefined || row.cpuUs! < least.cpuUs! ? row : least),
    undefined,
  )
  const bar = `CPU per task below every pool: ${what}`
  if (best === undefined) return { bar, measured: '', holds: undefined }
  const missing = others.filter((name) => pools.every((row) => row.contender !== name))
  const without = missing.length === 0 ? '' : `; without ${missing.join(', ')}`
  const least = `${best.cpuUs!.toFixed(2)} µs (${best.contender})${without}`
  const measured = `${own.cpuUs!.toFixed(2)} µs; least of the others ${least}`
  if (own.cpuUs! >= best.cpuUs!) return { bar, measured, holds: false }
  return { bar, measured, holds: missing.every((name) => name === KNITTING) ? true : undefined }
}

function throughput(rows: readonly Row[]): Verdict[] {
  const rates = rows.filter((row) => row.section === 'batch' && row.row.endsWith('rate') && row.threads === 1)
  const own = rates
    .filter((row) => row.contender.startsWith('corespun'))
    .sort((a, b) => b.median - a.median)[0]
  const idle = findRow(rows, { section: 'idle', contender: 'corespun' })
  const quiet = findRow(rows, { section: 'idle', contender: 'direct' })
  return [
    absolute('≥ 1.5 million empty tasks/s from one thread', own, (value) => value >= 1.5e6),
    quotient(
      'batches: rate ≥ 5 × piscina',
      own,
      rates.find((row) => row.contender === 'piscina'),
      (value) => value >= 5,
    ),
    judge<[Row, Row]>(
      'an idle zone uses no CPU (≤ 0.1 % of a core above a process without a pool)',
      [idle, quiet],
      ({ median: own }, { median: none }) => [
        `${own.toFixed(3)} % against ${none.toFixed(3)} %`,
        own - none <= 0.1,
      ],
      '',
    ),
  ]
}

function first(rows: readonly Row[]): Verdict[] {
  const call = (row: string): Row | undefined =>
    findRow(rows, { section: 'first calls', row, contender: 'corespun' })
  const loop = (calls: number, words: string): Row | undefined =>
    findRow(rows, { section: 'overhead', row: `${calls} calls ${words}, one by one`, contender: 'corespun' })
  const sum = rows.filter((row) => row.section === 'parts' && row.row === SUM_ROW)
  return [
    ...COUNTS.map((calls) =>
      quotient(
        `anonymous ≤ 1.05 × named (${calls.toLocaleString('en-US')} calls)`,
        loop(calls, 'anonymous'),
        loop(calls, 'named'),
        (value) => value <= 1.05,
      ),
    ),
    quotient('call 20 ≤ 2 × the steady call', call('call 20'), call('steady, p50'), (value) => value <= 2),
    {
      bar: 'the six parts, each timed by itself, sum to the whole within 10 %',
      measured: sum.map((row) => `${row.median.toFixed(3)} (${row.condition})`).join(', '),
      holds: sum.length === 0 ? undefined : sum.every((row) => Math.abs(row.median - 1) <= 0.1),
    },
  ]
}

function scalingVerdicts(rows: readonly Row[]): Verdict[] {
  const workers = (count: number): Row | undefined =>
    rows.find(
      (row) =>
        row.section === 'scaling' &&
        row.contender === 'corespun' &&
        row.threads === count &&
        row.unit.startsWith('ms'),
    )
  const [one, two, eight] = [workers(1), workers(2), workers(8)]
  const cores = os.availableParallelism()
  const ideal = one && { ...one, median: one.median * Math.max(1, 8 / cores) }
  const zone = findRow(rows, { section: 'zone against main thread', contender: 'corespun' })
  const ratio = zone?.ratio?.median
  return [
    {
      bar: 'two workers ≥ 1.9 × one',
      measured: one && two ? `${((2 * one.median) / two.median).toFixed(3)} ×` : '',
      holds: one && two && cores > 1 ? (2 * one.median) / two.median >= 1.9 : undefined,
    },
    quotient(
      `eight workers on ${cores} cores ≤ 1.05 × the ideal time`,
      eight,
      ideal,
      (value) => value <= 1.05,
    ),
    {
      bar: 'a zone runs JavaScript as fast as the main thread (0.98–1.02)',
      measured: ratio === undefined ? '' : `${ratio.toFixed(3)} ×`,
      holds: ratio === undefined ? undefined : ratio >= 0.98 && ratio <= 1.02,
    },
  ]
}

function absolute(bar: string, row: Row | undefined, good: (value: number) => boolean): Verdict {
  const words = ({ median, unit, contender }: Row): string =>
    `${Number(median.toPrecision(4))} ${unit} (${contender})`
  return judge(bar, [row], (row) => [words(row), good(row.median)], '')
}

function quotient(
  bar: string,
  above: Row | undefined,
  below: Row | undefined,
  good: (value: number) => boolean,
): Verdict {
  const by = (above: Row, below: Row): Judged => {
    const value = above.median / below.median
    const [dividend, divisor] = [above, below].map(({ median }) => Number(median.toPrecision(4)))
    return [`${value.toFixed(2)} × (${dividend} / ${divisor} ${above.unit})`, good(value)]
  }
  return judge<[Row, Row]>(bar, [above, below], by, '')
}
