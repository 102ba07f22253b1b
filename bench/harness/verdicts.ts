/**
 * Demands on figures that a run may not have measured: such a one is 'not measured', never true.
 *
 * The verdicts of the tables are made here, so that none forgets that.
 */
import type { Row, Verdict } from './table.ts'

/** A judgement of figures that are all measured. */
export type Judged = readonly [measured: string, holds: boolean | undefined]

/** Judges figures if all of them are measured; the result is `missing` otherwise. */
export function judge<Figures extends readonly unknown[]>(
  bar: string,
  figures: readonly [...{ [At in keyof Figures]: Figures[At] | undefined }],
  by: (...figures: Figures) => Judged,
  missing = 'not measured',
): Verdict {
  if (figures.includes(undefined)) return { bar, measured: missing, holds: undefined }
  const [measured, holds] = by(...(figures as unknown as Figures))
  return { bar, measured, holds }
}

/** The quotient of two medians. */
export function judgeRatio(
  bar: string,
  [above, below]: readonly (Row | undefined)[],
  holds: (times: number) => boolean,
  digits = 2,
): Verdict {
  return judge<[Row, Row]>(bar, [above, below], (above, below) => {
    const times = above.median / below.median
    return [`${times.toFixed(digits)} ×`, holds(times)]
  })
}

/**
 * On which row, of those that a rival has too, Corespun's share of its time is the greatest.
 * @param most That share must be less where it is 1, and at most that otherwise.
 */
export function judgeAhead(
  bar: string,
  theirs: readonly Row[],
  ownOf: (row: Row) => Row | undefined,
  nameOf: (row: Row) => string,
  most = 1,
): Verdict {
  let [top, where] = [0, 'none']
  for (const row of theirs) {
    const own = ownOf(row)
    const quotient = own === undefined ? Infinity : own.median / row.median
    if (quotient > top) [top, where] = [quotient, nameOf(row)]
  }
  const measured = `closest: ${where}, ${top.toFixed(3)} of its time`
  const holds = most === 1 ? top < most : top <= most
  return { bar, measured, holds: theirs.length === 0 ? undefined : holds }
}
