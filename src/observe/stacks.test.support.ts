/**
 * What the tests of stacks and profiles run in workers.
 * The tests find the line of the loop by its text.
 */
import { spawnSync } from 'node:child_process'
import { fork, sleep } from '../fiber/index.ts'
import { type Zone, zone } from '../zone/index.ts'
import { here } from '../zone/internal.ts'

/** Runs until its word, shared with the test, is not 0. */
export function loop(words: SharedArrayBuffer): number {
  const flag = new Int32Array(words)
  let turns = 0
  Atomics.store(flag, 1, 1)
  while (Atomics.load(flag, 0) === 0) turns += 'turns of the loop'.length
  return turns
}

/** The same in other words, for a second kind of task. */
export function spin(words: SharedArrayBuffer): number {
  return loop(words)
}

/** Blocks its thread in JavaScript's own wait. */
export function waits(words: SharedArrayBuffer): void {
  const flag = new Int32Array(words)
  Atomics.store(flag, 1, 1)
  Atomics.wait(flag, 0, 0)
}

/** Blocks its thread in native code: from when the file exists, which a child makes, until it is removed. */
export function blocks(path: string): void {
  const script = `const fs = require('node:fs'), path = process.argv[1]
    fs.writeFileSync(path, '')
    setInterval(() => fs.existsSync(path) || process.exit(), 5)`
  spawnSync(process.execPath, ['-e', script, path], { timeout: 120_000 })
}

/** Waits in a fiber that has a name. */
export async function fibers(words: SharedArrayBuffer): Promise<void> {
  const fiber = fork(sleep(600_000), { name: 'sleeper' })
  const flag = new Int32Array(words)
  Atomics.store(flag, 1, 1)
  while (Atomics.load(flag, 0) === 0) await new Promise((resolve) => setTimeout(resolve, 5))
  await fiber.interrupt()
}

/** Calls the loop in another zone. */
export async function calls(other: string, words: SharedArrayBuffer): Promise<number> {
  const found = zone.get(other) as Zone
  return await found.module<typeof import('./stacks.test.support.ts')>(import.meta.url).loop(words)
}

/** Computes for so long, and after a wait for as long again. */
export async function computes(ms: number): Promise<number> {
  const first = burn(ms)
  await new Promise((resolve) => setTimeout(resolve, 1))
  return first + burn(ms)
}

/** Computes for so many ms, or some. */
export function burnsFor(ms: number): number {
  return burn(Math.min(ms, 20))
}

function burn(ms: number): number {
  const endMs = performance.now() + ms
  let sum = 0
  while (performance.now() < endMs) for (let index = 0; index < 10_000; index++) sum += Math.sqrt(index)
  return sum
}

/** Never returns. */
export function endless(): never {
  for (;;) burn(1)
}

/** Whether this thread notes its labels. */
export function isLabelled(): boolean {
  return here.labels !== undefined
}
