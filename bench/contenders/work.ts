/**
 * The functions that every contender runs: one module, loaded by all of them, one input each.
 *
 * Pure functions of their input, so that an answer can be checked; nothing here depends on the pool that
 * called it.
 */
import { threadId } from 'node:worker_threads'

/** What `crcMany` is given. */
export interface CrcInput {
  readonly text: string
  readonly count: number
}

/** What `stage` is given. */
export interface StageInput {
  /** Turns of a loop that takes some nanoseconds each. */
  readonly turns: number
  readonly payload: unknown
}

/** Each function by the name it has in a pool. */
export interface Work {
  nothing: () => void
  echo: (input: unknown) => unknown
  crcMany: (input: CrcInput) => number
  timedCrcMany: (input: CrcInput) => { readonly ms: number; readonly folded: number }
  mixed: (input: { readonly rounds: number }) => number
  stage: (input: StageInput) => { readonly answer: number; readonly payload: unknown }
  thread: () => string
}

const CRC_TABLE = Int32Array.from({ length: 256 }, (_, byte) => {
  let value = byte
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1
  return value
})

/** Does nothing: what is left of a call is the pool. */
export function nothing(): void {}

/** Returns its input. */
export function echo(input: unknown): unknown {
  return input
}

/** CRC-32 of the low bytes of a text's char codes, as an unsigned number. */
export function crc32(text: string): number {
  let crc = -1
  for (let index = 0; index < text.length; index += 1) {
    crc = (crc >>> 8) ^ CRC_TABLE[(crc ^ text.charCodeAt(index)) & 0xff]
  }
  return (crc ^ -1) >>> 0
}

/** The CRC-32 of `text` computed `count` times, each folded into one number so that none can be left out. */
export function crcMany({ text, count }: CrcInput): number {
  let folded = 0
  for (let turn = 0; turn < count; turn += 1) folded = foldCrc(folded, crc32(text))
  return folded
}

/** {@link crcMany} with the time it took here. */
export function timedCrcMany(input: CrcInput): { readonly ms: number; readonly folded: number } {
  const start = performance.now()
  const folded = crcMany(input)
  return { ms: performance.now() - start, folded }
}

/** One step of the fold of {@link crcMany}. */
export function foldCrc(folded: number, crc: number): number {
  return (Math.imul(folded, 31) + crc) | 0
}

/** A loop over what programs do: integers, doubles, strings, arrays, objects, a Map. Answers a checksum. */
export function mixed({ rounds }: { readonly rounds: number }): number {
  const counts = new Map<string, number>()
  let sum = 0
  for (let turn = 0; turn < rounds; turn += 1) {
    const key = `key${turn % 97}`
    counts.set(key, (counts.get(key) ?? 0) + 1)
    const points = [turn, turn + 1, turn + 2].map((x) => ({ x, y: Math.sqrt(x) }))
    for (const point of points) sum += point.x * 3 + Math.floor(point.y)
    sum = (sum + key.charCodeAt(key.length - 1)) % 1_000_003
  }
  return sum + counts.size
}

/** A stage of a pipeline: takes a payload, works for `turns`, returns the payload. */
export function stage({ turns, payload }: StageInput): {
  readonly answer: number
  readonly payload: unknown
} {
  return { answer: churn(turns), payload }
}

/** `turns` steps of a linear congruence, each waiting for the one before. */
export function churn(turns: number): number {
  let state = 1
  for (let turn = 0; turn < turns; turn += 1) state = (Math.imul(state, 1664525) + 1013904223) | 0
  return state
}

/** Which thread of which process runs this. */
export function thread(): string {
  return `${process.pid}/${threadId}`
}

/** All of the above that pools call, by name. */
export const WORK: Work = { nothing, echo, crcMany, timedCrcMany, mixed, stage, thread }
