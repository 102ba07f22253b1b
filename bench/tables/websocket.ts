/**
 * Table `websocket`: what a message costs, echoed and sent to a room, beside Bun and `ws` on node:http.
 *
 * The echo is measured with the server on core 0 and the client on core 1. The room has its server on all
 * cores, since one of the contenders has two workers; CPU per message ranks in both.
 */
import { existsSync } from 'node:fs'
import { compiled } from '../harness/floor.ts'
import { BENCH_FOLDER, DIST_FOLDER } from '../harness/paths.ts'
import { Samples, shuffled } from '../harness/rounds.ts'
import { findRow, type Context, type Row, type Table, type Verdict } from '../harness/table.ts'
import { judgeRatio } from '../harness/verdicts.ts'
import { Server } from './http/servers.ts'
import { receive, type Traffic } from './websocket/client.ts'

const OWN = 'corespun'
const TWO = 'corespun, two workers'
const RIVAL = 'bun'
const BUN = `${BENCH_FOLDER}/node_modules/@oven/bun-linux-x64/bin/bun`
const PORT = 39_100
const FIGURE = 'CPU per message'
/** Most CPU time of an echo, against the rival's; least of its messages to a room by the same CPU time. */
const ECHO_MAX = 1
const ROOM_MIN = 2

interface Section {
  readonly kind: Traffic['kind']
  readonly contenders: readonly string[]
  readonly condition: string
  /** Words before the commands of the servers and of the client. */
  readonly pinned: readonly [server: readonly string[], client: readonly string[]]
}

const SECTIONS: Readonly<Record<string, Section>> = {
  echo: {
    kind: 'echo',
    contenders: [OWN, RIVAL, 'ws'],
    condition: 'server on core 0, load on core 1',
    pinned: [
      ['taskset', '-c', '0'],
      ['taskset', '-c', '1'],
    ],
  },
  room: {
    kind: 'room',
    contenders: [OWN, TWO, RIVAL, 'ws'],
    condition: 'both on all cores',
    pinned: [[], []],
  },
}

async function run(context: Context): Promise<Row[]> {
  const client = compiled('websocket', 'the client in C', context.skip)
  if (client === undefined) return []
  const rows: Row[] = []
  for (const [name, section] of Object.entries(SECTIONS)) {
    const servers: Server[] = []
    try {
      for (const [at, contender] of section.contenders.entries()) {
        const command = commandOf(contender, PORT + at)
        if (command === undefined) context.skip(contender, 'no Bun for this platform in bench/node_modules')
        else servers.push(new Server(contender, PORT + at, [...section.pinned[0], ...command]))
      }
      for (const server of servers) await server.ready()
      rows.push(...(await measure(name, section, [...section.pinned[1], client], servers, context)))
    } finally {
      await Promise.all(servers.map((server) => server.end()))
    }
  }
  return rows
}

function commandOf(name: string, port: number): readonly string[] | undefined {
  const folder = `${DIST_FOLDER}/contenders/websocket`
  if (name !== RIVAL) return [process.execPath, `${folder}/server.js`, name, String(port)]
  return existsSync(BUN) ? [BUN, `${folder}/bun.js`, String(port)] : undefined
}

async function measure(
  name: string,
  section: Section,
  command: readonly string[],
  servers: readonly Server[],
  context: Context,
): Promise<Row[]> {
  const samples = new Samples()
  const traffic: Traffic = {
    kind: section.kind,
    connections: context.number(section.kind === 'echo' ? 'connections' : 'members'),
    seconds: context.number('slice-s'),
    inFlight: context.number('in-flight'),
  }
  for (const server of servers) await receive(command, server, { ...traffic, seconds: 1 })
  for (let round = 0; round < context.number('rounds'); round += 1) {
    for (const server of shuffled(servers, round)) {
      context.progress(`${name}, ${server.name}: round ${round + 1}`)
      const { messages, seconds, cpuSeconds, us } = await receive(command, server, traffic)
      const figures = { [FIGURE]: (cpuSeconds / messages) * 1e6, 'messages/s': messages / seconds }
      samples.add(server.name, section.kind === 'echo' ? { ...figures, ...us } : figures)
    }
  }
  const shape = { section: name, condition: section.condition, threads: 0, against: RIVAL } as const
  return [
    ...samples.rows({ ...shape, row: FIGURE, figure: FIGURE, unit: 'µs', better: 'lower' }),
    ...samples.rows({ ...shape, row: 'messages/s', figure: 'messages/s', unit: '1/s', better: 'higher' }),
    ...['p50', 'p99'].flatMap((row) =>
      samples.rows({ ...shape, row, figure: row, unit: 'µs', better: 'lower' }),
    ),
  ]
}

function verdicts(rows: readonly Row[]): Verdict[] {
  const of = (section: string, contender: string): Row | undefined =>
    findRow(rows, { section, row: FIGURE, contender })
  return [
    judgeRatio('echo: at most the CPU time of Bun', [of('echo', OWN), of('echo', RIVAL)], (times) => {
      return times <= ECHO_MAX
    }),
    judgeRatio(
      `room, two workers: at least ${ROOM_MIN} × Bun's messages by the same CPU time`,
      [of('room', RIVAL), of('room', TWO)],
      (times) => times >= ROOM_MIN,
    ),
  ]
}

export default {
  name: 'websocket',
  title: 'A message over WebSockets',
  definitions: {
    echo: 'Messages of 64 bytes, binary, each returned; a connection sends its next when one has come back.',
    room:
      'Messages of 64 bytes that one more connection sends, each to all sockets of a room. Rooms are those ' +
      'of each server: subscribe and publish of Corespun and Bun, a set of sockets in ws.',
    [FIGURE]: 'CPU time of the server, user and system, over messages that arrived.',
    client: 'bench/floor/websocket.c: one thread, checks the bytes and the order of all that it receives.',
  },
  parameters: {
    rounds: { value: 7, quick: 1, doc: 'rounds in which all contenders take their turn' },
    'slice-s': { value: 3, quick: 1, doc: 'seconds of one slice' },
    connections: { value: 100, doc: 'connections of the echo' },
    members: { value: 1000, doc: 'sockets in the room' },
    'in-flight': { value: 4, doc: 'messages on their way to the room at once' },
  },
  run,
  verdicts,
} satisfies Table
