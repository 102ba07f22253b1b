/**
 * The figures that judgements draw on, and the words of a judgement.
 *
 * A claim has two judges: of the seed's own subject as we measured it (from the anchors), and of Corespun
 * (from records).
 */
import { findRow, type Row } from '../../harness/table.ts'
import type { Anchors } from '../anchors.ts'

/** One judgement: `undefined` when nothing measured here decides. */
export interface Judgement {
  readonly holds: boolean | undefined
  readonly evidence: string
  /** The claim names a cost, and the cost here is lower: `holds` is false to the advantage of the user. */
  readonly isCheaper?: boolean
}

/** A claim with both judgements. */
export interface JudgedClaim {
  readonly seed: string
  readonly claim: string
  readonly rival: Judgement
  readonly corespun: Judgement
}

/** A claim, and who judges it: of the seed's own subject, and of Corespun. */
export type Claim = readonly [
  claim: string,
  rival: (facts: Figures) => Judgement,
  corespun: (facts: Figures) => Judgement,
]

/** The figures that judgements draw on. */
export class Figures {
  readonly #anchors: Anchors
  readonly #rows: readonly Row[]

  constructor(anchors: Anchors, rows: readonly Row[]) {
    this.#anchors = anchors
    this.#rows = rows
  }

  /** A rival's cell. */
  cell(id: string): number {
    return this.#anchors.cells[id].value
  }

  /** A rival's fact that is in no table of the seeds. */
  fact(name: string): number {
    return this.#anchors.facts[name]
  }

  /** A row of Corespun. */
  row(traits: Partial<Row>): Row | undefined {
    return findRow(this.#rows, traits)
  }

  /** All rows of anybody with these traits. */
  all(traits: Partial<Row>): Row[] {
    const chosen = Object.entries(traits)
    return this.#rows.filter((row) => chosen.every(([name, value]) => row[name as keyof Row] === value))
  }

  /** The row that answers a cell. */
  answer(id: string): Row | undefined {
    return this.#rows.find(({ seed }) => [seed ?? []].flat().includes(id))
  }

  /** All measured rows of cells whose ids match. */
  tagged(pattern: RegExp): Row[] {
    return this.#rows.filter((row) => [row.seed ?? []].flat().some((id) => pattern.test(id)))
  }
}

export const is = (holds: boolean | undefined, evidence: string): Judgement => ({ holds, evidence })

/** A claim of a cost from `low` to `high`, judged by values that are costs in the same unit. */
export function costs(values: readonly number[], low: number, high: number, evidence: string): Judgement {
  const isCheaper = values.every((value) => value < low)
  return { holds: values.every((value) => inside(value, low, high)), evidence, isCheaper }
}

/** A difference of two costs; below 0, what was subtracted takes longer and nothing is left to name. */
export const extra = (us: number): string => (us < 0 ? 'none' : `${round(us)} µs`)
export const undecided = (evidence: string) => (): Judgement => is(undefined, evidence)
export const notMeasured = undecided('not measured in the records at hand')

/** A judgement on rows that may not be measured. */
export function judged(rows: readonly (Row | undefined)[], judge: (...rows: Row[]) => Judgement): Judgement {
  return rows.every((row) => row !== undefined) && rows.length > 0 ? judge(...(rows as Row[])) : notMeasured()
}

export const round = (value: number): string => Number(value.toPrecision(3)).toLocaleString('en-US')
export const medians = (rows: readonly Row[]): number[] => rows.map(({ median }) => median)
export const spreadOf = (values: readonly number[]): number => Math.max(...values) / Math.min(...values)

export function inside(value: number, low: number, high: number): boolean {
  return value >= low && value <= high
}
