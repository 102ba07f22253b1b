/**
 * Table `fiber`: futures and fibers, the nine tests of the seed, beside promises, Effect 4 and piscina.
 *
 * Contenders live in processes of their own and run slices in turn. Rows in which work is handed to another
 * thread are measured under every condition; rows of one thread under the first.
 */
import { execFile, fork as forkProcess, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { promisify } from 'node:util'
import { endProcess } from '../harness/child.ts'
import { type Condition, conditions } from '../harness/conditions.ts'
import { BenchError } from '../harness/errors.ts'
import { DIST_FOLDER } from '../harness/place.ts'
import { Samples } from '../harness/rounds.ts'
import { summary } from '../harness/stats.ts'
import type { Context, Row, Table } from '../harness/table.ts'
import { CONTENDERS } from './fiber/contenders.ts'
import { FORK_JOIN } from './fiber/fork-join.ts'
import type { Setting, SliceAnswer, SliceOrder } from './fiber/host.ts'
import { verdicts } from './fiber/verdicts.ts'

const COSTS: readonly string[] = Object.values(FORK_JOIN)
const PARKED = [
  'skein, generator that waits',
  'skein, generator that joins',
  'skein, generator that sleeps',
  'effect, generator that waits',
  'effect, never',
  'bare generator',
  'async function',
]

async function run(context: Context): Promise<Row[]> {
  const wanted = context.text('conditions')
  const found = conditions(context.skip).filter(
    ({ name }) => wanted === 'all' || wanted.split(',').includes(name),
  )
  const rows: Row[] = []
  for (const [index, condition] of found.entries())
    rows.push(...(await under(context, condition, index === 0)))
  return [...rows, ...(await parked(context))]
}

async function under(context: Context, condition: Condition, isFirst: boolean): Promise<Row[]> {
  const hosts: Host[] = []
  const names =
    context.text('contenders') === 'all' ? Object.keys(CONTENDERS) : context.text('contenders').split(',')
  try {
    for (const contender of names)
      hosts.push(
        await Host.open({ contender, threads: context.number('workers'), spin: condition.spin }, condition),
      )
    const programs = [...new Set(hosts.flatMap((host) => host.programs))]
    const isCpu = context.text('clock') === 'cpu'
    const chosen = programs.filter((program) => (isHandedOver(program) ? !isCpu : isFirst))
    return await measured(context, condition, hosts, chosen)
  } finally {
    await Promise.all(hosts.map((host) => host.end()))
  }
}

async function measured(
  context: Context,
  condition: Condition,
  hosts: readonly Host[],
  programs: readonly string[],
): Promise<Row[]> {
  const nums = context.text('num').split(',').map(Number)
  const fibers = context.number('fibers')
  const samples = new Map<string, Samples>()
  for (let round = 0; round < context.number('rounds'); round += 1) {
    for (const program of programs) {
      for (const num of COSTS.includes(program) ? [0] : nums) {
        const key = `${program}|${num}`
        if (context.isLate()) {
          context.skip(`${program}, ${condition.name}`, 'the time of a quick run was over')
          continue
        }
        context.say(`fiber, ${condition.name}: round ${round + 1}, ${program} ${num}`)
        const into = samples.get(key) ?? new Samples()
        samples.set(key, into)
        for (const host of hosts.filter((host) => host.programs.includes(program))) {
          const [sliceMs, clock] = [context.number('slice-ms'), context.text('clock')]
          const perSecond = await host.slice({ program, num, fibers, sliceMs, clock })
          into.add(host.contender, { rate: perSecond, ns: 1e9 / perSecond })
        }
      }
    }
  }
  return [...samples].flatMap(([key, of]) => rowsOf(key, of, condition, hosts, fibers))
}

function rowsOf(
  key: string,
  of: Samples,
  condition: Condition,
  hosts: readonly Host[],
  fibers: number,
): Row[] {
  const [program, num] = key.split('|') as [string, string]
  const isCost = COSTS.includes(program)
  const [section, executor] = isCost ? ['fork+join', ''] : (program.split(', ') as [string, string])
  const seed = seedOf(section, executor, num)
  const rows = of.rows({
    figure: isCost ? 'ns' : 'rate',
    section: section === 'fibers' ? `${fibers} fibers` : section,
    row: isCost ? program.slice('fork+join, '.length) : `${executor}, 0..${num}`,
    condition: condition.name,
    threads: isHandedOver(program) ? 2 : 0,
    unit: isCost ? 'ns' : 'ops/s',
    better: isCost ? 'lower' : 'higher',
    against: isHandedOver(program) ? 'piscina' : 'effect',
    ...(seed === undefined || condition.name !== 'cores spinning' ? {} : { seeds: { skein: seed } }),
  })
  return rows.map((row) => {
    const notes = hosts.find(({ contender }) => contender === row.contender)?.notes
    const note = notes?.[section] ?? notes?.[executor]
    return note === undefined ? row : { ...row, note }
  })
}

/** The seed's cell: it has one machine's `default` pool where we have this thread. */
function seedOf(section: string, executor: string, num: string): string | undefined {
  if (num !== '10' && num !== '20') return undefined
  const table = { future: 'future', sequential: 'sequential', fibers: 'parallel' }[section]
  return table === undefined || executor === 'zone.cpu'
    ? undefined
    : `fiber/setup-1/${table}/${executor}-${num}/ops`
}

function isHandedOver(program: string): boolean {
  return !program.endsWith('default') && !COSTS.includes(program)
}

async function parked(context: Context): Promise<Row[]> {
  const rows: Row[] = []
  const path = `${DIST_FOLDER}/tables/fiber/parked.js`
  for (const kind of PARKED) {
    context.say(`fiber, parked: ${kind}`)
    const bytes: number[] = []
    for (let round = 0; round < Math.min(3, context.number('rounds')); round += 1) {
      const words = ['--expose-gc', path, kind, String(context.number('parked'))]
      const { stdout } = await promisify(execFile)(process.execPath, words)
      bytes.push((JSON.parse(stdout) as { bytes: number }).bytes)
    }
    const [contender, row = 'waits'] = kind.split(', ') as [string, string?]
    const fixed = { section: 'bytes per parked fiber', condition: 'one process each', threads: 0 }
    rows.push({ ...fixed, row, contender, unit: 'bytes', better: 'lower', ...summary(bytes) })
  }
  return rows
}

/** The bench's end of one contender's process. */
class Host {
  readonly contender: string
  programs: readonly string[] = []
  notes: Readonly<Record<string, string>> = {}
  readonly #process: ChildProcess
  /** Rejects when the process ends; most end when the bench does, and then nobody waits. */
  readonly #died: Promise<never>

  private constructor(contender: string, process: ChildProcess) {
    this.contender = contender
    this.#process = process
    this.#died = once(process, 'exit').then(([code]) => {
      throw new BenchError('CONTENDER_DIED', { contender, why: `exit ${String(code)}` })
    })
    this.#died.catch(() => {})
  }

  static async open(setting: Setting, condition: Condition): Promise<Host> {
    const [command, ...words] = [...condition.prefix, process.execPath]
    const child = forkProcess(`${DIST_FOLDER}/tables/fiber/host.js`, [JSON.stringify(setting)], {
      execPath: command as string,
      execArgv: words,
    })
    const host = new Host(setting.contender, child)
    Object.assign(host, await host.#answer())
    return host
  }

  async slice(order: SliceOrder): Promise<number> {
    const answer = this.#answer()
    this.#process.send(order)
    const arrived = await answer
    if ('perSecond' in arrived) return arrived.perSecond
    throw new BenchError('CONTENDER_DIED', { contender: this.contender, why: JSON.stringify(arrived) })
  }

  end(): Promise<void> {
    return endProcess(this.#process)
  }

  async #answer(): Promise<SliceAnswer> {
    return Promise.race([once(this.#process, 'message').then(([words]) => words as SliceAnswer), this.#died])
  }
}

const table: Table = {
  name: 'fiber',
  title: 'Futures and fibers',
  definitions: {
    future: 'One operation: a promise for each of 0..n from a zone of two workers, all awaited, added up.',
    sequential:
      'One operation: the factorials of 0..n added up by one fiber. default: in this thread, a step for ' +
      'each number (promises: an await each). Others: all in one step on a zone of that executor.',
    fibers:
      'One operation: the numbers dealt to so many fibers, all forked, all joined. default: in this ' +
      'thread. Others: each fiber one step on a zone of that executor; piscina: so many tasks.',
    floor: 'The contender floor: a loop; bare generators and a queue, which nobody can join or interrupt.',
    'fork+join': 'One fork and its join after the other, inside one fiber.',
    'bytes per parked fiber': 'Heap per fiber of 100,000 that wait, after full collections.',
  },
  parameters: {
    num: { value: '10,20', doc: 'largest numbers, by comma, 22 at most' },
    fibers: { value: 16, doc: 'fibers at once' },
    workers: { value: 2, doc: 'workers of each zone and pool; blocking and cached: at most' },
    rounds: { value: 7, quick: 1, doc: 'rounds in which all contenders take their turn' },
    'slice-ms': { value: 100, quick: 30, doc: 'length of a slice' },
    parked: { value: 100_000, doc: 'parked fibers' },
    conditions: { value: 'all', quick: 'cores spinning', doc: 'which conditions, by comma' },
    clock: {
      value: 'wall',
      doc: 'cpu: rows of one thread only, by CPU time; for machines that are not quiet',
    },
    contenders: { value: 'all', doc: 'which contenders, by comma' },
  },
  run,
  verdicts,
}

export default table
