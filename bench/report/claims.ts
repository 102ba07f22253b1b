/**
 * The claims of the seeds' prose, paraphrased and judged by figures measured here.
 *
 * There are two judgements: of the seed's own subject as we measured it (from the anchors), and of
 * Corespun (from records). A claim that no figure decides is marked as such; it is never silently true.
 */
import { geometricMean } from '../harness/stats.ts'
import { findRow, type Row } from '../harness/table.ts'
import { SUM_ROW } from '../tables/execute/parts.ts'
import { WHY_CAUSES } from '../tables/execute/why.ts'
import type { Anchors } from './anchors.ts'

/** One judgement: `undefined` when nothing measured here decides. */
export interface Judgement {
  readonly holds: boolean | undefined
  readonly evidence: string
}

/** A claim with both judgements. */
export interface JudgedClaim {
  readonly seed: string
  readonly claim: string
  readonly rival: Judgement
  readonly corespun: Judgement
}

/** A claim, and who judges it: of the seed's own subject, and of Corespun. */
type Claim = readonly [
  claim: string,
  rival: (facts: Figures) => Judgement,
  corespun: (facts: Figures) => Judgement,
]

/** All claims, judged. */
export function judgedClaims(anchors: Anchors, rows: readonly Row[]): JudgedClaim[] {
  const figures = new Figures(anchors, rows)
  return CLAIMS.flatMap(([seed, claims]) =>
    claims.map(([claim, rival, corespun]) => ({
      seed,
      claim,
      rival: rival(figures),
      corespun: corespun(figures),
    })),
  )
}

/** The figures that judgements draw on. */
class Figures {
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

const is = (holds: boolean | undefined, evidence: string): Judgement => ({ holds, evidence })
const undecided = (evidence: string) => (): Judgement => is(undefined, evidence)
const notMeasured = undecided('not measured in the records at hand')
const unmeasuredThere = undecided('not measured for napajs')

/** A judgement on rows that may not be measured. */
function judged(rows: readonly (Row | undefined)[], judge: (...rows: Row[]) => Judgement): Judgement {
  return rows.every((row) => row !== undefined) && rows.length > 0 ? judge(...(rows as Row[])) : notMeasured()
}

const round = (value: number): string => Number(value.toPrecision(3)).toLocaleString('en-US')
const medians = (rows: readonly Row[]): number[] => rows.map(({ median }) => median)
const spreadOf = (values: readonly number[]): number => Math.max(...values) / Math.min(...values)

/** The payload of one number. */
const SMALLEST = '1 level - 1 integers'
/** The rows compared with sequential fibers on the default executor. */
const OTHER_FIBERS = [
  ...['sequential/blocking', 'sequential/cached', 'sequential/work-stealing'],
  ...['parallel/default', 'parallel/work-stealing'],
]
/** The three programs of the seed that read files. */
const FILES = ['plainBench', 'arrowBench', 'zioBench'].map((name) => `arrow/files/${name}/ops`)

const ARROW: readonly Claim[] = [
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

const cellOfFibers = (facts: Figures, name: string): number => facts.cell(`fiber/setup-1/${name}/ops`)

const FIBER: readonly Claim[] = [
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

const HTTP: readonly Claim[] = [
  [
    'zio-http serves several times what http4s does (implied by its tables).',
    (facts) => {
      const quotient = facts.cell('http/hello/zio-http-jdk11/rps') / facts.cell('http/hello/http4s-jdk11/rps')
      return is(quotient >= 2, `${round(quotient)} × here`)
    },
    (facts) =>
      judged([hello(facts, 'corespun'), hello(facts, 'node:http')], (own, node) => {
        const quotient = round(own.median / node.median)
        const words = `of hello, per core, Corespun serves ${quotient} × what node:http does`
        return is(undefined, `about those two; ${words}`)
      }),
  ],
  [
    'http4s on ZIO is slower than on Cats Effect (implied by its tables).',
    (facts) => {
      const onZio = facts.cell('http/hello/http4s-zio-after/rps')
      const quotient = facts.cell('http/hello/http4s-jdk11/rps') / onZio
      return is(quotient > 1, `${round(quotient)} × here`)
    },
    undecided('about those two alone'),
  ],
  [
    'Servers of high throughput and low latency need a collector for the garbage of past requests.',
    undecided('a general remark; collectors were not compared here'),
    (facts) => {
      const bytes = facts.row({ section: 'hello', row: 'bytes per request' })
      return judged([bytes, ...collectors(facts)], (request, ...all) => {
        const listed = all.map((row) => `${row.condition.split(',')[0]} ${round(row.median)}`).join(', ')
        const heap = `a hello request allocates ${round(request.median)} B of heap`
        return is(undefined, `${heap}; p99 by collector, µs: ${listed}`)
      })
    },
  ],
]

const NAPA: readonly Claim[] = [
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
      return judged([facts.row(traits)], ({ median }) =>
        is(inside(median, 60, 120), `p50 ${round(median)} µs`),
      )
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

const CARRIERS: readonly Claim[] = [
  [
    'marshall costs about 3 × JSON.stringify on small plain values.',
    (facts) => {
      const mean = facts.fact('napa marshall / stringify')
      return is(inside(mean, 2.5, 3.5), `geometric mean ${mean} × (1.12–4.10)`)
    },
    (facts) => means(facts, /^napa\/transport\/\d+\/marshall-ratio$/, (mean) => inside(mean, 2.5, 3.5)),
  ],
  [
    'unmarshall costs 1.4 to 6 × JSON.parse (its table).',
    (facts) => {
      const mean = facts.fact('napa unmarshall / parse')
      return is(inside(mean, 1.4, 6), `geometric mean ${mean} × (1.54–6.96)`)
    },
    (facts) => means(facts, /^napa\/transport\/\d+\/unmarshall-ratio$/, (mean) => inside(mean, 1.4, 6)),
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
        is(
          inside(set.median, 40, 80) && inside(get.median, 40, 80),
          `of one number: set ${round(set.median)} µs, get ${round(get.median)} µs`,
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
      const range = (us: number[]): string => `${round(Math.min(...us))} to ${round(Math.max(...us))} µs`
      return is(
        Math.max(...sets) >= 70 && Math.max(...gets) >= 60,
        `set ${range(sets)}, get ${range(gets)} over ${sets.length} payloads`,
      )
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

const CLAIMS: readonly (readonly [seed: string, claims: readonly Claim[]])[] = [
  ['ZIO Arrow', ARROW],
  ['Fibers', FIBER],
  ['HTTP', HTTP],
  ['napajs', [...NAPA, ...CARRIERS]],
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

function means(facts: Figures, pattern: RegExp, good: (mean: number) => boolean): Judgement {
  const values = medians(facts.tagged(pattern))
  if (values.length === 0) return notMeasured()
  const mean = geometricMean(values)
  const range = `${round(Math.min(...values))}–${round(Math.max(...values))}`
  return is(good(mean), `geometric mean ${round(mean)} × (${range}) over ${values.length} payloads`)
}

function compute(facts: Figures, who: 'arrow' | 'zio'): Row | undefined {
  return facts.answer(`arrow/compute/${who}Bench/ops`)
}

function fibers(facts: Figures, name: string): Row | undefined {
  return facts.answer(`fiber/setup-1/${name}/ops`)
}

function hello(facts: Figures, contender: string): Row | undefined {
  return facts.row({ section: 'hello', row: 'requests/s', contender })
}

/** p99 of hello under each setting of the collector, of the Node that was measured first. */
function collectors(facts: Figures): Row[] {
  const all = facts.all({ section: 'hello', row: 'p99' }).filter((row) => row.contender.startsWith('Node '))
  return all.filter((row) => row.contender === all[0].contender)
}

function beyond(facts: Figures, what: 'set' | 'get', row: string): Row | undefined {
  return facts.row({ section: `${what} beyond transport`, row, contender: 'corespun' })
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

function inside(value: number, low: number, high: number): boolean {
  return value >= low && value <= high
}
