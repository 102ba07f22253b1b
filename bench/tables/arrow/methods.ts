/**
 * The 14 methods of the seed: composed and run once, and prebuilt and run.
 *
 * Each method has loops of its own, made from text, so that no call site is shared with another method. 64
 * arrows of 64 functions take turns on 64 inputs, and every result is added up. The functions are closures of
 * one text, so the engine inlines them and the arrows are what is measured: with 64 texts it is the engine's
 * indirect call, and two functions called one behind the other do no more than 21 million/s without any arrow
 * (docs/design/arrow.md). Prebuilt arrows have been run until they are compiled before anything is timed, by
 * another loop than the timed one.
 */
import * as arrow from 'corespun/arrow'
import { BenchError } from '../../harness/errors.ts'

/** A method by the seed's label: what it really calls, and how. */
export interface Method {
  /** The seed's label. */
  readonly label: string
  /** The operation that is meant and called. */
  readonly operation: string
  /** Makes arrow `i`, `j` being another number. */
  readonly make: string
  readonly inputs: 'numbers' | 'pairs' | 'eithers'
  /** Makes a number of the result `v`. */
  readonly use: string
  /** zio-arrow composing without running, million/s (docs of the anchors). */
  readonly rival: number
}

/** The columns are those of {@link Method}. */
const ROWS: readonly (readonly [string, string, string, Method['inputs'], string, number])[] = [
  ['asEffect', 'first >>> getSecond', 'F[i].asEffect()', 'pairs', 'v', 14],
  ['choice', '|||', 'F[i].choice(G[j])', 'eithers', 'v', 53],
  ['compose', '<<<', 'F[i].compose(G[j])', 'numbers', 'v', 53],
  ['endThen', '>>>', 'F[i].andThen(G[j])', 'numbers', 'v', 52],
  ['first', 'first', 'F[i].first()', 'pairs', 'v[0]', 21],
  ['id', 'id', 'id()', 'numbers', 'v', 68],
  ['left', 'getFirst', 'getFirst()', 'pairs', 'v', 66],
  ['lift', 'lift, constructed only', 'lift(f[i])', 'numbers', 'v', 156],
  ['merge', '***', 'F[i].split(G[j])', 'pairs', 'v[0] + v[1]', 19],
  ['right', 'getSecond', 'getSecond()', 'pairs', 'v', 66],
  ['second', 'second', 'F[i].second()', 'pairs', 'v[1]', 22],
  ['split', '&&&', 'F[i].merge(G[j])', 'numbers', 'v[0] + v[1]', 52],
  ['test', 'test', 'test(T[i])', 'numbers', 'v.value', 19],
  ['zipWith', 'zipWith', 'F[i].zipWith(G[j], c[i])', 'numbers', 'v', 51],
]

/** In the order of the seed. */
export const METHODS: readonly Method[] = ROWS.map(([label, operation, make, inputs, use, rival]) => ({
  label,
  operation,
  make,
  inputs,
  use,
  rival,
}))

const COUNT = 64
const list = <T>(make: (index: number) => T): T[] => Array.from({ length: COUNT }, (_, index) => make(index))

// 64 functions each, every one an object of its own, all of one text.
const f = list(() => (x: number) => x + 1)
const g = list(() => (x: number) => x * 2 - 3)
const t = list(() => (x: number) => x > 31)
const c = list(() => (a: number, b: number) => a + b)
const numbers = list((index) => (index * 3) % COUNT)

/** What the text of a method refers to, by name. */
export const surroundings = {
  ...{
    id: arrow.id,
    lift: arrow.lift,
    getFirst: arrow.getFirst,
    getSecond: arrow.getSecond,
    test: arrow.test,
  },
  ...{
    f,
    c,
    F: f.map((fn) => arrow.lift(fn)),
    G: g.map((fn) => arrow.lift(fn)),
    T: t.map((fn) => arrow.lift(fn)),
  },
  numbers,
  pairs: numbers.map((x, index) => [x, index] as const),
  eithers: numbers.map((x, index) => (index % 3 === 0 ? arrow.Either.right(x) : arrow.Either.left(x))),
}

/** The loops of a method; each does `times` operations and returns what their results add up to. */
export interface Loops {
  readonly composed: (times: number) => number
  readonly prebuilt: (times: number) => number
}

/** Runs before the timed ones: enough for every tier. */
const WARM_RUNS = COUNT * 1000

/**
 * The loops of a method, its prebuilt arrows warm.
 * @throws {BenchError} `WRONG_ANSWER` when prebuilt arrows do something else than new ones.
 */
export function loopsOf(method: Method): Loops {
  const { label, make, use, inputs } = method
  const names = Object.keys(surroundings)
  const made = (body: string): ((...words: unknown[]) => never) => {
    const fn = new Function(...names, 'times', 'arrows', `'use strict'\n${body}\n// ${label} ${body.length}`)
    return fn.bind(undefined, ...Object.values(surroundings)) as never
  }
  const each = (value: string): string =>
    `let sum = 0\nfor (let k = 0; k < times; k++) {
      const i = k & 63, j = (i + 7) & 63\nconst v = ${value}\nsum = (sum + (${use})) | 0\n}\nreturn sum`
  const arrows: unknown = made(`return f.map((_, i) => { const j = (i + 7) & 63; return ${make} })`)()
  const run = each(`arrows[i].run(${inputs}[i])`)
  const warm = made(`${run} // warm`)
  const timed = made(run)
  const construct = `let sum = 0\nfor (let k = 0; k < times; k++) {
    const i = k & 63; sum = (sum + (${make}).size) | 0
  }
  return sum`
  const composed = made(label === 'lift' ? construct : each(`(${make}).run(${inputs}[i])`))
  const expected: number = warm(WARM_RUNS, arrows)
  const received: number = label === 'lift' ? expected : composed(WARM_RUNS)
  if (received !== expected || timed(WARM_RUNS, arrows) !== expected)
    throw new BenchError('WRONG_ANSWER', {
      contender: 'corespun',
      work: label,
      got: String(received),
      expected: String(expected),
    })
  return { composed: (times) => composed(times), prebuilt: (times) => timed(times, arrows) }
}

/** Operations per second, in millions, of one slice. */
export function rate(loop: (times: number) => number, sliceMs: number): number {
  let times = 100_000
  for (;;) {
    const startMs = performance.now()
    loop(times)
    const ms = performance.now() - startMs
    if (ms >= sliceMs) return times / ms / 1000
    times = Math.ceil(times * Math.min(10, (1.2 * sliceMs) / Math.max(ms, 0.1)))
  }
}

/** Bytes allocated per operation; slices in which the collector ran are not counted. */
export function bytesPerOperation(loop: (times: number) => number): number {
  const times = 5_000
  const samples: number[] = []
  for (let turn = 0; turn < 40 && samples.length < 9; turn += 1) {
    const before = process.memoryUsage().heapUsed
    loop(times)
    const grown = process.memoryUsage().heapUsed - before
    if (grown >= 0) samples.push(grown / times)
  }
  return Math.max(0, samples.sort((one, other) => one - other)[Math.floor(samples.length / 2)] ?? 0)
}
