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

const BYTES = 16 * 1024

/** The lines of a series in the last document that had it. */
interface Written {
  readonly pairs: string
  /** `undefined`: they show more than the figures. */
  cells: Float64Array | undefined
  from: number
  to: number
  document: number
}

/**
 * The documents of a format. Most series of a large program have the same figures as in the last document, so
 * that is kept, and their lines are copied from it.
 */
class Documents {
  readonly #isOpen: boolean
  #last = new Bytes(BYTES)
  #next = new Bytes(BYTES)
  #document = 0
  readonly #written = new Map<Instrument, Map<string, Written>>()

  constructor(isOpen: boolean) {
    this.#isOpen = isOpen
  }

  write(families: readonly Family[]): Buffer<ArrayBuffer> {
    const out = this.#next
    out.clear()
    this.#document++
    for (const { instrument, points } of families) {
      const before = this.#written.get(instrument)
      if (points.length > 0) this.#written.set(instrument, this.#writeFamily(instrument, points, before))
    }
    if (this.#isOpen) out.text('# EOF\n')
    this.#next = this.#last
    this.#last = out
    return out.whole()
  }

  #writeFamily(
    instrument: Instrument,
    points: readonly Point[],
    written = new Map<string, Written>(),
  ): Map<string, Written> {
    const [out, document, isOpen] = [this.#next, this.#document, this.#isOpen]
    const { write, labels } = writerOf(out, instrument, isOpen)
    for (const { key, values, cells, exemplars } of points) {
      const shown = isOpen ? exemplars : undefined
      const from = out.at
      let one = written.get(key)
      if (one === undefined) {
        one = { pairs: pairsOf(labels, values), cells: undefined, from, to: from, document }
        written.set(key, one)
      }
      const isCopied = shown === undefined && one.document === document - 1 && isSame(one.cells, cells)
      if (isCopied) out.again(one.from, one.to, this.#last)
      else write(one.pairs, cells, shown)
      one.cells = shown === undefined ? cells : undefined
      one.from = from
      one.to = out.at
      one.document = document
    }
    if (written.size > points.length)
      for (const [key, one] of written) if (one.document !== document) written.delete(key)
    return written
  }
}

function isSame(before: Float64Array | undefined, now: Float64Array): boolean {
  if (before === undefined) return false
  for (let index = 0; index < now.length; index++) if (before[index] !== now[index]) return false
  return true
}

const PLAIN = new Documents(false)
const OPEN = new Documents(true)

/**
 * Returns the document in UTF-8, in memory that the next one may use.
 * @param isOpen Whether it is OpenMetrics.
 */
export function documentOf(families: readonly Family[], isOpen: boolean): Buffer<ArrayBuffer> {
  return (isOpen ? OPEN : PLAIN).write(families)
}

/** The name of an instrument in Prometheus, without `_total`. */
export function nameOf({ name, unit }: Pick<Instrument, 'name' | 'unit'>): string {
  const plain = name.replaceAll(/\W/g, '_')
  const suffix = UNITS[unit]
  return suffix === undefined || plain.endsWith(`_${suffix}`) ? plain : `${plain}_${suffix}`
}

/** Writes the lines about an instrument. Returns what writes those of a series. */
function writerOf(
  out: Bytes,
  { kind, unit, description, attributes, bounds, ...instrument }: Instrument,
  isOpen: boolean,
): {
  readonly labels: readonly string[]
  readonly write: (pairs: string, cells: Float64Array, exemplars: Point['exemplars']) => void
} {
  const name = nameOf({ ...instrument, unit })
  const total = kind === 'counter' ? `${name}_total` : name
  const declared = isOpen ? name : total
  out.text(`# HELP ${declared} ${description}\n# TYPE ${declared} ${kind}\n`)
  if (isOpen && UNITS[unit] !== undefined) out.text(`# UNIT ${declared} ${UNITS[unit]}\n`)
  const labels = attributes.map((attribute) => attribute.replaceAll(/\W/g, '_'))
  if (kind !== 'histogram')
    return { labels, write: (pairs, [value]) => out.text(`${total}${braced(pairs)} ${value}\n`) }
  const ends = [...bounds, Infinity].map((bound) => Buffer.from(`le="${decimal(bound)}"} `))
  return {
    labels,
    write: (pairs, cells, exemplars) => writeBuckets(out, { name, pairs, ends }, cells, exemplars),
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
