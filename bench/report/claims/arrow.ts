/**
 * The claims of the arrow's seed: an arrow against a monad, in computing and with files.
 *
 * Corespun's rows are compared with those of plain code and of Effect's chain.
 */
import type { Row } from '../../harness/table.ts'
import { type Claim, type Figures, is, judged, medians, round, spreadOf } from './figures.ts'

/** The three programs of the seed that read files. */
const FILES = ['plainBench', 'arrowBench', 'zioBench'].map((name) => `arrow/files/${name}/ops`)

export const ARROW: readonly Claim[] = [
  [
    'In the compute test the arrow is more than 10 × as fast as the ZIO monad.',
    (facts) => {
      const quotient = facts.cell('arrow/compute/arrowBench/ops') / facts.cell('arrow/compute/zioBench/ops')
      return is(quotient >= 10, `${round(quotient)} × here`)
    },
    (facts) =>
      judged([compute(facts, 'arrow'), compute(facts, 'zio')], (arrow, effect) => {
        const quotient = arrow.median / effect.median
        return is(quotient >= 10, `${round(quotient)} × Effect's chain, built once`)
      }),
  ],
  [
    'The monad loses by its allocations and polymorphic dispatch.',
    (facts) =>
      is(
        undefined,
        `its cost was not taken apart here; plain code that boxes a list reaches ` +
          `${round(facts.cell('arrow/compute/plainBench/ops'))}/s, below the arrow`,
      ),
    (facts) => {
      const bytes = { section: 'bytes of a run', row: 'compute' }
      const rows = ['corespun', 'effect 4'].map((contender) => facts.row({ ...bytes, contender }))
      return judged(rows, (arrow, effect) =>
        is(
          undefined,
          `a run of the arrow allocates ${round(arrow.median)} B, one of Effect's chain ` +
            `${round(effect.median)}; dispatch was not taken apart`,
        ),
      )
    },
  ],
  [
    'With files the three are balanced, since reading is the larger part.',
    (facts) => {
      const spread = spreadOf(FILES.map((id) => facts.cell(id)))
      return is(spread <= 1.15, `fastest / slowest ${round(spread)}`)
    },
    (facts) =>
      judged(
        FILES.map((id) => facts.answer(id)),
        (...rows) => {
          const spread = spreadOf(medians(rows))
          return is(spread <= 1.15, `fastest / slowest of plain, arrow, Effect ${round(spread)}`)
        },
      ),
  ],
]

function compute(facts: Figures, who: 'arrow' | 'zio'): Row | undefined {
  return facts.answer(`arrow/compute/${who}Bench/ops`)
}
