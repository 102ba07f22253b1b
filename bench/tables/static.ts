/**
 * Table `static`: a static file of 100 kB, beside Bun.file, node:http, fastify and hono's serve-static.
 *
 * Servers and load are those of table http: each server on core 0, the load on core 1, CPU per request ranks.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { FILE, FOLDER } from '../contenders/http/responses.ts'
import { chosenOf, findRow, type Context, type Row, type Table, type Verdict } from '../harness/table.ts'
import { judge } from '../harness/verdicts.ts'
import { measureOrSkip, withServers } from './http.ts'
import { chooseLoad, loadName } from './http/load.ts'

const CPU = 'CPU per 100,000'
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

/** Judge rows. */
function verdicts(rows: readonly Row[]): Verdict[] {
  const of = (contender: string): number | undefined =>
    findRow(rows, { section: 'file', row: CPU, contender })?.median
  const bar = `file: CPU at most ${FACTOR_MAX} × Bun.file`
  return [
    judge<[number, number]>(bar, [of('corespun'), of('bun')], (own, bun) => [
      `${own.toFixed(3)} s against ${bun.toFixed(3)} s, ${(own / bun).toFixed(2)} ×`,
      own <= FACTOR_MAX * bun,
    ]),
  ]
}

const table: Table = {
  name: 'static',
  title: 'A static file over HTTP/1.1',
  definitions: {
    load: `${loadName()}; keep-alive connections, one thread on core 1, server alone on core 0.`,
    'CPU per 100,000': 'CPU seconds of the server, user and system, over requests, times 100,000.',
    file: 'GET of 100 kB of text: files(), Bun.file, createReadStream with its length, serveStatic of hono.',
  },
  parameters: {
    contenders: { value: CONTENDERS.join(','), quick: 'corespun,bun', doc: 'which servers, by comma' },
    rounds: { value: 5, quick: 1, doc: 'rounds in which all contenders take their turn' },
    'slice-s': { value: 3, quick: 1, doc: 'seconds of one slice' },
    connections: { value: 100, doc: 'connections of the load' },
    load: { value: 'auto', doc: 'wrk or autocannon; auto: wrk where it is on the PATH' },
  },
  run,
  verdicts,
}

export default table
