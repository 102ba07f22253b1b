/**
 * Table `hostile`: what a normal client waits, and what memory the server takes, while others attack it.
 *
 * Attacks, server and client are those of the tests (test/http/attacks), each in a process of its own: the
 * server on core 0, the others on core 1, where the attackers are as nice as can be, so that the client
 * waits for the server and not for them.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { BenchError } from '../harness/errors.ts'
import { PACKAGE_FOLDER } from '../harness/paths.ts'
import { Samples } from '../harness/rounds.ts'
import { chosenOf, type Context, type Row, type Table, type Verdict } from '../harness/table.ts'
import { judge } from '../harness/verdicts.ts'
import { PINNED } from './http.ts'

const FOLDER = `${PACKAGE_FOLDER}/test/http/attacks`
const KINDS = ['http', 'tls', 'http2', 'websocket']
const QUIET = 'quiet'
const BESIDE = 'beside attackers'
const MEMORY = 'highest memory'
const GROWTH = 'growth in the second half'
const TIMES_MAX = 10
/** As in table `stream`: less is what a collector leaves. */
const GROWTH_MB_MAX = 32
const MB = 1024 * 1024

interface Waits {
  readonly p50: number
  readonly p99: number
}

/** A program of the tests on core 1: each line that it is sent is answered by one. */
class Program {
  readonly #name: string
  readonly #child: ChildProcess
  readonly #lines: AsyncIterator<string>
  readonly #exited: Promise<unknown[]>

  constructor(name: string, words: readonly (string | number | boolean)[]) {
    this.#name = name
    const command = ['-c', '1', process.execPath, `${FOLDER}/${name}.mjs`, ...words.map(String)]
    this.#child = spawn('taskset', command, { stdio: ['pipe', 'pipe', 'inherit'] })
    this.#exited = once(this.#child, 'exit')
    this.#lines = createInterface({ input: this.#child.stdout! })[Symbol.asyncIterator]()
  }

  send(line: string): void {
    this.#child.stdin!.write(`${line}\n`)
  }

  /** The next line. @throws {BenchError} `CONTENDER_DIED` when it has ended instead. */
  async reply<Reply>(): Promise<Reply> {
    const { done, value } = await this.#lines.next()
    if (done !== true) return JSON.parse(value) as Reply
    const [code] = await this.#exited
    throw new BenchError('CONTENDER_DIED', { contender: this.#name, why: `it ended with ${String(code)}` })
  }

  /** @throws {BenchError} `CONTENDER_DIED` when it does not end in good order. */
  async end(): Promise<void> {
    this.#child.stdin!.end()
    const [code] = await this.#exited
    if (code !== 0)
      throw new BenchError('CONTENDER_DIED', { contender: this.#name, why: `it ended with ${String(code)}` })
  }

  kill(): void {
    this.#child.kill('SIGKILL')
  }
}

async function run(context: Context): Promise<Row[]> {
  const rows: Row[] = []
  for (const kind of chosenOf(context, 'sections', KINDS)) {
    const { attacks } = (await import(`${FOLDER}/${kind}.mjs`)) as { attacks: readonly { name: string }[] }
    for (const [number, { name }] of attacks.entries()) {
      const samples = new Samples()
      for (let round = 0; round < context.number('rounds'); round += 1) {
        context.progress(`${kind}, ${name}: round ${round + 1}`)
        await measure({ kind, number }, samples, context)
      }
      rows.push(...rowsOf(kind, name, samples))
    }
  }
  return rows
}

async function measure(
  { kind, number }: { readonly kind: string; readonly number: number },
  samples: Samples,
  context: Context,
): Promise<void> {
  const attacker = new Program('main', [kind, number, context.number('slice-s'), 0])
  let client: Program | undefined
  try {
    const { port } = await attacker.reply<{ port: number }>()
    client = new Program('client', [port, kind === 'tls', context.number('requests')])
    client.send('quiet') // what is measured first is not warm
    await client.reply<Waits>()
    client.send('quiet')
    samples.add(QUIET, { ...(await client.reply<Waits>()) })
    client.send('beside')
    attacker.send('attack')
    const memory = await attacker.reply<{ moreBytes: number; growthBytes: number }>()
    client.send('over')
    const waits = await client.reply<Waits>()
    const { moreBytes, growthBytes } = memory
    samples.add(BESIDE, { ...waits, [MEMORY]: moreBytes / MB, [GROWTH]: growthBytes / MB })
    await Promise.all([client.end(), attacker.end()])
  } finally {
    client?.kill()
    attacker.kill()
  }
}

function rowsOf(section: string, name: string, samples: Samples): Row[] {
  const shape = { section, condition: PINNED, threads: 0, better: 'lower', against: QUIET } as const
  return [
    ...samples.rows({ ...shape, row: `${name}: p99`, figure: 'p99', unit: 'ms' }),
    ...[MEMORY, GROWTH].flatMap((figure) =>
      samples.rows({ ...shape, row: `${name}: ${figure}`, figure, unit: 'MB more' }),
    ),
  ]
}

function verdicts(rows: readonly Row[]): Verdict[] {
  const beside = rows.filter(({ contender }) => contender === BESIDE)
  const worst = (of: (row: Row) => number | undefined): Row | undefined =>
    beside.filter((row) => of(row) !== undefined).sort((a, b) => of(b)! - of(a)!)[0]
  const growthOf = ({ row, median }: Row): number | undefined => (row.endsWith(GROWTH) ? median : undefined)
  return [
    judge<[Row]>(
      `p99 of a normal client less than ${TIMES_MAX} × quiet, beside each`,
      [worst((row) => row.ratio?.median)],
      (row) => [
        `worst: ${row.section}, ${row.row}, ${row.ratio!.median.toFixed(1)} ×`,
        row.ratio!.median < TIMES_MAX,
      ],
    ),
    judge<[Row]>(
      `memory grows ≤ ${GROWTH_MB_MAX} MB in the second half of each`,
      [worst(growthOf)],
      (row) => [
        `worst: ${row.section}, ${row.row}, ${row.median.toFixed(0)} MB`,
        row.median <= GROWTH_MB_MAX,
      ],
    ),
  ]
}

export default {
  name: 'hostile',
  title: 'A normal client beside hostile ones',
  definitions: {
    server: 'The native core with one thread and the limits that each attack is about, else the defaults.',
    [QUIET]: 'Requests of one client, one after the other on one connection, before the attack.',
    [BESIDE]: 'The same while three hundred attackers, or as many as the attack has, repeat theirs.',
    [MEMORY]: 'Greatest resident memory of the server during the attack, less that before it.',
    [GROWTH]: 'By how much the greatest during the second half of the attack exceeds that of the first.',
    sections: 'http: HTTP/1.1; tls: the client speaks TLS, too; http2: the client speaks HTTP/1.1.',
    ratio: 'Against quiet in the same round; the median of the rounds.',
  },
  parameters: {
    sections: { value: KINDS.join(','), doc: 'which, by comma' },
    rounds: { value: 3, quick: 1, doc: 'rounds of each attack, each with a server of its own' },
    'slice-s': {
      value: 2,
      quick: 0.5,
      doc: 'seconds of each half, in which an attack is repeated, once at least',
    },
    requests: { value: 2000, quick: 500, doc: 'requests of the normal client, at least' },
  },
  run,
  verdicts,
} satisfies Table
