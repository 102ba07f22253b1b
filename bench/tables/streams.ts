/**
 * Table `streams`: a streamed response of 16 chunks of 1 kB, from an async generator and a ReadableStream.
 *
 * Servers and load are those of table http: each server on core 0, the load on core 1, CPU per request ranks.
 */
import { chosenOf, findRow, type Context, type Row, type Table, type Verdict } from '../harness/table.ts'
import { judge } from '../harness/verdicts.ts'
import { LOAD_DEFINITIONS, LOAD_PARAMETERS, measureOrSkip, withServers } from './http.ts'
import { chooseLoad } from './http/load.ts'
import { against } from './http/verdicts.ts'

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

function verdicts(rows: readonly Row[]): Verdict[] {
  return Object.keys(SECTIONS).flatMap((section) => {
    const memory = findRow(rows, { section, row: 'memory', contender: 'corespun' })
    return [
      against(rows, [section, 'corespun', 'bun', 1]),
      judge(`${section}: at most ${RSS_MB_MAX} MB`, [memory], ({ median }) => [
        `${median.toFixed(0)} MB`,
        median <= RSS_MB_MAX,
      ]),
    ]
  })
}

export default {
  name: 'streams',
  title: 'A streamed response over HTTP/1.1',
  definitions: {
    ...LOAD_DEFINITIONS,
    generator: '16 chunks of 1 kB from an async generator, as each server takes one.',
    stream: 'The same chunks from a ReadableStream with pull().',
    memory: 'Resident memory of the server after its slice, MB.',
  },
  parameters: {
    sections: { value: Object.keys(SECTIONS).join(','), quick: 'generator', doc: 'which, by comma' },
    ...LOAD_PARAMETERS,
  },
  run,
  verdicts,
} satisfies Table
