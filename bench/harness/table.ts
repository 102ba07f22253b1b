/**
 * What a table of the bench is: a name, its definitions, its parameters and a run that yields rows.
 *
 * A row is one figure of one contender under one named condition; rows are flat so that records compare by
 * key. Every file bench/tables/<name>.ts default-exports one Table and is found by that: there is no list to
 * edit.
 */
import { BenchError } from './errors.ts'

/** Which way a figure is good. */
export type Better = 'lower' | 'higher'

/** One figure: a median over samples with its interval. */
export interface Row {
  /** Part of the table, such as 'sequential'. */
  readonly section: string
  /** The line inside the section, such as 'p50' or '200 calls'. */
  readonly row: string
  /** Who did it, such as 'corespun' or 'piscina'. */
  readonly contender: string
  /** Under what, such as 'one core'. */
  readonly condition: string
  /** Worker threads beside the calling one; 0 when the caller did the work. */
  readonly threads: number
  readonly unit: string
  readonly better: Better
  readonly median: number
  /** Ends of the interval that holds the median with 95 % (fewer than 6 samples: the extremes). */
  readonly low: number
  readonly high: number
  /** Slices or processes the median is over. */
  readonly samples: number
  /** CPU of the whole process per task, microseconds. */
  readonly cpuUs?: number
  /** This figure against another contender's of the same round, median of the paired quotients. */
  readonly ratio?: {
    readonly to: string
    readonly median: number
    readonly low: number
    readonly high: number
  }
  /** Ids of the cells in bench/seeds/*.json which this figure answers; a single one without its array. */
  readonly seed?: string | readonly string[]
  readonly note?: string
}

/** A demand and how it came out. */
export interface Verdict {
  /** The demand, in words. */
  readonly bar: string
  /** The measured side, in words with units. */
  readonly measured: string
  /** `undefined`: not measured in this run. */
  readonly holds: boolean | undefined
}

/** A parameter of a table: its type is that of its default. */
export interface Parameter {
  readonly value: number | string | boolean
  /** Value under --quick; `value` when absent. */
  readonly quick?: number | string | boolean
  readonly doc: string
}

/** What a table is given to run. */
export interface Context {
  /** Parsed values, complete. */
  readonly number: (name: string) => number
  readonly text: (name: string) => string
  readonly flag: (name: string) => boolean
  /** Short run: for the look of it, not for the record of a claim. */
  readonly quick: boolean
  /** Whether a quick run has used up its time; what is left is then skipped, loudly. Never in a full run. */
  readonly isLate: () => boolean
  /** Reports progress on standard error. */
  readonly progress: (line: string) => void
  /** Leaves something out, visibly: it is listed under the table and in the record. */
  readonly skip: (what: string, why: string) => void
}

export interface Table {
  readonly name: string
  readonly title: string
  /** What each section measures and how: printed with --help, kept in the record. */
  readonly definitions: Readonly<Record<string, string>>
  readonly parameters: Readonly<Record<string, Parameter>>
  /** Measure. @throws {BenchError} `WRONG_ANSWER` when a contender's answer is not the known one. */
  run(context: Context): Promise<Row[]>
  /** The demands on this table, judged on its rows. */
  verdicts?(rows: readonly Row[]): Verdict[]
}

/** What identifies a row between records. */
export function keyOf(row: Pick<Row, 'section' | 'row' | 'contender' | 'condition' | 'threads'>): string {
  return [row.section, row.row, row.contender, row.condition, row.threads].join(' | ')
}

/**
 * The row without an infinite ratio: a contender that reads 0 in a round makes the quotient infinite,
 * which JSON writes as null.
 */
export function withoutVoidRatio<Part extends Pick<Row, 'ratio'>>(row: Part): Part {
  const { ratio, ...rest } = row
  const ends: unknown[] = ratio === undefined ? [] : [ratio.median, ratio.low, ratio.high]
  return ends.every(Number.isFinite) ? row : (rest as Part)
}

/** The row with these traits; `undefined` when the run did not measure it. */
export function findRow(rows: readonly Row[], traits: Partial<Row>): Row | undefined {
  const chosen = Object.entries(traits)
  return rows.find((row) => chosen.every(([name, value]) => row[name as keyof Row] === value))
}

/**
 * The words of a parameter that is a list with commas; 'all' is all that there are.
 * @throws {BenchError} `BAD_PARAMETER` for a word that is not among `known`.
 */
export function chosenOf(context: Context, name: string, known: readonly string[]): readonly string[] {
  return chosenFrom(context.text(name), name, known)
}

/** {@link chosenOf} of the text itself. @throws {BenchError} `BAD_PARAMETER`. */
export function chosenFrom(text: string, name: string, known: readonly string[]): readonly string[] {
  if (text === 'all') return known
  const chosen = text.split(',')
  const received = chosen.find((word) => !known.includes(word))
  if (received === undefined) return chosen
  throw new BenchError('BAD_PARAMETER', { name, received, expected: `of ${known.join(',')}` })
}
