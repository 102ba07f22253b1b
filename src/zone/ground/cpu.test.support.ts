/**
 * What the tests of CPU time run in workers: random steps, some of which use CPU time.
 *
 * Not a test itself. The clock of each thread that uses it is a variable that `burn` advances, so what an
 * account must have is known to the nanosecond, however busy the machine is.
 */
import { readFile } from 'node:fs'
import { type AnyZone, type ModuleCalls, currentTask, join, measureCpu, zone } from '../index.ts'
import { thisCarrier } from '../context/carrier.ts'

/** What code does, one after the other. */
export type Step =
  | { readonly burnNs: number }
  | { readonly pause: keyof typeof PAUSES }
  | { readonly call: Work }
  | { readonly measured: readonly Step[] }
  | { readonly both: readonly [readonly Step[], readonly Step[]] }

/** A task. */
export interface Work {
  readonly zone: string
  readonly how: 'execute' | 'map' | 'stream'
  readonly steps: readonly Step[]
  readonly fails: boolean
}

export const MODULE = import.meta.url

let nowNs = 0

/** From now on the clock of this thread is that of `burn`. */
export function useFakeClock(): void {
  thisCarrier().metered().clock = () => nowNs
}

export function burn(ns: number): void {
  nowNs += ns
}

/** What the steps must cost. */
export function costOf(steps: readonly Step[]): number {
  const costs = steps.map((step) => {
    if ('burnNs' in step) return step.burnNs
    if ('call' in step) return costOf(step.call.steps)
    if ('measured' in step) return costOf(step.measured)
    return 'both' in step ? costOf(step.both[0]) + costOf(step.both[1]) : 0
  })
  return costs.reduce((sum, cost) => sum + cost, 0)
}

const PAUSES = {
  microtask: () => Promise.resolve(),
  thenable: () => ({ then: (go: () => void) => queueMicrotask(go) }) as PromiseLike<void>,
  tick: () => new Promise<void>((resolve) => process.nextTick(resolve)),
  immediate: () => new Promise<void>((resolve) => setImmediate(resolve)),
  timer: () => new Promise<void>((resolve) => setTimeout(resolve, 1)),
  file: () => new Promise<void>((resolve) => readFile(new URL(MODULE), () => resolve())),
} satisfies Record<string, () => PromiseLike<void>>

export const PAUSE_NAMES = Object.keys(PAUSES) as (keyof typeof PAUSES)[]

/** The functions of this module in a zone. */
export function functionsOn(on: AnyZone): ModuleCalls<typeof import('./cpu.test.support.ts')> {
  return on.module(MODULE)
}

/** Throws unless a time is that of the steps. */
export function checkCost(what: string, cpuMs: number | undefined, steps: readonly Step[]): void {
  const [ns, expected] = [Math.round((cpuMs ?? Number.NaN) * 1e6), costOf(steps)]
  if (ns !== expected) throw new Error(`${what}: ${ns} ns instead of ${expected}`)
}

export async function walk(steps: readonly Step[]): Promise<void> {
  for (const step of steps) {
    if ('burnNs' in step) burn(step.burnNs)
    else if ('pause' in step) await PAUSES[step.pause]()
    else if ('call' in step) await call(step.call)
    else if ('both' in step) await Promise.all(step.both.map(walk))
    else
      await measureCpu(async (used) => {
        await walk(step.measured)
        checkCost('a part', used.cpuMs, step.measured)
      })
  }
}

const ON_PURPOSE = 'on purpose'

/** A task: its steps, and what it has used by then. */
export async function perform({ steps, fails }: Work): Promise<string> {
  await walk(steps)
  checkCost('a task', currentTask()?.cpuMs, steps)
  if (fails) throw new Error(ON_PURPOSE)
  return ON_PURPOSE
}

async function viaImport(work: Work): Promise<string> {
  return (await import('./cpu.test.support.ts')).perform(work)
}

async function* viaStream(works: AsyncIterable<Work>): AsyncGenerator<string> {
  const { perform } = await import('./cpu.test.support.ts')
  for await (const work of works) yield await perform(work)
}

/** Makes the call, which must end as the work states. */
async function call(work: Work): Promise<void> {
  const to = zone.get(work.zone)
  const made = async (): Promise<string> => {
    if (work.how === 'execute') return functionsOn(to).perform(work)
    if (work.how === 'map') return (await to.map([work], viaImport, { chunkMax: 1 }))[0]
    for await (const done of to.stream(viaStream, [work])) return done
    return 'an empty stream'
  }
  const ended = await made().catch((error: Error) => `failed: ${error.message}`)
  if (ended !== (work.fails ? `failed: ${ON_PURPOSE}` : ON_PURPOSE)) throw new Error(ended)
}

/** A tree of joins each of whose leaves uses 1 ns; stolen ones cost what those that run here do. */
export function joined(depth: number): number {
  if (depth === 0) burn(1)
  if (depth === 0) return 1
  const [one, other] = join([joined, depth - 1], [joined, depth - 1])
  return one + other
}

/** As {@link joined}, and what the task has used. */
export function joinedNs(depth: number): [leaves: number, ns: number] {
  return [joined(depth), Math.round((currentTask()?.cpuMs ?? Number.NaN) * 1e6)]
}

/** Uses 5 ns once its signal is aborted. */
export async function burnWhenAborted(begun: Int32Array): Promise<void> {
  const signal = currentTask()?.signal as AbortSignal
  burn(2)
  const aborted = new Promise((resolve) => signal.addEventListener('abort', resolve))
  Atomics.store(begun, 0, 1)
  await aborted
  burn(5)
}

export function burnAndDie(ns: number): void {
  burn(ns)
  process.exit(1)
}

/** A result, or an error, of that many characters. */
export function sized(length: number, fails: boolean): string {
  burn(3)
  if (fails) throw new Error('x'.repeat(length))
  return 'x'.repeat(length)
}

/** A stream of numbers, each of which costs 1 ns. */
export async function* counted(count: number): AsyncGenerator<number> {
  for (let item = 0; item < count; item++) {
    burn(1)
    yield item
  }
}

/** Steps whose task is not measured, beside one that is. */
export async function uncounted(): Promise<number | undefined> {
  burn(1000)
  await PAUSES.immediate()
  burn(1000)
  return currentTask()?.cpuMs
}
