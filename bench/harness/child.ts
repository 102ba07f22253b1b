/**
 * The bench's end of the processes that it measures.
 *
 * Contenders live in processes of their own and are ordered to run slices in turn, so rounds interleave
 * without one contender's threads, heap or compiled code standing in another's way.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Jobs } from '../contenders/jobs.ts'
import type { Condition } from './conditions.ts'
import { BenchError, type BenchCodes } from './errors.ts'
import type { Outcome } from './orders.ts'
import { DIST_FOLDER } from './paths.ts'
import type { Samples } from './rounds.ts'

/** An order that takes longer hangs: its process is killed, and the contender is left out, by name. */
const ORDER_MS_MAX = 90_000

/** A process that does not end when its channel closes is killed after this. */
const END_MS_MAX = 5000

/** End a process that ends when its channel closes; otherwise kill it. */
export async function endProcess(process: ChildProcess): Promise<void> {
  if (process.exitCode !== null || process.signalCode !== null) return
  const exited = once(process, 'exit')
  if (process.connected) process.disconnect()
  const late = setTimeout(() => process.kill('SIGKILL'), END_MS_MAX)
  await exited
  clearTimeout(late)
}

/** A process that is ordered to do one job after the other. */
export class Child {
  readonly contender: string
  readonly #process: ChildProcess
  /** What it answers at its start. */
  ready: unknown
  #errors = ''

  private constructor(contender: string, child: ChildProcess) {
    this.contender = contender
    this.#process = child
    child
      .stderr!.setEncoding('utf8')
      .on('data', (text: string) => (this.#errors = (this.#errors + text).slice(-4000)))
  }

  /**
   * Start a command whose program calls `serveOrders`, and wait until it does.
   * @throws {BenchError} `CONTENDER_DIED` when it ends before.
   */
  static async start(contender: string, [command, ...words]: readonly string[]): Promise<Child> {
    const child = new Child(contender, spawn(command, words, { stdio: ['ignore', 'inherit', 'pipe', 'ipc'] }))
    child.ready = await child.#result()
    return child
  }

  /** Have a job of jobs.ts done; see {@link order}. */
  do<Name extends keyof Jobs>(job: Name, order: Parameters<Jobs[Name]>[0]): ReturnType<Jobs[Name]> {
    return this.order({ job, order }) as ReturnType<Jobs[Name]>
  }

  /**
   * Have an order carried out; orders of one child must not overlap.
   * @throws {BenchError} `WRONG_ANSWER` from the process, `CONTENDER_DIED` when it failed, ended or hung.
   */
  async order<Result>(order: unknown): Promise<Result> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) throw this.#died(this.#errors)
    const result = this.#result()
    this.#process.send(order as object, () => {}) // a failure to send shows as the exit
    return (await result) as Result
  }

  /** End the process: its pool first, then by signal when it does not go. */
  end(): Promise<void> {
    return endProcess(this.#process)
  }

  async #result(): Promise<unknown> {
    const outcome = await new Promise<Outcome>((resolve, reject) => {
      const child = this.#process
      const late = setTimeout(() => child.kill('SIGKILL'), ORDER_MS_MAX)
      const settled = (): void => {
        clearTimeout(late)
        child.off('message', onMessage).off('exit', onExit).off('error', onError)
      }
      const onError = (error: Error): void => (settled(), reject(this.#died(error.message)))
      const onExit = (code: number | null, signal: string | null): void => (
        settled(),
        reject(this.#died(`exit ${code ?? signal}\n${this.#errors}`))
      )
      const onMessage = (message: unknown): void => (settled(), resolve(message as Outcome))
      child.on('message', onMessage).on('exit', onExit).on('error', onError)
    })
    if (!('text' in outcome)) return outcome.result
    if (outcome.code === undefined) throw this.#died(outcome.text)
    throw new BenchError(outcome.code as keyof BenchCodes, outcome.facts as never)
  }

  #died(why: string): BenchError {
    return new BenchError('CONTENDER_DIED', { contender: this.contender, why: why.trim() })
  }
}

/** The command that runs a compiled file of the bench on this Node. */
export function nodeCommand(file: string, ...words: readonly string[]): string[] {
  return [process.execPath, `${DIST_FOLDER}/${file}`, ...words]
}

/** Start the process of a contender of pools.ts under `condition`. */
export function startPool(contender: string, condition: Condition): Promise<Child> {
  return Child.start(contender, [...condition.prefix, ...nodeCommand('contenders/host.js', contender)])
}

/**
 * Start one child for each contender, pass them to `body`, end them all.
 * Contenders that cannot be opened are left out by `skip`; a wrong answer is not forgiven.
 */
export async function withChildren<Result>(
  contenders: readonly string[],
  setting: { condition: Condition; threads: number; skip: (what: string, why: string) => void },
  body: (children: Child[]) => Promise<Result>,
): Promise<Result> {
  const opened: Child[] = []
  const started: Child[] = []
  try {
    for (const contender of contenders) {
      try {
        const child = await startPool(contender, setting.condition)
        started.push(child)
        await child.do('open', { threads: setting.threads, spin: setting.condition.spin })
        await child.do('prove', { threads: setting.threads })
        opened.push(child)
      } catch (error) {
        setting.skip(`${contender}, ${setting.condition.name}`, deathOf(error))
      }
    }
    return await body(opened)
  } finally {
    await Promise.all(started.map((child) => child.end()))
  }
}

/**
 * Run each of `children` in its turn. A rival whose process ends in its turn, or hangs, is left out from then
 * on, by `skip`, and what it had measured with it; Corespun's is not forgiven.
 */
export async function inTurn(
  children: Child[],
  samples: Samples,
  setting: { readonly skip: (what: string, why: string) => void },
  turn: (child: Child) => Promise<void>,
): Promise<void> {
  for (const child of [...children]) {
    if (!(await survives(child.contender, samples, setting, () => turn(child))))
      children.splice(children.indexOf(child), 1)
  }
}

/** Whether the process of `contender` survives its turn; a rival that does not is left out as by `inTurn`. */
export async function survives(
  contender: string,
  samples: Samples,
  setting: { readonly skip: (what: string, why: string) => void },
  turn: () => Promise<void>,
): Promise<boolean> {
  try {
    await turn()
    return true
  } catch (error) {
    const why = deathOf(error)
    if (contender.startsWith('corespun')) throw error
    setting.skip(`${contender}, after it had begun`, why)
    samples.drop(contender)
    return false
  }
}

/** Why a contender's process ended, without its stack; any other error is thrown on. */
function deathOf(error: unknown): string {
  if (!(error instanceof BenchError) || error.code !== 'CONTENDER_DIED') throw error
  const lines = error.message.split('\n').filter((line) => !/^\s+at /.test(line))
  return lines.slice(0, 3).join(' ')
}
