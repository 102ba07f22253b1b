/**
 * `npm run report`: gathers the records of every table and writes text and the page, in seconds.
 *
 * --missing: measure the tables without a record, an hour and more. --fresh: measure every table. --quick:
 * those of the published benchmarks in their short form, less than three minutes; the others are those of the
 * records. Quick figures are marked wherever they appear.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { DIST_FOLDER } from '../harness/paths.ts'
import { cpuName } from '../harness/machine.ts'
import { type BenchRecord, newestRecords, sectionRecords, writeRecord } from '../harness/record.ts'
import { runTable } from '../harness/run-table.ts'
import { loadTable, tableNames } from '../harness/tables.ts'
import { makeReport, readSeeds } from './model.ts'
import { reportPage } from './page.ts'
import { reportLines } from './text.ts'

/**
 * What a quick report measures: of each table that fills published ones, that part of it. What it may take is
 * from when on it starts nothing more.
 */
const QUICK: Readonly<Record<string, { quickMs: number; values: Readonly<Record<string, string>> }>> = {
  arrow: { quickMs: 20_000, values: {} },
  fiber: { quickMs: 20_000, values: {} },
  http: { quickMs: 10_000, values: { sections: 'seed', contenders: 'corespun' } },
  execute: {
    quickMs: 30_000,
    values: {
      sections: 'overhead,first calls,parts,scaling,zone against main thread',
      contenders: 'corespun',
      'overhead-calls': '50000',
    },
  },
  transport: { quickMs: 20_000, values: { payloads: 'all', rounds: '1', 'slice-ms': '2' } },
  store: { quickMs: 40_000, values: { payloads: 'all', rounds: '1', 'slice-ms': '2' } },
}

/** Make the report; returns the exit code. */
export async function report(words: readonly string[], progress: (line: string) => void): Promise<number> {
  const records = await gather(words, progress)
  const made = makeReport(records)
  console.log(reportLines(made).join('\n'))
  const folder = `${DIST_FOLDER}/report`
  mkdirSync(folder, { recursive: true })
  writeFileSync(`${folder}/report.txt`, `${reportLines(made).join('\n')}\n`)
  writeFileSync(`${folder}/report.html`, reportPage(made))
  console.log(`\npage: ${folder}/report.html`)
  return 0
}

async function gather(words: readonly string[], progress: (line: string) => void): Promise<BenchRecord[]> {
  const quick = words.includes('--quick')
  const began = performance.now()
  const records: BenchRecord[] = []
  const names = tableNames()
  const published = readSeeds().flatMap(({ tables }) => tables.map(({ bench }) => bench))
  const first = [...new Set(published)].filter((name) => names.includes(name))
  if (quick)
    console.error(
      `Measuring ${first.join(', ')} takes less than three minutes; quick figures are not for claims.`,
    )
  for (const name of new Set([...first, ...names])) {
    const known = await knownRecords(name)
    const isMissing = words.includes('--missing') && known.length === 0
    const measure = quick ? first.includes(name) : words.includes('--fresh') || isMissing
    if (measure) console.error(`measuring ${name}, after ${Math.round((performance.now() - began) / 1000)} s`)
    records.push(...(measure ? [await measured(name, quick, progress)] : known))
  }
  return records.sort((a, b) => a.table.localeCompare(b.table))
}

/**
 * The full records made with this Node on such a processor, of each section the newest; else those of the
 * processor and the Node of the newest record. The demands are judged on all rows together, with the newest
 * of the records.
 */
async function knownRecords(name: string): Promise<BenchRecord[]> {
  const major = process.versions.node.split('.')[0]
  const own = sectionRecords(name, { major, cpu: cpuName() })
  const [newest, ...older] = own.length > 0 ? own : newestRecords(name)
  if (newest === undefined) return []
  const rows = [newest, ...older].flatMap((record) => record.rows)
  const verdicts = (await loadTable(name)).verdicts?.(rows) ?? []
  return [...older.reverse().map((record) => ({ ...record, verdicts: [] })), { ...newest, verdicts }]
}

async function measured(
  name: string,
  quick: boolean,
  progress: (line: string) => void,
): Promise<BenchRecord> {
  const words = { quick, values: {}, ...(quick ? QUICK[name] : {}) }
  const record = await runTable(await loadTable(name), words, progress)
  if (!quick) progress(`record: ${writeRecord(record)}`)
  return record
}
