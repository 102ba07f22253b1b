/**
 * The report as one HTML file: the published benchmarks with a plot for each table, their claims, then what
 * was measured here and its targets, for offline reading, phones and dark mode.
 *
 * The file has no script and fetches nothing. The frame with its style is page.html; this fills its gaps.
 */
import { readFileSync } from 'node:fs'
import { machineLines } from '../harness/machine.ts'
import { BENCH_FOLDER } from '../harness/paths.ts'
import { figure } from '../harness/print.ts'
import type { BenchRecord } from '../harness/record.ts'
import type { Row } from '../harness/table.ts'
import { type Chart, recordCharts, seedCharts } from './charts.ts'
import type { Judgement } from './claims/figures.ts'
import { badge, element, escaped, type Html, lines, note, row, scrolled } from './html.ts'
import type { Cell, FilledTable, Report } from './model.ts'
import { plot } from './plot.ts'
import { columnsOf, marks, rivalWord, corespunWord, sourcesOf, verdictWord } from './text.ts'

const QUICK = element('mark', {}, escaped('quick run: not for claims'))

/** The whole page. */
export function reportPage(report: Report): string {
  const measured = recordCharts(report.records)
  const ofSeeds = seedCharts(report)
  const gaps: Readonly<Record<string, string>> = {
    made: escaped(report.madeAt.slice(0, 16).replace('T', ' ')),
    machines: machines(report),
    rivals: escaped(report.anchors.date),
    bars: report.bars.map(barTable).join(''),
    plots: element('section', { id: 'measured' }, heading('h2', 'Measured here'), measured.map(plot)),
    seeds: report.seeds.map((_, index) => seedSection(report, index, ofSeeds)).join(''),
    claims: claimTable(report),
    records: report.records.map(recordSection).join(''),
  }
  const frame = readFileSync(`${BENCH_FOLDER}/report/page.html`, 'utf8')
  return frame.replace(/<!--(\w+)-->/g, (gap, name: string) => gaps[name] ?? gap)
}

function heading(level: 'h2' | 'h3', text: string, quick = false): Html {
  return element(level, {}, escaped(text), ...(quick ? [escaped(' '), QUICK] : []))
}

function machines(report: Report): string {
  const block = (name: string, texts: readonly string[]): Html =>
    element('p', {}, element('b', {}, escaped(name)), escaped(' '), lines(texts))
  const own = report.records.map((record) =>
    block(record.table, [[record.startedAt, ...marks(record)].join(' · '), ...machineLines(record.machine)]),
  )
  return [...own, block('rivals', [report.anchors.date, report.anchors.machine])].join('')
}

function barTable({ table, quick, verdicts }: Report['bars'][number]): string {
  const rows = verdicts.map(({ bar, measured, holds }) => {
    const word = holds === undefined ? 'not measured' : holds ? 'met' : 'missed'
    const cells = [badge(holds, word), escaped(bar), escaped(measured)]
    return element('tr', {}, ...cells.map((cell) => element('td', {}, cell)))
  })
  return heading('h3', table, quick) + scrolled('prose', element('tbody', {}, rows))
}

function seedSection(report: Report, index: number, charts: readonly Chart[]): string {
  const seed = report.seeds[index]
  const tables = seed.tables.flatMap((table) => {
    const chart = charts.find(({ id }) => id === table.id)
    const drawn = chart === undefined ? [] : [plot(chart)]
    return [heading('h3', table.title), note(table.note), ...drawn, seedTable(table)]
  })
  const sources = element('p', { class: 'note' }, lines(sourcesOf(report, seed)))
  return element('section', { id: `seed-${index}` }, heading('h2', seed.title), sources, tables)
}

function seedTable(table: FilledTable): Html {
  const columns = table.rows[0].cells
  const above = columns.map((cell) => element('th', { colspan: 3 }, escaped(columnTitle(cell))))
  const below = columns.flatMap(() => columnsOf(table))
  const head = [element('tr', {}, element('th', {}), above), row(['', ...below], 'th')]
  const rows = table.rows.map(({ label, cells }) =>
    element('tr', {}, element('th', { scope: 'row' }, escaped(label)), cells.flatMap(threeCells)),
  )
  return scrolled('', element('thead', {}, head), element('tbody', {}, rows))
}

function columnTitle({ column, unit }: Cell): string {
  return unit === '' || unit === '×' ? column : `${column}, ${unit}`
}

function threeCells(cell: Cell): Html[] {
  const { seed, rival, corespun } = cell
  const interval = corespun === undefined ? '' : `${figure(corespun.low)}–${figure(corespun.high)}`
  return [
    element('td', {}, escaped(seed === undefined ? '–' : figure(seed))),
    element('td', { title: rival?.also ?? '' }, escaped(rivalWord(cell))),
    element('td', { class: `own ${standing(cell)}`, title: interval }, escaped(corespunWord(cell))),
  ]
}

/** Whether Corespun is ahead of the published figure, as a class of the style. */
function standing({ seed, corespun, better, isJudged }: Cell): string {
  if (corespun === undefined) return 'none'
  if (seed === undefined || !isJudged) return ''
  return (better === 'lower') === corespun.median < seed ? 'ahead' : 'behind'
}

function claimTable({ claims }: Report): string {
  const judges = ['their program, rebuilt here', 'Corespun'] as const
  const head = row(['published benchmark', 'claim', ...judges], 'th')
  const rows = claims.map(({ seed, claim, rival, corespun }) =>
    element(
      'tr',
      {},
      element('td', {}, escaped(seed)),
      element('td', {}, escaped(claim)),
      element('td', { 'data-of': judges[0] }, judgement(rival)),
      element('td', { 'data-of': judges[1] }, judgement(corespun)),
    ),
  )
  return scrolled('prose claims', element('thead', {}, head), element('tbody', {}, rows))
}

function judgement(one: Judgement): readonly Html[] {
  const word = verdictWord(one)
  const evidence = word === one.evidence ? '' : one.evidence
  // True and false are not good and bad; that something costs less than claimed is good.
  return [
    badge(one.isCheaper === true && one.holds === false ? true : undefined, word),
    escaped(' '),
    element('span', { class: 'note' }, escaped(evidence)),
  ]
}

function recordSection(record: BenchRecord): string {
  const sections = [...new Set(record.rows.map(({ section }) => section))]
  const details = sections.map((section) =>
    element(
      'details',
      {},
      element('summary', {}, escaped(`${record.table}: ${section}`)),
      note(record.definitions[section] ?? ''),
      recordTable(record.rows.filter((one) => one.section === section)),
    ),
  )
  const left = record.skipped.map(({ what, why }) => element('li', {}, escaped(`${what}: ${why}`)))
  if (left.length === 0) return details.join('')
  return details.join('') + element('p', {}, escaped('Not measured:')) + element('ul', {}, left)
}

const RECORD_HEAD = [
  '',
  'contender',
  'condition',
  'threads',
  'median',
  'interval',
  'unit',
  'CPU µs',
  'ratio',
  '',
]

function recordTable(rows: readonly Row[]): Html {
  const body = rows.map((one) =>
    row([
      one.row,
      one.contender,
      one.condition,
      String(one.threads),
      figure(one.median),
      `${figure(one.low)}–${figure(one.high)}`,
      one.unit,
      one.cpuUs === undefined ? '' : figure(one.cpuUs),
      one.ratio === undefined ? '' : `${one.ratio.median.toFixed(2)} × ${one.ratio.to}`,
      one.note ?? '',
    ]),
  )
  return scrolled('', element('thead', {}, row(RECORD_HEAD, 'th')), element('tbody', {}, body))
}
