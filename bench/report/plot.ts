/**
 * Plots as SVG inside the page: they need no script, and fill whatever width the screen has.
 *
 * Positions along the axis of values are percentages and all others pixels, so text has the same size on a
 * phone and on a wide screen. A name has a line of its own above its bars; each bar ends with its figure.
 */
import { figure } from '../harness/print.ts'
import type { Chart } from './charts.ts'
import { element, escaped, type Html } from './html.ts'

/** Colours of the series, classes of the page's style. */
const COLOURS = 8
const LINE = 14
const BAR = 13
const AXIS = 18
/** Percent of the width that bars use; the figure of the longest needs the rest. */
const WIDEST = 78
const LINES_HIGH = 220
/** Most ticks of an axis: neighbours must not touch on a phone. */
const TICKS_MAX = 5

/** The plot with its title and the names of its series. */
export function plot(chart: Chart): Html {
  const title = `${chart.title}, ${chart.unit}${chart.logarithmic ? ' (logarithmic)' : ''}`
  const names = chart.series.map(({ name }, index) =>
    element('span', { class: `key ${colourOf(chart, index)}` }, escaped(name)),
  )
  const missing = chart.missing.map((name) => element('span', {}, escaped(`${name}: not measured`)))
  return element(
    'figure',
    {},
    element('figcaption', {}, escaped(title)),
    element('p', { class: 'keys' }, [...names, ...missing]),
    chart.kind === 'bar' ? bars(chart) : curves(chart),
  )
}

function colourOf({ series }: Chart, index: number): string {
  return `s${(series[index].colour ?? index) % COLOURS}`
}

/** A number with as many digits as a tick has room for. */
function short(value: number): string {
  const size = Math.abs(value)
  const [unit, name] = size >= 1e6 ? [1e6, ' M'] : size >= 1e3 ? [1e3, ' k'] : [1, '']
  return `${figure(value / unit)}${name}`
}

function percent(value: number): string {
  return `${Number(value.toFixed(2))}%`
}

function text(x: string, y: number, content: string, kind = ''): Html {
  return element('text', { x, y, class: kind }, escaped(content))
}

function image(chart: Chart, height: number, ...parts: readonly (Html | readonly Html[])[]): Html {
  const attributes = { width: '100%', height, role: 'img', 'aria-label': chart.title }
  return element('svg', attributes, ...parts)
}

interface Axis {
  readonly share: (value: number) => number
  readonly ticks: readonly number[]
}

/** Values to shares of an axis from 0 to 1; a logarithmic one begins at a power of ten below all values. */
function axisOf({ series, logarithmic }: Chart): Axis {
  const values = series
    .flatMap((one) => one.values)
    .filter((value) => value !== null && value > 0) as number[]
  const most = Math.max(...values)
  if (!logarithmic || values.length === 0) return { share: (value) => value / most, ticks: [] }
  const low = Math.floor(Math.log10(Math.min(...values)) - 0.1)
  const high = Math.max(Math.log10(most), low + 1)
  const powers = Array.from({ length: Math.floor(high) - low + 1 }, (_, index) => low + index)
  const each = Math.ceil(powers.length / TICKS_MAX)
  return {
    share: (value) => (value <= 0 ? 0 : (Math.log10(value) - low) / (high - low)),
    ticks: powers.filter((_, index) => index % each === 0).map((power) => 10 ** power),
  }
}

function bars(chart: Chart): Html {
  const { share, ticks } = axisOf(chart)
  const parts: Html[] = []
  let y = 0
  for (const [at, label] of chart.labels.entries()) {
    const drawn = chart.series.flatMap(({ values }, index) =>
      values[at] === null ? [] : [{ index, value: values[at] }],
    )
    parts.push(text('0', y + LINE - 3, label))
    y += LINE
    for (const { index, value } of drawn) {
      const end = WIDEST * share(value)
      parts.push(
        element('rect', { y, width: percent(end), height: BAR - 2, class: colourOf(chart, index) }),
        element('text', { x: percent(end), dx: 4, y: y + BAR - 3 }, escaped(short(value))),
      )
      y += BAR
    }
    y += 6
  }
  const lines = ticks.map((tick) => {
    const x = percent(WIDEST * share(tick))
    return element('line', { x1: x, x2: x, y1: 0, y2: y })
  })
  const marks = ticks.map((tick) => text(percent(WIDEST * share(tick)), y + AXIS - 5, short(tick), 'soft'))
  return image(chart, y + AXIS, lines, parts, marks)
}

/** A line of each series over the labels, whose first and last are written below. */
function curves(chart: Chart): Html {
  const { share, ticks } = axisOf(chart)
  const top = (value: number): number => (1 - share(value)) * 96 + 2
  const lines = chart.series.map(({ values }, index) => {
    const points = values.flatMap((value, at) =>
      value === null ? [] : [`${(at / Math.max(1, values.length - 1)) * 100},${top(value).toFixed(2)}`],
    )
    return element('polyline', { points: points.join(' '), class: colourOf(chart, index) })
  })
  const inner = element(
    'svg',
    { width: '100%', height: LINES_HIGH, viewBox: '0 0 100 100', preserveAspectRatio: 'none' },
    ticks.map((tick) => element('line', { x1: 0, x2: 100, y1: top(tick), y2: top(tick) })),
    lines,
  )
  const marks = ticks.map((tick) => text('0', (top(tick) / 100) * LINES_HIGH - 2, short(tick), 'soft'))
  const y = LINES_HIGH + AXIS - 5
  const ends = [
    text('0', y, chart.labels[0]),
    element('text', { x: '100%', y, 'text-anchor': 'end' }, escaped(chart.labels.at(-1) ?? '')),
  ]
  return image(chart, LINES_HIGH + AXIS, inner, marks, ends)
}
