/**
 * The large values of table `mixed`: what they are, their rows and the demands on them.
 *
 * Arrays of 500 to 40,000 objects without objects in them, which are all compared by identity; and bytes of
 * two lengths that are read in place or moved, for which only what does not depend on the length may be
 * paid. large-process.ts measures them.
 */
import { Samples } from '../../harness/rounds.ts'
import { findRow, type Row, type Verdict } from '../../harness/table.ts'
import { judge } from '../../harness/verdicts.ts'
import { JSON_NAME } from '../transport/codecs.ts'
import { OWN } from './contenders.ts'

/** How long and how often. */
export interface LargeOrder {
  readonly rounds: number
  readonly sliceMs: number
}

/** µs per 1,000 elements, or per value: row → contender → one per round. */
export type LargeSamples = Record<string, Record<string, number[]>>

/** Lengths of the arrays; the others are compared with the first. */
export const LEAF_COUNTS = [500, 2_500, 5_000, 10_000, 20_000, 40_000]
/** What they hold. */
export const LEAF_KINDS = {
  '{ id, ok }': (at: number): object => ({ id: at * 7, ok: at % 3 === 0 }),
  '[x, y]': (at: number): object => [-65.6 + at / 3001, 43.4 + Math.sin(at)],
} as const
/** Lengths of the bytes. */
export const BYTES_COUNTS = { '64 KiB': 65_536, '16 MiB': 16_777_216 } as const
/** What is done with them. */
export const BYTES_WAYS = ['read as a view', 'moved there and back'] as const

const WARM = 'warm'
const ARRAYS = 'large arrays, encode'
const BYTES = 'bytes without a copy'
/** Most of the cost of an element among 500. */
const GROWTH_MAX = 1.3
/** The points of a map, and most of JSON's time that they may take at every length. */
const POINTS = '[x, y]'
const POINTS_MAX = 0.6
/** Most of the time of 64 KiB that 16 MiB may take: 256 times the bytes. */
const BYTES_GROWTH_MAX = 2

/** The name of a row. */
export function arrayRow(count: number, kind: string): string {
  return `${count} ${kind}`
}

/** The name of a row. */
export function bytesRow(label: string, way: string): string {
  return `${label}, ${way}`
}

/** The rows of what was measured. */
export function largeRows(found: LargeSamples): Row[] {
  return Object.entries(found).flatMap(([row, measured]) => {
    const samples = new Samples()
    for (const [contender, all] of Object.entries(measured))
      for (const us of all) samples.add(contender, { us })
    const isBytes = BYTES_WAYS.some((way) => row.endsWith(way))
    const unit = isBytes ? 'µs' : 'µs per 1,000'
    const shape = { row, unit, condition: WARM, threads: 0, better: 'lower', figure: 'us' } as const
    return samples.rows({
      ...shape,
      section: isBytes ? BYTES : ARRAYS,
      ...(isBytes ? {} : { against: JSON_NAME }),
    })
  })
}

/** The demands on them. */
export function largeVerdicts(rows: readonly Row[]): Verdict[] {
  return [
    ...Object.keys(LEAF_KINDS).map((kind) => growth(rows, kind)),
    points(rows),
    ...BYTES_WAYS.map((way) => flat(rows, way)),
  ]
}

function growth(rows: readonly Row[], kind: string): Verdict {
  const of = (contender: string): (number | undefined)[] =>
    LEAF_COUNTS.map(
      (count) => findRow(rows, { section: ARRAYS, row: arrayRow(count, kind), contender })?.median,
    )
  const [least, most] = [LEAF_COUNTS[0], LEAF_COUNTS.at(-1)]
  const bar = `arrays of ${least} to ${most} ${kind}: an element at most ${GROWTH_MAX} × one of ${least}`
  const times = (us: readonly number[]): number => Math.max(...us) / us[0]
  const json = of(JSON_NAME).filter((us) => us !== undefined)
  return judge<number[]>(bar, of(OWN), (...own) => [
    `${times(own).toFixed(2)} ×${json.length === 0 ? '' : ` (JSON ${times(json).toFixed(2)} ×)`}`,
    times(own) <= GROWTH_MAX,
  ])
}

function points(rows: readonly Row[]): Verdict {
  const ratios = LEAF_COUNTS.map(
    (count) =>
      findRow(rows, { section: ARRAYS, row: arrayRow(count, POINTS), contender: OWN })?.ratio?.median,
  )
  return judge<number[]>(`arrays of ${POINTS}: ≤ ${POINTS_MAX} × JSON`, ratios, (...ratios) => [
    Math.max(...ratios).toFixed(2),
    Math.max(...ratios) <= POINTS_MAX,
  ])
}

function flat(rows: readonly Row[], way: string): Verdict {
  const [few, many] = Object.keys(BYTES_COUNTS).map((label) =>
    findRow(rows, { section: BYTES, row: bytesRow(label, way), contender: OWN }),
  )
  return judge<[Row, Row]>(
    `bytes ${way}: 16 MiB at most ${BYTES_GROWTH_MAX} × 64 KiB`,
    [few, many],
    (few, many) => [
      `${many.median.toFixed(2)} µs against ${few.median.toFixed(2)} µs`,
      many.median <= BYTES_GROWTH_MAX * few.median,
    ],
  )
}
