/**
 * Table `jobs`: durable jobs in a file and on Postgres, beside BullMQ on Redis and two queues on Postgres.
 *
 * All sync what they confirm before they confirm it, on the same disk. The serving and the calling side of
 * each contender have a process each; servers have their own.
 */
import { join } from 'node:path'
import { connect } from 'corespun/fleet'
import { onDisk } from '../harness/disk.ts'
import { chosenOf, findRow, type Context, type Row, type Table, type Verdict } from '../harness/table.ts'
import { Samples } from '../harness/rounds.ts'
import { judge, judgeRatio } from '../harness/verdicts.ts'
import { measured, opened, type Pair, RATE } from './fleet/pair.ts'
import { startPostgres, startServer, type Running } from './fleet/servers.ts'

const OWN = 'corespun'
const FINISHED = 'corespun, finished'
const ON_POSTGRES = 'corespun on Postgres'
const SECTION = 'durable'
const SECTIONS = ['engines', 'finished']
/** Least rate against BullMQ and against pg-boss; most time beside that without finished jobs. */
const RIVAL_MIN = 5
/** Least rates on the same server. */
const BOSS_MIN = 2
const GRAPHILE_MIN = 1
const FINISHED_MAX = 1.1

const run = (context: Context): Promise<Row[]> =>
  onDisk(context, OWN, async (folder) => {
    const sections = chosenOf(context, 'sections', SECTIONS)
    return [
      ...(sections.includes('engines') ? await engines(folder, context) : []),
      ...(sections.includes('finished') ? await finished(folder, context) : []),
    ]
  })

async function engines(folder: string, context: Context): Promise<Row[]> {
  const redis = await startServer('redis-server', context.skip, 'always')
  const postgres = await startPostgres(context.skip)
  const servers = [redis, postgres].filter((server) => server !== undefined)
  const pairs: Pair[] = []
  const begin = async (name: string, server: Pick<Running, 'url'> | undefined): Promise<void> => {
    if (server !== undefined) pairs.push(await opened(SECTION, name, server.url))
  }
  try {
    await begin(OWN, { url: `sqlite:${join(folder, 'own.db')}` })
    await begin('BullMQ', redis)
    await begin(ON_POSTGRES, postgres)
    await begin('pg-boss', postgres)
    await begin('graphile-worker', postgres)
    return await measured(SECTION, pairs, OWN, context)
  } finally {
    await Promise.all(pairs.map((pair) => pair.end()))
    await Promise.all(servers.map((server) => server.end()))
  }
}

/** The same file with and without finished jobs, and how long it takes to count them. */
async function finished(folder: string, context: Context): Promise<Row[]> {
  const count = context.number('finished')
  const [few, many] = ['few.db', 'many.db'].map((name) => join(folder, name))
  const pairs = [
    await opened(SECTION, OWN, `sqlite:${few}`),
    await opened(SECTION, FINISHED, `sqlite:${many}`),
  ]
  await fill(many, count)
  const counting = new Samples()
  counting.add(OWN, { counts: await countsUs(few) })
  counting.add(FINISHED, { counts: await countsUs(many) })
  const condition = `${count.toLocaleString('en-US')} finished`
  const shape = { section: 'finished', condition, threads: 0, against: OWN } as const
  const rows = await measured(SECTION, pairs, OWN, context)
  return [
    ...rows.map((row) => ({ ...row, section: 'finished', condition })),
    ...counting.rows({ ...shape, row: 'counts()', figure: 'counts', unit: 'µs', better: 'lower' }),
  ]
}

/** Copies of the last record, under other keys: what jobs leave that have finished. */
async function fill(file: string, count: number): Promise<void> {
  const { DatabaseSync } = process.getBuiltinModule('node:sqlite')
  const db = new DatabaseSync(file)
  const last = "SELECT * FROM corespun_values WHERE store = 'jobs_bench' ORDER BY revision DESC LIMIT 1"
  db.prepare(
    `INSERT INTO corespun_values (store, key, ends_ms, bytes)
     WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < ?)
     SELECT store, 'finished ' || n, ends_ms, bytes FROM number, (${last})`,
  ).run(count)
  // Else the disk is still busy with it.
  db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  db.close()
}

const COUNTINGS = 50

async function countsUs(file: string): Promise<number> {
  const fleet = await connect(`sqlite:${file}`)
  const jobs = fleet.jobs('bench')
  await jobs.counts()
  const begunMs = performance.now()
  for (let n = 0; n < COUNTINGS; n++) await jobs.counts()
  const us = ((performance.now() - begunMs) / COUNTINGS) * 1000
  await fleet.close()
  return us
}

function verdicts(rows: readonly Row[]): Verdict[] {
  const of = (section: string, contender: string, row = RATE) => findRow(rows, { section, row, contender })
  const beside = (rival: string, own = OWN, least = RIVAL_MIN): Verdict =>
    judgeRatio(
      `${own === OWN ? '' : `${own}: `}at least ${least} × ${rival}, 64 in flight`,
      [of(SECTION, own), of(SECTION, rival)],
      (times) => times >= least,
    )
  return [
    beside('BullMQ'),
    beside('pg-boss'),
    beside('pg-boss', ON_POSTGRES, BOSS_MIN),
    beside('graphile-worker', ON_POSTGRES, GRAPHILE_MIN),
    judgeRatio(
      `finished jobs: at most ${FINISHED_MAX} × the time without them, 64 in flight`,
      [of('finished', OWN), of('finished', FINISHED)],
      (times) => times <= FINISHED_MAX,
    ),
    judge('counts() of them: at most 1 ms', [of('finished', FINISHED, 'counts()')], ({ median }) => [
      `${median.toFixed(0)} µs`,
      median <= 1000,
    ]),
  ]
}

export default {
  name: 'jobs',
  title: 'Durable jobs without a server of their own',
  definitions: {
    durable:
      'Submitted by a key, run in another process, its result stored and received by the submitter. What ' +
      'is confirmed is synced: corespun in a file, synchronous=FULL; Redis, appendfsync always; ' +
      'Postgres, its defaults. Each runs up to 64 jobs at once. BullMQ: add with a jobId, ' +
      'waitUntilFinished. pg-boss and graphile-worker ' +
      'keep no results that one can wait for, so their functions insert them into a table, which the ' +
      'caller asks every 2 ms for all that are in flight; both are woken by NOTIFY.',
    finished:
      'corespun in two files, of which one has as many finished jobs; and how long jobs.counts() takes.',
  },
  parameters: {
    sections: { value: SECTIONS.join(','), doc: 'which, by comma' },
    rounds: { value: 7, quick: 1, doc: 'rounds in which all contenders take their turn' },
    'slice-s': { value: 3, quick: 1, doc: 'seconds of one slice' },
    finished: { value: 1_000_000, quick: 100_000, doc: 'finished jobs' },
  },
  run,
  verdicts,
} satisfies Table
