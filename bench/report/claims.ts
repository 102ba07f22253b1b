/**
 * What the seeds say in prose, in our words, judged by figures measured here.
 *
 * Two judgements stand side by side: of the seed's own subject as we measured it (from the anchors), and of
 * Skein (from records). A claim that no figure here can decide says so; it is never silently true.
 */
import { geometricMean } from '../harness/stats.ts'
import { findRow, type Row } from '../harness/table.ts'
import { SUM_ROW } from '../tables/execute/parts.ts'
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
  readonly skein: Judgement
}

interface Claim {
  readonly seed: string
  readonly claim: string
  rival(facts: Figures): Judgement
  skein(facts: Figures): Judgement
}

/** All claims, judged. */
export function judgedClaims(anchors: Anchors, rows: readonly Row[]): JudgedClaim[] {
  const figures = new Figures(anchors, rows)
  return CLAIMS.map(({ seed, claim, rival, skein }) => ({
    seed,
    claim,
    rival: rival(figures),
    skein: skein(figures),
  }))
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

  /** A rival's fact that stands in no table of the seeds. */
  fact(name: string): number {
    return this.#anchors.facts[name]
  }

  /** A row of Skein. */
  row(traits: Partial<Row>): Row | undefined {
    return findRow(this.#rows, traits)
  }

  /** All rows of anybody with these traits. */
  all(traits: Partial<Row>): Row[] {
    const wanted = Object.entries(traits)
    return this.#rows.filter((row) => wanted.every(([name, value]) => row[name as keyof Row] === value))
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

const UNDECIDED = (why: string): Judgement => ({ holds: undefined, evidence: why })

/** A judgement on rows that may not be measured. */
function judged(rows: readonly (Row | undefined)[], judge: (...rows: Row[]) => Judgement): Judgement {
  return rows.every((row) => row !== undefined) && rows.length > 0
    ? judge(...(rows as Row[]))
    : UNDECIDED('not measured in the records at hand')
}

const round = (value: number): string => Number(value.toPrecision(3)).toLocaleString('en-US')

/** The payload of one number. */
const SMALLEST = '1 level - 1 integers'
/** Who else stands beside sequential fibers on the default executor. */
const OTHER_FIBERS = [
  'sequential/blocking',
  'sequential/cached',
  'sequential/work-stealing',
  'parallel/default',
  'parallel/work-stealing',
]

const ARROW: readonly Claim[] = [
  {
    seed: 'ZIO Arrow',
    claim: 'In the compute test the arrow is more than 10 × as fast as the ZIO monad.',
    rival: (facts) => {
      const quotient = facts.cell('arrow/compute/arrowBench/ops') / facts.cell('arrow/compute/zioBench/ops')
      return { holds: quotient >= 10, evidence: `${round(quotient)} × here` }
    },
    skein: (facts) =>
      judged([compute(facts, 'arrow'), compute(facts, 'zio')], (arrow, effect) => {
        const quotient = arrow.median / effect.median
        return { holds: quotient >= 10, evidence: `${round(quotient)} × Effect's chain, built once` }
      }),
  },
  {
    seed: 'ZIO Arrow',
    claim: 'The monad loses by its allocations and polymorphic dispatch.',
    rival: (facts) => ({
      holds: undefined,
      evidence:
        `its cost was not taken apart here; plain code that boxes a list reaches ` +
        `${round(facts.cell('arrow/compute/plainBench/ops'))}/s, below the arrow`,
    }),
    skein: (facts) =>
      judged(
        ['skein', 'effect 4'].map((contender) =>
          facts.row({ section: 'bytes of a run', row: 'compute', contender }),
        ),
        (arrow, effect) => ({
          holds: undefined,
          evidence:
            `a run of the arrow allocates ${round(arrow.median)} B, one of Effect's chain ` +
            `${round(effect.median)}; dispatch was not taken apart`,
        }),
      ),
  },
  {
    seed: 'ZIO Arrow',
    claim: 'With files the three are balanced, since reading is the larger part.',
    rival: (facts) => {
      const ids = ['plainBench', 'arrowBench', 'zioBench'].map((name) =>
        facts.cell(`arrow/files/${name}/ops`),
      )
      const spread = Math.max(...ids) / Math.min(...ids)
      return { holds: spread <= 1.15, evidence: `fastest / slowest ${round(spread)}` }
    },
    skein: (facts) =>
      judged(
        ['plainBench', 'arrowBench', 'zioBench'].map((name) => facts.answer(`arrow/files/${name}/ops`)),
        (...rows) => {
          const all = rows.map((row) => row.median)
          const spread = Math.max(...all) / Math.min(...all)
          return {
            holds: spread <= 1.15,
            evidence: `fastest / slowest of plain, arrow, Effect ${round(spread)}`,
          }
        },
      ),
  },
]

const FIBER: readonly Claim[] = [
  {
    seed: 'Fibers',
    claim: 'Sequential on the default pool is the fastest of all.',
    rival: (facts) => {
      const best = facts.cell('fiber/setup-1/sequential/default-10/ops')
      const next = Math.max(...OTHER_FIBERS.map((name) => facts.cell(`fiber/setup-1/${name}-10/ops`)))
      return { holds: best > next, evidence: `${round(best)}/s, next ${round(next)}/s (ZIO 1)` }
    },
    skein: (facts) =>
      judged(
        ['sequential/default', ...OTHER_FIBERS].map((name) => fibers(facts, `${name}-10`)),
        (best, ...others) => {
          const next = Math.max(...others.map((row) => row.median))
          return { holds: best.median > next, evidence: `${round(best.median)}/s, next ${round(next)}/s` }
        },
      ),
  },
  {
    seed: 'Fibers',
    claim: 'The blocking pool costs a factor of 5 to 8.',
    rival: (facts) => {
      const quotient =
        facts.cell('fiber/setup-1/sequential/default-10/ops') /
        facts.cell('fiber/setup-1/sequential/blocking-10/ops')
      return {
        holds: quotient >= 5 && quotient <= 8,
        evidence: `${round(quotient)} × here; in the seed's second set-up 3.8–4.7`,
      }
    },
    skein: (facts) =>
      judged(
        [fibers(facts, 'sequential/default-10'), fibers(facts, 'sequential/blocking-10')],
        (own, blocking) => {
          const quotient = own.median / blocking.median
          return { holds: quotient >= 5 && quotient <= 8, evidence: `${round(quotient)} ×` }
        },
      ),
  },
  {
    seed: 'Fibers',
    claim: 'Work stealing and cached pools are no better than the blocking one by much.',
    rival: (facts) => {
      const id = (pool: string): number => facts.cell(`fiber/setup-1/sequential/${pool}-20/ops`)
      const quotient = Math.max(id('cached'), id('work-stealing')) / id('blocking')
      return { holds: quotient < 2, evidence: `at best ${round(quotient)} × the blocking pool (0..20)` }
    },
    skein: (facts) =>
      judged(
        ['blocking', 'cached', 'work-stealing'].map((pool) => fibers(facts, `sequential/${pool}-20`)),
        (blocking, ...others) => {
          const quotient = Math.max(...others.map((row) => row.median)) / blocking.median
          return {
            holds: quotient < 2,
            evidence: `at best ${round(quotient)} × the blocking executor (0..20)`,
          }
        },
      ),
  },
]

const HTTP: readonly Claim[] = [
  {
    seed: 'HTTP',
    claim: 'zio-http serves several times what http4s does (implied by its tables).',
    rival: (facts) => {
      const quotient = facts.cell('http/hello/zio-http-jdk11/rps') / facts.cell('http/hello/http4s-jdk11/rps')
      return { holds: quotient >= 2, evidence: `${round(quotient)} × here` }
    },
    skein: (facts) =>
      judged([hello(facts, 'skein'), hello(facts, 'node:http')], (own, node) => ({
        holds: undefined,
        evidence:
          `about those two; of hello, per core, Skein serves ` +
          `${round(own.median / node.median)} × what node:http does`,
      })),
  },
  {
    seed: 'HTTP',
    claim: 'http4s on ZIO is slower than on Cats Effect (implied by its tables).',
    rival: (facts) => {
      const quotient =
        facts.cell('http/hello/http4s-jdk11/rps') / facts.cell('http/hello/http4s-zio-after/rps')
      return { holds: quotient > 1, evidence: `${round(quotient)} × here` }
    },
    skein: () => UNDECIDED('about those two alone'),
  },
  {
    seed: 'HTTP',
    claim: 'Servers of high throughput and low latency need a collector for the garbage of past requests.',
    rival: () => UNDECIDED('a general remark; collectors were not compared here'),
    skein: (facts) =>
      judged(
        [facts.row({ section: 'hello', row: 'bytes per request' }), ...collectors(facts)],
        (bytes, ...all) => {
          const told = all.map((row) => `${row.condition.split(',')[0]} ${round(row.median)}`)
          return {
            holds: undefined,
            evidence:
              `a hello request allocates ${round(bytes.median)} B of heap; p99 by collector, µs: ` +
              told.join(', '),
          }
        },
      ),
  },
]

const NAPA: readonly Claim[] = [
  {
    seed: 'napajs',
    claim: "A zone's JavaScript is as fast as node's.",
    rival: () => UNDECIDED('not measured for napajs'),
    skein: (facts) =>
      judged([facts.row({ section: 'zone against main thread', contender: 'skein' })], (row) => ({
        holds: Math.abs(row.ratio!.median - 1) <= 0.02,
        evidence: `${row.ratio!.median.toFixed(3)} × the main thread's time`,
      })),
  },
  {
    seed: 'napajs',
    claim: 'execute scales linearly with the number of workers.',
    rival: (facts) => ({
      holds: facts.fact('napa two tasks ×') >= 1.9,
      evidence: `two tasks ${facts.fact('napa two tasks ×')} × one`,
    }),
    skein: (facts) =>
      judged([scaled(facts, 1), scaled(facts, 2)], (one, two) => {
        const quotient = (2 * one.median) / two.median
        return {
          holds: quotient >= 1.9,
          evidence: `two workers ${quotient.toFixed(3)} × one; beyond the cores, workers / cores`,
        }
      }),
  },
  {
    seed: 'napajs',
    claim: 'More workers can take less time than fewer for the same work each (it asks why).',
    rival: (facts) => ({
      holds: facts.fact('napa two tasks ×') > 2,
      evidence: 'two tasks never took less than one here',
    }),
    skein: whyMore,
  },
  {
    seed: 'napajs',
    claim: 'A call costs some 0.1 ms after warm-up (its summary), 0.06 to 0.12 ms (its text).',
    rival: (facts) => ({
      holds: inside(facts.fact('napa p50 µs'), 60, 120),
      evidence: `p50 ${facts.fact('napa p50 µs')} µs; 13 µs on one core, 12.5 µs each in batches`,
    }),
    skein: (facts) =>
      judged(
        [facts.row({ section: 'sequential', row: 'p50', contender: 'skein', condition: 'cores spinning' })],
        (row) => ({ holds: inside(row.median, 60, 120), evidence: `p50 ${round(row.median)} µs` }),
      ),
  },
  {
    seed: 'napajs',
    claim: 'An anonymous function costs no more than a named one.',
    rival: () => UNDECIDED('not measured for napajs'),
    skein: (facts) =>
      judged([loop(facts, '10000 calls named'), loop(facts, '10000 calls anonymous')], (named, anonymous) => {
        const quotient = anonymous.median / named.median
        return { holds: quotient <= 1.05, evidence: `anonymous / named ${quotient.toFixed(3)}` }
      }),
  },
  {
    seed: 'napajs',
    claim: 'The first calls are some 30 × as slow as the twentieth.',
    rival: () => UNDECIDED('not measured for napajs'),
    skein: (facts) =>
      judged([firstCall(facts, 1), firstCall(facts, 20)], (first, twentieth) => ({
        holds: first.median / twentieth.median >= 20,
        evidence: `call 1 ${round(first.median)} µs, call 20 ${round(twentieth.median)} µs`,
      })),
  },
  {
    seed: 'napajs',
    claim: 'A call has six parts, and they make up the whole.',
    rival: () => UNDECIDED('not measured for napajs'),
    skein: (facts) =>
      judged([facts.row({ section: 'parts', row: SUM_ROW })], (row) => ({
        holds: Math.abs(row.median - 1) <= 0.1,
        evidence: `their sum / the whole ${row.median.toFixed(3)}`,
      })),
  },
]

const CARRIERS: readonly Claim[] = [
  {
    seed: 'napajs',
    claim: 'marshall costs about 3 × JSON.stringify on small plain values.',
    rival: (facts) => ({
      holds: inside(facts.fact('napa marshall / stringify'), 2.5, 3.5),
      evidence: `geometric mean ${facts.fact('napa marshall / stringify')} × (1.12–4.10)`,
    }),
    skein: (facts) =>
      means(facts, /^napa\/transport\/\d+\/marshall-ratio$/, (mean) => inside(mean, 2.5, 3.5)),
  },
  {
    seed: 'napajs',
    claim: 'unmarshall costs 1.4 to 6 × JSON.parse (its table).',
    rival: (facts) => ({
      holds: inside(facts.fact('napa unmarshall / parse'), 1.4, 6),
      evidence: `geometric mean ${facts.fact('napa unmarshall / parse')} × (1.54–6.96)`,
    }),
    skein: (facts) =>
      means(facts, /^napa\/transport\/\d+\/unmarshall-ratio$/, (mean) => inside(mean, 1.4, 6)),
  },
  {
    seed: 'napajs',
    claim: 'An empty callback alone slows JSON.stringify and JSON.parse much.',
    rival: (facts) => {
      const [out, back] = [
        facts.fact('JSON with replacer / stringify, Node 24'),
        facts.fact('JSON with reviver / parse, Node 24'),
      ]
      return {
        holds: out >= 1.5 && back >= 1.5,
        evidence: `with its replacer ${out} ×, with its reviver ${back} × (Node 24)`,
      }
    },
    skein: () => UNDECIDED('its transport uses neither'),
  },
  {
    seed: 'napajs',
    claim: 'store.set and store.get cost 0.06 ms beyond the transport.',
    rival: (facts) => ({
      holds: inside(facts.fact('napa store set µs'), 40, 80),
      evidence: `set ${facts.fact('napa store set µs')} µs, get ${facts.fact('napa store get µs')} µs`,
    }),
    skein: (facts) =>
      judged([beyond(facts, 'set', SMALLEST), beyond(facts, 'get', SMALLEST)], (set, get) => ({
        holds: inside(set.median, 40, 80) && inside(get.median, 40, 80),
        evidence: `of one number: set ${round(set.median)} µs, get ${round(get.median)} µs`,
      })),
  },
  {
    seed: 'napajs',
    claim: 'By payload, set costs 0.07 to 0.4 ms and get 0.06 to 0.9 ms beyond the transport.',
    rival: (facts) => ({
      holds: facts.fact('napa store set µs') >= 70,
      evidence:
        `medians of the 18 payloads ${facts.fact('napa store set µs')} and ` +
        `${facts.fact('napa store get µs')} µs`,
    }),
    skein: (facts) => {
      const all = (what: string): number[] =>
        facts.all({ section: `${what} beyond transport`, contender: 'skein' }).map((row) => row.median)
      const [sets, gets] = [all('set'), all('get')]
      if (sets.length === 0 || gets.length === 0) return UNDECIDED('not measured in the records at hand')
      const told = (values: number[]): string =>
        `${round(Math.min(...values))} to ${round(Math.max(...values))} µs`
      return {
        holds: Math.max(...sets) >= 70 && Math.max(...gets) >= 60,
        evidence: `set ${told(sets)}, get ${told(gets)} over ${sets.length} payloads`,
      }
    },
  },
  {
    seed: 'napajs',
    claim: 'What changes rarely is better kept in a JavaScript variable than read from the store each time.',
    rival: (facts) => ({
      holds: facts.fact('napa store get µs') > facts.fact('Map get µs'),
      evidence:
        `a Map answers in ${facts.fact('Map get µs')} µs, its store in ` +
        `${facts.fact('napa store get µs')} µs beyond the transport`,
    }),
    skein: (facts) =>
      judged(
        ['Map', 'skein'].map((contender) => facts.row({ section: 'get', row: SMALLEST, contender })),
        (map, own) => ({
          holds: own.median > map.median,
          evidence: `a number from a Map ${round(map.median)} µs, from the store ${round(own.median)} µs`,
        }),
      ),
  },
]

const CLAIMS: readonly Claim[] = [...ARROW, ...FIBER, ...HTTP, ...NAPA, ...CARRIERS]

/** Each tried cause with its factor: only one below 1 could make more workers win. */
function whyMore(facts: Figures): Judgement {
  const causes = [
    'first work of a fresh worker (compiling in the clock)',
    'after 2 s of idleness (core asleep, clock low)',
    'split into 100 calls',
    'two workers, one after the other test',
    'two workers, before any other test',
    'one worker beside a busy main thread',
  ]
  return judged(
    causes.map((row) => facts.row({ section: 'why', row })),
    (...rows) => {
      const told = rows.map((row) => `${row.row} ${row.median.toFixed(3)}`)
      const [one, two] = [scaled(facts, 1), scaled(facts, 2)]
      const less = one !== undefined && two !== undefined && two.median < 0.97 * one.median
      return {
        holds: less,
        evidence:
          `time against one warm worker: ${told.join('; ')}. See bench/README.md, "Why more workers ` +
          `beat fewer"`,
      }
    },
  )
}

function means(facts: Figures, pattern: RegExp, good: (mean: number) => boolean): Judgement {
  const rows = facts.tagged(pattern)
  if (rows.length === 0) return UNDECIDED('not measured in the records at hand')
  const values = rows.map((row) => row.median)
  const mean = geometricMean(values)
  return {
    holds: good(mean),
    evidence:
      `geometric mean ${round(mean)} × ` +
      `(${round(Math.min(...values))}–${round(Math.max(...values))}) over ${rows.length} payloads`,
  }
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
  return facts.row({ section: `${what} beyond transport`, row, contender: 'skein' })
}

function scaled(facts: Figures, workers: number): Row | undefined {
  return facts.tagged(new RegExp(`^napa/scaling/time/${workers}$`))[0]
}

function loop(facts: Figures, words: string): Row | undefined {
  return facts.row({ section: 'overhead', row: `${words}, one by one`, contender: 'skein' })
}

function firstCall(facts: Figures, call: number): Row | undefined {
  return facts.row({ section: 'first calls', row: `call ${call}`, contender: 'skein' })
}

function inside(value: number, low: number, high: number): boolean {
  return value >= low && value <= high
}
