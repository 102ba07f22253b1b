/**
 * knitting: its tasks, which its workers import from here, and its pool.
 *
 * It is not in npm's registry. CORESPUN_BENCH_KNITTING names the folder of a checkout of
 * github.com/mimiMonads/knitting, whose TypeScript needs Node 22.18 or newer.
 */
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Pool } from './pools.ts'
import { type Work, WORK } from './work.ts'

type Call = (input?: unknown) => Promise<unknown>
interface Knitting {
  createPool(settings: { threads: number }): (tasks: object) => {
    readonly call: { readonly nothing: Call; readonly work: Call }
    shutdown(): Promise<void>
  }
  task(definition: { f: (input: never) => unknown }): object
}

const folder = process.env['CORESPUN_BENCH_KNITTING']
if (folder === undefined)
  throw new Error('not in the npm registry: CORESPUN_BENCH_KNITTING names the folder of a checkout')
const { createPool, task } = (await import(pathToFileURL(join(folder, 'knitting.ts')).href)) as Knitting

export const nothing = task({ f: () => {} })
export const work = task({
  f: ([name, input]: [name: keyof Work, input: unknown]) => WORK[name](input as never),
})

/** A pool of so many threads. */
export function open(threads: number): Pool {
  const { call, shutdown } = createPool({ threads })({ nothing, work })
  return {
    nothing: () => call.nothing(),
    call: (name, input) => call.work([name, input]),
    close: () => shutdown(),
  }
}
