/**
 * Tables as text: sections, aligned columns, medians with their interval, verdicts, the machine block.
 *
 * Only formats; it measures nothing and decides nothing.
 */
import { isBusy, machineLines } from './machine.ts'
import type { BenchRecord, Change } from './record.ts'
import type { Row, Verdict } from './table.ts'

/** A whole record as text. */
export function recordLines(record: BenchRecord): string[] {
  const sections = [...new Set(record.rows.map((row) => row.section))]
  return [
    `${record.table} · ${record.startedAt} · ${record.seconds.toFixed(0)} ` +
      `s${record.quick ? ' · QUICK: not for claims' : ''}`,
    ...machineLines(record.machine).map((line) => `  ${line}`),
    ...(isBusy(record.machine) ? ['BUSY MACHINE: others were at work when this began; not for claims'] : []),
    ...sections.flatMap((section) => sectionLines(record, section)),
    ...verdictLines(record.verdicts),
    ...record.skipped.map(({ what, why }) => `left out: ${what}: ${why}`),
  ]
}

/** Lines of a comparison, changed rows only unless `all`. */
export function changeLines(changes: readonly Change[], all = false): string[] {
  const shown = changes.filter((change) => all || change.judgement !== 'same')
  const cells = shown.map(({ key, unit, before, after, quotient, judgement }) => [
    key,
    `${figure(before.median)} [${figure(before.low)}–${figure(before.high)}]`,
    `${figure(after.median)} [${figure(after.low)}–${figure(after.high)}] ${unit}`,
    `× ${quotient.toFixed(2)}`,
    judgement,
  ])
  const same = changes.length - changes.filter((change) => change.judgement !== 'same').length
  return [
    ...aligned([['row', 'before', 'after', 'after/before', ''], ...cells]),
    `${same} of ${changes.length} rows same`,
  ]
}

/** Verdicts as lines: met, MISSED or not measured. */
export function verdictLines(verdicts: readonly Verdict[]): string[] {
  if (verdicts.length === 0) return []
  const cells = verdicts.map(({ bar, measured, holds }) => [
    holds === undefined ? 'not measured' : holds ? 'met' : 'MISSED',
    bar,
    measured,
  ])
  return ['', 'bars', ...aligned(cells).map((line) => `  ${line}`)]
}

/** A number with three significant digits, thousands grouped. */
export function figure(value: number): string {
  if (!Number.isFinite(value)) return '–'
  if (value === 0) return '0'
  const size = Math.abs(value)
  if (size >= 1000) return Math.round(value).toLocaleString('en-US')
  return String(Number(value.toPrecision(3)))
}

/**
 * Rows of cells as lines with columns of equal width; a cell that looks like a number is put to the right.
 */
export function aligned(cells: readonly (readonly string[])[]): string[] {
  const columns = Math.max(0, ...cells.map((row) => row.length))
  const widths = Array.from({ length: columns }, (_, at) =>
    Math.max(...cells.map((row) => (row[at] ?? '').length)),
  )
  return cells.map((row) =>
    row
      .map((cell, at) =>
        /^([\d.,]+|–|\d[\d.,]* to [\d.,]+|× [\d.,]+)$/.test(cell)
          ? cell.padStart(widths[at])
          : cell.padEnd(widths[at]),
      )
      .join('  ')
      .trimEnd(),
  )
}

function sectionLines(record: BenchRecord, section: string): string[] {
  const rows = record.rows.filter((row) => row.section === section)
  const definition = record.definitions[section]
  return ['', section, ...(definition === undefined ? [] : [`  ${definition}`]), ...rowLines(rows)]
}

function rowLines(rows: readonly Row[]): string[] {
  const withCpu = rows.some((row) => row.cpuUs !== undefined)
  const head = [
    '',
    'contender',
    'condition',
    'threads',
    'median',
    '[low–high]',
    'unit',
    'n',
    withCpu ? 'CPU µs/task' : '',
    'ratio',
  ]
  const cells = rows.map((row) => [
    row.row,
    row.contender,
    row.condition,
    String(row.threads),
    figure(row.median),
    `[${figure(row.low)}–${figure(row.high)}]`,
    row.unit,
    String(row.samples),
    row.cpuUs === undefined ? '' : figure(row.cpuUs),
    [row.ratio === undefined ? '' : `${row.ratio.median.toFixed(2)} × ${row.ratio.to}`, row.note ?? '']
      .filter(Boolean)
      .join(' · '),
  ])
  return aligned([head, ...cells]).map((line) => `  ${line}`)
}
