/**
 * The claims of napajs about its zones and calls.
 *
 * What was not measured for napajs is undecided.
 */
import { SUM_ROW } from '../../tables/execute/parts.ts'
import { WHY_CAUSES } from '../../tables/execute/why.ts'
import type { Row } from '../../harness/table.ts'
import {
  type Claim,
  costs,
  type Figures,
  inside,
  is,
  judged,
  type Judgement,
  round,
  undecided,
} from './figures.ts'

const unmeasuredThere = undecided('not measured for napajs')

export const NAPA: readonly Claim[] = [
  [
    "A zone's JavaScript is as fast as node's.",
    unmeasuredThere,
    (facts) =>
      judged([facts.row({ section: 'zone against main thread', contender: 'corespun' })], ({ ratio }) =>
        is(Math.abs(ratio!.median - 1) <= 0.02, `${ratio!.median.toFixed(3)} × the main thread's time`),
      ),
  ],
  [
    'execute scales linearly with the number of workers.',
    (facts) => is(facts.fact('napa two tasks ×') >= 1.9, `two tasks ${facts.fact('napa two tasks ×')} × one`),
    (facts) =>
      judged([scaled(facts, 1), scaled(facts, 2)], (one, two) => {
        const quotient = (2 * one.median) / two.median
        const evidence = `two workers ${quotient.toFixed(3)} × one; beyond the cores, workers / cores`
        return is(quotient >= 1.9, evidence)
      }),
  ],
  [
    'More workers can take less time than fewer for the same work each (it asks why).',
    (facts) => is(facts.fact('napa two tasks ×') > 2, 'two tasks never took less than one here'),
    whyMore,
  ],
  [
    'A call costs some 0.1 ms after warm-up (its summary), 0.06 to 0.12 ms (its text).',
    (facts) => {
      const p50 = facts.fact('napa p50 µs')
      return is(inside(p50, 60, 120), `p50 ${p50} µs; 13 µs on one core, 12.5 µs each in batches`)
    },
    (facts) => {
      const traits = { section: 'sequential', row: 'p50', contender: 'corespun', condition: 'cores spinning' }
      return judged([facts.row(traits)], ({ median }) => costs([median], 60, 120, `p50 ${round(median)} µs`))
    },
  ],
  [
    'An anonymous function costs no more than a named one.',
    unmeasuredThere,
    (facts) =>
      judged([loop(facts, '10000 calls named'), loop(facts, '10000 calls anonymous')], (named, anonymous) => {
        const quotient = anonymous.median / named.median
        return is(quotient <= 1.05, `anonymous / named ${quotient.toFixed(3)}`)
      }),
  ],
  [
    'The first calls are some 30 × as slow as the twentieth.',
    unmeasuredThere,
    (facts) =>
      judged([firstCall(facts, 1), firstCall(facts, 20)], ({ median: first }, { median: twentieth }) =>
        is(first / twentieth >= 20, `call 1 ${round(first)} µs, call 20 ${round(twentieth)} µs`),
      ),
  ],
  [
    'A call has six parts, and they make up the whole.',
    unmeasuredThere,
    (facts) =>
      judged([facts.row({ section: 'parts', row: SUM_ROW })], ({ median }) =>
        is(Math.abs(median - 1) <= 0.1, `their sum / the whole ${median.toFixed(3)}`),
      ),
  ],
]

/** Each tried cause with its factor: only one below 1 could make more workers win. */
function whyMore(facts: Figures): Judgement {
  return judged(
    WHY_CAUSES.slice(0, -1).map((row) => facts.row({ section: 'why', row })),
    (...rows) => {
      const listed = rows.map((row) => `${row.row} ${row.median.toFixed(3)}`).join('; ')
      const [one, two] = [scaled(facts, 1), scaled(facts, 2)]
      const less = one !== undefined && two !== undefined && two.median < 0.97 * one.median
      const where = 'See bench/README.md, "Why more workers beat fewer"'
      return is(less, `time against one warm worker: ${listed}. ${where}`)
    },
  )
}

function scaled(facts: Figures, workers: number): Row | undefined {
  return facts.tagged(new RegExp(`^napa/scaling/time/${workers}$`))[0]
}

function loop(facts: Figures, words: string): Row | undefined {
  return facts.row({ section: 'overhead', row: `${words}, one by one`, contender: 'corespun' })
}

function firstCall(facts: Figures, call: number): Row | undefined {
  return facts.row({ section: 'first calls', row: `call ${call}`, contender: 'corespun' })
}
