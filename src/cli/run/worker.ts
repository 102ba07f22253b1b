/**
 * The worker side of `corespun run`: the user's function, called with one item at a time, for single items
 * or for each of a group.
 *
 * Module, export, style, cutoff and clocks are environment data of the thread, so replacement workers have
 * them too and a task carries only its item. NDJSON is parsed and results become JSON here, on all cores;
 * only lines return.
 */
import { getEnvironmentData, isMainThread } from 'node:worker_threads'
import { ChunkBudget, hasMember, loadReason, promiseOf, reasonOf } from '../../base/index.ts'
import { currentTask } from '../../zone/index.ts'
import type { Durable } from '../../durable/index.ts'
import { Clocks } from './clocks.ts'
import { CliError, type CliCodes } from '../errors.ts'
import { Cutoff } from './cutoff.ts'
import { type Job, JOB_KEY } from './job.ts'
import { Journal } from './journal.ts'
import { failureLine, isFailure, resultLine } from './records.ts'

/** A {@link CliError} on its way to the main thread. */
export type Problem = {
  [Code in keyof CliCodes]: { readonly code: Code; readonly facts: CliCodes[Code] }
}[keyof CliCodes]

type Exports = Readonly<Record<string, unknown>>

/** An item, and its text. */
type Mapped = (item: unknown, text: string) => unknown

/** A marked or bare line; `undefined` when the cutoff was closed before the item. */
type Line = string | undefined

/** How a group has ended; its lines are in its journal. */
export type GroupEnd = readonly [
  ms: number,
  /** Whether the cutoff was closed before its next item. */
  isCut: boolean,
  /** The last line, if the journal had no capacity for it. */
  last: string | undefined,
]

interface Ready {
  readonly job: Job
  readonly cutoff: Cutoff
  readonly clocks: Clocks | undefined
  readonly call: Mapped
  /** Those that this worker has used, by number. */
  readonly journals: (Journal | undefined)[]
}

let ready: Ready | undefined
let end: (() => Promise<void>) | undefined

/** Before this worker ends. */
export async function teardown(): Promise<void> {
  await end?.()
}

/**
 * Load the function before the first item.
 * @returns `CLI_MODULE_FAILED`, `CLI_EXPORT_MISSING` or `CLI_EXPORT_NOT_FUNCTION` as data, or `undefined`.
 */
export async function prepare(): Promise<Problem | undefined> {
  try {
    await load()
    return undefined
  } catch (thrown) {
    if (thrown instanceof CliError) return { code: thrown.code, facts: thrown.facts } as Problem
    throw thrown
  }
}

/**
 * Call the function with one item. A task that is aborted ends as soon as its function waits: the function is
 * no longer awaited, and the other items of this worker continue.
 * @param clock The number of the clock that times this call, with `--timeout`.
 * @returns The result's or the failure's line; `undefined` when the cutoff was closed first.
 */
export function mapItem(text: string, item: number, clock = 0): Line | Promise<Line> {
  if (ready === undefined) return load().then((loaded) => mapWith(loaded, text, item, clock))
  return mapWith(ready, text, item, clock)
}

/**
 * Call the function with items of a group, one after the other, until the time of a group is over: the others
 * run again in another one. Lines go to the journal, so that they survive this thread.
 * @param first The number of the first item. @param journal Which journal is the group's.
 */
export function mapGroup(
  texts: readonly string[],
  first: number,
  journal: number,
): GroupEnd | Promise<GroupEnd> {
  if (ready === undefined) return load().then((loaded) => new Group(loaded, texts, first, journal).run())
  return new Group(ready, texts, first, journal).run()
}

class Group {
  readonly #here: Ready
  readonly #texts: readonly string[]
  readonly #first: number
  readonly #journal: Journal
  readonly #budget: ChunkBudget
  #count = 0
  #isCut = false
  #last: string | undefined

  constructor(here: Ready, texts: readonly string[], first: number, journal: number) {
    this.#here = here
    this.#texts = texts
    this.#first = first
    this.#journal = here.journals[journal] ??= new Journal(here.job.journals as SharedArrayBuffer, journal)
    this.#budget = new ChunkBudget(texts.length)
  }

  run(): GroupEnd | Promise<GroupEnd> {
    while (this.#journal.begin()) {
      const line = this.#next()
      if (line instanceof Promise) return this.#waiting(line)
      if (this.#isOver(line) || this.#budget.isSpent(this.#count)) break
    }
    return this.#end
  }

  /** From the first item on that returned a promise. */
  async #waiting(begun: Promise<Line>): Promise<GroupEnd> {
    let line = await begun
    while (!this.#isOver(line) && !this.#budget.isLate() && this.#journal.begin()) line = await this.#next()
    return this.#end
  }

  #next(): Line | Promise<Line> {
    return mapWith(this.#here, this.#texts[this.#count], this.#first + this.#count, 0)
  }

  /** Store a line; whether it is the last one. */
  #isOver(line: Line): boolean {
    this.#isCut = line === undefined
    if (line === undefined) return true
    this.#count++
    if (!this.#journal.end(line)) this.#last = line
    if (this.#last !== undefined || this.#count === this.#texts.length) return true
    return this.#here.job.failFast && isFailure(line)
  }

  get #end(): GroupEnd {
    return [this.#budget.ms, this.#isCut, this.#last]
  }
}

function mapWith(here: Ready, text: string, item: number, clock: number): Line | Promise<Line> {
  if (!here.cutoff.mayStart(item)) return undefined
  const started = here.clocks?.start(clock) ?? 0
  let waits = false
  try {
    const value = here.call(here.job.json ? parsed(text) : text, text)
    const promise = promiseOf(value)
    if (promise === undefined) return resultLine(value, item, here.job.style)
    waits = true
    // Only a timeout aborts calls.
    const awaited = here.clocks === undefined ? promise : Promise.race([promise, aborted()])
    return settledLine(here, awaited, text, item, () => here.clocks?.stop(clock, started))
  } catch (thrown) {
    return failureLine(thrown, item, text, here.job.style)
  } finally {
    if (!waits) here.clocks?.stop(clock, started)
  }
}

/** Rejects when this task is aborted; nobody receives the line made from that. */
function aborted(): Promise<never> {
  return new Promise((_, reject) => {
    const signal = currentTask()?.signal
    if (signal === undefined) return
    const stop = (): void => reject(signal.reason as Error)
    if (signal.aborted) stop()
    else signal.addEventListener('abort', stop, { once: true })
  })
}

async function settledLine(
  here: Ready,
  value: unknown,
  text: string,
  item: number,
  done: () => void,
): Promise<Line> {
  try {
    return resultLine(await value, item, here.job.style)
  } catch (thrown) {
    return failureLine(thrown, item, text, here.job.style)
  } finally {
    done()
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (thrown) {
    throw new CliError('CLI_LINE_NOT_JSON', { reason: reasonOf(thrown) }, { cause: thrown })
  }
}

async function load(): Promise<Ready> {
  const job = getEnvironmentData(JOB_KEY) as unknown as Job
  // Standard output belongs to the results: what the function prints goes to standard error instead.
  if (!isMainThread) Object.defineProperty(process, 'stdout', { value: process.stderr, configurable: true })
  const call = await findFunction(job)
  const clocks = job.clocks === undefined ? undefined : new Clocks(job.clocks)
  ready = { job, cutoff: new Cutoff(job.cutoff), clocks, call, journals: [] }
  return ready
}

async function findFunction(job: Job): Promise<Mapped> {
  let exports: Exports
  try {
    exports = (await import(job.url)) as Exports
  } catch (thrown) {
    throw new CliError('CLI_MODULE_FAILED', { module: job.module, reason: loadReason(thrown, job.url) })
  }
  if (job.exportName.includes('.') || Object.values(exports).some((value) => typeof value === 'object'))
    ({ isRunnable } = await import('../../fiber/internal.ts'))
  const name = job.exportNamed ? job.exportName : impliedName(exports)
  const { owner, value } = lookUp(exports, name)
  if (typeof value === 'function') return (item) => Reflect.apply(value, owner, [item]) as unknown
  if (isArrow(value)) {
    const { disableHops } = await import('../../arrow/internal.ts')
    // This worker runs the whole arrow: a hop from here would leave it idle.
    disableHops()
    return (item) => value.run(item)
  }
  const module = job.module
  if (isDurable(value) && job.kept !== undefined) {
    const { durableCall } = await import('./durable-items.ts')
    const { run, close } = await durableCall(value, job.kept, job)
    end = close
    return run
  }
  if (value === undefined) {
    throw new CliError('CLI_EXPORT_MISSING', { module, name, exported: functionsOf(exports) })
  }
  const exported = job.exportNamed ? [] : functionsOf(exports)
  throw new CliError('CLI_EXPORT_NOT_FUNCTION', { module, name, received: described(value), exported })
}

/** That of fibers, once a module exports what may be an arrow; loading fibers takes milliseconds. */
let isRunnable = (_: unknown): boolean => false

/** An arrow, of this copy of the package or another. */
function isArrow(value: unknown): value is { run(item: unknown): unknown } {
  return isRunnable(value) && typeof (value as { run?: unknown }).run === 'function'
}

function isCallable(value: unknown): boolean {
  return typeof value === 'function' || isArrow(value) || isDurable(value)
}

/** What `durable()` makes is data: a name and a body. */
function isDurable(value: unknown): value is Durable {
  if (typeof value !== 'object' || value === null || !Object.isFrozen(value)) return false
  const { name, body } = value as Partial<Durable>
  return typeof name === 'string' && typeof body === 'function'
}

/** Without a written name: the default export, or the only function; of a CommonJS module, too. */
function impliedName(exports: Exports): string {
  const whole = exports['default'] as Readonly<Record<string, unknown>> | null | undefined
  if (isCallable(whole)) return 'default'
  // A compiler has made it of an ES module.
  if (isCallable(whole?.['default'])) return 'default.default'
  const [name, ...others] = exportedFunctions(exports)
  const isOnly = name !== undefined && others.length === 0
  // The default of a CommonJS module is its `exports`; that of an ES module is an object of its own.
  return isOnly && (whole === undefined || whole?.[name] === exports[name]) ? name : 'default'
}

/** The export, which may lie inside another (`a.b`) or, in a CommonJS module, only on `module.exports`. */
function lookUp(exports: Exports, name: string): { owner: unknown; value: unknown } {
  const parts = name.split('.')
  let owner: unknown
  let value: unknown = Object.hasOwn(exports, parts[0]) ? exports : exports['default']
  for (const part of name === 'default' ? ['default'] : parts) {
    owner = name === 'default' ? exports : value
    const has = owner !== null && owner !== undefined && hasMember(Object(owner) as object, part)
    if (!has) return { owner, value: undefined }
    value = (owner as Readonly<Record<string, unknown>>)[part]
  }
  return { owner: owner === exports ? undefined : owner, value }
}

function functionsOf(exports: Exports): string[] {
  const names = exportedFunctions(exports)
  const whole: unknown = exports['default']
  if (names.length > 0 || typeof whole !== 'object' || whole === null) return names
  return Object.keys(whole).filter((name) => typeof (whole as Record<string, unknown>)[name] === 'function')
}

function exportedFunctions(exports: Exports): string[] {
  // Node adds a CommonJS module itself under that name.
  return Object.keys(exports).filter((name) => name !== 'module.exports' && isCallable(exports[name]))
}

function described(value: unknown): string {
  if (isDurable(value)) return 'a durable run, which needs --journal, such as --journal work.db'
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}
