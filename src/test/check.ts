/**
 * Plays a program under many seeds, until one fails; that one is played again, shortened, and printed.
 *
 * Seed 0 makes no choice: it counts the steps, which strategies need, and finds what no seed decides.
 * One check at a time has the thread.
 */
import { effects, messageOf, seedRange } from '../base/index.ts'
import { SeededFiles } from './files.ts'
import { seedFibers } from './fibers.ts'
import type { Store } from '../store/index.ts'
import { CheckError, type CheckFacts, wrong } from './errors.ts'
import { callerIn } from './frames.ts'
import { mockGlobals } from './mock.ts'
import { simulated } from '../fleet/internal.ts'
import { served } from '../http/internal.ts'
import type { HttpParts } from './connection.ts'
import { SeededHttp } from './http.ts'
import { SeededNetwork } from './network.ts'
import { type CheckOptions, type Settings, checkOptions } from './options.ts'
import { fileOfCommand, ofPart, reported } from './part.ts'
import { type Deviation, type Ending, Play, type Strategy, current } from './play.ts'
import { type Real, watchReal } from './real.ts'
import { shrink } from './shrink.ts'
import { STRATEGIES, plain, replaying, strategyOf } from './strategies.ts'
import { type World, worldOf } from './world.ts'

/** What a check without a failure has played. */
export interface Checked {
  /** How many seeds were played. */
  readonly seeds: number
  /** How many of their schedules differ; counted up to a million. */
  readonly schedules: number
  /** Steps of all runs. */
  readonly steps: number
}

const STORY_LINES_MAX = 60
/** A set holds some millions, and there may be more seeds. */
const SCHEDULES_MAX = 1_000_000
let last: Promise<unknown> = Promise.resolve()

/**
 * Plays `body` under many seeds. Each decides who goes on at each wait, the time, random numbers, deaths and
 * the network; the same seed makes the same run. Resolves when no run has failed.
 * @param body Makes what a run needs. Tasks that have not ended when it returns are ended.
 * @throws {CheckError} `CHECK_FAILED`, `CHECK_DEADLOCK`, `CHECK_LIVELOCK`, `CHECK_REAL`,
 *   `CHECK_LEAK`, `CHECK_NOT_REPEATED`, each with the seed and its story; `CHECK_NESTED` in a run of another
 *   check; `CHECK_ARGUMENT`, also for variables.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { check } from 'corespun/test'
 *
 * const wrong = check({ seeds: 100 }, async ({ spawn, step }) => {
 *   let balance = 0
 *   const deposit = async () => {
 *     const read = balance
 *     await step()
 *     balance = read + 1
 *   }
 *   const tellers = [spawn(deposit), spawn(deposit)]
 *   for (const teller of tellers) await teller.join()
 *   assert.equal(balance, 2)
 * })
 * await assert.rejects(wrong, { code: 'CHECK_FAILED' })
 * ```
 */
export async function check(options: CheckOptions, body: (world: World) => unknown): Promise<Checked & void> {
  const settings = checkOptions(options)
  const where = callerIn(new Error('here'))
  if (current.getStore()?.play.isOver === false)
    throw new CheckError('CHECK_NESTED', { where: where.filter(Boolean).join(':') })
  const search = new Search(settings, body, commandOf(where))
  const mine = last.then(() => search.run())
  last = mine.catch(() => {})
  // `void`, too: what a callback of node:test may return.
  return reported(where, mine, search.traces) as Promise<Checked & void>
}

interface Run {
  readonly seed: number
  readonly play: Play
  readonly ending: Ending
}

class Search {
  readonly #settings: Settings
  readonly #body: (world: World) => unknown
  readonly #command: string
  readonly traces = new Set<number>()
  #parts!: Awaited<ReturnType<typeof simulated>>
  #http!: HttpParts
  #steps = 0

  constructor(settings: Settings, body: (world: World) => unknown, command: string) {
    this.#settings = settings
    this.#body = body
    this.#command = command
  }

  async run(): Promise<Checked> {
    // One by one: in jest on Node 20, imports at once that share a module fail.
    this.#parts = await simulated()
    this.#http = await served()
    effects.seeded = () => current.getStore()
    const restore = this.#settings.mock ? mockGlobals() : () => {}
    const release = ownRejections()
    try {
      return await this.#search()
    } finally {
      release()
      restore()
      effects.seeded = undefined
    }
  }

  async #search(): Promise<Checked> {
    const range = seedRange(this.#settings.seeds, wrong)
    const isOne = process.env['CORESPUN_SEED'] !== undefined
    // One that is named is in no part.
    const mine = isOne ? [range.first] : ofPart(range)
    const [first, real] = await watchReal(() => this.#play(0, plain, false))
    if (real !== undefined) throw this.#refused(first, real)
    if (first.ending.kind !== 'done' && !isOne) await this.#failed(first, plain)
    let count = 0
    for (const seed of mine) {
      count += 1
      const strategy = (): Strategy => this.#strategyOf(seed, first.play.steps)
      const run = await this.#play(seed, strategy(), false)
      if (run.ending.kind !== 'done') await this.#failed(run, strategy())
    }
    return { seeds: count, schedules: this.traces.size, steps: this.#steps }
  }

  #strategyOf(seed: number, steps: number): Strategy {
    const { strategy } = this.#settings
    const name = strategy === 'mixed' ? STRATEGIES[seed % STRATEGIES.length] : strategy
    return strategyOf(name, seed, Math.max(1, steps), this.#settings)
  }

  async #play(seed: number, strategy: Strategy, isShown: boolean): Promise<Run> {
    const play = new Play({ ...this.#settings, seed, strategy, isShown })
    const network = new SeededNetwork(play, this.#settings.network, this.#parts)
    const http = new SeededHttp(play, network, this.#settings.network, this.#http)
    const files = new SeededFiles(play)
    play.created = (owner, store, file) => files.created(owner, store as Store, file)
    play.fetch = (input, init) => http.fetch(input, init)
    play.socket = (url, protocols) => http.socket(url, protocols)
    const restore = seedFibers(play)
    try {
      const ending = await play.run(() => this.#body(worldOf(play, network, http)))
      if (this.traces.size < SCHEDULES_MAX) this.traces.add(play.trace)
      this.#steps += play.steps
      return { seed, play, ending }
    } finally {
      restore()
    }
  }

  /** Play it again, shorten it, print it. @throws {CheckError} always. */
  async #failed(run: Run, strategy: Strategy): Promise<never> {
    const { seed } = run
    const [again, real] = await watchReal(() => this.#play(seed, strategy, false))
    if (real !== undefined) throw this.#refused(again, real)
    if (again.play.trace !== run.play.trace || kindOf(again.ending) !== kindOf(run.ending))
      throw new CheckError('CHECK_NOT_REPEATED', {
        ...this.#facts(again, run.play.trace),
        reason: `seed ${seed} has made two different runs: the program reads what no seed decides`,
      })
    const kind = kindOf(run.ending)
    const fails = async (deviations: readonly Deviation[]) => {
      const { ending, play } = await this.#play(seed, replaying(deviations), false)
      return kindOf(ending) === kind ? play.deviations : undefined
    }
    const shortest = await shrink(run.play.deviations, fails)
    const shown = await this.#play(seed, replaying(shortest), true)
    throw errorOf(kindOf(shown.ending) === kind ? shown : again, (of) => this.#facts(of, run.play.trace))
  }

  #refused(run: Run, real: Real): CheckError {
    const reason = `seed ${run.seed}: the program has made a ${real.resource} of Node at ${
      real.where || 'an unknown line'
    }, which no seed decides; use what the world has, or keep it outside of check()`
    return new CheckError('CHECK_REAL', { ...this.#facts(run, run.play.trace), ...real, reason })
  }

  #facts({ seed, play }: Run, trace: number): CheckFacts {
    const { shown } = play
    const hidden = shown.length - STORY_LINES_MAX
    const lines = hidden > 0 ? [`  ... ${hidden} steps before`, ...shown.slice(hidden)] : shown
    const command = seed === 0 ? this.#command : `CORESPUN_SEED=${seed} ${this.#command}`
    return { seed, reason: '', story: lines.join('\n'), command, deviations: play.deviations.length, trace }
  }
}

/**
 * Rejections of a run that nobody handles fail it: as those of the process they would end that before
 * the seed is printed. Others are for those who listened before, or end the process.
 */
function ownRejections(): () => void {
  const event = 'unhandledRejection'
  const others = process.listeners(event)
  const unhandled = (error: unknown, promise: Promise<unknown>): void => {
    const actor = current.getStore()
    // None of a dead task's code goes on.
    if (actor !== undefined) return void (actor.isDead || actor.play.unhandled.push(error))
    if (others.length === 0) throw error
    for (const other of others) other.call(process, error, promise)
  }
  for (const other of others) process.off(event, other)
  process.on(event, unhandled)
  return () => {
    process.off(event, unhandled)
    for (const other of others) process.on(event, other)
  }
}

/** Runs that fail in the same way have the same. */
function kindOf(ending: Ending): string {
  if (ending.kind !== 'failed') return ending.kind
  const { name, code } = Object(ending.error) as { readonly name?: unknown; readonly code?: unknown }
  return `failed ${String(name)} ${String(code)}`
}

function errorOf(run: Run, factsOf: (run: Run) => CheckFacts): CheckError {
  const { ending, seed, play } = run
  const facts = factsOf(run)
  const named = `seed ${seed}`
  if ('waits' in ending) {
    const kinds = {
      deadlock: ['CHECK_DEADLOCK', 'nothing can go on, and'],
      livelock: ['CHECK_LIVELOCK', `it has not ended after ${play.steps - 1} steps (stepsMax)`],
      leak: ['CHECK_LEAK', 'the callback has ended, and left open (leaks):'],
    } as const
    const [code, how] = kinds[ending.kind]
    return new CheckError(code, { ...facts, reason: `${named}: ${how}\n${ending.waits}` })
  }
  const cause = (ending as { readonly error: unknown }).error
  const found = new CheckError(
    'CHECK_FAILED',
    { ...facts, reason: `${named}: ${messageOf(cause)}` },
    { cause },
  )
  // Test runners show the difference of these.
  const { actual, expected, operator } = Object(cause) as Record<string, unknown>
  return operator === undefined ? found : Object.assign(found, { actual, expected, operator })
}

/** How the caller's file is run again. */
function commandOf([file]: readonly [string, string]): string {
  const named = fileOfCommand()
  if (named !== undefined) return `npx corespun test ${named}`
  if (process.env['VITEST'] !== undefined) return `npx vitest run ${file}`
  if (process.env['JEST_WORKER_ID'] !== undefined) return `npx jest ${file}`
  return process.env['NODE_TEST_CONTEXT'] === undefined ? `node ${file}` : `node --test ${file}`
}
