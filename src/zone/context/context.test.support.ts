/**
 * What the tests of contexts run in workers: a walk over a tree of calls, which notes what each call finds.
 *
 * Not a test itself. The module registers a storage in every thread that imports it.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { type AnyZone, type ModuleCalls, carry, currentTask, currentTrace, join, zone } from '../index.ts'

export const user = carry('user', new AsyncLocalStorage<string>())
/** Only callers register this one by its other name: see {@link registerTenant}. */
export const tenant = new AsyncLocalStorage<string>()

export function registerTenant(): void {
  carry('tenant', tenant)
}

/** A call and those that it makes, all at once. */
export interface Tree {
  readonly zone: string
  readonly how: 'execute' | 'map' | 'stream' | 'bare'
  /** What the call sets before it calls. */
  readonly user?: string
  readonly timeoutMs?: number
  readonly calls: readonly Tree[]
}

/** What a call has found, and what those that it has made have. */
export interface Seen {
  readonly user: string | undefined
  readonly tenant: string | undefined
  readonly traceparent: string | undefined
  readonly remainingMs: number | undefined
  readonly calls: readonly Seen[]
}

export const MODULE = import.meta.url

/** The functions of this module in a zone. */
export function functionsOn(on: AnyZone): ModuleCalls<typeof import('./context.test.support.ts')> {
  return on.module(MODULE)
}

/** What one call has found. */
export type Looked = Omit<Seen, 'calls'>

export function look(): Looked {
  return {
    user: user.getStore(),
    tenant: tenant.getStore(),
    traceparent: currentTrace()?.traceparent,
    remainingMs: currentTask()?.remainingMs,
  }
}

/** Notes what this call finds, before and after others have had a turn, and makes its calls. */
export async function visit(tree: Tree): Promise<Seen> {
  const before = look()
  await new Promise((resolve) => setImmediate(resolve))
  const found = look()
  if (found.user !== before.user || found.traceparent !== before.traceparent)
    throw new Error('it has changed')
  const calls = (): Promise<Seen[]> => Promise.all(tree.calls.map(call))
  return { ...found, calls: await (tree.user === undefined ? calls() : user.run(tree.user, calls)) }
}

/** Makes the call that a tree describes. */
export async function call(tree: Tree): Promise<Seen> {
  const { timeoutMs } = tree
  const to = zone.get(tree.zone).with({ timeoutMs })
  if (tree.how === 'execute') return await functionsOn(to).visit(tree)
  if (tree.how === 'map') return (await to.map([tree], viaImport, { chunkMax: 1 }))[0]
  if (tree.how === 'bare') return await to.run(passOn, MODULE, tree)
  for await (const seen of to.stream(viaStream, [tree])) return seen
  throw new Error('the stream was empty')
}

async function viaImport(tree: Tree): Promise<Seen> {
  const { MODULE, visit } = await import('./context.test.support.ts')
  return MODULE === undefined ? (undefined as never) : await visit(tree)
}

async function* viaStream(trees: AsyncIterable<Tree>): AsyncGenerator<Seen> {
  const { visit } = await import('./context.test.support.ts')
  for await (const tree of trees) yield await visit(tree)
}

/** Runs where the module may not be loaded: only passes the context on. */
async function passOn(module: string, tree: Tree): Promise<Seen> {
  const { zone } = await import('../index.ts')
  const [first] = tree.calls
  return (await zone.get(first.zone).execute(module, 'visit', [first])).value as Seen
}

/** A sum by joins, each part of which checks the user. */
export function joined(name: string, depth: number): number {
  if (user.getStore() !== name) throw new Error(`${user.getStore()} instead of ${name}`)
  if (depth === 0) return 1
  const [one, other] = join([joined, name, depth - 1], [joined, name, depth - 1])
  return one + other
}

const noted: unknown[] = []
let noting: Promise<void> = Promise.resolve()

/** Returns what tasks of this worker have noted, when the last one has. */
export async function takeNoted(): Promise<unknown[]> {
  await noting
  return noted.splice(0)
}

/** Calls a zone with a task that ends by its signal alone, and notes how that ends. */
export function callEndless(id: string): Promise<void> {
  return (noting = noteEndless(id))
}

async function noteEndless(id: string): Promise<void> {
  const to = zone.get(id)
  for (const endless of [
    () => functionsOn(to).untilAborted(),
    () => to.run(() => 1),
    () => to.map([1], () => 1),
    () => to.broadcast(() => {}),
    () => zone.node.run(() => 1),
  ]) {
    try {
      noted.push(await endless())
    } catch (error) {
      const { code, facts } = error as { code?: string; facts?: object }
      noted.push([code, { ...facts, timeoutMs: 0 }])
    }
  }
}

export async function untilAborted(): Promise<void> {
  const signal = currentTask()?.signal
  await new Promise<void>((resolve) => signal?.addEventListener('abort', () => resolve()))
}

export function die(): void {
  process.exit(1)
}

/** What a call with a stream as its argument finds, when it begins and when it has read that. */
export async function lookAround(
  items: AsyncIterable<number> | Iterable<number>,
): Promise<[...Looked[], number, string]> {
  const before = look()
  let sum = 0
  for await (const item of items) sum += item
  return [before, look(), sum, currentTask()?.worker ?? '']
}

/** What a result that is a stream finds at each of its items, of which one comes after a turn. */
export async function* lookAtEach(): AsyncGenerator<Looked> {
  yield look()
  await new Promise((resolve) => setImmediate(resolve))
  yield look()
}

/** What a task of the main thread finds, and one that it calls. */
export async function lookInMain(id: string): Promise<Looked[]> {
  const { main } = zone
  return [await functionsOn(main).look(), await functionsOn(main).lookIn(id)]
}

export function lookIn(id: string): Promise<Looked> {
  return functionsOn(zone.get(id)).look()
}

let left: Promise<unknown> | undefined

/** Makes a call with a stream and does not wait for it: its code is loaded when this task has ended. */
export function leaveCall(id: string): void {
  left = functionsOn(zone.get(id)).lookAround([1, 2].values())
}

export function takeLeft(): unknown {
  return left
}
