/**
 * The demands on the transport, judged on the rows of one run.
 *
 * The demand on encode depends on the Node: JSON.stringify is twice as fast in 24 as in 20 and again in 26.
 */
import { geometricMean } from '../../harness/stats.ts'
import { findRow, type Row, type Verdict } from '../../harness/table.ts'
import { judge, judgeAhead } from '../../harness/verdicts.ts'
import { SEED_PAYLOADS } from './payloads.ts'

const ENCODE_MAX: Readonly<Record<string, number>> = { 20: 0.45, 22: 0.45, 24: 0.55, 26: 0.9 }
/** The section of hard.ts, and how much slower than before plain objects may be. */
export const HARD_SECTION = 'after dictionary mode and many hidden classes'
export const HARD_ROWS = { before: '10 plain objects, before', after: '10 plain objects, after' }
const AFTER_MAX = 1.5

/** What zones and stores do, and what `marshall` and `unmarshall` do. */
const OWN = ['corespun', 'corespun, self-contained']
const DECODE_MAX = 0.25
const ROW_MAX_NODE_24 = 1.2
const RIVALS = ['msgpackr', 'cbor-x', 'v8.serialize', 'structuredClone', 'JSON, empty callbacks']

const major = process.versions.node.split('.')[0]

/** All demands of the table. */
export function verdicts(rows: readonly Row[]): Verdict[] {
  const conditions = [
    ...new Set(rows.filter(({ section }) => section === 'encode').map(({ condition }) => condition)),
  ]
  const judged = OWN.flatMap((own) =>
    conditions.flatMap((condition) => [
      mean(rows, { section: 'encode', condition, own }, ENCODE_MAX[major] ?? 0.9),
      mean(rows, { section: 'decode', condition, own }, DECODE_MAX),
      ...(major === '24' ? [worst(rows, { section: 'encode', condition, own })] : []),
      ...RIVALS.map((rival) => ahead(rows, { condition, own }, rival)),
    ]),
  )
  return [...judged, ...(['encode', 'decode'] as const).map((direction) => staysFast(rows, direction))]
}

/** Which rows are judged: whose, in what condition. */
interface Judged {
  readonly section: string
  readonly condition: string
  readonly own: string
}

/** How a demand names the contender; the first one needs no name. */
const titled = (own: string): string => (own === OWN[0] ? '' : `${own}: `)

function ratios(
  rows: readonly Row[],
  { section, condition, own }: Judged,
): { label: string; ratio: number }[] {
  const labels = SEED_PAYLOADS.map(({ label }) => label)
  return rows
    .filter((row) => row.section === section && row.condition === condition && row.contender === own)
    .filter((row) => labels.includes(row.row) && row.ratio !== undefined)
    .map((row) => ({ label: row.row, ratio: row.ratio!.median }))
}

function mean(rows: readonly Row[], judged: Judged, max: number): Verdict {
  const found = ratios(rows, judged).map(({ ratio }) => ratio)
  const { section, condition, own } = judged
  const bar = `${titled(own)}${section}, ${condition}: geometric mean ≤ ${max} × JSON on Node ${major}`
  if (found.length < SEED_PAYLOADS.length)
    return { bar, measured: `${found.length} of 17 payloads`, holds: undefined }
  const value = geometricMean(found)
  return { bar, measured: value.toFixed(3), holds: value <= max }
}

function worst(rows: readonly Row[], judged: Judged): Verdict {
  const found = ratios(rows, judged)
  const top = found.reduce((a, b) => (b.ratio > a.ratio ? b : a), { label: 'none', ratio: 0 })
  return {
    bar: `${titled(judged.own)}encode, ${judged.condition}: no row above ${ROW_MAX_NODE_24} × JSON`,
    measured: `${top.label}: ${top.ratio.toFixed(2)}`,
    holds: found.length === 0 ? undefined : top.ratio <= ROW_MAX_NODE_24,
  }
}

/** Plain objects after what spoils the caches of an engine, beside the same ones before. */
function staysFast(rows: readonly Row[], direction: 'encode' | 'decode'): Verdict {
  const pair = [HARD_ROWS.after, HARD_ROWS.before].map((name) =>
    findRow(rows, { section: HARD_SECTION, contender: OWN[0], row: `${name}, ${direction}` }),
  )
  return judge<[Row, Row]>(
    `${direction}, ${HARD_SECTION}: ≤ ${AFTER_MAX} × before`,
    [pair[0], pair[1]],
    (after, before) => {
      const quotient = after.median / before.median
      return [quotient.toFixed(2), quotient <= AFTER_MAX]
    },
  )
}

/** Corespun against one rival on every row, in every direction that the rival has. */
function ahead(
  rows: readonly Row[],
  { condition, own: ownName }: Omit<Judged, 'section'>,
  rival: string,
): Verdict {
  const sections = rival === 'structuredClone' ? ['round trip'] : ['encode', 'decode']
  const theirs = rows.filter(
    (row) => row.condition === condition && row.contender === rival && sections.includes(row.section),
  )
  return judgeAhead(
    `${titled(ownName)}${condition}: ahead of ${rival} on every row`,
    theirs,
    ({ section, row }) => findRow(rows, { section, row, condition, contender: ownName }),
    ({ section, row }) => `${section} of ${row}`,
  )
}
