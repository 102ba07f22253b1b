/**
 * Dated records: what a run measured, kept as a file for ever, and how two of them compare.
 *
 * A record is written whole or not at all (a file beside, then a rename) and is never changed afterwards.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { BenchError } from './errors.ts'
import type { Machine } from './machine.ts'
import { RECORDS_FOLDER } from './paths.ts'
import { keyOf, type Row, type Verdict, withoutVoidRatio } from './table.ts'

/** One run of one table. */
export interface BenchRecord {
  readonly format: 1
  readonly table: string
  readonly startedAt: string
  readonly seconds: number
  /** True for --quick: the report marks such figures. */
  readonly quick: boolean
  readonly parameters: Readonly<Record<string, number | string | boolean>>
  readonly definitions: Readonly<Record<string, string>>
  readonly machine: Machine
  readonly skipped: readonly { readonly what: string; readonly why: string }[]
  readonly rows: readonly Row[]
  readonly verdicts: readonly Verdict[]
}

/** How one row moved between two records. */
export interface Change {
  readonly key: string
  readonly unit: string
  readonly before: Row
  readonly after: Row
  /** after / before. */
  readonly quotient: number
  /** 'same' when the intervals overlap or the medians differ by less than 5 %. */
  readonly judgement: 'better' | 'worse' | 'same'
}

/** Name of a record's file: date and time, table, Node's major version. */
function recordName(record: BenchRecord): string {
  const stamp = record.startedAt.slice(0, 19).replace(/:/g, '')
  const node = `node${record.machine.node.slice(1).split('.')[0]}`
  return `${stamp}-${record.table}-${node}${record.quick ? '-quick' : ''}.json`
}

/** Write a record into `folder`; returns its path. */
export function writeRecord(record: BenchRecord, folder = RECORDS_FOLDER): string {
  mkdirSync(folder, { recursive: true })
  const path = join(folder, recordName(record))
  const beside = `${path}.${process.pid}.part`
  writeFileSync(beside, recordText(record))
  renameSync(beside, path)
  return path
}

/** Read a record. @throws {BenchError} `BAD_RECORD` when the file is missing or of another form. */
export function readRecord(path: string): BenchRecord {
  try {
    const found = JSON.parse(readFileSync(path, 'utf8')) as BenchRecord
    if (found.format !== 1 || !Array.isArray(found.rows)) throw new TypeError('no format 1 with rows')
    return { ...found, rows: found.rows.map(withoutVoidRatio) }
  } catch (error) {
    throw new BenchError('BAD_RECORD', { path, why: (error as Error).message })
  }
}

/** Paths of all records of `table`, oldest first. */
export function listRecords(table: string, folder = RECORDS_FOLDER): string[] {
  if (!existsSync(folder)) return []
  const ofTable = new RegExp(`^\\d{4}-[\\dT-]+-${table}-node\\d+(-quick)?\\.json$`)
  return readdirSync(folder)
    .filter((name) => ofTable.test(name))
    .sort()
    .map((name) => join(folder, name))
}

/** The newest record of `table`, a full one before any quick one, of Node `major` when given. */
export function newestRecord(
  table: string,
  major?: string,
  folder = RECORDS_FOLDER,
): BenchRecord | undefined {
  const ofNode = listRecords(table, folder).filter(
    (path) => major === undefined || path.includes(`-node${major}`),
  )
  const path = ofNode.findLast((one) => !one.includes('-quick')) ?? ofNode.at(-1)
  return path === undefined ? undefined : readRecord(path)
}

/**
 * Full records of `table` of Node `major` on that processor, newest first, as many as it takes to have the
 * newest of every section: a run of some sections hides none of the others. Of an older record only the rows
 * of sections that no newer one has are left, and no verdicts, as those were judged on other rows too.
 */
export function sectionRecords(
  table: string,
  of: { readonly major: string; readonly cpu: string },
  folder = RECORDS_FOLDER,
): BenchRecord[] {
  const known = new Set<string>()
  const found: BenchRecord[] = []
  for (const path of listRecords(table, folder).reverse()) {
    if (path.includes('-quick') || !path.includes(`-node${of.major}.`)) continue
    const record = readRecord(path)
    if (record.machine.cpu !== of.cpu) continue
    const rows = record.rows.filter(({ section }) => !known.has(section))
    for (const { section } of rows) known.add(section)
    if (rows.length === 0) continue
    found.push(rows.length === record.rows.length ? record : { ...record, rows, verdicts: [] })
  }
  return found
}

/**
 * As {@link sectionRecords}, of the processor and the Node of the newest record of `table`: for a machine
 * without records of its own. A quick one only if there is no other.
 */
export function newestRecords(table: string, folder = RECORDS_FOLDER): BenchRecord[] {
  const newest = newestRecord(table, undefined, folder)
  if (newest === undefined) return []
  const { node, cpu } = newest.machine
  const found = sectionRecords(table, { major: node.slice(1).split('.')[0], cpu }, folder)
  return found.length > 0 ? found : [newest]
}

/**
 * The record that a word names: a path, the name of a file in the folder, or a part of one (the newest wins).
 * @throws {BenchError} `NO_RECORD` when nothing matches.
 */
export function findRecord(word: string, folder = RECORDS_FOLDER): BenchRecord {
  if (existsSync(word)) return readRecord(word)
  const names = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.json')) : []
  const found = names.sort().findLast((name) => name.includes(basename(word)))
  if (found === undefined) throw new BenchError('NO_RECORD', { what: word, folder })
  return readRecord(join(folder, found))
}

/** Every row that both records have, in the order of the second. */
export function compareRecords(before: BenchRecord, after: BenchRecord): Change[] {
  const earlier = new Map(before.rows.map((row) => [keyOf(row), row]))
  return after.rows.flatMap((row) => {
    const old = earlier.get(keyOf(row))
    return old === undefined ? [] : [changeOf(old, row)]
  })
}

function changeOf(before: Row, after: Row): Change {
  const quotient = after.median / before.median
  const overlap = after.low <= before.high && before.low <= after.high
  const same = overlap || Math.abs(quotient - 1) < 0.05
  const better = after.better === 'lower' ? quotient < 1 : quotient > 1
  const judgement = same ? 'same' : better ? 'better' : 'worse'
  return { key: keyOf(after), unit: after.unit, before, after, quotient, judgement }
}

/** JSON with one row to a line, so that records read and differ well. */
function recordText(record: BenchRecord): string {
  const { rows, ...head } = record
  const opening = JSON.stringify(head, null, 1).slice(0, -2)
  const lines = rows.map((row) => `  ${JSON.stringify(row, rounded)}`)
  return `${opening},\n "rows": [\n${lines.join(',\n')}\n ]\n}\n`
}

function rounded(_key: string, value: unknown): unknown {
  return typeof value === 'number' ? Number(value.toPrecision(6)) : value
}
