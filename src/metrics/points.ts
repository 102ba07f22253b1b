/**
 * The series of all threads together: their points, which stay from one collection to the next.
 *
 * Most series of a large program are the same in each collection, and so are the arrays of cells of those
 * whose figures are. Whoever finds a series keeps its point, so only the first one looks for it by its
 * attributes.
 */
import { type Exemplar, readExemplars } from './exemplars.ts'
import { type Instrument, type InstrumentKey, LISTED, numberOf } from './instruments.ts'

/** An instrument and its series. */
export interface Family {
  readonly instrument: Instrument
  readonly points: readonly Point[]
}

/** Figures that do not add up. */
const LONGEST = new Set((['Mean', 'P50', 'P99', 'Max'] as const).map((key) => numberOf(`loopDelay${key}`)))
/** Instead of a collection: nothing finds this point any more. */
const FORGOTTEN = -1

/** One series of an instrument, as the last collection has found it. */
export class Point {
  /** In the order of the instrument's attributes; absent ones are ''. */
  readonly values: readonly (string | number)[]
  /** The value; of a histogram the sum, and the count of each bucket. Other figures are in another array. */
  cells: readonly number[] = []
  /** Of buckets of a histogram; `undefined` where none has one. */
  exemplars: (Exemplar | undefined)[] | undefined = undefined
  /** The number of the last collection that has found it. */
  turn = 0
  /** Its lines in the last document of each format (text.ts). */
  readonly lines: unknown[] = []
  /** Of requests: that of another instrument with the same attributes. */
  counterpart: Point | undefined = undefined

  constructor(values: Point['values']) {
    this.values = values
  }
}

const known = LISTED.map(() => new Map<string, Point>())
let turns = 0

/** The point of a series. `before`: what it was the last time, which may be forgotten. */
export function pointOf(instrument: number, values: Point['values'], before?: Point): Point {
  if (before !== undefined && before.turn !== FORGOTTEN) return before
  // Series without any value, and those that did not fit, are shown as the same.
  const key = values.every((value) => value === '') ? '' : values.join('\0')
  const points = known[instrument]
  let point = points.get(key)
  if (point === undefined) points.set(key, (point = new Point(values)))
  return point
}

/** What is found now: valid until the next collection of this thread begins. */
export class Collected {
  readonly #turn = ++turns
  readonly #points: readonly Point[][] = LISTED.map(() => [])
  readonly #exemplars: { readonly point: Point; readonly words: Int32Array }[] = []

  /** Adds cells of a series. They do not change from now on. */
  add(instrument: number, point: Point, cells: readonly number[]): void {
    if (point.turn !== this.#turn) {
      point.turn = this.#turn
      point.cells = cells
      point.exemplars = undefined
      this.#points[instrument].push(point)
    } else if (LONGEST.has(instrument)) {
      // A worker that leaves, and the one that has its name now.
      point.cells = [Math.max(point.cells[0], cells[0])]
    } else point.cells = point.cells.map((cell, index) => cell + cells[index])
  }

  put(key: InstrumentKey, value: number, ...values: Point['values']): void {
    const instrument = numberOf(key)
    this.add(instrument, pointOf(instrument, values), [value])
  }

  addExemplars(point: Point, words: Int32Array): void {
    this.#exemplars.push({ point, words })
  }

  points(key: InstrumentKey): readonly Point[] {
    return this.#points[numberOf(key)]
  }

  /** By the number of the instrument. */
  families(): Family[] {
    for (const { point, words } of this.#exemplars.splice(0)) {
      // Of several threads the latest ones.
      const before = point.exemplars ?? []
      point.exemplars = readExemplars(words).map((one, bucket) => {
        const other = before[bucket]
        return one === undefined || (other !== undefined && other.atS > one.atS) ? other : one
      })
    }
    return LISTED.map((instrument, number) => ({ instrument, points: this.#points[number] }))
  }

  /** Forgets what is not there any more. */
  forgetOthers(): void {
    for (const [number, points] of this.#points.entries()) {
      if (known[number].size === points.length) continue
      for (const [key, point] of known[number])
        if (point.turn !== this.#turn) {
          point.turn = FORGOTTEN
          known[number].delete(key)
        }
    }
  }
}

/** Copies some numbers, or returns the copy from before if they are still the same. */
export function copied(
  before: readonly number[] | undefined,
  numbers: ArrayLike<number>,
  at: number,
  count: number,
): readonly number[] {
  let index = 0
  if (before !== undefined) while (index < count && before[index] === numbers[at + index]) index++
  if (before !== undefined && index === count) return before
  const cells: number[] = []
  for (index = 0; index < count; index++) cells.push(numbers[at + index])
  return cells
}
