/**
 * Table `fiber`: futures and fibers, the nine tests of the seed, beside promises, Effect 4, piscina and,
 * where there is a JVM, ZIO 2.
 *
 * Contenders live in processes of their own and run slices in turn. Rows in which work is handed to another
 * thread are measured under every condition; rows of one thread under the first.
 */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { Child, nodeCommand } from '../harness/child.ts'
import { type Condition, conditions } from '../harness/conditions.ts'
import { BenchError } from '../harness/errors.ts'
import { jvmCommand } from '../harness/jvm.ts'
import { DIST_FOLDER } from '../harness/paths.ts'
import { Samples } from '../harness/rounds.ts'
import { summary } from '../harness/stats.ts'
import { type Context, type Row, type Table, chosenOf } from '../harness/table.ts'
import { BESIDE_PROMISES } from './fiber/beside-promises.ts'
import { CONTENDERS } from './fiber/contenders.ts'
import { FORK_JOIN } from './fiber/fork-join.ts'
import type { Opened, Setting, SliceOrder } from './fiber/host.ts'
import { verdicts } from './fiber/verdicts.ts'
import { ZIO, Zio } from './fiber/zio.ts'

const COSTS: readonly string[] = [...Object.values(FORK_JOIN), ...Object.values(BESIDE_PROMISES)]
const PARKED = [
  'corespun, generator that waits',
  'corespun, call with an argument',
  'corespun, function* in a loop',
  'corespun, generator that joins',
  'corespun, generator that sleeps',
  'effect, generator that waits',
  'effect, never',
  'bare generator',
  'async function',
]
const SECTIONS = ['future', 'sequential', 'fibers', 'fork+join', 'beside promises', 'parked']
const EXECUTORS = ['default', 'zone.cpu', 'blocking', 'cached', 'work-stealing']

/** One contender's process, whatever it runs on. */
interface Host {
  readonly contender: string
  readonly programs: readonly string[]
  readonly notes: Readonly<Record<string, string>>
  slice(order: SliceOrder): Promise<number>
  end(): Promise<void>
}

async function run(context: Context): Promise<Row[]> {
  const sections = chosenOf(context, 'sections', SECTIONS)
  const executors = chosenOf(context, 'executors', EXECUTORS)
  const isChosen = (program: string): boolean => {
    const [section, executor] = program.split(', ') as [string, string]
    return sections.includes(section) && (COSTS.includes(program) || executors.includes(executor))
  }
  const zio = namesOf(context).includes(ZIO) ? jvmCommand(ZIO, context.skip) : undefined
  const chosen = context.text('conditions')
  const found = conditions(context.skip).filter(
    ({ name }) => chosen === 'all' || chosen.split(',').includes(name),
  )
  const rows: Row[] = []
  for (const [index, condition] of found.entries())
    rows.push(...(await under(context, condition, { isFirst: index === 0, isChosen, zio })))
  return sections.includes('parked') ? [...rows, ...(await parked(context))] : rows
}

function namesOf(context: Context): readonly string[] {
  const names = context.text('contenders')
  return names === 'all' ? [...Object.keys(CONTENDERS), ZIO] : names.split(',')
}

/** What is measured of all there is. */
interface Choice {
  readonly isFirst: boolean
  readonly isChosen: (program: string) => boolean
  /** How ZIO is started; `undefined`: it is not here. */
  readonly zio: readonly string[] | undefined
}

async function under(
  context: Context,
  condition: Condition,
  { isFirst, isChosen, zio }: Choice,
): Promise<Row[]> {
  const hosts: Host[] = []
  try {
    for (const contender of namesOf(context)) {
      const setting = { contender, threads: context.number('workers'), spin: condition.spin }
      if (contender !== ZIO) hosts.push(await openNode(setting, condition))
      else if (zio !== undefined) hosts.push(...(await openZio(zio, condition, context.skip)))
    }
    const programs = [...new Set(hosts.flatMap((host) => host.programs))].filter(isChosen)
    const isCpu = context.text('clock') === 'cpu'
    const chosen = programs.filter((program) => (isHandedOver(program) ? !isCpu : isFirst))
    await warm(context, condition, hosts, chosen)
    return await measured(context, condition, hosts, chosen)
  } finally {
    await Promise.all(hosts.map((host) => host.end()))
  }
}

/** ZIO, or nothing where it does not begin: `skip` receives the reason. */
async function openZio(
  command: readonly string[],
  condition: Condition,
  skip: Context['skip'],
): Promise<readonly Host[]> {
  try {
    return [await Zio.open(command, condition)]
  } catch (error) {
    if (!(error instanceof BenchError) || error.code !== 'CONTENDER_DIED') throw error
    skip(`${ZIO}, ${condition.name}`, error.message)
    return []
  }
}

/** Has ZIO's programs compiled by the JVM; those of Node are warm after the fifth of a slice. */
async function warm(
  context: Context,
  condition: Condition,
  hosts: readonly Host[],
  programs: readonly string[],
): Promise<void> {
  const nums = context.text('num').split(',').map(Number)
  const sliceMs = (context.number('jvm-warm-s') * 1000) / nums.length
  const setting = { fibers: context.number('fibers'), sliceMs, clock: 'wall' }
  for (const host of hosts.filter(({ contender }) => contender === ZIO)) {
    for (const program of programs.filter((one) => host.programs.includes(one))) {
      context.progress(`fiber, ${condition.name}: ${ZIO} warms up, ${program}`)
      for (const num of nums) await host.slice({ ...setting, program, num })
    }
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
        context.progress(`fiber, ${condition.name}: round ${round + 1}, ${program} ${num}`)
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
  const [section, executor] = program.split(', ') as [string, string]
  const seed = seedOf(section, executor, num)
  const rows = of.rows({
    figure: isCost ? 'ns' : 'rate',
    section: section === 'fibers' ? `${fibers} fibers` : section,
    row: isCost ? program.slice(section.length + 2) : `${executor}, 0..${num}`,
    condition: condition.name,
    threads: isHandedOver(program) ? 2 : 0,
    unit: isCost ? 'ns' : 'ops/s',
    better: isCost ? 'lower' : 'higher',
    against: isHandedOver(program) ? 'piscina' : section === 'beside promises' ? 'promises' : 'effect',
    ...(seed === undefined || condition.name !== 'cores spinning' ? {} : { seeds: { corespun: seed } }),
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
    context.progress(`fiber, parked: ${kind}`)
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

/** A contender on Node. */
async function openNode(setting: Setting, { prefix }: Condition): Promise<Host> {
  const command = [...prefix, ...nodeCommand('tables/fiber/host.js', JSON.stringify(setting))]
  const child = await Child.start(setting.contender, command)
  return {
    ...(child.ready as Opened),
    contender: setting.contender,
    slice: (order) => child.order<number>(order),
    end: () => child.end(),
  }
}

export default {
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
    zio:
      "The contender zio: ZIO 2 on the JVM, the same in its words. default: its own pool; blocking: ZIO's; " +
      "cached and work-stealing: the JDK's; future: Scala's Future.",
    floor: 'The contender floor: a loop; bare generators and a queue, which nobody can join or interrupt.',
    'fork+join': 'One fork and its join after the other, inside one fiber.',
    'beside promises':
      'ns for each of what is written without fibers too. promises: an await of a settled promise; 16 ' +
      'lanes written by hand; 50,000 promises of setTimeout; an async function that awaits once, in both ' +
      'rows of fork+join; for await over the same generator or array, with the stages in its body.',
    'bytes per parked fiber': 'Heap per fiber of 100,000 that wait, after full collections.',
  },
  parameters: {
    num: { value: '10,20', doc: 'largest numbers, by comma, 22 at most' },
    fibers: { value: 16, doc: 'fibers at once' },
    workers: { value: 2, doc: 'workers of each zone and pool; blocking and cached: at most' },
    rounds: { value: 7, quick: 1, doc: 'rounds in which all contenders take their turn' },
    'slice-ms': { value: 100, quick: 30, doc: 'length of a slice' },
    parked: { value: 100_000, doc: 'parked fibers' },
    sections: { value: SECTIONS.join(','), doc: 'which, by comma' },
    executors: { value: EXECUTORS.join(','), doc: 'rows of which, by comma' },
    conditions: { value: 'all', quick: 'cores spinning', doc: 'which conditions, by comma' },
    clock: {
      value: 'wall',
      doc: 'cpu: rows of one thread only, by CPU time; for machines that are not quiet',
    },
    contenders: {
      value: 'all',
      quick: Object.keys(CONTENDERS).join(','),
      doc: `which contenders, by comma; ${ZIO} where Java and Maven are`,
    },
    'jvm-warm-s': { value: 3, quick: 1, doc: `seconds for which ${ZIO} warms each program up` },
  },
  run,
  verdicts,
} satisfies Table
