/**
 * The runs of a process: it takes those of its definitions from their queues, and starts and finds runs.
 *
 * An item of a queue is a run that has not ended, lent to the process that has it. What is kept of runs, and
 * what an item that is lent becomes, is in held.ts and run.ts.
 */
import { flag, integer, milliseconds, optionsOf, text } from '../base/index.ts'
import { type Engine, type Fleet, certainly } from '../fleet/internal.ts'
import { type StartOptions, startOf } from './child.ts'
import type { Durable } from './definition.ts'
import { RunError, readable, wrong } from './errors.ts'
import { begin, wake } from './heads.ts'
import { checkKey } from './keys.ts'
import { readHead } from './records.ts'
import { Rooms, type Wall, freshHead } from './rooms.ts'
import { Run } from './run.ts'
import { type RunInfo, infoOf } from './state.ts'
import { type Settings, Taker } from './taker.ts'

const DAY_MS = 86_400_000

/** Which runs, and how they are held. */
export interface RunsOptions<Definitions extends readonly Durable[] = readonly Durable[]> {
  /** What this process runs, starts and finds. */
  readonly definitions: Definitions
  /** Most runs of each definition in memory at once; 0: it only starts and finds them. Default 256. */
  readonly runsMax?: number
  /** How long after the death of its process another one takes a run. Default 10,000. */
  readonly leaseMs?: number
  /** A run that waits, and has more than this to wait, leaves memory after so long. Default 10,000. */
  readonly idleMs?: number
  /**
   * For development: call the function of a run that is done a second time; if it does something else then,
   * the run fails with `RUN_DIFFERS`. Default `false`.
   */
  readonly check?: boolean
  /**
   * The release of the code, such as `versionOf(import.meta.url)` of corespun/fleet: a run goes on with that
   * which has begun it while a process offers it. Default: this process takes runs of any.
   */
  readonly release?: string
}

const RUNS_KINDS = {
  definitions: {
    expected: 'an array of what durable() returns, with names that differ',
    accepts: (value: unknown) => Array.isArray(value) && areDefinitions(value),
    default: undefined as readonly Durable[] | undefined,
  },
  runsMax: integer(0, 65_536, 256),
  leaseMs: integer(100, DAY_MS, 10_000),
  idleMs: milliseconds(DAY_MS, 10_000),
  check: flag(false),
  release: {
    expected: 'a string of 1 to 200 characters',
    accepts: (value: unknown) => typeof value === 'string' && value.length > 0 && value.length <= 200,
    default: undefined as string | undefined,
  },
}

function areDefinitions(all: readonly unknown[]): boolean {
  const names = all.map((one) => {
    const { name, body } = Object(one) as Partial<Durable>
    return typeof name === 'string' && typeof body === 'function' ? name : ''
  })
  return !names.includes('') && new Set(names).size === names.length
}

type NamesOf<Definitions extends readonly Durable[]> = Definitions[number]['name']
type Named<Definitions extends readonly Durable[], Name extends string> = Extract<
  Definitions[number],
  { readonly name: Name }
>
type InputOf<Definition> = Definition extends Durable<string, infer Input, unknown> ? Input : never
type ResultOf<Definition> = Definition extends Durable<string, never, infer Value> ? Value : never

/** A page of the runs of a definition. */
export interface RunPage {
  /** In the order of the engine. */
  readonly items: readonly RunInfo[]
  /** Pass it as `after` for the next page; `undefined`: this is the last one. */
  readonly next: string | undefined
}

const LIST_KINDS = { after: text<undefined>(undefined), itemsMax: integer(1, 1000, 100) }
const CLOSE_KINDS = { timeoutMs: milliseconds(DAY_MS, 5000) }

/**
 * Runs definitions in this process, and starts and finds their runs. Several processes may offer a
 * definition: one of them takes a run, and another when that one has died.
 *
 * Resolves when runs are taken. Close it before the fleet.
 * @throws {RunError} `RUN_ARGUMENT`; what the engine of the fleet fails with is a `FleetError`.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { durable, runs, step } from 'corespun/durable'
 * import { connect } from 'corespun/fleet'
 *
 * const hello = durable('hello', function* (name: string) {
 *   return yield* step('greet', () => `Hello, ${name}`)
 * })
 * await using fleet = await connect('memory:') // or sqlite:work.db
 * await using work = await runs(fleet, { definitions: [hello] })
 * const run = await work.start('hello', 'Ann', { key: 'first' })
 * const same = await work.start('hello', 'Bob', { key: 'first' })
 * assert.deepEqual([await run.result(), await same.result()], ['Hello, Ann', 'Hello, Ann'])
 * ```
 */
export async function runs<const Definitions extends readonly Durable[]>(
  fleet: Fleet,
  options: RunsOptions<Definitions>,
): Promise<Runs<Definitions>> {
  const { definitions, ...settings } = optionsOf(options, RUNS_KINDS, wrong, 'runs()')
  if (definitions === undefined)
    throw wrong('runs(): definitions', RUNS_KINDS.definitions.expected, definitions)
  const engine = (fleet as Fleet | null | undefined)?.engine
  if (engine === undefined) throw wrong('runs(): the fleet', 'what connect() returned', fleet)
  return Runs.open(engine, definitions as Definitions, settings)
}

/**
 * The runs of some definitions. {@link runs} makes it.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { type Durable, type Runs, durable, runs } from 'corespun/durable'
 * import { connect } from 'corespun/fleet'
 *
 * const one = durable('one', function* () {
 *   return 1
 * })
 * await using fleet = await connect('memory:')
 * type Work = Runs<readonly [Durable<'one', undefined, number>]>
 * await using work: Work = await runs(fleet, { definitions: [one] })
 * assert.equal(await (await work.start('one', undefined)).result(), 1)
 * const { items } = await work.list('one')
 * assert.deepEqual(items.map(({ status }) => status), ['done'])
 * ```
 */
export class Runs<out Definitions extends readonly Durable[] = readonly Durable[]> {
  readonly #takers: ReadonlyMap<string, Taker>
  #closing: Promise<void> | undefined

  private constructor(takers: ReadonlyMap<string, Taker>) {
    this.#takers = takers
  }

  /** @internal */
  static async open<Definitions extends readonly Durable[]>(
    engine: Engine,
    definitions: Definitions,
    settings: Settings,
    wall: Wall = { nowMs: Date.now },
  ): Promise<Runs<Definitions>> {
    const takers = new Map<string, Taker>()
    const rooms = new Rooms(engine, wall)
    try {
      for (const definition of definitions)
        takers.set(definition.name, await Taker.open(definition, settings, rooms))
    } catch (error) {
      await Promise.all([...takers.values()].map((taker) => taker.close(0)))
      throw error
    }
    return new Runs(takers)
  }

  /** The names of the definitions, in their order. */
  get names(): readonly NamesOf<Definitions>[] {
    return [...this.#takers.keys()]
  }

  #taker(call: string, name: unknown): Taker {
    if (this.#closing !== undefined) throw new RunError('RUN_CLOSED', { call })
    const taker = this.#takers.get(name as string)
    if (taker !== undefined) return taker
    throw wrong(`${call}: the name`, `one of ${[...this.#takers.keys()].join(', ') || 'none'}`, name)
  }

  /**
   * Starts a run. Resolves when the engine has stored it: from then on it ends, whichever process dies.
   * @param options If a run has its `key`, that run is returned. A call that is not confirmed for longer than
   *   its `ttlMs` may start it again.
   * @throws {RunError} `RUN_ARGUMENT`, `RUN_TOO_LARGE`, `RUN_CLOSED`, `RUN_UNREADABLE`.
   */
  async start<Name extends NamesOf<Definitions>>(
    name: Name,
    input: InputOf<Named<Definitions, Name>>,
    options?: StartOptions,
  ): Promise<Run<ResultOf<Named<Definitions, Name>>>> {
    const taker = this.#taker('start()', name)
    const { key = crypto.randomUUID(), ...how } = startOf('start()', options)
    const { engine, heads, nowMs } = taker.room
    const run = this.#run<ResultOf<Named<Definitions, Name>>>(taker, key)
    if ((await certainly(engine, () => heads.get(key))) !== undefined) await wake(taker.room, run, true)
    else await begin(taker.room, key, freshHead(input, nowMs(), how))
    return run
  }

  /**
   * The run with a key. It reads nothing: methods of a run that does not exist reject with `RUN_UNKNOWN`.
   * @throws {RunError} `RUN_ARGUMENT`, `RUN_CLOSED`.
   */
  get<Name extends NamesOf<Definitions>>(name: Name, key: string): Run<ResultOf<Named<Definitions, Name>>> {
    const taker = this.#taker('get()', name)
    checkKey('get()', key)
    return this.#run<ResultOf<Named<Definitions, Name>>>(taker, key)
  }

  #run<Value>(taker: Taker, key: string): Run<Value> {
    const { room } = taker
    return new Run<Value>({ name: room.name, key }, room, taker)
  }

  /**
   * A page of the runs of a definition, including those that have ended.
   * @param options `after`: `next` of the page before. `itemsMax`: 1 to 1000, default 100.
   * @throws {RunError} `RUN_ARGUMENT`, `RUN_CLOSED`, `RUN_UNREADABLE`.
   */
  async list(
    name: NamesOf<Definitions>,
    options?: { readonly after?: string; readonly itemsMax?: number },
  ): Promise<RunPage> {
    const { engine, heads, nowMs } = this.#taker('list()', name).room
    const paging = optionsOf(options, LIST_KINDS, wrong, 'list()')
    const { items, next } = await certainly(engine, () => heads.page(paging))
    const infos = items.flatMap(({ key, bytes }) =>
      bytes === undefined
        ? []
        : infoOf(
            key,
            readable({ name, key }, key, () => readHead(bytes)),
            nowMs(),
          ),
    )
    return { items: infos, next }
  }

  /**
   * Takes no more runs, waits for the steps that run, and leaves the runs to other processes, or to this one
   * when it opens them again.
   * @param options `timeoutMs`: after so long the steps that still run are aborted; they run again. Default
   *   5000.
   * @throws {RunError} `RUN_ARGUMENT`.
   */
  close(options?: { readonly timeoutMs?: number }): Promise<void> {
    const { timeoutMs } = optionsOf(options, CLOSE_KINDS, wrong, 'close()')
    this.#closing ??= Promise.all([...this.#takers.values()].map((taker) => taker.close(timeoutMs))).then(
      () => {},
    )
    return this.#closing
  }

  /** `close()`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}
