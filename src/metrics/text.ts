/**
 * Figures as Prometheus reads them: the text format, version 0.0.4, and OpenMetrics 1.0.
 *
 * Names are made of those of OpenTelemetry by its rules for Prometheus: other characters than letters, digits
 * and underscores become underscores, and the unit and `_total` are added. Attributes without a value are
 * left out.
 */
import { Bytes } from './bytes.ts'
import type { Exemplar } from './exemplars.ts'
import type { Instrument } from './instruments.ts'
import type { Family, Point } from './points.ts'

/** Units as Prometheus names them; those in braces are not named. */
const UNITS: Readonly<Record<string, string>> = { s: 'seconds', By: 'bytes' }

const BYTES = 16 * 1024

/** The lines of a series in the last document that had it. */
interface Written {
  readonly pairs: string
  /** `undefined`: they show more than the figures. */
  cells: readonly number[] | undefined
  from: number
  to: number
  document: number
}

/** The first lines of an instrument in the last document that had it. */
interface WrittenFamily {
  readonly lines: FamilyLines
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
  readonly #written = new Map<Instrument, WrittenFamily>()

  constructor(isOpen: boolean) {
    this.#isOpen = isOpen
  }

  write(families: readonly Family[]): Buffer<ArrayBuffer> {
    const out = this.#next
    out.clear()
    this.#document++
    for (const { instrument, points } of families) {
      if (points.length === 0) continue
      let family = this.#written.get(instrument)
      if (family === undefined) {
        const lines = linesOf(instrument, this.#isOpen)
        family = { lines, from: 0, to: 0, document: -1 }
        this.#written.set(instrument, family)
      }
      this.#writeFamily(family, points)
    }
    if (this.#isOpen) out.text('# EOF\n')
    this.#next = this.#last
    this.#last = out
    return out.whole()
  }

  #writeFamily(family: WrittenFamily, points: readonly Point[]): void {
    const [out, last, document, isOpen] = [this.#next, this.#last, this.#document, this.#isOpen]
    const { lines } = family
    const format = isOpen ? 1 : 0
    const before = document - 1
    let from = out.at
    if (family.document === before) out.copy(last, family.from, family.to)
    else out.text(lines.head)
    family.from = from
    from = family.to = out.at
    family.document = document
    for (const { values, cells, exemplars, lines: written } of points) {
      const shown = isOpen ? exemplars : undefined
      let one = written[format] as Written | undefined
      if (one === undefined) {
        one = { pairs: pairsOf(lines.labels, values), cells: undefined, from, to: from, document }
        written[format] = one
      }
      if (shown === undefined && one.document === before && isSame(one.cells, cells))
        out.copy(last, one.from, one.to)
      else lines.write(out, one.pairs, cells, shown)
      one.cells = shown === undefined ? cells : undefined
      one.from = from
      from = one.to = out.at
      one.document = document
    }
  }
}

function isSame(before: readonly number[] | undefined, now: readonly number[]): boolean {
  if (before === now) return true
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

/** What writes the lines of an instrument. */
interface FamilyLines {
  readonly head: string
  readonly labels: readonly string[]
  write(out: Bytes, pairs: string, cells: readonly number[], exemplars: Point['exemplars']): void
}

function linesOf(
  { kind, unit, description, attributes, bounds, ...instrument }: Instrument,
  isOpen: boolean,
): FamilyLines {
  const name = nameOf({ ...instrument, unit })
  const total = kind === 'counter' ? `${name}_total` : name
  const declared = isOpen ? name : total
  const ofUnit = isOpen && UNITS[unit] !== undefined ? `# UNIT ${declared} ${UNITS[unit]}\n` : ''
  const head = `# HELP ${declared} ${description}\n# TYPE ${declared} ${kind}\n${ofUnit}`
  const labels = attributes.map((attribute) => attribute.replaceAll(/\W/g, '_'))
  if (kind !== 'histogram')
    return { head, labels, write: (out, pairs, [value]) => out.text(`${total}${braced(pairs)} ${value}\n`) }
  const ends = [...bounds, Infinity].map((bound) => Buffer.from(`le="${decimal(bound)}"} `))
  return {
    head,
    labels,
    write: (out, pairs, cells, exemplars) => writeBuckets(out, { name, pairs, ends }, cells, exemplars),
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
  cells: readonly number[],
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
