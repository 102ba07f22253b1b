/**
 * The two processes of one contender, for tables `fleet` and `jobs`: one serves, and one calls and measures.
 *
 * Contenders take their turns round by round.
 */
import { Child, nodeCommand } from '../../harness/child.ts'
import { Samples, shuffled } from '../../harness/rounds.ts'
import type { Context, Row } from '../../harness/table.ts'
import type { FleetOrder, Worked } from './process.ts'

/** Rows: the time of one by itself, and how many there are in a second. */
export const P50 = 'p50'
export const RATE = '64 in flight'
const IN_FLIGHT = 64
const LOOPBACK = 'loopback'
export type Bytes = readonly [request: number, reply: number]

/** Both sides of one contender; the calling one is ordered. */
export class Pair {
  readonly name: string
  readonly #children: Child[] = []
  readonly #section: string

  constructor(section: string, name: string) {
    this.#section = section
    this.name = name
  }

  /** Start one side after words such as `taskset -c 0`. */
  async start(...before: readonly string[]): Promise<Child> {
    const command = [...before, ...nodeCommand('tables/fleet/process.js', this.#section, this.name)]
    const child = await Child.start(this.name, command)
    this.#children.unshift(child)
    return child
  }

  /** By the side that was started last. */
  order<Result>(order: FleetOrder): Promise<Result> {
    return this.#children[0].order<Result>(order)
  }

  async end(): Promise<void> {
    await Promise.all(this.#children.map((child) => child.end()))
  }
}

/** Both processes of a contender, which have begun. */
export async function opened(
  section: string,
  name: string,
  url: string,
  bytes: Bytes = [0, 0],
): Promise<Pair> {
  const pair = new Pair(section, name)
  const setting = { url, bytes }
  try {
    for (const what of ['serve', 'open'] as const) {
      await pair.start()
      await pair.order({ what, setting })
    }
    return pair
  } catch (error) {
    await pair.end()
    throw error
  }
}

/** Figures of pairs in turn; ends them. */
export async function measured(
  section: string,
  pairs: readonly Pair[],
  against: string,
  context: Context,
): Promise<Row[]> {
  const samples = new Samples()
  const seconds = context.number('slice-s')
  try {
    for (let round = 0; round < context.number('rounds'); round += 1) {
      for (const pair of shuffled(pairs, round)) {
        context.progress(`${section}, ${pair.name}: round ${round + 1}`)
        const one = await pair.order<Worked>({ what: 'work', seconds, inFlight: 1 })
        const many = await pair.order<Worked>({ what: 'work', seconds, inFlight: IN_FLIGHT })
        samples.add(pair.name, { [P50]: one.p50Us, [RATE]: many.perSecond })
      }
    }
  } finally {
    await Promise.all(pairs.map((pair) => pair.end()))
  }
  const shape = { section, condition: LOOPBACK, threads: 0, against } as const
  return [
    ...samples.rows({ ...shape, row: P50, figure: P50, unit: 'µs', better: 'lower' }),
    ...samples.rows({ ...shape, row: RATE, figure: RATE, unit: '1/s', better: 'higher' }),
  ]
}
