/**
 * Table `tails`: p99 of `corespun serve` as it is and with V8's parallel collector, beside others.
 *
 * Servers and load are those of table http. On one core V8's helper threads have no core of their own, as on
 * a machine with a worker on each core; on all cores they have.
 */
import { chosenOf, findRow, type Context, type Row, type Table, type Verdict } from '../harness/table.ts'
import { judge } from '../harness/verdicts.ts'
import { coresOf, LOAD_DEFINITIONS, LOAD_PARAMETERS, measureOrSkip, withServers } from './http.ts'
import { chooseLoad } from './http/load.ts'
import { HYPER, SERVE, SERVE_PARALLEL, UWS } from './http/servers.ts'

/** Sections and who takes part. */
const SECTIONS: Readonly<Record<string, readonly string[]>> = {
  hello: [SERVE, SERVE_PARALLEL, 'bun', UWS, HYPER],
  user: [SERVE, SERVE_PARALLEL, 'bun', UWS, HYPER],
  generator: [SERVE, SERVE_PARALLEL, 'bun'],
}
const CONNECTIONS = [8, 100]
/** Most of p99, against uWebSockets.js, or hyper where that is missing. */
const FACTOR_MAX = 1.3

async function run(context: Context): Promise<Row[]> {
  chooseLoad(context.text('load'))
  const sections = chosenOf(context, 'sections', Object.keys(SECTIONS))
  const names = new Set(sections.flatMap((section) => SECTIONS[section]))
  const rows: Row[] = []
  for (const unpinned of coresOf(context) === 'both' ? [false, true] : [false]) {
    await withServers([...names], unpinned ? [] : ['taskset', '-c', '0'], context, async (servers) => {
      for (const section of sections) {
        const asked = servers.filter(({ name }) => SECTIONS[section].includes(name))
        for (const connections of CONNECTIONS) {
          const number = (name: string): number =>
            name === 'connections' ? connections : context.number(name)
          const found = await measureOrSkip(section, asked, { ...context, number }, unpinned)
          rows.push(...found.map((row) => ({ ...row, section: sectionOf(row.section, connections) })))
        }
      }
    })
  }
  return rows
}

function sectionOf(section: string, connections: number): string {
  return `${section}, ${connections} connections`
}

function verdicts(rows: readonly Row[]): Verdict[] {
  return ['hello', 'user'].flatMap((name) =>
    CONNECTIONS.map((connections) => {
      const section = sectionOf(name, connections)
      const p99 = (contender: string): Row | undefined => findRow(rows, { section, row: 'p99', contender })
      const other = p99(UWS) ?? p99(HYPER)
      const bar = `${section}: p99 at most ${FACTOR_MAX} × ${other?.contender ?? UWS}`
      return judge<[Row, Row]>(bar, [p99(SERVE), other], (own, theirs) => [
        `${own.median.toFixed(0)} µs against ${theirs.median.toFixed(0)} µs`,
        own.median <= FACTOR_MAX * theirs.median,
      ])
    }),
  )
}

export default {
  name: 'tails',
  title: 'The slowest requests over HTTP/1.1',
  definitions: {
    ...LOAD_DEFINITIONS,
    hello: 'GET / returns 13 bytes of text.',
    user: 'GET /user/7 returns JSON made for each request.',
    generator: '16 chunks of 1 kB from an async generator.',
    [SERVE]: 'One worker; it collects young objects without helper threads.',
    [SERVE_PARALLEL]: "The same with V8's default.",
    [UWS]: 'Not in the npm registry: CORESPUN_BENCH_UWS names the folder it is installed in.',
    memory: 'Resident memory of the server after its slice, MB.',
  },
  parameters: {
    sections: { value: Object.keys(SECTIONS).join(','), quick: 'hello', doc: 'which, by comma' },
    rounds: LOAD_PARAMETERS.rounds,
    'slice-s': LOAD_PARAMETERS['slice-s'],
    load: LOAD_PARAMETERS.load,
    cores: {
      value: 'pinned',
      doc: 'pinned: server on core 0, load on core 1; both: then once more with both on all cores',
    },
  },
  run,
  verdicts,
} satisfies Table
