/**
 * The claims of napajs about its transport and its store.
 *
 * Its figures are for each of the 18 payloads; a claim is judged by their mean, median or extremes.
 */
import { geometricMean } from '../../harness/stats.ts'
import type { Row } from '../../harness/table.ts'
import {
  type Claim,
  costs,
  extra,
  type Figures,
  inside,
  is,
  judged,
  type Judgement,
  medians,
  notMeasured,
  round,
  undecided,
} from './figures.ts'

/** The payload of one number. */
const SMALLEST = '1 level - 1 integers'

export const CARRIERS: readonly Claim[] = [
  [
    'marshall costs about 3 × JSON.stringify on small plain values.',
    (facts) => {
      const mean = facts.fact('napa marshall / stringify')
      return is(inside(mean, 2.5, 3.5), `geometric mean ${mean} × (1.12–4.10)`)
    },
    (facts) => means(facts, /^napa\/transport\/\d+\/marshall-ratio$/, 2.5, 3.5),
  ],
  [
    'unmarshall costs 1.4 to 6 × JSON.parse (its table).',
    (facts) => {
      const mean = facts.fact('napa unmarshall / parse')
      return is(inside(mean, 1.4, 6), `geometric mean ${mean} × (1.54–6.96)`)
    },
    (facts) => means(facts, /^napa\/transport\/\d+\/unmarshall-ratio$/, 1.4, 6),
  ],
  [
    'An empty callback alone slows JSON.stringify and JSON.parse much.',
    (facts) => {
      const out = facts.fact('JSON with replacer / stringify, Node 24')
      const back = facts.fact('JSON with reviver / parse, Node 24')
      return is(out >= 1.5 && back >= 1.5, `with its replacer ${out} ×, with its reviver ${back} × (Node 24)`)
    },
    undecided('its transport uses neither'),
  ],
  [
    'store.set and store.get cost 0.06 ms beyond the transport.',
    (facts) => {
      const [set, get] = [facts.fact('napa store set µs'), facts.fact('napa store get µs')]
      return is(inside(set, 40, 80), `set ${set} µs, get ${get} µs`)
    },
    (facts) =>
      judged([beyond(facts, 'set', SMALLEST), beyond(facts, 'get', SMALLEST)], (set, get) =>
        costs(
          [set.median, get.median],
          40,
          80,
          `of one number: set ${extra(set.median)}, get ${extra(get.median)}`,
        ),
      ),
  ],
  [
    'By payload, set costs 0.07 to 0.4 ms and get 0.06 to 0.9 ms beyond the transport.',
    (facts) => {
      const [set, get] = [facts.fact('napa store set µs'), facts.fact('napa store get µs')]
      return is(set >= 70, `medians of the 18 payloads ${set} and ${get} µs`)
    },
    (facts) => {
      const [sets, gets] = ['set', 'get'].map((what) =>
        medians(facts.all({ section: `${what} beyond transport`, contender: 'corespun' })),
      ) as [number[], number[]]
      if (sets.length === 0 || gets.length === 0) return notMeasured()
      const range = (us: number[]): string => `${extra(Math.min(...us))} to ${extra(Math.max(...us))}`
      const [set, get] = [Math.max(...sets), Math.max(...gets)]
      const evidence = `set ${range(sets)}, get ${range(gets)} over ${sets.length} payloads`
      return { holds: set >= 70 && get >= 60, evidence, isCheaper: set < 70 && get < 60 }
    },
  ],
  [
    'What changes rarely is better kept in a JavaScript variable than read from the store each time.',
    (facts) => {
      const [map, get] = [facts.fact('Map get µs'), facts.fact('napa store get µs')]
      return is(get > map, `a Map answers in ${map} µs, its store in ${get} µs beyond the transport`)
    },
    (facts) => {
      const rows = ['Map', 'corespun'].map((contender) =>
        facts.row({ section: 'get', row: SMALLEST, contender }),
      )
      return judged(rows, ({ median: map }, { median: own }) =>
        is(own > map, `a number from a Map ${round(map)} µs, from the store ${round(own)} µs`),
      )
    },
  ],
]

function means(facts: Figures, pattern: RegExp, low: number, high: number): Judgement {
  const values = medians(facts.tagged(pattern))
  if (values.length === 0) return notMeasured()
  const mean = geometricMean(values)
  const range = `${round(Math.min(...values))}–${round(Math.max(...values))}`
  return costs([mean], low, high, `geometric mean ${round(mean)} × (${range}) over ${values.length} payloads`)
}

function beyond(facts: Figures, what: 'set' | 'get', row: string): Row | undefined {
  return facts.row({ section: `${what} beyond transport`, row, contender: 'corespun' })
}
