/**
 * The claims of the fibers' seed: the default pool against blocking, cached and work-stealing ones.
 *
 * The rows are fibers of 0..10 and of 0..20.
 */
import type { Row } from '../../harness/table.ts'
import { type Claim, type Figures, inside, is, judged, medians, round } from './figures.ts'

/** The rows compared with sequential fibers on the default executor. */
const OTHER_FIBERS = [
  ...['sequential/blocking', 'sequential/cached', 'sequential/work-stealing'],
  ...['parallel/default', 'parallel/work-stealing'],
]

const cellOfFibers = (facts: Figures, name: string): number => facts.cell(`fiber/setup-1/${name}/ops`)

export const FIBER: readonly Claim[] = [
  [
    'Sequential on the default pool is the fastest of all.',
    (facts) => {
      const best = cellOfFibers(facts, 'sequential/default-10')
      const next = Math.max(...OTHER_FIBERS.map((name) => cellOfFibers(facts, `${name}-10`)))
      return is(best > next, `${round(best)}/s, next ${round(next)}/s (ZIO 1)`)
    },
    (facts) =>
      judged(
        ['sequential/default', ...OTHER_FIBERS].map((name) => fibers(facts, `${name}-10`)),
        (best, ...others) => {
          const next = Math.max(...medians(others))
          return is(best.median > next, `${round(best.median)}/s, next ${round(next)}/s`)
        },
      ),
  ],
  [
    'The blocking pool costs a factor of 5 to 8.',
    (facts) => {
      const own = cellOfFibers(facts, 'sequential/default-10')
      const quotient = own / cellOfFibers(facts, 'sequential/blocking-10')
      return is(inside(quotient, 5, 8), `${round(quotient)} × here; in the seed's second set-up 3.8–4.7`)
    },
    (facts) => {
      const rows = ['default', 'blocking'].map((pool) => fibers(facts, `sequential/${pool}-10`))
      return judged(rows, (own, blocking) => {
        const quotient = own.median / blocking.median
        return is(inside(quotient, 5, 8), `${round(quotient)} ×`)
      })
    },
  ],
  [
    'Work stealing and cached pools are hardly better than the blocking one.',
    (facts) => {
      const of = (pool: string): number => cellOfFibers(facts, `sequential/${pool}-20`)
      const quotient = Math.max(of('cached'), of('work-stealing')) / of('blocking')
      return is(quotient < 2, `at best ${round(quotient)} × the blocking pool (0..20)`)
    },
    (facts) => {
      const pools = ['blocking', 'cached', 'work-stealing']
      const rows = pools.map((pool) => fibers(facts, `sequential/${pool}-20`))
      return judged(rows, (blocking, ...others) => {
        const quotient = Math.max(...medians(others)) / blocking.median
        return is(quotient < 2, `at best ${round(quotient)} × the blocking executor (0..20)`)
      })
    },
  ],
]

function fibers(facts: Figures, name: string): Row | undefined {
  return facts.answer(`fiber/setup-1/${name}/ops`)
}
