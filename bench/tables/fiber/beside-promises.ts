/**
 * What people write without fibers and arrows, and what the same takes with them: waiting for a promise that
 * has settled, a bounded number of asynchronous items at a time, many sleepers, a fork in a loop, functions
 * over an asynchronous source.
 *
 * Promises are at their best: an await, lanes written by hand, `setTimeout` in a promise, a `for await`.
 * Where a stream is read by a loop they have an async generator between the two.
 */

/** Does something about so many times; returns how often it did. */
export type Cost = (times: number) => Promise<number>

/** The rows. */
export const BESIDE_PROMISES = {
  settled: 'beside promises, wait for a settled promise',
  items: 'beside promises, forEach of asynchronous items, 16 at a time',
  sleepers: 'beside promises, 50,000 sleepers of 0 to 19 ms',
  called: 'beside promises, fork+join of a call of a generator function in a loop',
  inline: 'beside promises, fork+join of a function* in a loop',
  stream: 'beside promises, stream of an arrow over an async generator',
  folded: 'beside promises, stream of three stages over an async generator, folded',
  looped: 'beside promises, loop over a stream of one stage over an async generator',
  array: 'beside promises, stream of three stages over an array, folded',
} as const

const SLEEPERS = 50_000
const LANES = 16
const promised = Array.from({ length: 64 }, (_, index) => Promise.resolve(index))
const plusOne = async (item: number): Promise<number> => item + 1
const half = (item: number): number => item >> 1
const isNumber = (item: number): boolean => item >= 0
const plusNothing = (item: number): number => item + 0
const plus = (sum: number, item: number): number => sum + item
const doubled = (times: number): number[] => Array.from({ length: times }, (_, turn) => (turn & 63) * 2)
async function* counted(times: number): AsyncGenerator<number> {
  for (let turn = 0; turn < times; turn += 1) yield (turn & 63) * 2
}

/** The programs of a contender; none for those that have neither. */
export async function besidePromises(contender: string): Promise<Record<string, Cost>> {
  if (contender === 'corespun') return corespun()
  if (contender === 'promises') return promises()
  return contender === 'effect' ? effect() : {}
}

async function corespun(): Promise<Record<string, Cost>> {
  const { attempt, forEach, fork, sleep, yieldNow } = await import('corespun/fiber')
  const { lift } = await import('corespun/arrow')
  const { Stream } = await import('corespun/stream')
  type Numbers = ReturnType<typeof Stream.from<number>>
  const halved = lift(half)
  const staged = (source: Numbers): Numbers => source.map(half).filter(isNumber).map(plusNothing)
  function* settled(times: number): Generator<object, number, unknown> {
    let sum = 0
    for (let turn = 0; turn < times; turn += 1) sum += yield* attempt(promised[turn & 63])
    return sum
  }
  function* sleeper(ms: number): Generator<object, number, unknown> {
    yield* sleep(ms)
    return ms
  }
  function* sleepers(): Generator<object, number, unknown> {
    const forked = []
    for (let index = 0; index < SLEEPERS; index += 1) forked.push(fork(sleeper(index % 20)))
    let sum = 0
    for (const fiber of forked) sum += yield* fiber.join()
    return sum
  }
  function* step(value: number): Generator<object, number, unknown> {
    yield* yieldNow()
    return value
  }
  function* called(times: number): Generator<object, number, unknown> {
    let sum = 0
    for (let turn = 0; turn < times; turn += 1) sum += yield* fork(step(turn & 63)).join()
    return sum
  }
  function* inline(times: number): Generator<object, number, unknown> {
    let sum = 0
    for (let turn = 0; turn < times; turn += 1) {
      const body = function* (): Generator<object, number, unknown> {
        yield* yieldNow()
        return turn & 63
      }
      sum += yield* fork(body).join()
    }
    return sum
  }
  return {
    [BESIDE_PROMISES.settled]: async (times) => turns(times, await fork(settled(times)).join()),
    [BESIDE_PROMISES.items]: async (times) =>
      items(times, await fork(forEach(inputs(times), plusOne, { concurrency: LANES })).join()),
    [BESIDE_PROMISES.sleepers]: async () => slept(await fork(sleepers()).join()),
    [BESIDE_PROMISES.called]: async (times) => turns(times, await fork(called(times)).join()),
    [BESIDE_PROMISES.inline]: async (times) => turns(times, await fork(inline(times)).join()),
    [BESIDE_PROMISES.stream]: async (times) => {
      let sum = 0
      for await (const one of halved.stream(counted(times))) sum += one
      return turns(times, sum)
    },
    [BESIDE_PROMISES.folded]: async (times) =>
      turns(times, await staged(Stream.from(counted(times))).runFold(0, plus)),
    [BESIDE_PROMISES.looped]: async (times) => {
      let sum = 0
      for await (const one of Stream.from(counted(times)).map(half)) sum += one
      return turns(times, sum)
    },
    [BESIDE_PROMISES.array]: async (times) =>
      turns(times, await staged(Stream.from(doubled(times))).runFold(0, plus)),
  }
}

async function promises(): Promise<Record<string, Cost>> {
  const step = async (value: number): Promise<number> => {
    await undefined
    return value
  }
  const stepped: Cost = async (times) => {
    let sum = 0
    for (let turn = 0; turn < times; turn += 1) sum += await step(turn & 63)
    return turns(times, sum)
  }
  return {
    [BESIDE_PROMISES.settled]: async (times) => {
      let sum = 0
      for (let turn = 0; turn < times; turn += 1) sum += await promised[turn & 63]
      return turns(times, sum)
    },
    [BESIDE_PROMISES.items]: async (times) => items(times, await inLanes(inputs(times), plusOne)),
    [BESIDE_PROMISES.sleepers]: async () => {
      const all = Array.from({ length: SLEEPERS }, (_, index) => {
        const ms = index % 20
        return new Promise<number>((resolve) => void setTimeout(resolve, ms, ms))
      })
      return slept((await Promise.all(all)).reduce((sum, ms) => sum + ms, 0))
    },
    [BESIDE_PROMISES.called]: stepped,
    [BESIDE_PROMISES.inline]: stepped,
    [BESIDE_PROMISES.stream]: async (times) => {
      let sum = 0
      for await (const one of counted(times)) sum += half(one)
      return turns(times, sum)
    },
    [BESIDE_PROMISES.folded]: async (times) => turns(times, await stagedSum(counted(times))),
    [BESIDE_PROMISES.looped]: async (times) => {
      let sum = 0
      for await (const one of halves(counted(times))) sum += one
      return turns(times, sum)
    },
    [BESIDE_PROMISES.array]: async (times) => turns(times, await stagedSum(doubled(times))),
  }
}

/** Three stages in a loop, as they are written by hand. */
async function stagedSum(items: AsyncIterable<number> | Iterable<number>): Promise<number> {
  let sum = 0
  for await (const item of items) {
    const one = half(item)
    if (isNumber(one)) sum = plus(sum, plusNothing(one))
  }
  return sum
}

async function* halves(items: AsyncIterable<number>): AsyncGenerator<number> {
  for await (const item of items) yield half(item)
}

/** A pool of lanes as it is written by hand. */
async function inLanes(of: readonly number[], work: (item: number) => Promise<number>): Promise<number[]> {
  const results = new Array<number>(of.length)
  let next = 0
  const lane = async (): Promise<void> => {
    while (next < of.length) {
      const index = next++
      results[index] = await work(of[index])
    }
  }
  await Promise.all(Array.from({ length: LANES }, lane))
  return results
}

async function effect(): Promise<Record<string, Cost>> {
  const { Effect, Stream } = await import('effect')
  type Step = ReturnType<typeof Effect.gen>
  const settled = (times: number): Step =>
    Effect.gen(function* () {
      let sum = 0
      for (let turn = 0; turn < times; turn += 1)
        sum += (yield* Effect.promise(() => promised[turn & 63])) as number
      return sum
    })
  const each = (times: number): Step =>
    Effect.forEach(inputs(times), (item: number) => Effect.promise(() => plusOne(item)), {
      concurrency: LANES,
    })
  return {
    [BESIDE_PROMISES.settled]: async (times) =>
      turns(times, (await Effect.runPromise(settled(times))) as number),
    [BESIDE_PROMISES.items]: async (times) =>
      items(times, (await Effect.runPromise(each(times))) as number[]),
    [BESIDE_PROMISES.stream]: async (times) => {
      const halves = Stream.map(Stream.fromAsyncIterable(counted(times), String), half)
      const summed = Stream.runFold(
        halves,
        () => 0,
        (sum, one) => sum + one,
      )
      return turns(times, (await Effect.runPromise(summed)) as number)
    },
  }
}

function inputs(times: number): number[] {
  return Array.from({ length: times }, (_, index) => index)
}

/** The sum of `turn & 63` over so many turns. */
function turns(times: number, sum: number): number {
  let right = 0
  for (let turn = 0; turn < times; turn += 1) right += turn & 63
  return checked(times, sum, right)
}

function items(times: number, results: readonly number[]): number {
  const sum = results.reduce((all, one) => all + one, 0)
  return checked(times, sum, (times * (times + 1)) / 2)
}

function slept(sum: number): number {
  return checked(SLEEPERS, sum, (SLEEPERS / 20) * 190)
}

function checked(times: number, got: number, right: number): number {
  if (got !== right) throw new Error(`the sum of ${times} is ${got} instead of ${right}`)
  return times
}
