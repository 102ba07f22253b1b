/**
 * The rows of the A/B comparison: small loops over the workloads of the tables, which check what they
 * compute.
 *
 * A row that an older or a newer package cannot run throws when it is made or first run, and is left out by
 * name.
 */
import assert from 'node:assert/strict'
import { Jobs } from '../contenders/jobs.ts'
import { contenderOf } from '../contenders/pools.ts'
import { checkAnswer } from '../harness/errors.ts'
import { METHODS, loopsOf } from '../tables/arrow/methods.ts'
import { forkJoin } from '../tables/fiber/fork-join.ts'
import { CONTENDERS } from '../tables/fiber/contenders.ts'
import { isRight } from '../tables/fiber/sums.ts'
import { STORE_CONTENDERS } from '../tables/store/contenders.ts'
import { SIZE_PAYLOADS, STORE_PAYLOADS } from '../tables/store/payloads.ts'
import { corespunCodecs } from '../tables/transport/codecs.ts'
import { type Built, OBJECTS, REAL_PAYLOADS, SEED_PAYLOADS, objectsOf } from '../tables/transport/payloads.ts'
import { httpRows } from './http.ts'

/** One row: `run` does so many operations, in each turn of a slice `batch` of them. */
export interface Row {
  readonly batch: number
  readonly run: (times: number) => unknown
}

/** Rows by name; made in order, each when it is first needed. */
export type Rows = Readonly<Record<string, () => Row | Promise<Row>>>

export const SECTION_ROWS: Readonly<Record<string, () => Promise<Rows>>> = {
  execute,
  transport,
  store,
  arrow,
  fiber,
  http: httpRows,
}

const WHO = 'corespun'

async function execute(): Promise<Rows> {
  const jobs = new Jobs(contenderOf(WHO))
  await jobs.open({ threads: 2, spin: true })
  await jobs.prove({ threads: 2 })
  const hop = (bytes: number) => (): Row => ({
    batch: 200,
    run: (items) => jobs.hopThere({ items, inFlight: 16, turns: 0, bytes }),
  })
  return {
    'round trip, execute(module, name)': () => ({
      batch: 100,
      run: (calls) => jobs.loop({ form: 'named', calls }),
    }),
    'round trip, run(a new function)': () => ({
      batch: 100,
      run: (calls) => jobs.loop({ form: 'anonymous', calls }),
    }),
    'batch of 1,000, execute(module, name)': () => ({
      batch: 1000,
      run: (calls) => jobs.batch({ form: 'named', calls }),
    }),
    'batch of 1,000, run(one function)': () => ({
      batch: 1000,
      run: (calls) => jobs.batch({ form: 'reused', calls }),
    }),
    '16 in flight, 1 KB there and back': hop(1000),
    '16 in flight, 50 KB there and back': hop(50_000),
    'map, an item of 20,000 steps': mapped,
  }
}

async function mapped(): Promise<Row> {
  const { zone } = await import('corespun/zone')
  const own = zone.create('ab map', { workers: 2 })
  const steps = (count: number): number => {
    let sum = 0
    for (let at = 0; at < count; at += 1) sum = (sum * 31 + at) | 0
    return sum
  }
  const expected = steps(20_000)
  return {
    batch: 400,
    run: async (times) => {
      const found = await own.map(new Array<number>(times).fill(20_000), steps)
      const got = found.filter((one) => one === expected).length
      checkAnswer({ contender: WHO, work: 'map', got, expected: times })
    },
  }
}

const TRANSPORT: readonly (readonly [label: string, built: Built])[] = [
  ['1 level - 10 integers', 'assigned'],
  ['2 level - 10 strings - length 10', 'assigned'],
  ['3 level - 5 booleans', 'parsed'],
  ['API page of 20 users', 'parsed'],
  ['50 log lines with optional fields', 'parsed'],
  ['GeoJSON of 10 shapes', 'parsed'],
  ['unicode text', 'parsed'],
  ['number arrays', 'assigned'],
]
const MIXED = [
  '2 level - 10 strings - length 10',
  'API page of 20 users',
  '50 log lines with optional fields',
]
const MIXING_PASSES = 6

async function transport(): Promise<Rows> {
  const [whole, framed] = (await corespunCodecs()) as [Codec, Codec]
  const payload = (label: string, built: Built): unknown[] =>
    objectsOf(
      [...SEED_PAYLOADS, ...REAL_PAYLOADS].find((one) => one.label === label)!,
      built,
    )
  const rows: Record<string, () => Row> = {}
  const add = (name: string, codec: Codec, objects: () => unknown[], before = (): void => {}): void => {
    rows[`encode ${name}`] = () => {
      before()
      return encodeRow(codec, objects())
    }
    rows[`decode ${name}`] = () => decodeRow(codec, objects())
  }
  for (const [label, built] of TRANSPORT) add(`${label}, ${built}`, framed, () => payload(label, built))
  add('API page of 20 users, self-contained', whole, () => payload(MIXED[1], 'parsed'))
  // The second pass: everything has been through the codec, in both ways that objects are made.
  const mix = (): void => {
    for (let pass = 0; pass < MIXING_PASSES; pass += 1) {
      for (const one of [...SEED_PAYLOADS, ...REAL_PAYLOADS]) {
        for (const built of ['assigned', 'parsed'] as const)
          for (const object of objectsOf(one, built)) framed.decode(framed.encode(object))
      }
    }
  }
  MIXED.forEach((label, at) =>
    add(`${label}, polymorphic`, framed, () => payload(label, 'parsed'), at === 0 ? mix : undefined),
  )
  return rows
}

type Codec = Awaited<ReturnType<typeof corespunCodecs>>[number]

function encodeRow(codec: Codec, objects: readonly unknown[]): Row {
  const encode = codec.encodeTimed ?? ((value: unknown) => codec.encode(value))
  for (const object of objects) assert.deepEqual(codec.decode(codec.encode(object)), object)
  return looped((index) => encode(objects[index]))
}

function decodeRow(codec: Codec, objects: readonly unknown[]): Row {
  const sent = objects.map((object) => codec.encode(object))
  return looped((index) => codec.decode(sent[index]))
}

/** Nothing that is timed may be left out because nobody uses it. */
const kept: { last: unknown } = { last: undefined }

/** A row of calls over the 64 objects in turn, in a loop of its own text, so that no call site is shared. */
function looped(call: (index: number) => unknown): Row {
  const loop = new Function(
    'call',
    'kept',
    `return (times) => { let last
      for (let at = 0; at < times; at += 1) last = call(at & ${OBJECTS - 1})
      kept.last = last }`,
  ) as (call: (index: number) => unknown, kept: object) => (times: number) => void
  return { batch: OBJECTS, run: loop(call, kept) }
}

async function store(): Promise<Rows> {
  const { calls } = await STORE_CONTENDERS[WHO].open(0)
  const rows: Record<string, () => Row> = {}
  const labels = [
    '1 level - 1 integers',
    '2 level - 10 strings - length 10',
    '100 characters',
    '18432 characters',
  ]
  for (const payload of [...STORE_PAYLOADS, ...SIZE_PAYLOADS].filter(({ label }) => labels.includes(label))) {
    const values = payload.values()
    const keys = values.map((_, index) => `${payload.label} ${index}`)
    rows[`set ${payload.label}`] = () => {
      values.forEach((value, index) => {
        calls.set(keys[index], value)
        assert.deepEqual(calls.get(keys[index]), value)
      })
      return looped((index) => calls.set(keys[index], values[index]))
    }
    rows[`get ${payload.label}`] = () => looped((index) => calls.get(keys[index]))
    rows[`view ${payload.label}`] = () => {
      values.forEach((value, index) => assert.deepEqual(calls.view!(keys[index]), value))
      return looped((index) => calls.view!(keys[index]))
    }
  }
  return rows
}

async function arrow(): Promise<Rows> {
  const rows: Record<string, () => Row> = {}
  for (const label of ['endThen', 'choice', 'merge', 'zipWith', 'id']) {
    const loops = (): ReturnType<typeof loopsOf> => loopsOf(METHODS.find((method) => method.label === label)!)
    rows[`${label}, composed and run`] = () => ({ batch: 2000, run: loops().composed })
    rows[`${label}, prebuilt`] = () => ({ batch: 20_000, run: loops().prebuilt })
  }
  const { lift, liftAsync } = await import('corespun/arrow')
  const add = lift((x: number) => x + 1)
  rows['two async stages'] = () => {
    const later = add
      .andThen(liftAsync(async (x: number) => x * 2))
      .andThen(liftAsync(async (x: number) => x - 1))
    return {
      batch: 200,
      run: async (times) => {
        let sum = 0
        for (let x = 0; x < times; x += 1) sum += await later.run(x)
        checkAnswer({ contender: WHO, work: 'two async stages', got: sum, expected: times * times })
      },
    }
  }
  for (const [name, stage] of [
    ['sync', lift((x: number) => x * 2)],
    ['async', liftAsync(async (x: number) => x * 2)],
  ] as const) {
    rows[`stream, ${name} stage, 8 at once, an item`] = () => {
      const streamed = add.andThen(stage as typeof add)
      return {
        batch: 500,
        run: async (times) => {
          let sum = 0
          const inputs = Array.from({ length: times }, (_, at) => at)
          for await (const one of streamed.stream(inputs, { concurrency: 8 })) sum += one
          checkAnswer({ contender: WHO, work: 'stream', got: sum, expected: times * (times + 1) })
        },
      }
    }
  }
  return rows
}

async function fiber(): Promise<Rows> {
  const { fork, forEach, sleep, yieldNow } = await import('corespun/fiber')
  const rows: Record<string, () => Row> = {}
  for (const [name, run] of Object.entries(await forkJoin(WHO))) rows[name] = () => ({ batch: 2000, run })
  rows['a turn of yieldNow in one fiber'] = () => ({
    batch: 2000,
    run: async (times) => {
      const turns = await fork(function* () {
        let done = 0
        for (; done < times; done += 1) yield* yieldNow()
        return done
      }).join()
      checkAnswer({ contender: WHO, work: 'yieldNow', got: turns, expected: times })
    },
  })
  rows['a wait for a settled promise'] = () => ({
    batch: 2000,
    run: async (times) => {
      const sum = await fork(function* () {
        let sum = 0
        for (let turn = 0; turn < times; turn += 1) sum += yield* fork(async () => 1).join()
        return sum
      }).join()
      checkAnswer({ contender: WHO, work: 'waits', got: sum, expected: times })
    },
  })
  rows['1,000 fibers that sleep 1 ms, a fiber'] = () => ({
    batch: 1000,
    run: async (times) => {
      const fibers = Array.from({ length: times }, () => fork(() => sleep(1)))
      for (const one of fibers) await one.join()
    },
  })
  rows['forEach, 16 at once, an item'] = () => ({
    batch: 500,
    run: async (times) => {
      const items = Array.from({ length: times }, (_, at) => at)
      const work = function* (item: number): Generator<object, number, unknown> {
        yield* yieldNow()
        return item
      }
      const values = await fork(() => forEach(items, work)).join()
      checkAnswer({ contender: WHO, work: 'forEach', got: values, expected: items })
    },
  })
  const { programs } = await CONTENDERS[WHO]({ threads: 1, spin: true })
  for (const name of ['sequential, default', 'fibers, default']) {
    rows[`${name}, sum of 0! to 20!`] = () => ({
      batch: 200,
      run: async (times) => {
        let sum = await programs[name](20, 10)
        for (let turn = 1; turn < times; turn += 1) {
          const made = programs[name](20, 10)
          sum = 'then' in made ? await made : made
        }
        checkAnswer({ contender: WHO, work: name, got: isRight(sum, 20), expected: true })
      },
    })
  }
  return rows
}
