/**
 * Rounds: every contender does one slice in turn, again and again, and rows are medians over the rounds.
 *
 * Interleaving lets drift of the machine fall on all alike; ratios are taken inside a round.
 */
import { ratioSummary, summary } from './stats.ts'
import { type Better, type Row, withoutVoidRatio } from './table.ts'

/** The figures of one slice, by the row they belong to. */
export type Figures = Readonly<Record<string, number>>

/** The samples of all contenders: contender → row → one figure per round. */
export class Samples {
  readonly #samples = new Map<string, Map<string, number[]>>()

  /** Keep the figures of one contender's slice. */
  add(contender: string, figures: Figures): void {
    const rows = this.#samples.get(contender) ?? new Map<string, number[]>()
    this.#samples.set(contender, rows)
    for (const [row, figure] of Object.entries(figures)) {
      const samples = rows.get(row)
      if (samples === undefined) rows.set(row, [figure])
      else samples.push(figure)
    }
  }

  /** Forget a contender. */
  drop(contender: string): void {
    this.#samples.delete(contender)
  }

  /** Contenders in the order they first answered. */
  get contenders(): string[] {
    return [...this.#samples.keys()]
  }

  /** The figures of one row; empty without any. */
  of(contender: string, row: string): readonly number[] {
    return this.#samples.get(contender)?.get(row) ?? []
  }

  /**
   * One row per contender.
   *
   * @param shape.figure Name under which `add` got the figure.
   * @param shape.against Contender that ratios refer to: this one's figure / that one's.
   * @param shape.cpu Name under which `add` got CPU µs per task.
   */
  rows(shape: RowShape): Row[] {
    return this.contenders
      .filter((contender) => this.of(contender, shape.figure).length > 0)
      .map((contender) => this.#row(contender, shape))
  }

  #row(contender: string, shape: RowShape): Row {
    const { figure, against, cpu, seeds, threads, ...fixed } = shape
    const samples = this.of(contender, figure)
    const other = against === undefined || against === contender ? [] : this.of(against, figure)
    const cpuUs = cpu === undefined ? [] : this.of(contender, cpu)
    const seed = seeds?.[contender]
    return {
      ...fixed,
      contender,
      threads: ['direct', 'main thread', 'corespun-node'].includes(contender) ? 0 : threads,
      ...summary(samples),
      ...(cpuUs.length > 0 ? { cpuUs: summary(cpuUs).median } : {}),
      ...(other.length > 0 ? ratioOf(against!, samples, other) : {}),
      ...(seed === undefined ? {} : { seed }),
    }
  }
}

/** What is common to the rows of one figure. */
export interface RowShape {
  readonly figure: string
  readonly section: string
  readonly row: string
  readonly condition: string
  readonly threads: number
  readonly unit: string
  readonly better: Better
  readonly against?: string
  readonly cpu?: string
  /** Seed cells that a contender's row answers. */
  readonly seeds?: Readonly<Record<string, string | readonly string[]>>
  readonly note?: string
}

function ratioOf(to: string, samples: readonly number[], other: readonly number[]): Pick<Row, 'ratio'> {
  const { median, low, high } = ratioSummary(samples, other)
  return withoutVoidRatio({ ratio: { to, median, low, high } })
}

/**
 * What takes turns, in another order each round, the same orders in every run. In a fixed one the collector,
 * which comes about once a round where the rounds allocate alike, would come in the same one's turn each
 * time, for what all have left it.
 */
export function shuffled<Turn>(turns: readonly Turn[], round: number): Turn[] {
  const order = [...turns]
  let random = round + 1
  for (let last = order.length - 1; last > 0; last -= 1) {
    // The generator of Park and Miller.
    random = (random * 48_271) % 2_147_483_647
    const other = random % (last + 1)
    ;[order[last], order[other]] = [order[other], order[last]]
  }
  return order
}
