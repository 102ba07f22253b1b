/**
 * A document is the same whatever the documents before it have shown: the oracle is one line after another,
 * written from the figures alone.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LISTED, numberOf } from './instruments.ts'
import { type Family, Point } from './points.ts'
import { documentOf, nameOf } from './text.ts'

const COUNTER = LISTED[numberOf('storeReads')]
const HISTOGRAM = LISTED[numberOf('gcSeconds')]
const GAUGE = LISTED[numberOf('fibers')]

/** What a series is in one document. */
type Figures = Pick<Point, 'values' | 'cells' | 'exemplars'>

function point(values: Point['values'], ...cells: number[]): Figures {
  return { values, cells, exemplars: undefined }
}

const known = new Map<string, Point>()

/** The series of an instrument, which are the same objects in each document. */
function pointsOf(instrument: Family['instrument'], all: readonly Figures[]): Point[] {
  return all.map(({ values, ...figures }) => {
    const key = [instrument.name, ...values].join('\0')
    if (!known.has(key)) known.set(key, new Point(values))
    return Object.assign(known.get(key)!, figures)
  })
}

/** A histogram with this sum, and these counts of its first buckets. */
function histogram(values: Point['values'], sum: number, ...counts: number[]): Figures {
  const cells = [sum, ...HISTOGRAM.bounds, Infinity].map((_, at) => (at === 0 ? sum : (counts[at - 1] ?? 0)))
  return point(values, ...cells)
}

function expected(families: readonly Family[], isOpen: boolean): string {
  const lines = families.flatMap(({ instrument, points }) => {
    const name = nameOf(instrument)
    const unit = { s: 'seconds', By: 'bytes' }[instrument.unit]
    const total = instrument.kind === 'counter' ? `${name}_total` : name
    const declared = isOpen ? name : total
    const head = [`# HELP ${declared} ${instrument.description}`, `# TYPE ${declared} ${instrument.kind}`]
    if (isOpen && unit !== undefined) head.push(`# UNIT ${declared} ${unit}`)
    return points.length === 0 ? [] : [...head, ...points.flatMap((each) => linesOf(instrument, total, each))]
  })
  return `${[...lines, ...(isOpen ? ['# EOF'] : [])].join('\n')}\n`
}

function linesOf({ kind, attributes, bounds }: Family['instrument'], total: string, each: Point): string[] {
  const pairs = each.values.flatMap((value, at) =>
    value === '' ? [] : [`${attributes[at].replaceAll('.', '_')}="${value}"`],
  )
  const braced = pairs.length === 0 ? '' : `{${pairs}}`
  if (kind !== 'histogram') return [`${total}${braced} ${each.cells[0]}`]
  let count = 0
  const buckets = [...bounds, Infinity].map((bound, at) => {
    const le = bound === Infinity ? '+Inf' : Number.isInteger(bound) ? `${bound}.0` : `${bound}`
    const exemplar = each.exemplars?.[at]
    const shown = exemplar && ` # {trace_id="${exemplar.traceId}",span_id="${exemplar.spanId}"} 0.5 7`
    return `${total}_bucket{${[...pairs, `le="${le}"`]}} ${(count += each.cells[1 + at])}${shown ?? ''}`
  })
  return [...buckets, `${total}_sum${braced} ${each.cells[0]}`, `${total}_count${braced} ${count}`]
}

function check(...documents: readonly Figures[][][]): void {
  for (const isOpen of [false, true])
    for (const points of documents) {
      const families = [COUNTER, HISTOGRAM, GAUGE].map((instrument, at) => ({
        instrument,
        points: pointsOf(instrument, points[at] ?? []),
      }))
      assert.equal(documentOf(families, isOpen).toString(), expected(families, isOpen))
    }
}

const read = (...cells: number[]): Figures[] => cells.map((cell, at) => point([`store ${at}`, 'hit'], cell))

test('series that change and that do not are written in the order of their families', () =>
  check(
    [read(1, 2, 3), [histogram(['main', 'minor'], 0.5, 1, 2)], [point(['main'], 4)]],
    [read(1, 2, 3), [histogram(['main', 'minor'], 0.5, 1, 2)], [point(['main'], 4)]],
    [read(1, 20_000, 3), [histogram(['main', 'minor'], 0.75, 1, 3)], [point(['main'], 0.25)]],
    [read(1, 20_000, 3), [histogram(['main', 'minor'], 0.75, 1, 3)], [point(['main'], NaN)]],
    [read(1, 20_000, 3), [histogram(['main', 'minor'], 0.75, 1, 3)], [point(['main'], NaN)]],
  ))

test('series and families that disappear, return, and move are as if they were new', () =>
  check(
    [read(1, 2, 3), [], [point([''], 4)]],
    [[...read(1, 2)].reverse(), [histogram(['é', ''], 1, 0, 1)]],
    [[], [histogram(['é', ''], 1, 0, 1)], [point([''], 4)]],
    [read(1, 2, 3), [histogram(['a', 'b'], 1), histogram(['é', ''], 1, 0, 1)], [point([''], 4)]],
    [read(...Array.from({ length: 2000 }, (_, at) => at))],
    [read(1, 2, 3)],
  ))

test('an exemplar is shown as long as there is one', () => {
  const plain = histogram(['main', 'major'], 1, 1)
  const exemplar = { value: 0.5, atS: 7, traceId: 'a'.repeat(32), spanId: 'b'.repeat(16) }
  const traced = { ...plain, exemplars: HISTOGRAM.bounds.map((_, at) => (at === 0 ? exemplar : undefined)) }
  for (const figures of [[plain], [traced], [traced], [plain], [plain]]) {
    const families = [{ instrument: HISTOGRAM, points: pointsOf(HISTOGRAM, figures) }]
    assert.equal(documentOf(families, true).toString(), expected(families, true))
  }
})
