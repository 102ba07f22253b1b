/**
 * Table `store`: what it costs to keep a value where all threads can have it, and what a lock costs.
 *
 * Beside a Map, which has one thread and no copies, lmdb and sharedmap. What a store adds to the transport is
 * the difference of slices of one process in one round; next to the figures of the seed and of napajs.
 */
import { Child, nodeCommand } from '../harness/child.ts'
import { Samples, shuffled } from '../harness/rounds.ts'
import type { Context, Row, Table } from '../harness/table.ts'
import type { LockOrder } from './store/lock-process.ts'
import {
  LARGE_BYTES,
  NUMBER_PAYLOADS,
  SIZE_KINDS,
  SIZE_PAYLOADS,
  SMALL_BYTES,
  STORE_PAYLOADS,
  type StorePayload,
} from './store/payloads.ts'
import type { StoreOrder } from './store/process.ts'
import { verdicts } from './store/verdicts.ts'

const CONTENDERS = ['Map', 'lmdb', 'lmdb, cached', 'sharedmap', 'corespun'] as const
const PAIRS = [
  ['get', 'get'],
  ['get', 'set'],
  ['set', 'set'],
] as const

async function run(context: Context): Promise<Row[]> {
  const rows: Row[] = []
  const word = context.text('payloads')
  for (const payload of [...STORE_PAYLOADS, ...NUMBER_PAYLOADS]) {
    if (word !== 'all' && !payload.label.includes(word)) continue
    if (context.isLate()) context.skip(payload.label, 'the time of a quick run was over')
    else rows.push(...(await payloadRows(context, payload)))
  }
  rows.push(...(await sizeRows(context)), ...(await lockRows(context)))
  return rows
}

interface Running {
  readonly child: Child
  readonly runs: readonly string[]
  readonly hasPeer: boolean
}

/** Start a process for each contender and payload, use them, end them in order unless something failed. */
async function withProcesses(
  which: readonly (readonly [contender: string, label: string])[],
  context: Context,
  body: (running: readonly Running[]) => Promise<void>,
): Promise<void> {
  const children: Child[] = []
  try {
    // Together: nothing is measured yet, so warming up disturbs nobody.
    const started = await Promise.allSettled(
      which.map((words) => Child.start(words[0], nodeCommand('tables/store/process.js', ...words))),
    )
    for (const start of started) if (start.status === 'fulfilled') children.push(start.value)
    for (const start of started) if (start.status === 'rejected') throw start.reason
    const running = children.map((child) => ({ child, ...(child.ready as Omit<Running, 'child'>) }))
    // One after the other: while they start together, their compilers wait for each other.
    for (const { child, runs } of running) await slices(child, runs, context.number('warm-ms'))
    await body(running)
    for (const child of children) await child.order({ what: 'end' } satisfies StoreOrder)
  } finally {
    await Promise.all(children.map((child) => child.end()))
  }
}

/** One payload: all contenders in turn, then the pairs of threads of those that have two. */
async function payloadRows(context: Context, payload: StorePayload): Promise<Row[]> {
  const samples = new Samples()
  const [rounds, ms] = [context.number('rounds'), context.number('slice-ms')]
  const which = CONTENDERS.map((contender) => [contender, payload.label] as const)
  await withProcesses(which, context, async (running) => {
    for (let round = 0; round < rounds; round += 1) {
      context.progress(`store: ${payload.label}, round ${round + 1}`)
      for (const { child, runs } of running)
        samples.add(child.contender, await slices(child, shuffled(runs, round), ms))
    }
    for (let round = 0; round < context.number('pair-rounds'); round += 1) {
      context.progress(`store: ${payload.label}, two threads, round ${round + 1}`)
      for (const { child, hasPeer } of running)
        if (hasPeer) samples.add(child.contender, await pairs(child, context.number('pair-ms')))
    }
  })
  return [...singleRows(samples, payload), ...pairRows(samples, payload.label)]
}

/** µs of each function of a process, and what set and get took beyond the transport. */
async function slices(child: Child, names: readonly string[], ms: number): Promise<Record<string, number>> {
  const us: Record<string, number> = {}
  for (const name of names) {
    const order: StoreOrder = { what: 'slice', name, ms }
    us[name] = (await child.order<number>(order)) / 1000
  }
  if (us['encode'] === undefined) return us
  return {
    ...us,
    'set beyond': us['set'] - us['encode'],
    'get beyond': us['get'] - us['decode'],
    'of update': us['atomically'] / us['update'],
  }
}

async function pairs(child: Child, ms: number): Promise<Record<string, number>> {
  const figures: Record<string, number> = {}
  for (const [first, second] of PAIRS) {
    for (const isSame of [true, false]) {
      const order: StoreOrder = { what: 'pair', first, second, isSame, ms }
      const { times, ns } = await child.order<{ times: number; ns: number }>(order)
      figures[`${first} + ${second} ${isSame}`] = times
      figures[`${first} + ${second} ${isSame} ns`] = ns / 1000
    }
  }
  return figures
}

const FIGURES: readonly (readonly [figure: string, section: string, seed?: string])[] = [
  ['encode', 'transport, encode', 'marshall'],
  ['decode', 'transport, decode', 'unmarshall'],
  ['set', 'set', 'set'],
  ['get', 'get', 'get'],
  ['set, get', 'set, then get'],
  ['set, view', 'set, then view'],
  ['update', 'update'],
  ['set beyond', 'set beyond transport'],
  ['get beyond', 'get beyond transport'],
]

function singleRows(samples: Samples, { label, seedRow }: StorePayload): Row[] {
  const shape = { row: label, condition: 'one thread', threads: 0, better: 'lower' } as const
  const rows = FIGURES.flatMap(([figure, section, column]) =>
    samples.rows({
      ...shape,
      figure,
      section,
      // A thousand of them in milliseconds, as the seed counts, is the same number.
      unit: 'µs',
      against: 'lmdb',
      ...(column === undefined || seedRow === undefined
        ? {}
        : { seeds: { corespun: `napa/store/${seedRow}/${column}` } }),
    }),
  )
  const views = samples.rows({ ...shape, figure: 'view', section: 'view', unit: 'ns' })
  const section = 'one key, atomically'
  const shares = samples.rows({ ...shape, figure: 'of update', section, unit: '× update' })
  return [...rows, ...views.map(inNs), ...shares]
}

function inNs(row: Row): Row {
  return { ...row, median: row.median * 1000, low: row.low * 1000, high: row.high * 1000 }
}

function pairRows(samples: Samples, label: string): Row[] {
  return PAIRS.flatMap(([first, second]) =>
    [true, false].flatMap((isSame) => {
      const mode = `${first} + ${second}`
      const shape = { row: label, condition: isSame ? 'same key' : 'different keys', threads: 1 }
      return [
        ...samples.rows({
          ...shape,
          figure: `${mode} ${isSame}`,
          section: `two threads, ${mode}`,
          unit: '× one',
          better: 'higher',
        }),
        ...samples.rows({
          ...shape,
          figure: `${mode} ${isSame} ns`,
          section: `two threads, ${mode}, time`,
          unit: 'µs/op',
          better: 'lower',
          against: 'lmdb',
        }),
      ]
    }),
  )
}

/** Text and bytes of two sizes, and what the larger ones cost more, in copies of that much. */
async function sizeRows(context: Context): Promise<Row[]> {
  const [samples, growth] = [new Samples(), new Samples()]
  const which = SIZE_PAYLOADS.map(({ label }) => ['corespun', label] as const)
  await withProcesses(which, context, async (running) => {
    for (let round = 0; round < context.number('size-rounds'); round += 1) {
      context.progress(`store: text and bytes, round ${round + 1}`)
      const us = new Map<string, Record<string, number>>()
      for (const [index, { child, runs }] of running.entries()) {
        const { label } = SIZE_PAYLOADS[index]
        const taken = await slices(child, shuffled(runs, round), context.number('size-ms'))
        us.set(label, taken)
        samples.add('corespun', {
          [`set, ${label}`]: taken['set beyond'],
          [`get, ${label}`]: taken['get beyond'],
        })
      }
      for (const kind of SIZE_KINDS) growth.add('corespun', growthOf(us, kind))
    }
  })
  const shape = { condition: 'one thread', threads: 0, better: 'lower' } as const
  return (['set', 'get'] as const).flatMap((way) => [
    ...SIZE_PAYLOADS.flatMap(({ label }) => {
      const section = `${way} beyond transport`
      return samples.rows({ ...shape, figure: `${way}, ${label}`, section, row: label, unit: 'µs' })
    }),
    ...SIZE_KINDS.flatMap((kind) => {
      const row = `${way}, ${kind}`
      return growth.rows({ ...shape, figure: row, section: 'growth', row, unit: '× memcpy' })
    }),
  ])
}

/**
 * A copy separates the transport from the values of others, so its price there is what the transport with
 * one more costs more; where that hides behind what the transport waits for anyway, the price is that of a
 * copy alone.
 */
function growthOf(us: ReadonlyMap<string, Record<string, number>>, kind: string): Record<string, number> {
  const [small, large] = [us.get(`${SMALL_BYTES} ${kind}`)!, us.get(`${LARGE_BYTES} ${kind}`)!]
  const copy = us.get(`${LARGE_BYTES} bytes`)!['memcpy']
  const grown = (of: (figures: Record<string, number>) => number): number => of(large) - of(small)
  const encode = Math.max(
    copy,
    grown((figures) => figures['encode, copy'] - figures['encode']),
  )
  const decode = Math.max(
    copy,
    grown((figures) => figures['copy, decode'] - figures['decode']),
  )
  return {
    [`set, ${kind}`]: grown((figures) => figures['set beyond']) / encode,
    [`get, ${kind}`]: grown((figures) => figures['get beyond']) / decode,
  }
}

/** ns per guard, alone and with two threads at once. */
async function lockRows(context: Context): Promise<Row[]> {
  const samples = new Samples()
  const started: Child[] = []
  try {
    for (const contender of ['corespun', 'Atomics'])
      started.push(await Child.start(contender, nodeCommand('tables/store/lock-process.js', contender)))
    for (let round = 0; round < context.number('rounds'); round += 1) {
      context.progress(`store: locks, round ${round + 1}`)
      for (const child of started) {
        for (const kind of child.ready as readonly string[]) {
          for (const threads of [1, 2] as const) {
            const order: LockOrder = { kind, threads, rounds: context.number('lock-rounds') }
            samples.add(child.contender, { [`${kind} ${threads}`]: await child.order<number>(order) })
          }
        }
      }
    }
  } finally {
    await Promise.all(started.map((child) => child.end()))
  }
  return (started[0].ready as readonly string[]).flatMap((kind) =>
    [1, 2].flatMap((threads) =>
      samples.rows({
        section: threads === 1 ? 'locks, one thread' : 'locks, two threads at once',
        row: kind,
        figure: `${kind} ${threads}`,
        condition: threads === 1 ? 'uncontended' : 'contended',
        threads: threads - 1,
        unit: 'ns',
        better: 'lower',
        against: 'Atomics',
      }),
    ),
  )
}

export default {
  name: 'store',
  title: 'Values and locks that all threads share',
  definitions: {
    'transport, encode':
      'µs per value over 64 different ones: the transport alone, into memory that is there.',
    'transport, decode': 'The same back, out of 64 frames.',
    set:
      'µs to write one of 64 values under one of 64 keys. corespun, Map (a reference), lmdb (in memory, ' +
      'noSync, encoding msgpack with sharedStructuresKey, putSync; `lmdb, cached` also with its cache), ' +
      'sharedmap (strings only, as JSON). ' +
      'The columns of the seed count 1000 in ms, which is the same number; napajs, measured here: 4.9 ' +
      'beyond its transport.',
    get:
      'µs to read one, as a copy; Map returns the reference, `lmdb, cached` what it read before. napajs, ' +
      'measured here: 11.4 beyond its transport.',
    'set beyond transport': 'set − encode of the same process and round.',
    'get beyond transport': 'get − decode of the same process and round.',
    'two threads':
      'Two threads of one process at once, in units of what each does alone in the same round: 2 is ' +
      'perfect. On one key, or 64 keys each. `time`: µs per operation of both together.',
    view: 'ns to read again what nobody has written since: one object, in one thread.',
    update: 'µs to read one and to write the next, by a function that returns that one.',
    'one key, atomically': 'The same by atomicallySync and tx.update, in times of update in the same round.',
    'set, then view':
      'µs to write one and to read it once as a view; `set, then get` is the same with a copy.',
    growth:
      'What 18 KiB cost beyond the transport more than 100 bytes, in copies of 18 KiB: the dearer of one ' +
      'between 64 pairs of buffers, and one put between the transport and its memory, as a store has to.',
    'locks, one thread':
      'ns per guard around one addition without contention: in, run, out. Atomics: a lock of one word ' +
      'by compareExchange, wait and notify, without owners, names, order or clean-up after a death.',
    'locks, two threads at once':
      'The same by two threads that do nothing else; time of all over all guards.',
  },
  parameters: {
    payloads: { value: 'all', quick: '1 level - 10', doc: 'a word of the labels chosen, or all' },
    rounds: { value: 9, quick: 3, doc: 'rounds in which all contenders take their turn' },
    'slice-ms': { value: 8, quick: 4, doc: "length of one contender's turn" },
    'warm-ms': { value: 100, quick: 10, doc: 'what each does for so long is not counted' },
    'size-rounds': { value: 15, quick: 5, doc: 'rounds of text and bytes of two sizes' },
    'size-ms': { value: 20, quick: 6, doc: 'length of a turn of these' },
    'pair-rounds': { value: 5, quick: 2, doc: 'rounds of two threads' },
    'pair-ms': { value: 10, quick: 6, doc: 'length of a turn of two threads' },
    'lock-rounds': { value: 30_000, quick: 20_000, doc: 'guards of a turn' },
  },
  run,
  verdicts,
} satisfies Table
