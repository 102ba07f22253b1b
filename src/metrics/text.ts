/**
 * Figures as Prometheus reads them: the text format, version 0.0.4, and OpenMetrics 1.0.
 *
 * Names are made of those of OpenTelemetry by its rules for Prometheus: other characters than letters, digits
 * and underscores become underscores, and the unit and `_total` are added. Attributes without a value are
 * left out.
 */
import { Bytes } from './bytes.ts'
import type { Family, Point } from './collect.ts'
import type { Exemplar } from './exemplars.ts'
import type { Instrument } from './instruments.ts'

/** Units as Prometheus names them; those in braces are not named. */
const UNITS: Readonly<Record<string, string>> = { s: 'seconds', By: 'bytes' }

/** How many bytes the last one had. */
let bytesLast = 16 * 1024

/**
 * Returns the document in UTF-8.
 * @param isOpen Whether it is OpenMetrics.
 */
export function documentOf(families: readonly Family[], isOpen: boolean): Buffer<ArrayBuffer> {
  // Nearly all of it are the buckets of histograms, whose lines differ in a few characters.
  const out = new Bytes(bytesLast + (bytesLast >> 3))
  for (const { instrument, points } of families)
    if (points.length > 0) writeFamily(out, instrument, points, isOpen)
  if (isOpen) out.text('# EOF\n')
  bytesLast = out.at
  return out.whole()
}

/** The name of an instrument in Prometheus, without `_total`. */
export function nameOf({ name, unit }: Instrument): string {
  const plain = name.replaceAll(/\W/g, '_')
  const suffix = UNITS[unit]
  return suffix === undefined || plain.endsWith(`_${suffix}`) ? plain : `${plain}_${suffix}`
}

function writeFamily(out: Bytes, instrument: Instrument, points: readonly Point[], isOpen: boolean): void {
  const { kind, unit, description, attributes, bounds } = instrument
  const name = nameOf(instrument)
  const total = kind === 'counter' ? `${name}_total` : name
  const declared = isOpen ? name : total
  out.text(`# HELP ${declared} ${description}\n# TYPE ${declared} ${kind}\n`)
  if (isOpen && UNITS[unit] !== undefined) out.text(`# UNIT ${declared} ${UNITS[unit]}\n`)
  const labels = attributes.map((attribute) => attribute.replaceAll(/\W/g, '_'))
  const ends = [...bounds, Infinity].map((bound) => Buffer.from(`le="${decimal(bound)}"} `))
  for (const { values, cells, exemplars } of points) {
    const pairs = pairsOf(labels, values)
    if (kind === 'histogram') writeBuckets(out, { name, pairs, ends }, cells, isOpen ? exemplars : undefined)
    else out.text(`${total}${braced(pairs)} ${cells[0]}\n`)
  }
}

/** Of the lines of a histogram: their names and labels, and the ends of those, by bucket. */
interface Lines {
  readonly name: string
  readonly pairs: string
  readonly ends: readonly Uint8Array[]
}

function writeBuckets(
  out: Bytes,
  { name, pairs, ends }: Lines,
  cells: Float64Array,
  exemplars: Point['exemplars'],
): void {
  const start = out.at
  out.text(pairs === '' ? `${name}_bucket{` : `${name}_bucket{${pairs},`)
  const end = out.at
  let count = 0
  // A task takes longer than what its span has measured: that belongs to the next bucket which is not empty.
  let exemplar: Exemplar | undefined
  for (let bucket = 0; bucket < ends.length; bucket++) {
    if (bucket > 0) out.again(start, end)
    count += cells[1 + bucket]
    out.ascii(ends[bucket])
    out.number(count)
    exemplar = exemplars?.[bucket] ?? exemplar
    if (cells[1 + bucket] !== 0) {
      out.text(shown(exemplar))
      exemplar = undefined
    }
    out.ascii(NEWLINE)
  }
  const own = braced(pairs)
  out.text(`${name}_sum${own} ${cells[0]}\n${name}_count${own} ${count}\n`)
}

const NEWLINE = Buffer.from('\n')

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
