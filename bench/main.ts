/**
 * `npm run bench` and `npm run report` after everything is installed and compiled: reads the words and acts.
 *
 * Tables go to standard output, progress to standard error; a refusal is one line and exit code 1.
 */
import { BenchError } from './harness/errors.ts'
import { changeLines, recordLines } from './harness/print.ts'
import { compareRecords, findRecord, writeRecord } from './harness/record.ts'
import { runTable, type Words } from './harness/run-table.ts'
import type { Table } from './harness/table.ts'
import { loadTable, tableNames } from './harness/tables.ts'

const USAGE = `npm run bench -- <table> [--quick] [--no-record] [--node 20|22|24|26] [--parameter value ...]
npm run bench -- <table> --help              definitions and parameters of a table
npm run bench -- ab --against <checkout> [--quick] [--sections all] [--pairs 7] ...
                                             another built checkout (A) and this one (B) in turn
npm run bench -- counts --node 24 [--check]  system calls, crossings and bytes of one operation: counts.json
npm run bench -- --compare <record> <record> [--all]
npm run bench -- --list                      the tables
npm run bench -- --self-test                 the bench's own tests
npm run report -- [--quick] [--missing] [--fresh] [--node 24]
npm run report -- --picture                  docs/numbers.svg from the README's table`
const REPORT_WORDS = ['--quick', '--missing', '--fresh', '--picture']

try {
  process.exitCode = await act(process.argv.slice(2))
} catch (error) {
  if (!(error instanceof BenchError)) throw error
  console.error(error.message)
  process.exitCode = 1
}

async function act(words: readonly string[]): Promise<number> {
  if (words[0] === 'report') return report(words.slice(1))
  if (words[0] === 'counts') return (await import('./counts/main.ts')).counts(words.slice(1), progress)
  if (words[0] === 'ab') return ab(wordsOf(words.slice(1)))
  if (words.includes('--compare')) return compare(words)
  if (words.includes('--list')) return list()
  const [name, ...others] = words
  if (name === undefined || name.startsWith('-')) return usage()
  const table = await loadTable(name)
  if (others.includes('--help')) return help(table)
  const record = await runTable(table, wordsOf(others), progress)
  console.log(recordLines(record).join('\n'))
  if (!others.includes('--no-record')) console.log(`\nrecord: ${writeRecord(record)}`)
  return 0
}

async function report(words: readonly string[]): Promise<number> {
  if (words.includes('--help')) {
    console.log(USAGE)
    return 0
  }
  const name = words.find((word) => !REPORT_WORDS.includes(word))?.replace(/^--/, '')
  if (name !== undefined) {
    const known = REPORT_WORDS.join(', ')
    throw new BenchError('UNKNOWN_PARAMETER', { name, table: 'report', known })
  }
  if (words.includes('--picture')) return (await import('./report/picture.ts')).writePicture()
  return (await import('./report/main.ts')).report(words, progress)
}

async function ab(words: Words): Promise<number> {
  if (words.values['against'] === undefined) return usage()
  const { compareCheckouts, planOf } = await import('./ab/main.ts')
  await compareCheckouts(planOf(words), progress)
  return 0
}

function wordsOf(words: readonly string[]): Words {
  const values: Record<string, string | true> = {}
  for (let at = 0; at < words.length; at += 1) {
    const [name, attached] = words[at].replace(/^--/, '').split('=', 2) as [string, string?]
    if (name === 'quick' || name === 'no-record') continue
    const next = words[at + 1]
    if (attached !== undefined) values[name] = attached
    else if (next === undefined || next.startsWith('--')) values[name] = true
    else values[name] = words[(at += 1)]!
  }
  return { quick: words.includes('--quick'), values }
}

function compare(words: readonly string[]): number {
  const [before, after] = words.filter((word) => !word.startsWith('--'))
  if (before === undefined || after === undefined) return usage()
  const [old, young] = [findRecord(before), findRecord(after)]
  console.log(
    `${old.table} ${old.startedAt} (${old.machine.commit}) → ${young.startedAt} (${young.machine.commit})`,
  )
  for (const part of ['cpu', 'cores', 'kernel', 'node'] as const) {
    if (old.machine[part] !== young.machine[part])
      console.log(`  other ${part}: ${old.machine[part]} → ${young.machine[part]}`)
  }
  console.log(changeLines(compareRecords(old, young), words.includes('--all')).join('\n'))
  return 0
}

async function list(): Promise<number> {
  for (const name of tableNames()) console.log(`${name.padEnd(12)} ${(await loadTable(name)).title}`)
  return 0
}

function help(table: Table): number {
  console.log(`${table.name}: ${table.title}\n`)
  for (const [section, text] of Object.entries(table.definitions)) console.log(`${section}\n  ${text}`)
  console.log('\nparameters')
  for (const [name, { value, quick, doc }] of Object.entries(table.parameters)) {
    console.log(`  --${name} (${value}${quick === undefined ? '' : `; quick ${quick}`})  ${doc}`)
  }
  return 0
}

function usage(): number {
  console.error(USAGE)
  return 1
}

function progress(line: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${line}`)
  else if (process.env.CORESPUN_BENCH_TALK === '1') console.error(line)
}
