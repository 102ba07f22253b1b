/**
 * The demands on stores and locks, judged on the rows of one run.
 *
 * Differences are taken inside a round and then summarised, as ratios are.
 */
import { geometricMean } from '../../harness/stats.ts'
import { type Row, type Verdict, findRow } from '../../harness/table.ts'
import { judge, judgeAhead } from '../../harness/verdicts.ts'
import { LARGE_BYTES, SIZE_KINDS, SMALL_BYTES, STORE_PAYLOADS } from './payloads.ts'

const BEYOND_MAX_US = 0.3
const MEMCPY_MAX = 1.2
const VIEW_MAX_NS = 60
const GUARD_MAX_NS = 200
const ATOMIC_MAX = 1.3
const RIVALS = ['lmdb', 'sharedmap'] as const
/** The payload of some hundred bytes as the seed's JSON counts them, text of as many, and a buffer. */
const HUNDRED = ['1 level - 10 integers', `${SMALL_BYTES} characters`, `${SMALL_BYTES} bytes`]

/** All demands of the table. */
export function verdicts(rows: readonly Row[]): Verdict[] {
  return [
    ...(['set', 'get'] as const).flatMap((way) => [beyond(rows, way), growth(rows, way)]),
    scaling(rows, 'get + get', 'same key', 1.7),
    scaling(rows, 'get + get', 'different keys', 1.7),
    scaling(rows, 'set + set', 'different keys', 1.5),
    ...RIVALS.flatMap((rival) => (['set', 'get'] as const).map((way) => ahead(rows, way, rival))),
    atMost('an unchanged view ≤ 60 ns, the slowest of its rows', slowestView(rows), VIEW_MAX_NS),
    dearestView(rows),
    dearestTransaction(rows),
    atMost(
      'an uncontended guardSync ≤ 0.2 µs',
      findRow(rows, { section: 'locks, one thread', row: 'guard', contender: 'corespun' }),
      GUARD_MAX_NS,
    ),
  ]
}

function beyond(rows: readonly Row[], way: 'set' | 'get'): Verdict {
  const section = `${way} beyond transport`
  const found = HUNDRED.map((row) => findRow(rows, { section, row, contender: 'corespun' }))
  return {
    bar: `${way}: at most ${BEYOND_MAX_US} µs beyond the transport at 100 bytes`,
    measured: found
      .map((row) => (row === undefined ? 'no row' : `${row.row}: ${row.median.toFixed(3)} µs`))
      .join(', '),
    holds: found.some((row) => row === undefined)
      ? undefined
      : found.every((row) => row!.median <= BEYOND_MAX_US),
  }
}

function growth(rows: readonly Row[], way: 'set' | 'get'): Verdict {
  const found = SIZE_KINDS.map((kind) =>
    findRow(rows, { section: 'growth', row: `${way}, ${kind}`, contender: 'corespun' }),
  )
  return {
    bar: `${way}: ${LARGE_BYTES} bytes cost at most ${MEMCPY_MAX} × a memcpy more than ${SMALL_BYTES}`,
    measured: found
      .map((one) => (one === undefined ? 'no row' : `${one.row}: ${one.median.toFixed(2)} × a memcpy`))
      .join('; '),
    holds: found.some((row) => row === undefined)
      ? undefined
      : found.every((row) => row!.median <= MEMCPY_MAX),
  }
}

function scaling(rows: readonly Row[], mode: string, keys: string, least: number): Verdict {
  const found = rows.filter(
    ({ section, condition, contender }) =>
      section === `two threads, ${mode}` && condition === keys && contender === 'corespun',
  )
  const bar = `${mode}, ${keys}: two threads do at least ${least} × what one does, geometric mean of 18`
  if (found.length < STORE_PAYLOADS.length)
    return { bar, measured: `${found.length} of 18`, holds: undefined }
  const mean = geometricMean(found.map(({ median }) => median))
  const low = found.reduce((a, b) => (b.median < a.median ? b : a))
  return {
    bar,
    measured: `${mean.toFixed(2)} ×; lowest ${low.median.toFixed(2)} (${low.row})`,
    holds: mean >= least,
  }
}

function ahead(rows: readonly Row[], way: string, rival: string): Verdict {
  const sections = [way, `two threads, ${way} + ${way}, time`]
  const theirs = rows.filter(({ section, contender }) => sections.includes(section) && contender === rival)
  return judgeAhead(
    `${way}: ahead of ${rival} on every row, one thread and two`,
    theirs,
    ({ section, row, condition }) => findRow(rows, { section, row, condition, contender: 'corespun' }),
    ({ row, condition }) => `${row}, ${condition}`,
  )
}

/** Of the views of all payloads. */
function slowestView(rows: readonly Row[]): Row | undefined {
  const views = rows.filter(({ section, contender }) => section === 'view' && contender === 'corespun')
  return views.length === 0 ? undefined : views.reduce((a, b) => (b.median > a.median ? b : a))
}

/** A view right after a write, where it costs most beside a `get`. */
function dearestView(rows: readonly Row[]): Verdict {
  const bar = 'set, then view ≤ 2 × set, then get, on every row'
  const ratios = rows
    .filter(({ section, contender }) => section === 'set, then view' && contender === 'corespun')
    .map(({ row, median }) => {
      const get = findRow(rows, { section: 'set, then get', row, contender: 'corespun' })
      return { row, times: get === undefined ? Infinity : median / get.median }
    })
  if (ratios.length === 0) return { bar, measured: 'no row', holds: undefined }
  const top = ratios.reduce((a, b) => (b.times > a.times ? b : a))
  return { bar, measured: `${top.times.toFixed(2)} × (${top.row})`, holds: top.times <= 2 }
}

/** A transaction of one key beside `update`. */
function dearestTransaction(rows: readonly Row[]): Verdict {
  const bar = `one key, atomically ≤ ${ATOMIC_MAX} × update, the dearest of its rows`
  const found = rows.filter(({ section }) => section === 'one key, atomically')
  if (found.length === 0) return { bar, measured: 'no row', holds: undefined }
  const top = found.reduce((a, b) => (b.median > a.median ? b : a))
  return { bar, measured: `${top.median.toFixed(2)} × (${top.row})`, holds: top.median <= ATOMIC_MAX }
}

function atMost(bar: string, found: Row | undefined, most: number): Verdict {
  return judge(
    bar,
    [found],
    ({ median, unit, row }) => [`${median.toFixed(1)} ${unit} (${row})`, median <= most],
    'no row',
  )
}
