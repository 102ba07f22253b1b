/**
 * `npm run report`: gathers the records of every table and writes text and the page, in seconds.
 *
 * --missing: measure the tables without a record, an hour and more. --fresh: measure every table. --quick:
 * tables in their short form, those of the published benchmarks first, some three minutes in all. Quick
 * figures are marked wherever they appear.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { DIST_FOLDER } from '../harness/paths.ts'
import { cpuName } from '../harness/machine.ts'
import { type BenchRecord, newestRecord, sectionRecords, writeRecord } from '../harness/record.ts'
import { runTable } from '../harness/run-table.ts'
import { loadTable, tableNames } from '../harness/tables.ts'
import { makeReport, readSeeds } from './model.ts'
import { reportPage } from './page.ts'
import { reportLines } from './text.ts'

/** Seconds after which a quick report starts no further table. */
const QUICK_SECONDS = 150

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
  if (quick) console.error('A quick report takes some three minutes; its figures are not for claims.')
  for (const name of seedsFirst(tableNames())) {
    const known = await knownRecords(name)
    const late = quick && performance.now() - began > QUICK_SECONDS * 1000
    const measure =
      !late && (quick || words.includes('--fresh') || (words.includes('--missing') && known.length === 0))
    if (measure) console.error(`measuring ${name}, after ${Math.round((performance.now() - began) / 1000)} s`)
    records.push(...(measure ? [await measured(name, quick, progress)] : known))
  }
  return records.sort((a, b) => a.table.localeCompare(b.table))
}

/** The tables that fill the published ones, in their order; then the others. */
function seedsFirst(names: readonly string[]): string[] {
  const filling = readSeeds().flatMap(({ tables }) => tables.map(({ bench }) => bench))
  return [...new Set([...filling.filter((name) => names.includes(name)), ...names])]
}

/**
 * The full records made with this Node on such a processor, of each section the newest; else the newest
 * record at all. The demands are judged on all rows together, with the newest of the records.
 */
async function knownRecords(name: string): Promise<BenchRecord[]> {
  const major = process.versions.node.split('.')[0]
  const [newest, ...older] = sectionRecords(name, { major, cpu: cpuName() })
  if (newest === undefined) {
    const any = newestRecord(name)
    return any === undefined ? [] : [any]
  }
  const rows = [newest, ...older].flatMap((record) => record.rows)
  const verdicts = (await loadTable(name)).verdicts?.(rows) ?? []
  return [...older.reverse().map((record) => ({ ...record, verdicts: [] })), { ...newest, verdicts }]
}

async function measured(
  name: string,
  quick: boolean,
  progress: (line: string) => void,
): Promise<BenchRecord> {
  const record = await runTable(await loadTable(name), { quick, values: {} }, progress)
  if (!quick) progress(`record: ${writeRecord(record)}`)
  return record
}
