/**
 * Table `static`: a static file of 100 kB, beside Bun.file, node:http, fastify and hono's serve-static.
 *
 * Servers and load are those of table http: each server on core 0, the load on core 1, CPU per request ranks.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { FILE, FOLDER } from '../contenders/http/responses.ts'
import { chosenOf, type Context, type Row, type Table } from '../harness/table.ts'
import { LOAD_DEFINITIONS, LOAD_PARAMETERS, measureOrSkip, withServers } from './http.ts'
import { chooseLoad } from './http/load.ts'
import { against } from './http/verdicts.ts'

const CONTENDERS = ['corespun', 'bun', 'node:http', 'fastify', 'hono on node:http']
/** The most CPU per request, as a factor of Bun's. */
const FACTOR_MAX = 1.1

async function run(context: Context): Promise<Row[]> {
  chooseLoad(context.text('load'))
  mkdirSync(FOLDER, { recursive: true })
  writeFileSync(`${FOLDER}/file.txt`, FILE)
  const rows: Row[] = []
  await withServers(
    chosenOf(context, 'contenders', CONTENDERS),
    ['taskset', '-c', '0'],
    context,
    async (servers) => {
      rows.push(...(await measureOrSkip('file', servers, context, false)))
    },
  )
  return rows
}

export default {
  name: 'static',
  title: 'A static file over HTTP/1.1',
  definitions: {
    ...LOAD_DEFINITIONS,
    file: 'GET of 100 kB of text: files(), Bun.file, createReadStream with its length, serveStatic of hono.',
  },
  parameters: {
    contenders: { value: CONTENDERS.join(','), quick: 'corespun,bun', doc: 'which servers, by comma' },
    ...LOAD_PARAMETERS,
  },
  run,
  verdicts: (rows) => [against(rows, ['file', 'corespun', 'bun', FACTOR_MAX])],
} satisfies Table
