/**
 * ZIO 2 on the JVM in the fiber table: processes that answer lines in place of one of Node that gets
 * messages.
 *
 * Its programs are those of bench/contenders/zio, each in a JVM of its own: what one of them does to the
 * compiled code of ZIO would cost another up to a third. A JVM that nobody asks takes a thousandth of a core.
 */
import type { Condition } from '../../harness/conditions.ts'
import { Jvm } from '../../harness/jvm.ts'
import type { SliceOrder } from './host.ts'

/** Its name among the contenders. */
export const ZIO = 'zio'

/** The processes of ZIO. */
export class Zio {
  readonly contender = ZIO
  readonly programs: readonly string[]
  readonly notes: Readonly<Record<string, string>>
  readonly #command: readonly string[]
  readonly #jvms = new Map<string, Jvm>()
  /** The process that listed the programs, until one of them takes it. */
  #first: Jvm | undefined

  private constructor(
    command: readonly string[],
    first: Jvm,
    { programs, notes }: Readonly<Record<string, unknown>>,
  ) {
    this.#command = command
    this.#first = first
    this.programs = programs as string[]
    this.notes = notes as Record<string, string>
  }

  /** Start it. @throws {BenchError} `CONTENDER_DIED` when it does not begin. */
  static async open(command: readonly string[], condition: Condition): Promise<Zio> {
    const words = [...condition.prefix, ...command]
    const first = new Jvm(ZIO, words)
    try {
      return new Zio(words, first, await first.ask())
    } catch (error) {
      await first.end()
      throw error
    }
  }

  /** How many operations a second, by the clock of the order. @throws {BenchError} as `Jvm.ask`. */
  async slice({ program, num, fibers, sliceMs, clock }: SliceOrder): Promise<number> {
    const jvm = this.#jvms.get(program) ?? (await this.#start(program))
    const answer = await jvm.ask([program, num, fibers, sliceMs, clock].join('\t'))
    const { count, seconds, cpuSeconds } = answer as Record<string, number>
    return count / (clock === 'cpu' ? cpuSeconds : seconds)
  }

  async end(): Promise<void> {
    const jvms = [...this.#jvms.values(), ...(this.#first === undefined ? [] : [this.#first])]
    await Promise.all(jvms.map((jvm) => jvm.end()))
  }

  async #start(program: string): Promise<Jvm> {
    const jvm = this.#first ?? new Jvm(ZIO, this.#command)
    this.#jvms.set(program, jvm)
    if (this.#first === undefined) await jvm.ask()
    this.#first = undefined
    return jvm
  }
}
