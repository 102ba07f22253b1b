/**
 * Table `arena`: CPU of a request in the profiles of HttpArena, by the entry in arena/, fastify and Elysia.
 *
 * HttpArena publishes requests per second and CPU of 64 cores; their quotient is measured here, on one.
 */
import { existsSync } from 'node:fs'
import { DIST_FOLDER } from '../harness/paths.ts'
import { type Context, chosenOf, findRow, type Row, type Table, type Verdict } from '../harness/table.ts'
import { judgeRatio } from '../harness/verdicts.ts'
import { LOAD_DEFINITIONS, LOAD_PARAMETERS, measureOrSkip, withServers } from './http.ts'
import { chooseLoad } from './http/load.ts'
import { BUN } from './http/servers.ts'
import { CPU } from './http/verdicts.ts'

const CORESPUN = 'corespun in the arena'
const FASTIFY = 'fastify in the arena'
const ELYSIA = 'elysia in the arena'
const SECTIONS = ['arena baseline', 'arena pipelined', 'arena json']
/** Most CPU, against others; most of json is JSON.stringify, which is Bun's own for Elysia. */
const BARS = [
  ['arena baseline', FASTIFY, 0.6],
  ['arena baseline', ELYSIA, 1],
  ['arena pipelined', FASTIFY, 0.5],
  ['arena pipelined', ELYSIA, 1],
  ['arena json', FASTIFY, 1],
] as const

async function run(context: Context): Promise<Row[]> {
  chooseLoad(context.text('load'))
  const sections = chosenOf(context, 'sections', SECTIONS)
  const rows: Row[] = []
  const prefix = ['env', 'NODE_ENV=production', 'taskset', '-c', '0']
  await withServers(
    [CORESPUN, FASTIFY, ELYSIA],
    prefix,
    context,
    async (servers) => {
      for (const section of sections)
        rows.push(...(await measureOrSkip(section, servers, context, false, FASTIFY)))
    },
    commandOf,
  )
  return rows
}

function commandOf(name: string, port: number, skip: Context['skip']): readonly string[] | undefined {
  const words = [`${DIST_FOLDER}/contenders/arena/server.js`, name, String(port)]
  if (name !== ELYSIA) return [process.execPath, ...words]
  if (existsSync(BUN)) return [BUN, ...words]
  skip(name, 'no Bun for this platform in bench/node_modules')
  return undefined
}

function verdicts(rows: readonly Row[]): Verdict[] {
  return BARS.map(([section, rival, factor]) => {
    const of = (contender: string): Row | undefined => findRow(rows, { section, row: CPU, contender })
    return judgeRatio(
      `${section}: CPU of a request at most ${factor} × ${rival}`,
      [of(CORESPUN), of(rival)],
      (times) => times <= factor,
    )
  })
}

export default {
  name: 'arena',
  title: 'A request of HttpArena',
  definitions: {
    ...LOAD_DEFINITIONS,
    'arena baseline': 'GET of a path whose query has two numbers; their sum as text.',
    'arena pipelined': 'GET of two bytes of text, 16 requests in one write.',
    'arena json': '25 rows of a dataset of 50 with a total for each, made for each request: 4 kB.',
    [CORESPUN]: 'The routes of arena/, with its other profiles and compress() for clients that accept it.',
  },
  parameters: {
    sections: { value: SECTIONS.join(','), doc: 'which, by comma' },
    ...LOAD_PARAMETERS,
  },
  run,
  verdicts,
} satisfies Table
