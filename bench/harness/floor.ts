/**
 * The floor in C: compiled on the spot, run for one slice at a time.
 *
 * Without a C compiler the table goes on without a floor and says so.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import type { Condition } from './conditions.ts'
import { BENCH_FOLDER, DIST_FOLDER } from './place.ts'

/** One slice of the ping-pong. */
export interface FloorSlice {
  readonly p50Us: number
  readonly p99Us: number
  readonly cpuUs: number
  readonly calls: number
}

/** Name of the floor among the contenders. */
export const FLOOR = 'ping-pong in C'

/** Compile the ping-pong; `undefined` when there is no compiler, and `skip` is told why. */
export function buildFloor(skip: (what: string, why: string) => void): string | undefined {
  const binary = `${DIST_FOLDER}/floor/pingpong`
  mkdirSync(`${DIST_FOLDER}/floor`, { recursive: true })
  const words = ['-O2', '-Wall', '-Wextra', '-pthread', '-o', binary, `${BENCH_FOLDER}/floor/pingpong.c`]
  const built = spawnSync(process.env.CC ?? 'cc', words, { encoding: 'utf8' })
  if (built.status === 0) return binary
  skip(FLOOR, built.error === undefined ? `cc failed: ${built.stderr.split('\n')[0]}` : 'no C compiler (cc)')
  return undefined
}

/** Run one slice under `condition`. */
export function floorSlice(binary: string, condition: Condition, sliceMs: number): FloorSlice {
  const [command, ...words] = [...condition.prefix, binary, String(sliceMs)]
  return JSON.parse(execFileSync(command!, words, { encoding: 'utf8' })) as FloorSlice
}
