/**
 * Table `streams`: a streamed response of 16 chunks of 1 kB, from an async generator and a ReadableStream.
 *
 * Servers and load are those of table http: each server on core 0, the load on core 1, CPU per request ranks.
 */
import { chosenOf, findRow, type Context, type Row, type Table, type Verdict } from '../harness/table.ts'
import { judge } from '../harness/verdicts.ts'
import { measureOrSkip, withServers } from './http.ts'
import { chooseLoad, loadName } from './http/load.ts'

const CPU = 'CPU per 100,000'
/** Sections and who takes part. */
const SECTIONS: Readonly<Record<string, readonly string[]>> = {
  generator: ['corespun', 'bun', 'node:http', 'fastify'],
  stream: ['corespun', 'bun', 'node:http', 'fastify', 'hono on corespun', 'hono on bun', 'hono on node:http'],
}
/** The most memory under the load, MB. */
const RSS_MB_MAX = 90

async function run(context: Context): Promise<Row[]> {
  chooseLoad(context.text('load'))
  const rows: Row[] = []
  for (const section of chosenOf(context, 'sections', Object.keys(SECTIONS))) {
    await withServers(SECTIONS[section], ['taskset', '-c', '0'], context, async (servers) => {
      rows.push(...(await measureOrSkip(section, servers, context, false)))
    })
  }
  return rows
}

/** Judge rows. */
function verdicts(rows: readonly Row[]): Verdict[] {
  const of = (section: string, row: string, contender: string): number | undefined =>
    findRow(rows, { section, row, contender })?.median
  const perRequest = Object.keys(SECTIONS).map((section) =>
    judge<[number, number]>(
      `${section}: CPU at most that of Bun`,
      [of(section, CPU, 'corespun'), of(section, CPU, 'bun')],
      (own, bun) => [
        `${own.toFixed(3)} s against ${bun.toFixed(3)} s, ${(own / bun).toFixed(2)} ×`,
        own <= bun,
      ],
    ),
  )
  const memory = judge<[number]>(
    `generator: at most ${RSS_MB_MAX} MB`,
    [of('generator', 'memory', 'corespun')],
    (mb) => [`${mb.toFixed(0)} MB`, mb <= RSS_MB_MAX],
  )
  return [...perRequest, memory]
}

const table: Table = {
  name: 'streams',
  title: 'A streamed response over HTTP/1.1',
  definitions: {
    load: `${loadName()}; keep-alive connections, one thread on core 1, server alone on core 0.`,
    'CPU per 100,000': 'CPU seconds of the server, user and system, over requests, times 100,000.',
    generator: '16 chunks of 1 kB from an async generator, as each server takes one.',
    stream: 'The same chunks from a ReadableStream with pull().',
    memory: 'Resident memory of the server after its slice, MB.',
  },
  parameters: {
    sections: { value: Object.keys(SECTIONS).join(','), quick: 'generator', doc: 'which, by comma' },
    rounds: { value: 5, quick: 1, doc: 'rounds in which all contenders take their turn' },
    'slice-s': { value: 3, quick: 1, doc: 'seconds of one slice' },
    connections: { value: 100, doc: 'connections of the load' },
    load: { value: 'auto', doc: 'wrk or autocannon; auto: wrk where it is on the PATH' },
  },
  run,
  verdicts,
}

export default table
