/**
 * The two programs of the seed, by each contender: compute and files.
 *
 * Compute: 500 stages, each the factorial of its own value, its result kept; then the sum of the 500 that
 * were kept. All contenders keep them, in one of two ways: the chains begin with an empty array that the
 * stages push to and the engine enlarges seven times, or with one of the right size, which is what `map`
 * makes for the plain program. Files: ten files with a number each are read, their factorials added.
 * What is built once is built before anything is timed.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { effect as lifted, lift, type Arrow } from 'corespun/arrow'

/** A program: its answer each time, perhaps later. */
export type Program = () => number | Promise<number>
/** Programs of one answer, by contender. */
export type Programs = Readonly<Record<string, Program>>

const VALUES = 500
const FILES = 10
const LEAST = 8
const MOST = 12
const SEED = 20_261_121

function factorial(n: number): number {
  let product = 1
  for (let factor = 2; factor <= n; factor += 1) product *= factor
  return product
}

/** Numbers from `least` to `most`, the same in every run. */
function numbers(count: number, least = LEAST, most = MOST): number[] {
  let state = SEED
  return Array.from({ length: count }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return least + ((state >>> 16) % (most - least + 1))
  })
}

function total(results: readonly number[]): number {
  let sum = 0
  for (let index = 0; index < results.length; index += 1) sum += results[index]
  return sum
}

/** Answers per ms of one slice. */
export async function perMs(program: Program, sliceMs: number): Promise<number> {
  const startMs = performance.now()
  let count = 0
  for (;;) {
    for (let turn = 0; turn < 16; turn += 1) {
      const answer = program()
      if (typeof answer !== 'number') await answer
    }
    count += 16
    const ms = performance.now() - startMs
    if (ms >= sliceMs) return count / ms
  }
}

/** Bytes allocated by one run; runs in which the collector ran are not counted. */
export async function bytesPerRun(program: Program): Promise<number> {
  const samples: number[] = []
  for (let turn = 0; turn < 40 && samples.length < 9; turn += 1) {
    const before = process.memoryUsage().heapUsed
    for (let run = 0; run < 8; run += 1) await program()
    const grown = process.memoryUsage().heapUsed - before
    if (grown >= 0) samples.push(grown / 8)
  }
  return samples.sort((one, other) => one - other)[Math.floor(samples.length / 2)] ?? 0
}

type Stage = (results: number[]) => number[]

function pushing(values: readonly number[]): Stage[] {
  return values.map((value) => (results) => {
    results.push(factorial(value))
    return results
  })
}

/** How stages keep their results: what they begin with, and the stages of some values. */
const KEEPS = {
  compute: {
    begin: (): number[] => [],
    stages: pushing,
    values: (): number[] => numbers(VALUES),
  },
  // Results from 1 to 20!: small integers, large ones and doubles in one array.
  'compute-wide': {
    begin: (): number[] => [],
    stages: pushing,
    values: (): number[] => numbers(VALUES, 0, 20),
  },
  'compute-inline': {
    begin: (): number[] => new Array<number>(VALUES),
    stages: (values: readonly number[]): Stage[] =>
      values.map((value, index) => (results) => {
        results[index] = factorial(value)
        return results
      }),
    values: (): number[] => numbers(VALUES),
  },
} as const
/** The compute program, by how results are kept. */
export type Compute = keyof typeof KEEPS
/** All of them. */
export const COMPUTES = Object.keys(KEEPS) as readonly Compute[]

/** Compute, by contender. */
export async function computePrograms(name: Compute): Promise<Programs> {
  const { Effect } = await import('effect')
  const { io } = await import('fp-ts')
  const { begin, stages } = KEEPS[name]
  const values = KEEPS[name].values()
  // Each contender has stages of its own.
  const [first, ...others] = stages(values) as [Stage, ...Stage[]]
  let arrow: Arrow<number[], number[], never, 'sync'> = lift(first)
  for (const stage of others) arrow = arrow.andThen(lift(stage))
  let effect: unknown = Effect.sync(begin)
  for (const stage of stages(values)) effect = Effect.map(effect, stage)
  let later = begin
  for (const stage of stages(values)) later = io.Functor.map(later, stage)
  const promised = stages(values)
  const whole = arrow.map(total)
  const summed = Effect.map(effect, total)
  return {
    plain: () => total(values.map(factorial)),
    corespun: () => whole.run(begin()),
    'effect 4': () => Effect.runSync(summed) as number,
    'fp-ts': () => total(later()),
    promises: () => {
      let chain = Promise.resolve(begin())
      for (const stage of promised) chain = chain.then(stage)
      return chain.then(total)
    },
  }
}

/** Files, by contender, and how to remove the files. */
export async function filePrograms(): Promise<{ readonly programs: Programs; readonly remove: () => void }> {
  const { Effect } = await import('effect')
  const folder = mkdtempSync(join(tmpdir(), 'corespun-bench-arrow-'))
  const paths = numbers(FILES).map((value, index) => {
    const path = join(folder, `${index}.txt`)
    writeFileSync(path, `${value}\n`)
    return path
  })
  const read = (path: string): number => Number(readFileSync(path, 'utf8'))
  const one = lifted(read, (thrown) => thrown as Error).map(factorial)
  let all: Arrow<readonly string[], number, Error, 'sync'> = lift(
    (files: readonly string[]) => files[0],
  ).andThen(one)
  for (let index = 1; index < FILES; index += 1) {
    const next = lift((files: readonly string[]) => files[index]).andThen(one)
    all = all.zipWith(next, (sum, value) => sum + value)
  }
  const effects = paths.map((path) =>
    Effect.map(Effect.try({ try: () => read(path), catch: (thrown) => thrown }), factorial),
  )
  const summed = Effect.map(Effect.all(effects), total)
  return {
    programs: {
      plain: () => {
        let sum = 0
        for (const path of paths) sum += factorial(read(path))
        return sum
      },
      corespun: () => all.run(paths),
      'effect 4': () => Effect.runSync(summed) as number,
    },
    remove: () => rmSync(folder, { recursive: true }),
  }
}
