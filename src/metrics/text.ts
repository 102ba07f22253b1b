/**
 * Figures as Prometheus reads them: the text format, version 0.0.4, and OpenMetrics 1.0.
 *
 * Names are made of those of OpenTelemetry by its rules for Prometheus: other characters than letters, digits
 * and underscores become underscores, and the unit and `_total` are added. Attributes without a value are
 * left out.
 */
import type { Family, Point } from './collect.ts'
import type { Exemplar } from './exemplars.ts'
import type { Instrument } from './instruments.ts'

/** Units as Prometheus names them; those in braces are not named. */
const UNITS: Readonly<Record<string, string>> = { s: 'seconds', By: 'bytes' }

/** @param isOpen Whether it is OpenMetrics. */
export function textOf(families: readonly Family[], isOpen: boolean): string {
  // Appended to, V8 copies it once, when it is read: twice as fast as a join of its lines.
  let text = ''
  for (const { instrument, points } of families)
    if (points.length > 0) text += familyOf(instrument, points, isOpen)
  return isOpen ? `${text}# EOF\n` : text
}

/** The name of an instrument in Prometheus, without `_total`. */
export function nameOf({ name, unit }: Instrument): string {
  const plain = name.replaceAll(/\W/g, '_')
  const suffix = UNITS[unit]
  return suffix === undefined || plain.endsWith(`_${suffix}`) ? plain : `${plain}_${suffix}`
}

function familyOf(instrument: Instrument, points: readonly Point[], isOpen: boolean): string {
  const { kind, unit, description, attributes, bounds } = instrument
  const name = nameOf(instrument)
  const total = kind === 'counter' ? `${name}_total` : name
  const declared = isOpen ? name : total
  let text = `# HELP ${declared} ${description}\n# TYPE ${declared} ${kind}\n`
  if (isOpen && UNITS[unit] !== undefined) text += `# UNIT ${declared} ${UNITS[unit]}\n`
  const labels = attributes.map((attribute) => attribute.replaceAll(/\W/g, '_'))
  const ends = [...bounds, Infinity].map((bound) => `le="${decimal(bound)}"} `)
  for (const { values, cells, exemplars } of points) {
    const pairs = pairsOf(labels, values)
    if (kind !== 'histogram') text += `${total}${braced(pairs)} ${cells[0]}\n`
    else text += bucketsOf(name, pairs, ends, cells, isOpen ? exemplars : undefined)
  }
  return text
}

function bucketsOf(
  name: string,
  pairs: string,
  ends: readonly string[],
  cells: Float64Array,
  exemplars: Point['exemplars'],
): string {
  const start = pairs === '' ? `${name}_bucket{` : `${name}_bucket{${pairs},`
  let text = ''
  let count = 0
  // A task takes longer than what its span has measured: that belongs to the next bucket which is not empty.
  let exemplar: Exemplar | undefined
  for (let bucket = 0; bucket < ends.length; bucket++) {
    count += cells[1 + bucket]
    exemplar = exemplars?.[bucket] ?? exemplar
    text += start + ends[bucket] + count
    if (cells[1 + bucket] !== 0) {
      text += shown(exemplar)
      exemplar = undefined
    }
    text += '\n'
  }
  return `${text}${name}_sum${braced(pairs)} ${cells[0]}\n${name}_count${braced(pairs)} ${count}\n`
}

/** Behind the value of a bucket. */
function shown(exemplar: Exemplar | undefined): string {
  if (exemplar === undefined) return ''
  const { value, atS, traceId, spanId } = exemplar
  return ` # {trace_id="${traceId}",span_id="${spanId}"} ${value} ${atS}`
}

/** OpenMetrics asks for a decimal point. */
function decimal(bound: number): string {
  if (bound === Infinity) return '+Inf'
  return Number.isInteger(bound) ? `${bound}.0` : `${bound}`
}

function pairsOf(labels: readonly string[], values: Point['values']): string {
  let pairs = ''
  for (let index = 0; index < labels.length; index++) {
    const value = values[index]
    if (value === undefined || value === '') continue
    const text = typeof value === 'number' ? value : escaped(value)
    pairs += `${pairs === '' ? '' : ','}${labels[index]}="${text}"`
  }
  return pairs
}

function escaped(value: string): string {
  if (!/["\\\n]/.test(value)) return value
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}

function braced(pairs: string): string {
  return pairs === '' ? '' : `{${pairs}}`
}
