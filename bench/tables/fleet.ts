/**
 * Table `fleet`: a far call beside a bare request of NATS, a durable job beside JetStream alone and BullMQ on
 * Redis, and two hosts beside two processes that work by themselves.
 *
 * All on loopback. The server, the serving and the calling side of each contender have a process each.
 */
import { Samples } from '../harness/rounds.ts'
import { chosenOf, findRow, type Context, type Row, type Table, type Verdict } from '../harness/table.ts'
import { judgeRatio } from '../harness/verdicts.ts'
import { type Bytes, measured, opened, P50, Pair, RATE } from './fleet/pair.ts'
import type { FleetOrder, Worked } from './fleet/process.ts'
import { type Running, startServer } from './fleet/servers.ts'
import { PRIMES, type Size } from './fleet/work.ts'

const OWN = 'corespun'
const REQUEST = 'NATS request'
const STREAM = 'JetStream'
const RIVAL = 'BullMQ'
const ALONE = 'two processes'
const SECTIONS = ['call', 'job', 'hosts']
/** Of one piece of work. A call's messages take a quarter of a ms, so the bar is that of the longer ones. */
const SIZES = Object.keys(PRIMES) as Size[]
const WORK: Size = '10 ms'
/** Calls that wait while two workers have one each. */
const HOSTS_IN_FLIGHT = 6

/** Most time of a call and least of its rate, against a bare request. */
const CALL_MAX = 1.25
const RATE_MIN = 0.8
/** Least rate of jobs against JetStream alone and against BullMQ. */
const JOB_MIN = 0.8
const RIVAL_MIN = 5
/** Least work of two hosts against two processes. */
const HOSTS_MIN = 0.95

async function run(context: Context): Promise<Row[]> {
  const sections = chosenOf(context, 'sections', SECTIONS)
  const rows: Row[] = []
  const servers: Running[] = []
  try {
    const nats = await startServer('nats-server', context.skip)
    if (nats === undefined) return []
    servers.push(nats)
    if (sections.includes('call')) rows.push(...(await calls(nats.url, context)))
    if (sections.includes('job')) {
      const redis = await startServer('redis-server', context.skip)
      if (redis !== undefined) servers.push(redis)
      rows.push(...(await jobs(nats.url, redis?.url, context)))
    }
    if (sections.includes('hosts')) rows.push(...(await hosts(nats.url, context)))
    return rows
  } finally {
    await Promise.all(servers.map((server) => server.end()))
  }
}

async function calls(url: string, context: Context): Promise<Row[]> {
  const own = await opened('call', OWN, url)
  try {
    const bytes = await own.order<Bytes>({ what: 'bytes', url })
    const bare = await opened('call', REQUEST, url, bytes)
    return await measured('call', [own, bare], REQUEST, context)
  } finally {
    await own.end()
  }
}

async function jobs(nats: string, redis: string | undefined, context: Context): Promise<Row[]> {
  const pairs = [await opened('job', OWN, nats), await opened('job', STREAM, nats)]
  if (redis !== undefined) pairs.push(await opened('job', RIVAL, redis))
  return measured('job', pairs, STREAM, context)
}

async function hosts(url: string, context: Context): Promise<Row[]> {
  const samples = new Samples()
  const seconds = context.number('slice-s')
  const own = new Pair('hosts', OWN)
  const alone = new Pair('hosts', ALONE)
  const setting = { url, bytes: [0, 0] } as const
  const condition = 'one core each'
  try {
    for (const core of ['0', '1'])
      await (await own.start('taskset', '-c', core)).order({ what: 'serve', setting })
    await own.start()
    await own.order({ what: 'open', setting })
    const processes = [await alone.start('taskset', '-c', '0'), await alone.start('taskset', '-c', '1')]
    for (let round = 0; round < context.number('rounds'); round += 1) {
      for (const size of SIZES) {
        context.progress(`hosts, ${size}: round ${round + 1}`)
        const ours = await own.order<Worked>({ what: 'work', seconds, inFlight: HOSTS_IN_FLIGHT, size })
        const order = { what: 'alone', seconds, size } satisfies FleetOrder
        const theirs = await Promise.all(processes.map((child) => child.order<Worked>(order)))
        samples.add(OWN, { [size]: ours.perSecond })
        samples.add(ALONE, { [size]: theirs[0].perSecond + theirs[1].perSecond })
      }
    }
  } finally {
    await Promise.all([own.end(), alone.end()])
  }
  const shape = { section: 'hosts', condition, threads: 2, against: ALONE } as const
  return SIZES.flatMap((size) =>
    samples.rows({ ...shape, row: size, figure: size, unit: '1/s', better: 'higher' }),
  )
}

function verdicts(rows: readonly Row[]): Verdict[] {
  const judged = (
    bar: string,
    section: string,
    row: string,
    rival: string,
    holds: (times: number) => boolean,
  ) =>
    judgeRatio(
      bar,
      [OWN, rival].map((contender) => findRow(rows, { section, row, contender })),
      holds,
    )
  const least = (bar: number) => (times: number) => times >= bar
  return [
    judged(
      `call: p50 at most ${CALL_MAX} × a bare request`,
      'call',
      P50,
      REQUEST,
      (times) => times <= CALL_MAX,
    ),
    judged(`call: at least ${RATE_MIN} × its calls/s`, 'call', RATE, REQUEST, least(RATE_MIN)),
    judged(`job: at least ${JOB_MIN} × JetStream alone`, 'job', RATE, STREAM, least(JOB_MIN)),
    judged(`job: at least ${RIVAL_MIN} × BullMQ`, 'job', RATE, RIVAL, least(RIVAL_MIN)),
    judged(`hosts: at least ${HOSTS_MIN} × two processes`, 'hosts', WORK, ALONE, least(HOSTS_MIN)),
  ]
}

export default {
  name: 'fleet',
  title: 'Calls and durable jobs over NATS',
  definitions: {
    call:
      'Echo of 100 bytes in a host of one worker. NATS request: the same number of bytes each way on the ' +
      'wire, as seen by a third connection, by request() and respond() of the client alone.',
    job:
      'Submitted by a key, run, its result stored and received by whoever submitted it. JetStream: ' +
      'published with an id, consumed, the result created in a key-value bucket, its end published, ' +
      'acknowledged and confirmed. BullMQ: add with a jobId, waitUntilFinished. All servers keep what they ' +
      'confirm when they are killed, and sync files once a second: sync_interval 1s, appendfsync everysec.',
    hosts: `Primes below 20,000, or 130,000: ${HOSTS_IN_FLIGHT} calls in flight, two hosts; or two loops.`,
  },
  parameters: {
    sections: { value: SECTIONS.join(','), doc: 'which, by comma' },
    rounds: { value: 7, quick: 1, doc: 'rounds in which all contenders take their turn' },
    'slice-s': { value: 3, quick: 1, doc: 'seconds of one slice' },
  },
  run,
  verdicts,
} satisfies Table
