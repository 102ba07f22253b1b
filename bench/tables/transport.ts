/**
 * Table `transport`: what it costs to turn values into bytes and back, beside everything that needs no
 * schema.
 *
 * Ratios are against JSON of the same Node in the same round: JSON.stringify became twice as fast twice, so a
 * figure without its Node means nothing.
 */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { DIST_FOLDER } from '../harness/paths.ts'
import { Samples } from '../harness/rounds.ts'
import type { Context, Row, Table } from '../harness/table.ts'
import { JSON_NAME } from './transport/codecs.ts'
import type { Extras, ExtrasOrder } from './transport/extras.ts'
import type { Direction, MeasureOrder, Measured } from './transport/measure.ts'
import { REAL_PAYLOADS, SEED_PAYLOADS, type Built, type Payload } from './transport/payloads.ts'
import { HARD_SECTION, verdicts } from './transport/verdicts.ts'

const EXTRAS_SECTION = 'small frames and classes'
const PAYLOADS = [...SEED_PAYLOADS, ...REAL_PAYLOADS]

async function run(context: Context): Promise<Row[]> {
  const rows: Row[] = []
  for (const built of context.text('built').split(',') as Built[]) {
    rows.push(...(await fresh(context, built)))
    if (isLate(context, 'mixed, small and hard values')) return rows
    rows.push(...(await mixed(context, built)))
  }
  rows.push(...extraRows(await inProcess<ExtrasOrder, Extras>('extras', pace(context)), EXTRAS_SECTION))
  rows.push(...extraRows(await inProcess<ExtrasOrder, Extras>('hard', pace(context)), HARD_SECTION))
  return rows
}

function isLate(context: Context, what: string): boolean {
  if (context.isLate()) context.skip(what, 'the time of a quick run was over')
  return context.isLate()
}

/** Each payload in a process of its own. */
async function fresh(context: Context, built: Built): Promise<Row[]> {
  const rows: Row[] = []
  for (const { label, seedRow } of chosen(context)) {
    if (seedRow === undefined && isLate(context, label)) continue
    context.progress(`transport, fresh, ${built}: ${label}`)
    const order = { ...pace(context), labels: [label], built, isMixed: false }
    rows.push(...payloadRows(await inProcesses(context, order), built, 'fresh'))
  }
  return rows
}

/** All payloads in one process, after all of them have passed. */
async function mixed(context: Context, built: Built): Promise<Row[]> {
  context.progress(`transport, mixed, ${built}`)
  const order = { ...pace(context), labels: chosen(context).map(({ label }) => label), built, isMixed: true }
  return payloadRows(await inProcesses(context, order), built, 'mixed')
}

function chosen(context: Context): readonly Payload[] {
  const word = context.text('payloads')
  return word === 'all' ? PAYLOADS : PAYLOADS.filter(({ label }) => label.includes(word))
}

function pace(context: Context): ExtrasOrder {
  return { rounds: context.number('rounds'), sliceMs: context.number('slice-ms') }
}

/**
 * The rounds of one order, spread over several processes: an engine compiles the same program well in most
 * processes and badly in some (Barrett et al.: Virtual machine warmup blows hot and cold, 2017), so one
 * process shows its luck more than the codec.
 */
async function inProcesses(context: Context, order: MeasureOrder): Promise<Measured> {
  const processes = Math.min(context.number('processes'), order.rounds)
  const all: Measured = {}
  for (let process = 0; process < processes; process += 1) {
    const before = Math.round((order.rounds * process) / processes)
    const rounds = Math.round((order.rounds * (process + 1)) / processes) - before
    merge(all, await inProcess<MeasureOrder, Measured>('measure', { ...order, rounds, before }))
  }
  return all
}

/** Add the samples of one more process. */
function merge(all: Measured, more: Measured): void {
  for (const [label, contenders] of Object.entries(more)) {
    for (const [contender, figures] of Object.entries(contenders)) {
      const known = ((all[label] ??= {})[contender] ??= {})
      for (const [figure, samples] of Object.entries(figures) as [Direction | 'bytes', number[]][])
        if (figure !== 'bytes' || known.bytes === undefined) (known[figure] ??= []).push(...samples)
    }
  }
}

async function inProcess<Order, Answer>(script: string, order: Order): Promise<Answer> {
  const path = `${DIST_FOLDER}/tables/transport/${script}.js`
  const { stdout } = await promisify(execFile)(process.execPath, [path, JSON.stringify(order)], {
    maxBuffer: 1 << 28,
  })
  return JSON.parse(stdout) as Answer
}

function payloadRows(measured: Measured, built: Built, process: 'fresh' | 'mixed'): Row[] {
  return Object.entries(measured).flatMap(([label, contenders]) => {
    const payload = PAYLOADS.find((each) => each.label === label)!
    const samples = new Samples()
    for (const [contender, figures] of Object.entries(contenders)) {
      for (const direction of ['encode', 'decode'] as const)
        addAll(samples, contender, direction, figures[direction])
      addAll(samples, contender, 'both', figures.both ?? sums(figures.encode!, figures.decode!))
    }
    const isSeed = built === 'assigned' && process === 'fresh' && payload.seedRow !== undefined
    return [
      ...directionRows(
        samples,
        { label, direction: 'encode', condition: `${process}, ${built}` },
        isSeed ? `napa/transport/${payload.seedRow}/` : undefined,
      ),
      ...directionRows(
        samples,
        { label, direction: 'decode', condition: `${process}, ${built}` },
        isSeed ? `napa/transport/${payload.seedRow}/` : undefined,
      ),
      ...directionRows(samples, { label, direction: 'both', condition: `${process}, ${built}` }, undefined),
      ...(isSeed ? sizeRows(label, contenders, payload.seedRow) : []),
    ]
  })
}

interface Line {
  readonly label: string
  readonly direction: Direction
  readonly condition: string
}

const SECTIONS: Readonly<Record<Direction, string>> = {
  encode: 'encode',
  decode: 'decode',
  both: 'round trip',
}
const SEED_COLUMNS: Readonly<Record<string, readonly [json: string, corespun: string]>> = {
  encode: ['stringify', 'marshall'],
  decode: ['parse', 'unmarshall'],
}

function directionRows(samples: Samples, line: Line, seed: string | undefined): Row[] {
  const columns = seed === undefined ? undefined : SEED_COLUMNS[line.direction]
  const seeds =
    columns === undefined ? undefined : { [JSON_NAME]: seed + columns[0], corespun: seed + columns[1] }
  const rows = samples.rows({
    figure: line.direction,
    section: SECTIONS[line.direction],
    row: line.label,
    condition: line.condition,
    threads: 0,
    unit: 'µs',
    better: 'lower',
    against: JSON_NAME,
    ...(seeds === undefined ? {} : { seeds }),
  })
  const own = rows.find((row) => row.contender === 'corespun')
  if (columns === undefined || own?.ratio === undefined) return rows
  const { median, low, high } = own.ratio
  const section = `${SECTIONS[line.direction]}, against JSON`
  return [...rows, { ...own, section, unit: '×', median, low, high, seed: `${seed}${columns[1]}-ratio` }]
}

function addAll(
  samples: Samples,
  contender: string,
  figure: string,
  ns: readonly number[] | undefined,
): void {
  // A thousand of them in milliseconds, as the seed counts, is the same number.
  for (const each of ns ?? []) samples.add(contender, { [figure]: each / 1000 })
}

function sums(encode: readonly number[], decode: readonly number[]): number[] {
  return encode.map((ns, round) => ns + decode[round])
}

function sizeRows(label: string, contenders: Measured[string], seedRow: string): Row[] {
  return Object.entries(contenders).flatMap(([contender, { bytes }]) => {
    if (bytes === undefined) return []
    const [median] = bytes as [number]
    const seed = contender === 'corespun' ? { seed: `napa/transport/${seedRow}/bytes` } : {}
    const fixed = {
      section: 'size',
      row: label,
      contender,
      condition: 'first object',
      threads: 0,
      unit: 'bytes',
      better: 'lower',
    } as const
    return [{ ...fixed, median, low: median, high: median, samples: 1, ...seed }]
  })
}

function extraRows(extras: Extras, section: string): Row[] {
  return Object.entries(extras).flatMap(([row, contenders]) => {
    const samples = new Samples()
    for (const [contender, ns] of Object.entries(contenders))
      for (const each of ns) samples.add(contender, { ns: each })
    return samples.rows({
      figure: 'ns',
      section,
      row,
      condition: 'one process',
      threads: 0,
      unit: 'ns',
      better: 'lower',
      against: JSON_NAME,
    })
  })
}

export default {
  name: 'transport',
  title: 'Values into bytes and back',
  definitions: {
    encode:
      'µs per object over 64 objects of different content (five booleans: 32 contents, ' +
      'each twice). `fresh`: the payload alone in a process; ' +
      '`mixed`: after ' +
      'all payloads, built in both ways, have passed through. `assigned`: built by object[key] = value; ' +
      '`parsed`: by JSON.parse. corespun writes into memory it was given, as a zone does; ' +
      '`corespun, self-contained` is marshall, with bytes of its own.',
    decode: 'µs per object, the same objects.',
    'round trip': 'Both directions added, µs; structuredClone only has this one.',
    size: 'Bytes (JSON: characters) of the first object.',
    'small frames and classes':
      "Frames of the size of a task's arguments; objects of a registered class beside the same as plain " +
      'objects, and the plain ones again when a thousand classes are registered: what it costs to look for ' +
      'classes.',
    [HARD_SECTION]:
      'ns per frame of ten plain objects, before and after ten thousands of objects of other keys ' +
      'have passed that spoil the caches of an engine: in dictionary mode, and of 200 hidden ' +
      'classes. Then those objects.',
  },
  parameters: {
    payloads: { value: 'all', quick: '1 level - 10', doc: 'a word of the labels chosen, or all' },
    built: { value: 'assigned,parsed', quick: 'assigned', doc: 'how objects are built, by comma' },
    rounds: { value: 9, quick: 3, doc: 'rounds in which all contenders take their turn' },
    processes: { value: 3, quick: 1, doc: 'processes over which the rounds are spread' },
    'slice-ms': { value: 8, quick: 4, doc: "length of one contender's turn" },
  },
  run,
  verdicts,
} satisfies Table
