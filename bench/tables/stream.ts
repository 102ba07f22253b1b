/**
 * Table `stream`: items through a worker and back, against `postMessage` of each.
 *
 * Each contender is a process, and the passes of a round take turns. What a streamed response over HTTP costs
 * is table streams.
 */
import { Child, nodeCommand } from '../harness/child.ts'
import { SPINNING } from '../harness/conditions.ts'
import { Samples, shuffled } from '../harness/rounds.ts'
import { findRow, type Context, type Row, type Table, type Verdict } from '../harness/table.ts'
import { judge } from '../harness/verdicts.ts'
import type { Bytes, BytesFound, Objects, ObjectsFound } from './stream/process.ts'

const RIVAL = 'postMessage'
const CONTENDERS = ['corespun', RIVAL]
/** Sections of bytes that are far more than may be in memory. */
const WHOLES = ['bytes', 'upload'] as const
const GROWTH = 'growth in the second half'
/** Most µs of an object, and how many times as long the rival takes at least. */
const BARS = { us: 1.5, times: 5, growthMb: 32 }
const SHAPE = { condition: SPINNING.name, threads: 1 } as const

async function run(context: Context): Promise<Row[]> {
  const objects: Objects = { what: 'objects', items: context.number('items') }
  const mebibytes = context.number('mebibytes')
  const samples = new Samples()
  const memory = { bytes: new Samples(), upload: new Samples() }
  const children = new Map<string, Child>()
  try {
    for (const contender of CONTENDERS) children.set(contender, await started(contender))
    for (let round = 0; round < context.number('rounds'); round += 1) {
      for (const contender of shuffled(CONTENDERS, round)) {
        context.progress(`objects, round ${round + 1}: ${contender}`)
        const child = children.get(contender) as Child
        // The first pass compiles, and is a row of its own: programs that read one file make no second one.
        const found = await child.order<ObjectsFound>(objects)
        const { us, cpuUs } = found
        samples.add(contender, round === 0 ? { firstUs: us, firstCpuUs: cpuUs } : { us, cpuUs })
      }
    }
  } finally {
    await Promise.all([...children.values()].map((child) => child.end()))
  }
  for (let round = 0; round < context.number('byte-rounds'); round += 1) {
    for (const what of WHOLES) {
      context.progress(`${what}, round ${round + 1}`)
      const child = await started('corespun')
      try {
        const order: Bytes = { what, mebibytes }
        memory[what].add('corespun', { ...(await child.order<BytesFound>(order)) })
      } finally {
        await child.end()
      }
    }
  }
  const object = { ...SHAPE, section: 'objects', unit: 'µs', better: 'lower', against: RIVAL } as const
  return [
    ...samples.rows({ ...object, row: 'an object', figure: 'us', cpu: 'cpuUs' }),
    ...samples.rows({ ...object, row: 'an object of the first pass', figure: 'firstUs', cpu: 'firstCpuUs' }),
    ...WHOLES.flatMap((section) => {
      const mb = { ...SHAPE, section, unit: 'MB', better: 'lower' } as const
      return [
        ...memory[section].rows({
          ...mb,
          row: 'throughput',
          figure: 'mbPerS',
          unit: 'MB/s',
          better: 'higher',
        }),
        ...memory[section].rows({ ...mb, row: 'highest resident memory', figure: 'highestMb' }),
        ...memory[section].rows({ ...mb, row: GROWTH, figure: 'growthMb' }),
      ]
    }),
  ]
}

function started(contender: string): Promise<Child> {
  const command = nodeCommand('tables/stream/process.js', contender)
  return Child.start(contender, [...SPINNING.prefix, ...command])
}

function verdicts(rows: readonly Row[]): Verdict[] {
  const own = findRow(rows, { row: 'an object', contender: 'corespun' })
  return [
    judge(`an object to a worker and back ≤ ${BARS.us} µs`, [own], ({ median }) => [
      `${median.toFixed(2)} µs`,
      median <= BARS.us,
    ]),
    judge(`${RIVAL} takes ≥ ${BARS.times} times as long`, [own], ({ ratio }) => {
      const times = ratio === undefined ? 0 : 1 / ratio.median
      return [`${times.toFixed(1)} ×`, times >= BARS.times]
    }),
    ...WHOLES.map((section) =>
      judge(
        `${section}: memory grows ≤ ${BARS.growthMb} MB in the second half`,
        [findRow(rows, { section, row: GROWTH })],
        ({ median }) => [`${median.toFixed(0)} MB`, median <= BARS.growthMb],
      ),
    ),
  ]
}

export default {
  name: 'stream',
  title: 'Items through a worker and back',
  definitions: {
    objects:
      'Objects of three fields from a generator, another one of each by an async generator in one worker, ' +
      'read by a loop: time over objects. The rival sends each by postMessage, 4,096 in flight.',
    bytes:
      'Chunks of 64 KiB from a generator, inverted in the worker, read by a loop. Memory is that of the ' +
      'process, its highest, and by how much the highest of the second half exceeds that of the first.',
    upload:
      'The same chunks as the body of a request from another process; what the worker returns is the ' +
      'response, which the client reads meanwhile. Memory is that of the server.',
  },
  parameters: {
    items: { value: 1_000_000, quick: 100_000, doc: 'objects of a pass' },
    rounds: { value: 8, quick: 3, doc: 'passes of each contender, the first one included' },
    mebibytes: { value: 1024, quick: 128, doc: 'MiB of bytes and of an upload; a multiple of 16' },
    'byte-rounds': { value: 3, quick: 1, doc: 'processes that stream bytes, and that serve an upload' },
  },
  run,
  verdicts,
} satisfies Table
