/**
 * The contenders of table `fleet`: each has a serving process and a calling one, with a server between them.
 *
 * The bare ones are what a program writes that has the engine alone, with the same confirmations.
 */
import { connect, host } from 'corespun/fleet'
import { zone } from 'corespun/zone'
import { double, PRIMES, type Size } from './work.ts'

type Database = import('pg').Pool

/** How a process takes part. */
export interface Setting {
  /** Of the server. */
  readonly url: string
  /** Of the bare request and its reply. */
  readonly bytes: readonly [request: number, reply: number]
}

/** Does the n-th piece of work, of a size where there are several, and returns its answer. */
export type Work = (n: number, size: Size) => Promise<unknown>

export interface Contender {
  /** Serve until the process ends. */
  serve(setting: Setting): Promise<void>
  call(setting: Setting): Promise<Work>
}

const JOBS_MAX = 64
const RUN = process.env['CORESPUN_BENCH_RUN'] ?? '0'
const module = new URL('./work.js', import.meta.url)
type Module = typeof import('./work.ts')

/** What a call carries: 100 bytes. */
export const TEXT = 'x'.repeat(100)

async function serveCorespun({ url }: Setting, jobsMax: number): Promise<void> {
  const far = await connect(url)
  // A host takes no more jobs than its zone begins, and the other contenders have as many under way.
  const own = zone.create('bench', { workers: 1, ...(jobsMax > 0 && { tasksPerWorkerMax: jobsMax }) })
  await host(far, { name: 'bench', module, zone: own, jobsMax })
}

/** By `fleet.zone`: what a far call costs. */
const calls: Contender = {
  serve: (setting) => serveCorespun(setting, 0),
  async call({ url }) {
    const bench = (await connect(url)).zone<Module>('bench')
    return () => bench.run('echo', [TEXT])
  },
}

/** The same bytes by the client of NATS, without a stack for each request, as is fastest. */
const request: Contender = {
  async serve({ url, bytes }) {
    const { connect: open } = await import('@nats-io/transport-node')
    const connection = await open({ servers: url, noAsyncTraces: true })
    const reply = new Uint8Array(bytes[1])
    connection.subscribe('bench.bare', { callback: (_error, message) => void message.respond(reply) })
    await connection.flush()
  },
  async call({ url, bytes }) {
    const { connect: open } = await import('@nats-io/transport-node')
    const connection = await open({ servers: url, noAsyncTraces: true })
    const payload = new Uint8Array(bytes[0])
    return async () => (await connection.request('bench.bare', payload)).data.length
  },
}

/** By `fleet.jobs`: submitted, run, stored, read. */
const jobs: Contender = {
  serve: (setting) => serveCorespun(setting, JOBS_MAX),
  async call({ url }) {
    const bench = (await connect(url)).jobs<Module>('bench')
    return async (n) => {
      const key = `${RUN} ${n}`
      await bench.submit(key, 'double', [n])
      return bench.result(key)
    }
  },
}

const STREAM = 'bench'

/** A job of JetStream alone: published once, consumed, its result put by key, its message acknowledged. */
const jetstream: Contender = {
  async serve({ url }) {
    const [connection, { jetstream: open, jetstreamManager }, { Kvm }] = await openNats(url)
    const manager = await jetstreamManager(connection)
    await manager.streams.add({ name: STREAM, subjects: ['bench.job.*'], retention: 'workqueue' })
    await manager.consumers.add(STREAM, { durable_name: 'takers', ack_policy: 'explicit' })
    const client = open(connection)
    const results = await new Kvm(client).create(STREAM)
    const consumer = await client.consumers.get(STREAM, 'takers')
    await consumer.consume({
      max_messages: JOBS_MAX,
      callback: (message) => {
        const { key, n } = message.json<{ key: string; n: number }>()
        const result = JSON.stringify(double(n))
        void results
          .create(key, result)
          .then(() => connection.publish(`bench.end.${key}`, result))
          .then(() => message.ackAck())
      },
    })
  },
  async call({ url }) {
    const [connection, { jetstream: open }] = await openNats(url)
    const client = open(connection)
    const waiting = new Map<string, (result: number) => void>()
    connection.subscribe('bench.end.*', {
      callback: (_error, message) => waiting.get(message.subject.slice(10))?.(message.json<number>()),
    })
    await connection.flush()
    return async (n) => {
      const key = `${RUN}_${n}`
      const result = new Promise<number>((resolve) => waiting.set(key, resolve))
      await client.publish(`bench.job.${key}`, JSON.stringify({ key, n }), { msgID: key })
      const value = await result
      waiting.delete(key)
      return value
    }
  },
}

async function openNats(url: string) {
  const [{ connect: open }, ...others] = await Promise.all([
    import('@nats-io/transport-node'),
    import('@nats-io/jetstream'),
    import('@nats-io/kv'),
  ])
  return [await open({ servers: url, noAsyncTraces: true }), ...others] as const
}

/** As its documentation shows it; the key is the id of the job. */
const bullmq: Contender = {
  async serve({ url }) {
    const { Worker } = await import('bullmq')
    const work = async ({ data }: { data: number }): Promise<number> => double(data)
    await new Worker(STREAM, work, { connection: { url }, concurrency: JOBS_MAX }).waitUntilReady()
  },
  async call({ url }) {
    const { Queue, QueueEvents } = await import('bullmq')
    const queue = new Queue(STREAM, { connection: { url } })
    const events = new QueueEvents(STREAM, { connection: { url } })
    await events.waitUntilReady()
    return async (n) => {
      const job = await queue.add('double', n, { jobId: `${RUN}_${n}` })
      return job.waitUntilFinished(events) as Promise<unknown>
    }
  },
}

/** How often a program looks for results in its table: one statement asks for all that are in flight. */
const POLL_MS = 2

/** The results of jobs of libraries that keep none for callers, as a program would: in a table of its own. */
class Results {
  readonly #database: Database
  readonly #waiting = new Map<string, (result: number) => void>()

  private constructor(database: Database) {
    this.#database = database
  }

  static async open(url: string): Promise<Results> {
    const { default: pg } = await import('pg')
    const database = new pg.Pool({ connectionString: url })
    await database.query('CREATE TABLE IF NOT EXISTS bench_results (key text PRIMARY KEY, value integer)')
    return new Results(database)
  }

  /** What is there already is the result of an earlier attempt. */
  async store(keys: readonly string[], values: readonly number[]): Promise<void> {
    const rows = 'SELECT * FROM unnest($1::text[], $2::integer[]) ON CONFLICT DO NOTHING'
    await this.#database.query(`INSERT INTO bench_results ${rows}`, [keys, values])
  }

  of(key: string): Promise<number> {
    return new Promise((resolve) => {
      if (this.#waiting.size === 0) setTimeout(() => void this.#poll(), POLL_MS)
      this.#waiting.set(key, resolve)
    })
  }

  async #poll(): Promise<void> {
    const text = 'SELECT key, value FROM bench_results WHERE key = ANY($1)'
    const { rows } = await this.#database.query(text, [[...this.#waiting.keys()]])
    for (const { key, value } of rows as { key: string; value: number }[]) {
      this.#waiting.get(key)?.(value)
      this.#waiting.delete(key)
    }
    if (this.#waiting.size > 0) setTimeout(() => void this.#poll(), POLL_MS)
  }
}

interface BenchJob {
  readonly key: string
  readonly n: number
}

/** Woken by NOTIFY; a batch is fetched, stored and ended by a statement each, at once while it is full. */
const pgBoss: Contender = {
  async serve({ url }) {
    const [boss, results] = await Promise.all([openBoss(url), Results.open(url)])
    const options = { batchSize: JOBS_MAX / 2, localConcurrency: 2, burstWhenBatchFull: true }
    await boss.work(STREAM, options, async (batch: readonly { readonly data: BenchJob }[]) => {
      const all = batch.map(({ data }) => data)
      const values = all.map(({ n }) => double(n))
      await results.store(
        all.map(({ key }) => key),
        values,
      )
    })
  },
  async call({ url }) {
    const [boss, results] = await Promise.all([openBoss(url), Results.open(url)])
    return async (n) => {
      const key = `${RUN}_${n}`
      await boss.send(STREAM, { key, n })
      return results.of(key)
    }
  },
}

async function openBoss(url: string) {
  const { PgBoss } = await import('pg-boss')
  const boss = new PgBoss({ connectionString: url, useListenNotify: true })
  await boss.start()
  await boss.createQueue(STREAM, { notify: true })
  return boss
}

/** With the local queue that its guide to performance advises. */
const graphile: Contender = {
  async serve({ url }) {
    const [{ Logger, run }, results] = await Promise.all([import('graphile-worker'), Results.open(url)])
    await run({
      connectionString: url,
      // Else it writes a line for each job.
      logger: new Logger(() => () => {}),
      noHandleSignals: true,
      taskList: { double: async ({ key, n }: BenchJob) => results.store([key], [double(n)]) },
      preset: { worker: { concurrentJobs: JOBS_MAX, localQueue: { size: JOBS_MAX + 1 } } },
    })
  },
  async call({ url }) {
    const [{ makeWorkerUtils }, results] = await Promise.all([import('graphile-worker'), Results.open(url)])
    const utils = await makeWorkerUtils({ connectionString: url })
    return async (n) => {
      const key = `${RUN}_${n}`
      await utils.addJob('double', { key, n })
      return results.of(key)
    }
  },
}

/** Work of one core, by hosts. */
const hosts: Contender = {
  serve: (setting) => serveCorespun(setting, 0),
  async call({ url }) {
    const bench = (await connect(url)).zone<Module>('bench')
    return (_, size) => bench.run('primes', [PRIMES[size][0]])
  },
}

/** All of them, by their section and name. */
export const CONTENDERS = {
  call: { corespun: calls, 'NATS request': request },
  job: { corespun: jobs, JetStream: jetstream, BullMQ: bullmq },
  durable: {
    corespun: jobs,
    'corespun, finished': jobs,
    'corespun on Postgres': jobs,
    BullMQ: bullmq,
    'pg-boss': pgBoss,
    'graphile-worker': graphile,
  },
  hosts: { corespun: hosts },
} as const satisfies Record<string, Record<string, Contender>>
