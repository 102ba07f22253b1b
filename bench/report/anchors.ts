/**
 * What the rivals measured on a machine of the project's kind: bench/anchors.json and its form.
 *
 * Data with a date; nothing here is measured again.
 */
import { readFileSync } from 'node:fs'
import { BENCH_FOLDER } from '../harness/paths.ts'

/** What bench/anchors.json holds. */
export interface Anchors {
  readonly date: string
  readonly machine: string
  /** By table of the seeds: which rival, measured how. */
  readonly who: Readonly<Record<string, string>>
  /** Figures that are in no table of the seeds. */
  readonly facts: Readonly<Record<string, number>>
  /** By cell of the seeds. `to`: the other end of a range. */
  readonly cells: Readonly<Record<string, Anchor>>
}

/** A rival's figure of one cell. */
export interface Anchor {
  readonly value: number
  readonly to?: number
  readonly also?: string
}

export function readAnchors(): Anchors {
  return JSON.parse(readFileSync(`${BENCH_FOLDER}/anchors.json`, 'utf8')) as Anchors
}
