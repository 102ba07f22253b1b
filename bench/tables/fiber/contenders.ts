/**
 * Who takes part in the fiber table, each with the programs that its users would write.
 *
 * A program is one operation: it computes and returns the whole sum. `sequential` and `future` have a step
 * for each number; `fibers` deals the numbers to so many fibers, forks all and joins all. On a pool
 * `sequential` is one step.
 */
import { type Sum, add, addSum, factorial, partialSum } from './sums.ts'

/** One operation; a program that never waits returns its sum at once. */
export type Program = (num: number, fibers: number) => Sum | PromiseLike<Sum>

/** How the contender's threads are. */
export interface Threads {
  readonly threads: number
  readonly spin: boolean
}

/** A contender's programs by their row, such as 'sequential, default', and what it is. */
export interface Contender {
  readonly programs: Readonly<Record<string, Program>>
  /** The note of its row. */
  readonly notes: Readonly<Record<string, string>>
  close(): Promise<void>
}

/** The zones of Corespun's rows. */
const ZONES = ['zone.cpu', 'blocking', 'cached', 'work-stealing'] as const

/** Open a contender. Those in this process have no threads. */
export const CONTENDERS: Readonly<Record<string, (threads: Threads) => Promise<Contender>>> = {
  corespun,
  promises,
  effect,
  'effect forEach': effectForEach,
  piscina,
  floor,
}

async function corespun({ threads, spin }: Threads): Promise<Contender> {
  const { attempt, fork, on } = await import('corespun/fiber')
  type Zone = ReturnType<typeof import('corespun/zone').zone.create>
  function* sequential(num: number): Generator<object, Sum, unknown> {
    const sum: Sum = [0, 0]
    for (let k = 0; k <= num; k += 1) add(sum, yield* attempt(() => factorial(k)))
    return sum
  }
  function* here(num: number, fibers: number): Generator<object, Sum, unknown> {
    const forked = []
    for (let first = 0; first < fibers; first += 1) forked.push(fork(() => partialSum(first, fibers, num)))
    const sum: Sum = [0, 0]
    for (const fiber of forked) addSum(sum, yield* fiber.join())
    return sum
  }
  function* step(zone: Zone, first: number, stride: number, num: number): Generator<object, Sum, unknown> {
    return yield* on(zone, partialSum, first, stride, num)
  }
  function* there(zone: Zone, num: number, fibers: number): Generator<object, Sum, unknown> {
    const forked = []
    for (let first = 0; first < fibers; first += 1) forked.push(fork(step(zone, first, fibers, num)))
    const sum: Sum = [0, 0]
    for (const fiber of forked) addSum(sum, yield* fiber.join())
    return sum
  }
  const programs: Record<string, Program> = {
    'sequential, default': (num) => valueOf(fork(sequential(num))),
    'fibers, default': (num, fibers) => valueOf(fork(here(num, fibers))),
  }
  const ready = spin ? 'the ready-made zone, work-stealing' : 'as the ready-made zone, but spinUs 0'
  const notes = { 'zone.cpu': ready }
  const zones: Zone[] = []
  for (const called of ZONES) {
    const zone = await zoneOf(called, threads, spin)
    zones.push(zone)
    programs[`sequential, ${called}`] = (num) => fork(step(zone, 0, 1, num)).join()
    programs[`fibers, ${called}`] = (num, fibers) => fork(there(zone, num, fibers)).join()
    if (called !== 'work-stealing') continue
    programs['future, work-stealing'] = async (num) => {
      const parts = Array.from({ length: num + 1 }, (_, k) => zone.run(partialSum, k, num + 1, k))
      return total(await Promise.all(parts))
    }
  }
  const close = async (): Promise<void> => void (await Promise.all(zones.map((zone) => zone.close())))
  return { programs, notes, close }
}

function valueOf(fiber: { exit: unknown; join(): PromiseLike<Sum> }): Sum | PromiseLike<Sum> {
  const exit = fiber.exit as { kind: string; value: Sum } | undefined
  return exit?.kind === 'success' ? exit.value : fiber.join()
}

/**
 * The zone of a row, ready. `zone.cpu` is the ready-made one where that spins; zones that grow do so up to as
 * many workers as the others have.
 */
async function zoneOf(
  called: (typeof ZONES)[number],
  threads: number,
  spin: boolean,
): Promise<ReturnType<typeof import('corespun/zone').zone.create>> {
  const { zone } = await import('corespun/zone')
  const spinning = spin ? {} : { spinUs: 0 }
  const executor = called === 'zone.cpu' ? 'work-stealing' : called
  const many = executor === 'work-stealing' ? { workers: threads } : { workers: { max: threads } }
  const found =
    called === 'zone.cpu' && spin
      ? zone.cpu
      : zone.create(`bench ${called}`, { executor, ...many, ...spinning })
  await found.ready()
  return found
}

async function promises(): Promise<Contender> {
  const step = async (k: number): Promise<number> => factorial(k)
  const part = async (first: number, stride: number, num: number): Promise<Sum> =>
    partialSum(first, stride, num)
  const programs: Record<string, Program> = {
    'sequential, default': async (num) => {
      const sum: Sum = [0, 0]
      for (let k = 0; k <= num; k += 1) add(sum, await step(k))
      return sum
    },
    'fibers, default': async (num, fibers) =>
      total(await Promise.all(Array.from({ length: fibers }, (_, first) => part(first, fibers, num)))),
    'future, work-stealing': async (num) => {
      const sum: Sum = [0, 0]
      const values = await Promise.all(Array.from({ length: num + 1 }, (_, k) => step(k)))
      for (const value of values) add(sum, value)
      return sum
    },
  }
  return { programs, notes: { future: 'in this thread' }, close: async () => {} }
}

async function effect(): Promise<Contender> {
  const { Effect, Fiber } = await import('effect')
  const programs: Record<string, Program> = {
    'sequential, default': (num) =>
      Effect.runSync(
        Effect.gen(function* () {
          const sum: Sum = [0, 0]
          for (let k = 0; k <= num; k += 1) add(sum, (yield* Effect.sync(() => factorial(k))) as number)
          return sum
        }),
      ) as Sum,
    'fibers, default': (num, fibers) =>
      Effect.runPromise(
        Effect.gen(function* () {
          const forked: unknown[] = []
          for (let first = 0; first < fibers; first += 1)
            forked.push(yield* Effect.forkChild(Effect.sync(() => partialSum(first, fibers, num))))
          const sum: Sum = [0, 0]
          for (const fiber of forked) addSum(sum, (yield* Fiber.join(fiber)) as Sum)
          return sum
        }),
      ) as Promise<Sum>,
  }
  return { programs, notes: {}, close: async () => {} }
}

async function effectForEach(): Promise<Contender> {
  const { Effect } = await import('effect')
  const numbers = Array.from({ length: 23 }, (_, k) => Array.from({ length: k + 1 }, (_, index) => index))
  const unbounded = { concurrency: 'unbounded' }
  const programs: Record<string, Program> = {
    'sequential, default': (num) => {
      const sum: Sum = [0, 0]
      const each = Effect.forEach(numbers[num], (k: number) => Effect.sync(() => factorial(k)))
      for (const value of Effect.runSync(each) as number[]) add(sum, value)
      return sum
    },
    'fibers, default': async (num, fibers) => {
      const firsts = Array.from({ length: fibers }, (_, first) => first)
      const part = (first: number): unknown => Effect.sync(() => partialSum(first, fibers, num))
      return total((await Effect.runPromise(Effect.forEach(firsts, part, unbounded))) as Sum[])
    },
  }
  return { programs, notes: {}, close: async () => {} }
}

async function piscina({ threads }: Threads): Promise<Contender> {
  const { Piscina, FixedQueue } = await import('piscina')
  const pool = new Piscina({
    filename: new URL('./task.js', import.meta.url).href,
    minThreads: threads,
    maxThreads: threads,
    concurrentTasksPerWorker: 16,
    atomics: 'sync',
    recordTiming: false,
    taskQueue: new FixedQueue(),
  })
  const run = (first: number, stride: number, num: number): Promise<Sum> =>
    pool.run({ first, stride, num }) as Promise<Sum>
  const many: Program = async (num, fibers) =>
    total(await Promise.all(Array.from({ length: fibers }, (_, first) => run(first, fibers, num))))
  const programs: Record<string, Program> = {
    'future, work-stealing': async (num) =>
      total(await Promise.all(Array.from({ length: num + 1 }, (_, k) => run(k, num + 1, k)))),
  }
  for (const called of ['zone.cpu', 'blocking', 'cached', 'work-stealing']) {
    programs[`sequential, ${called}`] = (num) => run(0, 1, num)
    programs[`fibers, ${called}`] = many
  }
  return { programs, notes: {}, close: () => pool.destroy() }
}

/** No library at all: what the machine leaves for everybody else. */
async function floor(): Promise<Contender> {
  const programs: Record<string, Program> = { 'sequential, default': (num) => partialSum(0, 1, num) }
  return { programs, notes: { sequential: 'one loop' }, close: async () => {} }
}

function total(parts: readonly Sum[]): Sum {
  const sum: Sum = [0, 0]
  for (const part of parts) addSum(sum, part)
  return sum
}
