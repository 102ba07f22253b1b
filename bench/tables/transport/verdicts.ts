/**
 * The demands on the transport, judged on the rows of one run.
 *
 * The demand on encode depends on the Node: JSON.stringify is twice as fast in 24 as in 20 and again in 26.
 */
import { geometricMean } from '../../harness/stats.ts'
import type { Row, Verdict } from '../../harness/table.ts'
import { SEED_PAYLOADS } from './payloads.ts'

const ENCODE_MAX: Readonly<Record<string, number>> = {
  20: 0.45,
  22: 0.45,
  24: 0.55,
  26: 0.9,
}
const DECODE_MAX = 0.25
const ROW_MAX_NODE_24 = 1.2
const RIVALS = ['msgpackr', 'cbor-x', 'v8.serialize', 'structuredClone', 'JSON, empty callbacks']

const major = process.versions.node.split('.')[0]!

/** All demands of the table. */
export function verdicts(rows: readonly Row[]): Verdict[] {
  const conditions = [
    ...new Set(rows.filter(({ section }) => section === 'encode').map(({ condition }) => condition)),
  ]
  return conditions.flatMap((condition) => [
    mean(rows, 'encode', condition, ENCODE_MAX[major] ?? 0.9),
    mean(rows, 'decode', condition, DECODE_MAX),
    ...(major === '24' ? [worst(rows, condition)] : []),
    ...RIVALS.map((rival) => ahead(rows, condition, rival)),
  ])
}

function ratios(
  rows: readonly Row[],
  section: string,
  condition: string,
): { label: string; ratio: number }[] {
  const labels = SEED_PAYLOADS.map(({ label }) => label)
  return rows
    .filter((row) => row.section === section && row.condition === condition && row.contender === 'skein')
    .filter((row) => labels.includes(row.row) && row.ratio !== undefined)
    .map((row) => ({ label: row.row, ratio: row.ratio!.median }))
}

function mean(rows: readonly Row[], section: string, condition: string, max: number): Verdict {
  const found = ratios(rows, section, condition).map(({ ratio }) => ratio)
  const bar = `${section}, ${condition}: geometric mean ≤ ${max} × JSON on Node ${major}`
  if (found.length < SEED_PAYLOADS.length)
    return {
      bar,
      measured: `${found.length} of 17 payloads`,
      holds: undefined,
    }
  const value = geometricMean(found)
  return { bar, measured: value.toFixed(3), holds: value <= max }
}

function worst(rows: readonly Row[], condition: string): Verdict {
  const found = ratios(rows, 'encode', condition)
  const top = found.reduce((a, b) => (b.ratio > a.ratio ? b : a), {
    label: 'none',
    ratio: 0,
  })
  return {
    bar: `encode, ${condition}: no row above ${ROW_MAX_NODE_24} × JSON`,
    measured: `${top.label}: ${top.ratio.toFixed(2)}`,
    holds: found.length === 0 ? undefined : top.ratio <= ROW_MAX_NODE_24,
  }
}

/** Skein against one rival on every row, in every direction that the rival has. */
function ahead(rows: readonly Row[], condition: string, rival: string): Verdict {
  const sections = rival === 'structuredClone' ? ['round trip'] : ['encode', 'decode']
  const theirs = rows.filter(
    (row) => row.condition === condition && row.contender === rival && sections.includes(row.section),
  )
  let [top, where] = [0, 'none']
  for (const row of theirs) {
    const own = rows.find(
      (each) =>
        each.contender === 'skein' &&
        each.section === row.section &&
        each.row === row.row &&
        each.condition === condition,
    )
    const quotient = own === undefined ? Infinity : own.median / row.median
    if (quotient > top) [top, where] = [quotient, `${row.section} of ${row.row}`]
  }
  return {
    bar: `${condition}: ahead of ${rival} on every row`,
    measured: `closest: ${where}, ${top.toFixed(2)} of its time`,
    holds: theirs.length === 0 ? undefined : top < 1,
  }
}
