/**
 * Which plots the page shows: plain data, drawn by plot.ts.
 *
 * Every plot has one unit and one condition, or names the condition of each bar.
 */
import type { BenchRecord } from '../harness/record.ts'
import { findRow, type Row } from '../harness/table.ts'
import type { FilledTable, Report } from './model.ts'

/** One plot. */
export interface Chart {
  readonly id: string
  readonly title: string
  readonly kind: 'bar' | 'line'
  readonly unit: string
  readonly labels: readonly string[]
  readonly logarithmic: boolean
  /** Series that a reader expects and nothing was measured for. */
  readonly missing: readonly string[]
  readonly series: readonly {
    readonly name: string
    readonly values: readonly (number | null)[]
    /** Of the page's style; its index by default. 0 is Corespun's. */
    readonly colour?: number
  }[]
}

/** Plots of the seeds' tables that have at least three rows in one unit. */
export function seedCharts(report: Report): Chart[] {
  return report.seeds.flatMap(({ tables }) => tables.flatMap((table) => chartOf(table) ?? []))
}

/** Plots of what was measured. */
export function recordCharts(records: readonly BenchRecord[]): Chart[] {
  return records.flatMap((record) => [
    ...sequentialCharts(record),
    ...sectionCharts(record),
    ...lineCharts(record),
  ])
}

function chartOf(table: FilledTable): Chart | undefined {
  if (table.rows.length < 3) return undefined
  const column = shownColumn(table)
  const cells = table.rows.map((row) => row.cells[column])
  const series = [
    { name: 'published', colour: 1, values: cells.map((cell) => cell.seed ?? null) },
    { name: `${table.rival} here`, colour: 2, values: cells.map((cell) => cell.rival?.value ?? null) },
    { name: 'Corespun', colour: 0, values: cells.map((cell) => cell.corespun?.median ?? null) },
  ]
  const hasFigure = ({ values }: (typeof series)[number]): boolean => values.some((value) => value !== null)
  const title =
    cells[0].column === 'throughput' || cells[0].column === 'time'
      ? table.title
      : `${table.title}: ${cells[0].column}`
  return {
    id: table.id,
    title,
    kind: 'bar',
    unit: cells[0].unit,
    labels: table.rows.map((row) => row.label),
    logarithmic: true,
    missing: series.filter((one) => !hasFigure(one)).map(({ name }) => name),
    series: series.filter(hasFigure),
  }
}

/** Ratios where a table has them, else its first column of results. */
function shownColumn(table: FilledTable): number {
  const columns = table.rows[0].cells
  const ratio = columns.findIndex((cell) => cell.unit === '×')
  return ratio >= 0
    ? ratio
    : Math.max(
        0,
        columns.findIndex((cell) => cell.unit !== ''),
      )
}

function sequentialCharts(record: BenchRecord): Chart[] {
  const rows = record.rows.filter((row) => row.section === 'sequential')
  return ['p50', 'p99'].flatMap(
    (line) =>
      grouped(
        record,
        rows.filter((row) => row.row === line),
        { title: `One call after the other, ${line}`, by: 'condition' },
      ) ?? [],
  )
}

function sectionCharts(record: BenchRecord): Chart[] {
  const each = record.rows.filter((row) => row.section === 'batch' && row.unit === 'µs')
  const memory = record.rows.filter((row) => row.section === 'memory')
  const parts = record.rows.filter((row) => row.section === 'parts' && row.unit === 'µs')
  const cpu = record.rows.filter(
    (row) => row.section === 'sequential' && row.row === 'p50' && row.cpuUs !== undefined,
  )
  return [
    grouped(record, each, { title: 'Many calls at once, each', by: 'threads' }),
    grouped(
      record,
      cpu.map((row) => ({ ...row, median: row.cpuUs!, unit: 'CPU µs per call' })),
      { title: 'CPU of one call', by: 'condition' },
    ),
    grouped(
      record,
      parts.map((row) => ({ ...row, contender: row.row })),
      { title: 'One call in its parts', by: 'condition' },
    ),
    grouped(record, memory, { title: 'Memory of a worker', by: 'condition' }),
  ].flatMap((chart) => chart ?? [])
}

/** Bars by contender, one series for each value of `by`. */
function grouped(
  record: BenchRecord,
  rows: readonly Row[],
  shape: { title: string; by: 'condition' | 'threads' },
): Chart | undefined {
  if (rows.length === 0) return undefined
  const labels = [...new Set(rows.map((row) => row.contender))]
  const groups = [
    ...new Set(
      rows
        .map((row) => (row.threads === 0 ? undefined : row[shape.by]))
        .filter((group) => group !== undefined),
    ),
  ]
  const series = groups.map((group) => ({
    name: shape.by === 'threads' ? `${group} worker${group === 1 ? '' : 's'}` : String(group),
    values: labels.map(
      (contender) =>
        rows.find((row) => row.contender === contender && row[shape.by] === group)?.median ?? null,
    ),
  }))
  return {
    id: `${record.table}/${shape.title}`,
    title: shape.title,
    kind: 'bar',
    unit: rows[0].unit,
    labels,
    logarithmic: true,
    missing: [],
    series,
  }
}

function lineCharts(record: BenchRecord): Chart[] {
  const firsts = record.rows.filter((row) => row.section === 'first calls' && row.row.startsWith('call '))
  const labels = [...new Set(firsts.map((row) => row.row))]
  const contenders = [...new Set(firsts.map((row) => row.contender))]
  const values = (contender: string): (number | null)[] =>
    labels.map((row) => findRow(firsts, { row, contender })?.median ?? null)
  const chart: Chart = {
    id: `${record.table}/first`,
    title: 'The first twenty calls of a fresh process',
    kind: 'line',
    unit: 'µs',
    labels,
    logarithmic: true,
    missing: [],
    series: contenders.map((name) => ({ name, values: values(name) })),
  }
  return [...(labels.length > 0 ? [chart] : []), ...hopCharts(record)]
}

function hopCharts(record: BenchRecord): Chart[] {
  const rows = record.rows.filter((row) => row.section === 'hop' && row.unit === 'µs of work')
  const labels = [...new Set(rows.map((row) => row.row))]
  const names = [...new Set(rows.map((row) => `${row.contender}, ${row.condition}`))]
  if (labels.length === 0) return []
  const series = names.map((name) => ({
    name,
    values: labels.map((label) => {
      const found = rows.find((row) => row.row === label && `${row.contender}, ${row.condition}` === name)
      return found === undefined || !Number.isFinite(found.median) ? null : found.median
    }),
  }))
  return [
    {
      id: 'hop',
      title: 'Work above which a hop pays, by payload',
      kind: 'line',
      unit: 'µs',
      labels,
      logarithmic: true,
      missing: [],
      series,
    },
  ]
}
