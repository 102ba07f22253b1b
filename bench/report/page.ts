/**
 * The report as one HTML file: tables, claims, demands and plots, readable offline, on phones, in the dark.
 *
 * Chart.js and all data are inside the file; it fetches nothing.
 */
import { readFileSync } from 'node:fs'
import { machineLines } from '../harness/machine.ts'
import { figure } from '../harness/print.ts'
import { BENCH_FOLDER } from '../harness/place.ts'
import type { BenchRecord } from '../harness/record.ts'
import type { Verdict } from '../harness/table.ts'
import { type Chart, recordCharts, seedCharts } from './charts.ts'
import type { Judgement } from './claims.ts'
import type { Cell, FilledTable, Report } from './model.ts'
import { rivalWord, skeinWord, verdictWord } from './text.ts'

/** The whole page. */
export function reportPage(report: Report): string {
  const charts = [...recordCharts(report.records), ...seedCharts(report)]
  const ofRecords = recordCharts(report.records).map(canvas).join('')
  const parts: Readonly<Record<string, string>> = {
    made: escaped(report.madeAt.slice(0, 16).replace('T', ' ')),
    machines: machines(report),
    bars: report.bars.map(barTable).join(''),
    plots: ofRecords === '' ? '' : `<section id="measured"><h2>Measured here</h2>${ofRecords}</section>`,
    seeds: report.seeds.map((seed, index) => seedSection(seed, index, seedCharts(report))).join(''),
    claims: claimTable(report),
    records: report.records.map(recordSection).join(''),
    data: JSON.stringify(charts).replace(/</g, '\\u003c'),
    library: readFileSync(`${BENCH_FOLDER}/node_modules/chart.js/dist/chart.umd.min.js`, 'utf8').replace(/\/\/# sourceMappingURL.*/, ''),
  }
  const template = readFileSync(`${BENCH_FOLDER}/report/page.html`, 'utf8')
  return template.replace(/<!--(\w+)-->|\/\*(\w+)\*\//g, (whole, html?: string, script?: string) => parts[html ?? script ?? ''] ?? whole)
}

/** Text as it may stand in HTML. */
export function escaped(text: string): string {
  const names: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }
  return text.replace(/[&<>"']/g, (sign) => names[sign]!)
}

function machines(report: Report): string {
  const blocks = report.records.map(
    (record) => `<p><b>${escaped(record.table)}</b> ${escaped(record.startedAt)}${record.quick ? ' <mark>quick</mark>' : ''}<br>${machineLines(record.machine).map(escaped).join('<br>')}</p>`,
  )
  return `${blocks.join('')}<p><b>rivals</b> ${escaped(report.anchors.date)}<br>${escaped(report.anchors.machine)}</p>`
}

function barTable({ table, quick, verdicts }: { table: string; quick: boolean; verdicts: readonly Verdict[] }): string {
  const rows = verdicts.map(
    ({ bar, measured, holds }) => `<tr><td>${badge(holds, holds === undefined ? 'not measured' : holds ? 'holds' : 'fails')}</td><td>${escaped(bar)}</td><td>${escaped(measured)}</td></tr>`,
  )
  return `<h3>${escaped(table)}${quick ? ' <mark>quick run: not for claims</mark>' : ''}</h3>${scrolled(`<tbody>${rows.join('')}</tbody>`)}`
}

function seedSection(seed: Report['seeds'][number], index: number, charts: readonly Chart[]): string {
  const tables = seed.tables.map((table) => {
    const chart = charts.find(({ id }) => id === table.id)
    return `<h3>${escaped(table.title)}</h3>${table.note === '' ? '' : `<p class="note">${escaped(table.note)}</p>`}${chart === undefined ? '' : canvas(chart)}${seedTable(table)}`
  })
  return `<section id="seed-${index}"><h2>${escaped(seed.title)}</h2><p class="note">${escaped(seed.machine)}</p>${tables.join('')}</section>`
}

function seedTable(table: FilledTable): string {
  const columns = table.rows[0]!.cells
  const top = columns.map(({ column, unit }) => `<th colspan="3">${escaped(unit === '' || unit === '×' || column.includes(unit) ? column : `${column}, ${unit}`)}</th>`)
  const below = columns.map(() => `<th>seed</th><th>${escaped(table.rival)}</th><th>Skein</th>`)
  const rows = table.rows.map(({ label, cells }) => `<tr><th scope="row">${escaped(label)}</th>${cells.map(cellHtml).join('')}</tr>`)
  return scrolled(`<thead><tr><th></th>${top.join('')}</tr><tr><th></th>${below.join('')}</tr></thead><tbody>${rows.join('')}</tbody>`)
}

function cellHtml(cell: Cell): string {
  const { seed, rival, skein } = cell
  const ahead = skein === undefined || seed === undefined ? '' : (cell.better === 'lower') === skein.median < seed ? ' ahead' : ' behind'
  const title = skein === undefined ? '' : ` title="${figure(skein.low)}–${figure(skein.high)}"`
  const also = rival?.also === undefined ? '' : ` title="${escaped(rival.also)}"`
  return `<td>${seed === undefined ? '–' : figure(seed)}</td><td${also}>${escaped(rivalWord(cell))}</td><td class="own${skein === undefined ? ' none' : ahead}"${title}>${escaped(skeinWord(cell))}</td>`
}

function claimTable({ claims }: Report): string {
  const judgement = (one: Judgement): string => `<td>${badge(one.holds, verdictWord(one))} <span class="note">${one.evidence === 'not built' ? '' : escaped(one.evidence)}</span></td>`
  const rows = claims.map(({ seed, claim, rival, skein }) => `<tr><td>${escaped(seed)}</td><td>${escaped(claim)}</td>${judgement(rival)}${judgement(skein)}</tr>`)
  return scrolled(`<thead><tr><th>seed</th><th>claim</th><th>there, measured here</th><th>Skein</th></tr></thead><tbody>${rows.join('')}</tbody>`, 'prose')
}

function recordSection(record: BenchRecord): string {
  const sections = [...new Set(record.rows.map((row) => row.section))]
  const tables = sections.map((section) => {
    const rows = record.rows.filter((row) => row.section === section).map(
      (row) => `<tr><td>${escaped(row.row)}</td><td>${escaped(row.contender)}</td><td>${escaped(row.condition)}</td><td>${row.threads}</td><td>${figure(row.median)}</td><td>${figure(row.low)}–${figure(row.high)}</td><td>${escaped(row.unit)}</td><td>${row.cpuUs === undefined ? '' : figure(row.cpuUs)}</td><td>${escaped(row.ratio === undefined ? (row.note ?? '') : `${row.ratio.median.toFixed(2)} × ${row.ratio.to}`)}</td></tr>`,
    )
    const head = '<thead><tr><th></th><th>contender</th><th>condition</th><th>threads</th><th>median</th><th>interval</th><th>unit</th><th>CPU µs</th><th></th></tr></thead>'
    return `<details><summary>${escaped(record.table)}: ${escaped(section)}</summary><p class="note">${escaped(record.definitions[section] ?? '')}</p>${scrolled(`${head}<tbody>${rows.join('')}</tbody>`)}</details>`
  })
  const left = record.skipped.map(({ what, why }) => `<li>${escaped(what)}: ${escaped(why)}</li>`)
  return `${tables.join('')}${left.length === 0 ? '' : `<p>Left out:</p><ul>${left.join('')}</ul>`}`
}

function badge(holds: boolean | undefined, word: string): string {
  return `<span class="badge ${holds === undefined ? 'open' : holds ? 'yes' : 'no'}">${escaped(word)}</span>`
}

function scrolled(table: string, kind = ''): string {
  return `<div class="scroll"><table class="${kind}">${table}</table></div>`
}

function canvas(chart: Chart): string {
  const height = chart.kind === 'line' ? 320 : 70 + chart.labels.length * (10 + 13 * chart.series.length)
  return `<figure><figcaption>${escaped(chart.title)}, ${escaped(chart.unit)}${chart.logarithmic ? ' (logarithmic)' : ''}</figcaption><div class="plot" style="height:${height}px"><canvas data-chart="${escaped(chart.id)}" role="img" aria-label="${escaped(chart.title)}"></canvas></div></figure>`
}
