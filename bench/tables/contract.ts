/**
 * Table `contract`: what it costs to check a request, beside the same route without a schema, the same
 * schemas called by hand, fastify's and Elysia's.
 *
 * Load and rows are those of table http. Before they are measured, all must refuse an order with a fault.
 */
import { existsSync } from 'node:fs'
import { PATH, WRONG } from '../contenders/contract/order.ts'
import { BenchError } from '../harness/errors.ts'
import { DIST_FOLDER } from '../harness/paths.ts'
import { type Context, findRow, type Row, type Table, type Verdict } from '../harness/table.ts'
import { judge, judgeRatio } from '../harness/verdicts.ts'
import { LOAD_DEFINITIONS, LOAD_PARAMETERS, measureOrSkip, withServers } from './http.ts'
import { chooseLoad } from './http/load.ts'
import { BUN, type Server } from './http/servers.ts'
import { CPU } from './http/verdicts.ts'

const SECTION = 'order'
const PLAIN = 'corespun without a schema'
const BY_HAND = 'zod called by hand'
const ZOD = 'corespun with zod'
const FASTIFY = 'fastify with JSON Schema'
const ELYSIA = 'elysia on bun'
const CONTENDERS = [PLAIN, ZOD, BY_HAND, 'corespun with valibot', 'corespun with arktype', FASTIFY, ELYSIA]
/** Least rate, at the same CPU, of the route without a schema. */
const RATE_MIN = 0.9
/** Most CPU, against others. */
const BARS = [
  [BY_HAND, 1],
  [FASTIFY, 0.5],
  [ELYSIA, 1],
] as const

async function run(context: Context): Promise<Row[]> {
  chooseLoad(context.text('load'))
  context.skip('encore', 'its package only loads a runtime that its own installer, not npm, brings')
  const prefix = ['env', 'NODE_ENV=production', 'taskset', '-c', '0']
  const rows: Row[] = []
  const measured = async (servers: readonly Server[]): Promise<void> => {
    for (const server of servers) if (server.name !== PLAIN) await refuses(server)
    rows.push(...(await measureOrSkip(SECTION, servers, context, false, PLAIN)))
  }
  await withServers(CONTENDERS, prefix, context, measured, commandOf)
  return rows
}

function commandOf(name: string, port: number, skip: Context['skip']): readonly string[] | undefined {
  const program = (file: string): string => `${DIST_FOLDER}/contenders/contract/${file}.js`
  if (name !== ELYSIA) return [process.execPath, program('server'), name, String(port)]
  if (existsSync(BUN)) return [BUN, program('elysia'), name, String(port)]
  skip(name, 'no Bun for this platform in bench/node_modules')
  return undefined
}

/** @throws {BenchError} `WRONG_ANSWER` for a server that accepts an order with a fault. */
async function refuses({ name, port }: Server): Promise<void> {
  const headers = { 'content-type': 'application/json' }
  const init = { method: 'POST', headers, body: JSON.stringify(WRONG) }
  const { status } = await fetch(`http://127.0.0.1:${port}${PATH}`, init)
  if (status === 400 || status === 422) return
  const work = 'an order with a fault'
  throw new BenchError('WRONG_ANSWER', { contender: name, work, got: String(status), expected: '400 or 422' })
}

function verdicts(rows: readonly Row[]): Verdict[] {
  const of = (contender: string): Row | undefined => findRow(rows, { section: SECTION, row: CPU, contender })
  return [
    judge<[Row, Row]>(
      `requests per CPU with zod at least ${RATE_MIN} × those without a schema`,
      [of(PLAIN), of(ZOD)],
      (plain, zod) => {
        const rate = plain.median / zod.median
        return [`${rate.toFixed(2)} ×`, rate >= RATE_MIN]
      },
    ),
    ...BARS.map(([rival, factor]) =>
      judgeRatio(
        `CPU of a request with zod at most ${factor} × ${rival}`,
        [of(ZOD), of(rival)],
        (times) => times <= factor,
      ),
    ),
  ]
}

export default {
  name: 'contract',
  title: 'A request that schemas check',
  definitions: {
    ...LOAD_DEFINITIONS,
    [SECTION]:
      'POST of 1 KiB of JSON to a path with a parameter and a query; the response has all three. NODE_ENV ' +
      'is production, so responses are not checked; fastify writes them by their schema.',
    [PLAIN]: 'URLSearchParams, request.json() and nothing else; it accepts whatever is JSON.',
    [BY_HAND]: "The same with three calls of '~standard'.validate, which is the floor of that library.",
    [ELYSIA]: 'With its own schemas, which it compiles, and none of the response.',
    encore: 'Left out: encore.dev loads a native runtime that its installer, and no package of npm, has.',
  },
  parameters: LOAD_PARAMETERS,
  run,
  verdicts,
} satisfies Table
