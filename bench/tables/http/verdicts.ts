/**
 * The demands on table http: CPU per request against others of the same run, and against two measured before.
 *
 * zio-http and http4s are not run here; their CPU per request was measured on a machine of the kind this
 * bench is used on, and is in anchors.json.
 */
import { findRow, type Row, type Verdict } from '../../harness/table.ts'
import { judge } from '../../harness/verdicts.ts'
import { readAnchors } from '../../report/anchors.ts'
import { C_FLOOR, HYPER } from './servers.ts'

/** The row that ranks. */
export const CPU = 'CPU per 100,000'

/** A demand on Corespun against another. */
type Bar = readonly [section: string, ours: string, other: string, factor: number]

const BARS: readonly Bar[] = [
  ['hello', 'corespun', C_FLOOR, 1.15],
  ['user', 'corespun', C_FLOOR, 1.2],
  ['constant', 'corespun', C_FLOOR, 1.1],
  ['pipelined', 'corespun', C_FLOOR, 2],
  ['hello', 'corespun', HYPER, 1],
  ['user', 'corespun', HYPER, 1],
  ['hello', 'corespun', 'bun', 1],
  ['user', 'corespun', 'bun', 1],
  ['hello', 'corespun', 'deno', 1],
  ['user', 'corespun', 'deno', 1],
  ['echo', 'corespun', 'bun', 1],
  ['hono hello', 'hono on corespun', 'hono on bun', 1],
  ['hono user', 'hono on corespun', 'hono on bun', 1],
  ['hono echo', 'hono on corespun', 'hono on bun', 1],
  ['hono hello', 'hono on corespun', 'hono on node:http', 0.4],
  ['hono user', 'hono on corespun', 'hono on node:http', 0.4],
  ['hono echo', 'hono on corespun', 'hono on node:http', 0.4],
  ['express hello', 'express on corespun', 'express on node:http', 0.8],
  ['express user', 'express on corespun', 'express on node:http', 0.8],
  ['express echo', 'express on corespun', 'express on node:http', 0.8],
  ['two cores hello', 'corespun, two workers', 'corespun, one worker', 1.08],
]

/** Factors against what was measured elsewhere, on both cores: the fact's name in anchors.json. */
const ANCHORED = [
  ['zio-http', 'zio-http CPU s per 100,000', 0.65],
  ['http4s', 'http4s CPU s per 100,000', 0.12],
] as const

/** Two workers against one. */
const TWO_CORES = 1.8

export function verdicts(rows: readonly Row[]): Verdict[] {
  return [...BARS.map((bar) => against(rows, bar)), ...anchored(rows), twoCores(rows)]
}

/** Judge the CPU per request of one server by that of another. */
export function against(rows: readonly Row[], [section, ours, other, factor]: Bar): Verdict {
  const of = (contender: string): number | undefined =>
    findRow(rows, { section, row: CPU, contender })?.median
  return judged(`${section}: CPU of ${ours} at most ${factor} × ${other}`, of(ours), of(other), factor)
}

function anchored(rows: readonly Row[]): Verdict[] {
  const { facts } = readAnchors()
  const own = findRow(rows, {
    section: 'two cores hello',
    row: CPU,
    contender: 'corespun, two workers',
  })?.median
  return ANCHORED.map(([name, fact, factor]) =>
    judged(
      `hello on both cores: CPU at most ${factor} × ${name} as measured before`,
      own,
      facts[fact],
      factor,
    ),
  )
}

function judged(bar: string, own: number | undefined, theirs: number | undefined, factor: number): Verdict {
  return judge<[number, number]>(bar, [own, theirs], (own, theirs) => [
    `${own.toFixed(3)} s against ${theirs.toFixed(3)} s, ${(own / theirs).toFixed(2)} ×`,
    own <= factor * theirs,
  ])
}

function twoCores(rows: readonly Row[]): Verdict {
  const of = (contender: string): number | undefined =>
    findRow(rows, { section: 'two cores', row: 'requests/s', contender })?.median
  const bar = `two cores: two workers serve at least ${TWO_CORES} × what one does`
  return judge<[number, number]>(
    bar,
    [of('corespun, one worker'), of('corespun, two workers')],
    (one, two) => [
      `${two.toFixed(0)}/s against ${one.toFixed(0)}/s, ${(two / one).toFixed(2)} ×`,
      two >= TWO_CORES * one,
    ],
  )
}
