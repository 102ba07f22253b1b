/**
 * The table's end of a contender's process: one order at a time, one answer each.
 *
 * A process that dies or finds a wrong answer ends the run; nothing is reported then.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { endProcess } from '../../harness/child.ts'
import { BenchError } from '../../harness/errors.ts'
import { DIST_FOLDER } from '../../harness/place.ts'

/** A running process. */
export class Asked {
  readonly contender: string
  readonly #process: ChildProcess
  #words = ''

  private constructor(contender: string, child: ChildProcess) {
    this.contender = contender
    this.#process = child
    child.stderr!.setEncoding('utf8').on('data', (text: string) => (this.#words += text))
  }

  /** Start `script` for a contender and wait until it is ready; what it says then. */
  static async start(
    script: string,
    contender: string,
    words: readonly string[] = [],
  ): Promise<[Asked, unknown]> {
    const path = `${DIST_FOLDER}/tables/store/${script}.js`
    const child = spawn(process.execPath, [path, contender, ...words], {
      stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
    })
    const asked = new Asked(contender, child)
    return [asked, await asked.#next()]
  }

  /** Have something done. @throws {BenchError} `CONTENDER_DIED` when it failed or the process ended. */
  async do<Answer>(order: unknown): Promise<Answer> {
    const next = this.#next()
    this.#process.send(order as object, () => {}) // a failure to send shows as the exit
    const answer = (await next) as { result: Answer; error?: string }
    if (answer.error !== undefined) throw this.#died(answer.error)
    return answer.result
  }

  /** End it. */
  async end(order: unknown): Promise<void> {
    const isHere = this.#process.exitCode === null && this.#process.signalCode === null
    if (order !== undefined && isHere) await this.do(order)
    await endProcess(this.#process)
  }

  #next(): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const onExit = (code: number | null): void => reject(this.#died(`exit ${code}\n${this.#words}`))
      this.#process.once('exit', onExit)
      this.#process.once('message', (message) => {
        this.#process.off('exit', onExit)
        resolve(message)
      })
    })
  }

  #died(why: string): BenchError {
    return new BenchError('CONTENDER_DIED', { contender: this.contender, why: why.slice(0, 4000).trim() })
  }
}
