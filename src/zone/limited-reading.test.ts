/**
 * Limits of what is read item by item: nothing that has come is handed out behind the limit.
 *
 * Each seed chooses a form, a source, a limit and when that comes; the reader pauses until it has come. The
 * deadlines are those of a clock that the test moves. CORESPUN_SEED plays one seed alone, CORESPUN_SEEDS so
 * many. Then a reader, a source or a function computes for each item, and the limit is of the real clock.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Readable } from 'node:stream'
import { mock, test } from 'node:test'
import { compute, until } from '../base/wait.test.support.ts'
import { type Zone, type ZoneOptions, zone } from './index.ts'
import { inZone } from './api/zones.test.support.ts'

const LIMIT_MS = 600_000
const SEEDS = 30

type Values = AsyncIterator<number>
interface Limits {
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

async function* pass(items: AsyncIterable<number>): AsyncGenerator<number> {
  for await (const item of items) yield item
}

/** `count` numbers, and whether it was closed or has ended. */
class Source {
  isOver = false
  readonly #count: number

  constructor(count: number) {
    this.#count = count
  }

  *now(): Generator<number> {
    try {
      for (let number = 0; number < this.#count; number++) yield number
    } finally {
      this.isOver = true
    }
  }

  async *later(): AsyncGenerator<number> {
    yield* this.now()
  }
}

type Given = Iterable<number> | AsyncIterable<number>
type Form = (own: Zone, given: Given, limits: Limits) => Promise<Values> | Values
const FORMS: Record<string, Form> = {
  stream: (own, given, limits) => own.stream(pass, given, limits),
  'stream of a view': (own, given, limits) => own.with(limits).stream(pass, given),
  'stream in this thread': (_, given, limits) => zone.node.stream(pass, given, limits),
  'result of a call': async (own, given, limits) =>
    (await own.with(limits).run(pass, given as never)) as Values,
  'result of a call in this thread': async (_, given, limits) =>
    (await zone.node.with(limits).run(pass, given as never)) as Values,
  'stream of the web of a call in this thread': async (_, given, limits) => {
    const asStream = (items: AsyncIterable<number>): ReadableStream<number> => ReadableStream.from(items)
    const stream = await zone.node.with(limits).run(asStream, given as never)
    return stream.values() as Values
  },
  map: (own, given, limits) => own.map(given as AsyncIterable<number>, (item) => item, limits),
  'map, as they end': (own, given, limits) =>
    own.map(given as AsyncIterable<number>, (item) => item, { ...limits, ordered: false }),
  'map, in small chunks': (own, given, limits) =>
    own.map(given as AsyncIterable<number>, (item) => item, { ...limits, chunkMax: 7 }),
  'map in this thread': (_, given, limits) =>
    zone.node.map(given as AsyncIterable<number>, (item) => item, limits),
}

/** Numbers below `below` that follow from the seed. */
function dice(seed: number): (below: number) => number {
  let state = seed >>> 0
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

async function play(own: Zone, seed: number): Promise<void> {
  const roll = dice(seed)
  for (let warm = 0; warm < 4; warm++) roll(1)
  const names = Object.keys(FORMS)
  const name = names[roll(names.length)]
  const isLate = roll(2) === 0
  const controller = new AbortController()
  const why = new Error('enough')
  const source = new Source(roll(2) === 0 ? 2000 + roll(3000) : Infinity)
  const takes = 1 + roll(600)
  const form = `seed ${seed}: ${name}, ${isLate ? 'timeoutMs' : 'signal'} after ${takes} items`
  if (isLate) mock.timers.enable({ apis: ['setTimeout'] })
  try {
    const limits = isLate ? { timeoutMs: LIMIT_MS } : { signal: controller.signal }
    const values = await FORMS[name](own, roll(2) === 0 ? source.now() : source.later(), limits)
    for (let taken = 0; taken < takes; taken++) assert.equal((await values.next()).done, false, form)
    // The pause of the reader, in which what is ahead of it arrives, and a function of few items ends.
    for (let turns = roll(40); turns > 0; turns--) await new Promise((resolve) => setImmediate(resolve))
    const handedOver = roll(2) === 0 ? values.next() : undefined
    if (isLate) mock.timers.tick(LIMIT_MS)
    else controller.abort(why)
    const isRight = (error: unknown): boolean =>
      isLate ? (error as { code?: unknown }).code === 'TASK_TIMEOUT' : error === why
    const ended = await handedOver?.catch((error: unknown) => (assert.ok(isRight(error), form), undefined))
    if (handedOver === undefined || ended !== undefined) await assert.rejects(values.next(), isRight, form)
    assert.deepEqual(await values.next(), { value: undefined, done: true }, form)
  } finally {
    mock.timers.reset()
  }
  await until(() => source.isOver, `the end of the source, ${form}`)
}

async function playAll(options: ZoneOptions, seeds: number): Promise<void> {
  const { CORESPUN_SEED: one, CORESPUN_SEEDS: most = String(seeds) } = process.env
  await inZone(options, async (own) => {
    if (one !== undefined) return play(own, Number(one))
    for (let seed = 1; seed <= Number(most); seed++) await play(own, seed)
  })
}

test('behind an abort or a deadline no item that has come is handed out', async () => {
  await playAll({ workers: 2 }, SEEDS)
})

test('a stream of Node that a call in this thread returned is destroyed by its limits', async () => {
  for (const isLate of [true, false]) {
    const controller = new AbortController()
    const limits = isLate ? { timeoutMs: 20 } : { signal: controller.signal }
    const source = new Source(Infinity)
    const stream = await zone.node
      .with(limits)
      .run((items: AsyncIterable<number>) => Readable.from(items), source.later())
    assert.equal((await stream[Symbol.asyncIterator]().next()).done, false)
    const failed = once(stream, 'error') as Promise<[{ readonly code?: unknown }]>
    if (!isLate) controller.abort(new Error('enough'))
    const [error] = await failed
    assert.ok(isLate ? error.code === 'TASK_TIMEOUT' : error === controller.signal.reason)
    await until(() => source.isOver, 'the end of the source')
  }
})

test('the same of a zone in processes', { skip: process.platform === 'win32' }, async () => {
  await playAll({ workers: 1, isolation: 'process' }, SEEDS / 3)
})

/** Long enough for a limit that has passed: what no limit ends would go on for ever. */
const COMPUTED_MAX = 4000
const SOON_MS = 20

const COMPUTED_MS = 0.2

function* numbers(each: (ms: number) => void): Generator<number> {
  for (let number = 0; ; number++) {
    each(COMPUTED_MS)
    yield number
  }
}

async function* later(items: Iterable<number>): AsyncGenerator<number> {
  yield* items
}

const nothing = (): void => {}

for (const [name, form] of Object.entries({
  ...FORMS,
  'map in this thread, of a function that computes': (_: Zone, given: Given, limits: Limits) => {
    const computing = (item: number): number => (compute(COMPUTED_MS), item)
    return zone.node.map(given as AsyncIterable<number>, computing, limits)
  },
})) {
  test(`${name}: a limit passes while its reader or its source computes`, async () => {
    await inZone({ workers: 1 }, async (own) => {
      for (const isLate of [true, false]) {
        for (const who of ['reader', 'source', 'asynchronous source']) {
          const controller = new AbortController()
          const why = new Error('enough')
          const isRight = (error: unknown): boolean =>
            isLate ? (error as { code?: unknown }).code === 'TASK_TIMEOUT' : error === why
          const items = numbers(who === 'reader' ? nothing : compute)
          const given = who === 'asynchronous source' ? later(items) : items
          const timer = setTimeout(() => controller.abort(why), SOON_MS)
          const limits = isLate ? { timeoutMs: SOON_MS } : { signal: controller.signal }
          let count = 0
          const read = async (): Promise<void> => {
            const values = await form(own, given, limits)
            while ((await values.next()).done !== true) {
              assert.ok(++count < COMPUTED_MAX, `${who}: read on`)
              if (who === 'reader') compute(COMPUTED_MS)
            }
          }
          await assert.rejects(read, isRight, who)
          clearTimeout(timer)
        }
      }
    })
  })
}
