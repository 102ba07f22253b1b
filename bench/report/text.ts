/**
 * The report as text for a terminal.
 *
 * Same content as the page, without the plots.
 */
import { machineLines } from '../harness/machine.ts'
import type { BenchRecord } from '../harness/record.ts'
import { isBusy } from '../harness/machine.ts'
import { aligned, figure, verdictLines } from '../harness/print.ts'
import type { Judgement } from './claims/figures.ts'
import type { Cell, FilledTable, Report } from './model.ts'

export function reportLines(report: Report): string[] {
  return [
    `Corespun compared with its rivals · ${report.madeAt}`,
    ...report.seeds.flatMap((seed) => [
      '',
      `== ${seed.title}`,
      ...sourcesOf(report, seed).map((line) => `   ${line}`),
      ...seed.tables.flatMap(tableLines),
    ]),
    '',
    '== Claims of the published benchmarks, measured again',
    ...claimLines(report),
    ...report.bars.flatMap(({ table, quick, verdicts }) => [
      '',
      `== Targets of ${table}${quick ? ' (quick run: not for claims)' : ''}`,
      ...verdictLines(verdicts),
    ]),
    '',
    '== Records',
    ...report.records.flatMap((record) => [
      [record.table, record.startedAt, ...marks(record)].join(' · '),
      ...machineLines(record.machine).map((line) => `  ${line}`),
      ...record.skipped.map(({ what, why }) => `  left out: ${what}: ${why}`),
    ]),
  ]
}

/** What keeps the figures of a record from being claims. */
export function marks(record: BenchRecord): string[] {
  return [
    ...(record.quick ? ['quick'] : []),
    ...(isBusy(record.machine) ? ['busy machine: not for claims'] : []),
  ]
}

/** true, not so, undecided; for a cost that is lower here, that it is. */
export function verdictWord({ holds, isCheaper }: Judgement): string {
  if (holds === undefined) return 'undecided'
  if (isCheaper === true) return 'costs less'
  return holds ? 'true' : 'not so'
}

/** Whose machines the columns of a seed's tables are of. */
export function sourcesOf({ anchors }: Report, { machine, tables }: Report['seeds'][number]): string[] {
  const own = new Set(tables.flatMap(({ corespunMachines }) => corespunMachines))
  return [
    `published: ${machine}`,
    `rebuilt here ${anchors.date}: ${anchors.machine}`,
    `Corespun here: ${own.size === 0 ? 'not measured' : [...own].join('; ')}`,
  ]
}

/** Whose a column of a seed's table is, and when it was measured. */
export function columnsOf(table: FilledTable): [published: string, rival: string, corespun: string] {
  const days = table.corespunDays.join(', ')
  return [
    'published, their machine',
    `${table.rival}, rebuilt here ${table.rivalDay}`,
    days === '' ? 'Corespun here' : `Corespun here ${days}`,
  ]
}

/** Corespun's figure of a cell, or what is shown instead. */
export function corespunWord({ corespun, missing }: Cell): string {
  return corespun === undefined ? missing : `${figure(corespun.median)}${corespun.quick ? ' (quick)' : ''}`
}

/** The rival's figure of a cell. */
export function rivalWord({ rival }: Cell): string {
  if (rival === undefined) return '–'
  return rival.to === undefined ? figure(rival.value) : `${figure(rival.value)} to ${figure(rival.to)}`
}

function tableLines(table: FilledTable): string[] {
  const wide = table.rows[0].cells.length > 1
  const head = ['', wide ? 'column' : '', ...columnsOf(table), 'unit', 'Corespun / published', '']
  const cells = table.rows.flatMap(({ label, cells: columns }) =>
    columns.map((cell, index) => [
      index === 0 ? label : '',
      wide ? cell.column : '',
      cell.seed === undefined ? '–' : figure(cell.seed),
      rivalWord(cell),
      corespunWord(cell),
      cell.unit,
      quotientWord(cell),
      cell.rival?.also ?? '',
    ]),
  )
  return [
    '',
    table.title,
    ...(table.note === '' ? [] : [`  ${table.note}`]),
    ...aligned([head, ...cells]).map((line) => `  ${line}`),
  ]
}

function quotientWord({ seed, corespun }: Cell): string {
  return seed === undefined || corespun === undefined ? '' : `× ${figure(corespun.median / seed)}`
}

function claimLines({ claims }: Report): string[] {
  return claims.flatMap(({ seed, claim, rival, corespun }) => [
    `${seed}: ${claim}`,
    `    their program, measured here: ${verdictWord(rival)} · ${rival.evidence}`,
    `    Corespun: ${verdictWord(corespun)} · ${corespun.evidence}`,
  ])
}
