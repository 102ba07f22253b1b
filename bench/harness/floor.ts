/**
 * What is written in C: compiled on the spot; and the ping-pong, run for one slice at a time.
 *
 * Without a C compiler the table runs without it and reports that.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import type { Condition } from './conditions.ts'
import { BENCH_FOLDER, DIST_FOLDER } from './paths.ts'

/** One slice of the ping-pong. */
export interface FloorSlice {
  readonly p50Us: number
  readonly p99Us: number
  readonly cpuUs: number
  readonly calls: number
}

/** Name of the floor among the contenders. */
export const FLOOR = 'ping-pong in C'

/** Receives what is left out, and why. */
type Skip = (what: string, why: string) => void

/**
 * Compile `bench/floor/<source>.c`.
 * @param name What it is called where it is missing.
 * @returns The binary's path; `undefined` when there is no compiler, and `skip` receives the reason.
 */
export function compiled(source: string, name: string, skip: Skip): string | undefined {
  const binary = `${DIST_FOLDER}/floor/${source}`
  mkdirSync(`${DIST_FOLDER}/floor`, { recursive: true })
  const words = ['-O2', '-Wall', '-Wextra', '-pthread', '-o', binary, `${BENCH_FOLDER}/floor/${source}.c`]
  const built = spawnSync(process.env.CC ?? 'cc', words, { encoding: 'utf8' })
  if (built.status === 0) return binary
  skip(name, built.error === undefined ? `cc failed: ${built.stderr.split('\n')[0]}` : 'no C compiler (cc)')
  return undefined
}

/** Compile the ping-pong, as {@link compiled} does. */
export function buildFloor(skip: Skip): string | undefined {
  return compiled('pingpong', FLOOR, skip)
}

/** Run one slice under `condition`. */
export function floorSlice(binary: string, condition: Condition, sliceMs: number): FloorSlice {
  const [command, ...words] = [...condition.prefix, binary, String(sliceMs)]
  return JSON.parse(execFileSync(command, words, { encoding: 'utf8' })) as FloorSlice
}
