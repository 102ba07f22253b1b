/**
 * Table `tls`: what a request and a handshake cost with TLS, and what an idle connection takes, beside hyper
 * with rustls and node:https.
 *
 * Servers, certificate and kind of tickets are the same for all; CPU ranks, since clients of TLS cost more
 * than the servers.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { BenchError } from '../harness/errors.ts'
import { DIST_FOLDER } from '../harness/paths.ts'
import { Samples } from '../harness/rounds.ts'
import { chosenOf, findRow, type Context, type Row, type Table, type Verdict } from '../harness/table.ts'
import { judge, judgeRatio } from '../harness/verdicts.ts'
import { LOAD_DEFINITIONS, LOAD_PARAMETERS, measureOrSkip, PINNED, withServers } from './http.ts'
import { chooseLoad } from './http/load.ts'
import { type Server, TLS_CORESPUN, TLS_HYPER, TLS_NODE, writeCertificate } from './http/servers.ts'
import { CPU } from './http/verdicts.ts'

const CONTENDERS = [TLS_CORESPUN, TLS_HYPER, TLS_NODE]
const SECTIONS = ['hello', 'handshakes', 'idle']
const CPU_OF_HANDSHAKES = 'CPU per 1,000'
const BYTES = 'memory of a socket'
/** Clients that begin handshakes at once. */
const CLIENTS = 16
/** Sockets that are opened and closed before memory is read, so that what all share is there. */
const WARM_SOCKETS = 200

/** Most CPU of a request and of a handshake, against hyper; most memory of an idle socket. */
const HELLO_FACTOR = 1.1
const HANDSHAKE_FACTOR = 1
const IDLE_KB_MAX = 20

async function run(context: Context): Promise<Row[]> {
  chooseLoad(context.text('load'))
  await writeCertificate()
  const sections = chosenOf(context, 'sections', SECTIONS)
  const measures = { hello, handshakes, idle } as Record<string, typeof hello>
  const rows: Row[] = []
  for (const section of sections) {
    // New processes: memory that one section has left does not count for another.
    await withServers(CONTENDERS, ['taskset', '-c', '0'], context, async (servers) => {
      rows.push(...(await measures[section](servers, context)))
    })
  }
  return rows
}

function hello(servers: readonly Server[], context: Context): Promise<Row[]> {
  return measureOrSkip('hello', servers, context, false)
}

async function handshakes(servers: readonly Server[], context: Context): Promise<Row[]> {
  const samples = new Samples()
  for (let round = 0; round < context.number('rounds'); round += 1) {
    for (const server of servers) {
      context.progress(`handshakes, ${server.name}: round ${round + 1}`)
      const before = server.cpuSeconds
      const client = clientOf('handshakes', server, context.number('slice-s'), CLIENTS)
      const { handshakes: count, seconds } = await reported(client, server)
      const cpu = ((server.cpuSeconds - before) / count) * 1000
      samples.add(server.name, { [CPU_OF_HANDSHAKES]: cpu, 'handshakes/s': count / seconds })
    }
  }
  const shape = { section: 'handshakes', condition: PINNED, threads: 0, against: TLS_HYPER } as const
  const row = (figure: string, unit: string, better: 'lower' | 'higher'): Row[] =>
    samples.rows({ ...shape, row: figure, figure, unit, better })
  return [...row(CPU_OF_HANDSHAKES, 's', 'lower'), ...row('handshakes/s', '1/s', 'higher')]
}

async function idle(servers: readonly Server[], context: Context): Promise<Row[]> {
  const samples = new Samples()
  const sockets = context.number('sockets')
  for (const server of servers) {
    context.progress(`idle, ${server.name}: ${sockets} sockets`)
    const warm = clientOf('idle', server, WARM_SOCKETS)
    await reported(warm, server)
    await ended(warm)
    const before = server.rssMb
    const client = clientOf('idle', server, sockets)
    await reported(client, server)
    samples.add(server.name, { [BYTES]: ((server.rssMb - before) * 1024) / sockets })
    await ended(client)
  }
  const shape = { section: 'idle', condition: PINNED, threads: 0, against: TLS_HYPER } as const
  return samples.rows({ ...shape, row: BYTES, figure: BYTES, unit: 'KB', better: 'lower' })
}

/** Pinned as the load is. */
function clientOf(what: string, { port }: Server, ...numbers: number[]): ChildProcess {
  const program = `${DIST_FOLDER}/contenders/tls/client.js`
  const words = ['-c', '1', process.execPath, program, what, ...[port, ...numbers].map(String)]
  return spawn('taskset', words, { stdio: ['pipe', 'pipe', 'inherit'] })
}

/** The line that a client prints. @throws {BenchError} `CONTENDER_DIED` if it ends without one. */
async function reported(client: ChildProcess, { name }: Server): Promise<Record<string, number>> {
  const died = once(client, 'exit').then(([code]: number[]) => {
    throw new BenchError('CONTENDER_DIED', { contender: name, why: `its client ended with ${code}` })
  })
  const [line] = (await Promise.race([once(client.stdout!, 'data'), died])) as [Buffer]
  died.catch(() => {}) // ended by `ended`
  return JSON.parse(String(line)) as Record<string, number>
}

async function ended(client: ChildProcess): Promise<void> {
  const exited = once(client, 'exit')
  client.stdin!.end()
  await exited
}

function verdicts(rows: readonly Row[]): Verdict[] {
  const of = (section: string, row: string, contender: string): Row | undefined =>
    findRow(rows, { section, row, contender })
  const ratio = (section: string, row: string, what: string, factor: number): Verdict =>
    judgeRatio(
      `${section}: CPU of ${what} at most ${factor} × hyper with rustls`,
      [of(section, row, TLS_CORESPUN), of(section, row, TLS_HYPER)],
      (times) => times <= factor,
    )
  return [
    ratio('hello', CPU, 'a request', HELLO_FACTOR),
    ratio('handshakes', CPU_OF_HANDSHAKES, 'a handshake', HANDSHAKE_FACTOR),
    judge<[Row]>(`idle: at most ${IDLE_KB_MAX} KB a socket`, [of('idle', BYTES, TLS_CORESPUN)], (own) => [
      `${own.median.toFixed(1)} KB`,
      own.median <= IDLE_KB_MAX,
    ]),
  ]
}

export default {
  name: 'tls',
  title: 'A request over HTTP/1.1 with TLS 1.3',
  definitions: {
    ...LOAD_DEFINITIONS,
    hello: 'GET / returns 13 bytes of text, on keep-alive connections with TLS 1.3.',
    handshakes: `${CLIENTS} clients on core 1 connect, end and connect again; no session is resumed.`,
    [CPU_OF_HANDSHAKES]: 'CPU seconds of the server, user and system, over handshakes, times 1,000.',
    idle: 'Connections whose handshake is complete and that send nothing.',
    [BYTES]: 'Growth of the resident memory of the server over the number of sockets, without the kernel.',
  },
  parameters: {
    sections: { value: SECTIONS.join(','), doc: 'which, by comma' },
    ...LOAD_PARAMETERS,
    sockets: { value: 10_000, quick: 1000, doc: 'idle sockets; both processes need as many descriptors' },
  },
  run,
  verdicts,
} satisfies Table
