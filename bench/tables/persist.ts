/**
 * Table `persist`: a map whose entries survive the process, beside lmdb and SQLite with the same durability.
 *
 * A write counts once it is acknowledged: it is in the file and synced, so that it survives a loss of power.
 * Each contender has a process of its own in each round, on a folder of the disk; all answers are read again
 * from the file.
 */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { DIST_FOLDER } from '../harness/paths.ts'
import { Samples, shuffled } from '../harness/rounds.ts'
import { findRow, type Context, type Row, type Table, type Verdict } from '../harness/table.ts'
import { judge } from '../harness/verdicts.ts'
import { CONTENDERS } from './persist/contenders.ts'
import type { Persisted } from './persist/process.ts'

const WRITES = { '1 writer': 'one', '64 writers': 'many' } as const
const MEMORY = 'corespun, without a file'

async function run(context: Context): Promise<Row[]> {
  const samples = new Samples()
  const names: string[] = []
  for (const [name, contender] of Object.entries(CONTENDERS)) {
    if (await contender.isThere()) names.push(name)
    else context.skip(name, 'this Node does not have it')
  }
  for (let round = 0; round < context.number('rounds'); round += 1) {
    context.progress(`persist: round ${round + 1}`)
    for (const name of shuffled(names, round)) samples.add(name, await inProcess(name, context))
  }
  const shape = { condition: 'synced', threads: 0, better: 'lower', against: 'lmdb' } as const
  const read = { section: 'read', unit: 'ns', condition: 'one thread', threads: 0, better: 'lower' } as const
  return [
    ...Object.entries(WRITES).flatMap(([row, figure]) =>
      samples.rows({ ...shape, section: 'acknowledged write', row, figure, unit: 'µs' }),
    ),
    ...samples.rows({ ...shape, section: 'open', row: 'all entries', figure: 'openMs', unit: 'ms' }),
    ...samples.rows({ ...read, row: 'an object', figure: 'objectNs', against: MEMORY }),
    ...samples.rows({ ...read, row: 'a number', figure: 'numberNs', against: MEMORY }),
  ]
}

async function inProcess(contender: string, context: Context): Promise<Persisted> {
  const file = `${DIST_FOLDER}/tables/persist/process.js`
  const counts = ['entries', 'writes'].map((name) => String(context.number(name)))
  const words = ['--disable-warning=ExperimentalWarning', file, contender, ...counts]
  const { stdout } = await promisify(execFile)(process.execPath, words)
  return JSON.parse(stdout) as Persisted
}

function verdicts(rows: readonly Row[]): Verdict[] {
  const beside = (bar: string, section: string, row: string, most: number): Verdict =>
    judge(bar, [findRow(rows, { contender: 'corespun', section, row })], ({ ratio }) => [
      `${ratio?.median.toFixed(2)} of ${ratio?.to}`,
      ratio !== undefined && ratio.median <= most,
    ])
  return [
    beside('64 writers: at most the time of lmdb', 'acknowledged write', '64 writers', 1),
    beside('an object: at most 1.3 of the time without a file', 'read', 'an object', 1.3),
    beside('a number: at most 1.1 of it', 'read', 'a number', 1.1),
  ]
}

export default {
  name: 'persist',
  title: 'Entries that survive the process',
  definitions: {
    'acknowledged write':
      'Time for each of many writes until the file has it and is synced. 1 writer waits for each; of 64, ' +
      'each waits for its own before the next. corespun: set, then flush. lmdb: put, then flushed, with ' +
      'its defaults, MessagePack and shared structures. node:sqlite: WAL, synchronous=FULL, JSON; its ' +
      'calls block, so that 64 writers are a transaction of 64 made by hand.',
    open: 'Time until a file with all entries is open and one of them is read; lmdb and SQLite load none.',
    read:
      'CPU time of a read in a warm loop over 64 keys, the best of 15 passes. lmdb, cached: what it read ' +
      'before.',
  },
  parameters: {
    entries: { value: 100_000, quick: 5000, doc: 'entries of the file that is opened' },
    writes: { value: 4000, quick: 200, doc: 'writes of 64 writers; of 1 writer a sixteenth' },
    rounds: { value: 7, quick: 1, doc: 'processes of each contender' },
  },
  run,
  verdicts,
} satisfies Table
