/**
 * The gap between payloads that were written for this bench and the public ones that replaced them.
 *
 * A row is the geometric mean of Corespun's time in JSON's, round by round; the ratio of the second row to
 * the first is the gap. Above 1, the bars are met on data that was tuned for.
 */
import { Samples } from '../../harness/rounds.ts'
import { geometricMean } from '../../harness/stats.ts'
import type { Row } from '../../harness/table.ts'

const REPLACED = 'replaced payloads'
const PUBLIC = 'public payloads'

/** One payload's time, or that of its successor: µs of Corespun and JSON, one per round. */
export interface Times {
  readonly own: readonly number[]
  readonly json: readonly number[]
}

/** The rows of one direction and condition. */
export function gapRows(
  fixed: { readonly row: string; readonly condition: string },
  replaced: readonly Times[],
  published: readonly Times[],
): Row[] {
  const samples = new Samples()
  const rounds = Math.min(
    ...[...replaced, ...published].flatMap(({ own, json }) => [own.length, json.length]),
  )
  const mean = (times: readonly Times[], round: number): number =>
    geometricMean(times.map(({ own, json }) => own[round] / json[round]))
  for (let round = 0; round < rounds; round += 1) {
    samples.add(REPLACED, { mean: mean(replaced, round) })
    samples.add(PUBLIC, { mean: mean(published, round) })
  }
  const shape = { section: 'gap', figure: 'mean', threads: 0, unit: '× JSON', better: 'lower' } as const
  return samples.rows({ ...shape, ...fixed, against: REPLACED })
}

/** What the rows mean. */
export const GAP_DEFINITION =
  "Geometric mean of Corespun's time in JSON's over the payloads that public data replaced, and over that " +
  'data; the ratio of the second to the first.'
