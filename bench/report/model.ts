/**
 * The report as data: the seeds' tables in their own order, each cell with three figures, and the claims.
 *
 * A figure of Corespun comes from the newest row of any record that carries the cell's id; a cell without one
 * is 'not built'. So a later table fills cells by tagging its rows, and nothing here changes.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { BENCH_FOLDER } from '../harness/paths.ts'
import type { BenchRecord } from '../harness/record.ts'
import { tableNames } from '../harness/tables.ts'
import type { Better, Row, Verdict } from '../harness/table.ts'
import { type Anchor, type Anchors, readAnchors } from './anchors.ts'
import { judgedClaims } from './claims.ts'
import type { JudgedClaim } from './claims/figures.ts'

/** A column of a seed's table. */
export interface Column {
  readonly id: string
  readonly label: string
  readonly unit: string
  readonly better: Better
}

/** What bench/seeds/*.json holds. */
export interface Seed {
  readonly seed: string
  readonly machine: string
  readonly tables: readonly SeedTable[]
}

export interface SeedTable {
  readonly id: string
  readonly title: string
  /** Table of the bench that fills it. */
  readonly bench: string
  readonly rival: string
  readonly note?: string
  /** The table whose work this one repeats on another machine: Corespun's figures are those of that one. */
  readonly work?: string
  readonly columns: readonly Column[]
  readonly rows: readonly {
    readonly key: string
    readonly label: string
    /** Whether more or less of it is better for anybody. Default: true. */
    readonly isJudged?: boolean
    readonly cells: Readonly<Record<string, number>>
  }[]
}

/** One cell: the seed's figure, the rival's as measured here, Corespun's. */
export interface Cell {
  readonly id: string
  readonly column: string
  readonly unit: string
  readonly better: Better
  readonly isJudged: boolean
  readonly seed: number | undefined
  readonly rival: Anchor | undefined
  /** What to show without a figure of Corespun. */
  readonly missing: 'not built' | 'not measured'
  readonly corespun:
    | { readonly median: number; readonly low: number; readonly high: number; readonly quick: boolean }
    | undefined
}

/** A seed's table with the other two figures in every cell. */
export interface FilledTable {
  readonly id: string
  readonly title: string
  readonly rival: string
  readonly note: string
  /** When the rival was measured. */
  readonly rivalDay: string
  /** When Corespun was measured; empty when it was not. */
  readonly corespunDays: readonly string[]
  /** On what Corespun was measured. */
  readonly corespunMachines: readonly string[]
  readonly rows: readonly { readonly label: string; readonly cells: readonly Cell[] }[]
}

/** The content of the report. */
export interface Report {
  readonly madeAt: string
  readonly anchors: { readonly date: string; readonly machine: string }
  readonly seeds: readonly {
    readonly title: string
    readonly machine: string
    readonly tables: readonly FilledTable[]
  }[]
  readonly claims: readonly JudgedClaim[]
  readonly bars: readonly {
    readonly table: string
    readonly quick: boolean
    readonly verdicts: readonly Verdict[]
  }[]
  readonly records: readonly BenchRecord[]
}

/** Put the report together from records, the newest of each table. */
export function makeReport(records: readonly BenchRecord[]): Report {
  const anchors = readAnchors()
  const found = new Map<string, Found>()
  for (const { rows, quick, startedAt, machine } of records) {
    const { cpu, cores, memoryGb, virtual, node } = machine
    const where = `${cores} cores of ${cpu}, ${memoryGb} GB, ${virtual}, Node ${node}`
    for (const row of rows)
      for (const id of [row.seed ?? []].flat())
        found.set(id, { row, quick, day: startedAt.slice(0, 10), where })
  }
  return {
    madeAt: new Date().toISOString(),
    anchors: { date: anchors.date, machine: anchors.machine },
    seeds: readSeeds().map((seed) => ({
      title: seed.seed,
      machine: seed.machine,
      tables: seed.tables.map((table) => filled(table, anchors, found)),
    })),
    claims: judgedClaims(
      anchors,
      records.flatMap((record) => record.rows),
    ),
    bars: records
      .filter((record) => record.verdicts.length > 0)
      .map(({ table, quick, verdicts }) => ({ table, quick, verdicts })),
    records,
  }
}

/** All seeds in their order. */
export function readSeeds(): Seed[] {
  return readdirSync(`${BENCH_FOLDER}/seeds`)
    .sort()
    .map((name) => readJson<Seed>(`seeds/${name}`))
}

/** A row that answers a cell. */
interface Found {
  readonly row: Row
  readonly quick: boolean
  readonly day: string
  readonly where: string
}

function filled(table: SeedTable, anchors: Anchors, found: ReadonlyMap<string, Found>): FilledTable {
  const missing = tableNames().includes(table.bench) ? 'not measured' : 'not built'
  const sizes = table.columns.filter(({ unit }) => unit === 'bytes')
  const figures = table.columns.filter(({ unit }) => unit !== 'bytes')
  const rows = table.rows.map(({ key, label, isJudged = true, cells }) => ({
    label: [label, ...sizes.map(({ id }) => `${cells[id].toLocaleString('en-US')} bytes`)].join(', '),
    cells: figures.map((column): Cell => {
      const id = `${table.id}/${key}/${column.id}`
      return {
        id,
        column: column.label,
        unit: column.unit,
        better: column.better,
        isJudged,
        missing,
        seed: cells[column.id],
        rival: anchors.cells[id],
        corespun: figureOf(found.get(`${table.work ?? table.id}/${key}/${column.id}`), column.unit),
      }
    }),
  }))
  const who = anchors.who[table.id]
  const answers = table.rows.flatMap(({ key }) =>
    figures.flatMap(({ id }) => found.get(`${table.work ?? table.id}/${key}/${id}`) ?? []),
  )
  return {
    id: table.id,
    title: table.title,
    rival: table.rival,
    rivalDay: anchors.date,
    corespunDays: [...new Set(answers.map(({ day }) => day))].sort(),
    corespunMachines: [...new Set(answers.map(({ where }) => where))],
    note: [who && `${table.rival} here: ${who}.`, table.note].filter(Boolean).join(' '),
    rows,
  }
}

function figureOf(hit: Found | undefined, unit: string): Cell['corespun'] {
  if (hit === undefined) return undefined
  const factor = conversion(hit.row.unit, unit)
  const { median, low, high } = hit.row
  return { median: median * factor, low: low * factor, high: high * factor, quick: hit.quick }
}

/** Units of time in seconds, and of throughput in operations per second. */
const SIZES: readonly Readonly<Record<string, number>>[] = [
  { ns: 1e-9, µs: 1e-6, ms: 1e-3, s: 1 },
  { 'ops/s': 1, 'thousand/s': 1e3, 'million/s': 1e6 },
]

/** Factor from one unit of a kind to another; 1 for all else. */
function conversion(from: string, to: string): number {
  const kind = SIZES.find((sizes) => sizes[from] !== undefined && sizes[to] !== undefined)
  return kind === undefined ? 1 : kind[from] / kind[to]
}

function readJson<Shape>(name: string): Shape {
  return JSON.parse(readFileSync(`${BENCH_FOLDER}/${name}`, 'utf8')) as Shape
}
