/**
 * The bench's end of one contender's process.
 *
 * Contenders live in processes of their own and are ordered to run slices in turn, so rounds interleave
 * without one contender's threads, heap or compiled code standing in another's way.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Order, Outcome } from '../contenders/host.ts'
import type { Jobs } from '../contenders/jobs.ts'
import type { Condition } from './conditions.ts'
import { BenchError, type BenchCodes } from './errors.ts'
import { DIST_FOLDER } from './place.ts'
import type { Samples } from './rounds.ts'

/** A job that takes longer hangs: its process is killed, and the contender is left out, by name. */
const JOB_MS_MAX = 90_000

/** And so is one that does not go when it was let go of. */
const END_MS_MAX = 5000

/** End a process that goes when its channel closes: it is killed when it does not. */
export async function endProcess(process: ChildProcess): Promise<void> {
  if (process.exitCode !== null || process.signalCode !== null) return
  const gone = once(process, 'exit')
  if (process.connected) process.disconnect()
  const late = setTimeout(() => process.kill('SIGKILL'), END_MS_MAX)
  await gone
  clearTimeout(late)
}

/** A running contender. */
export class Child {
  readonly contender: string
  readonly #process: ChildProcess
  #words = ''

  /** Start the process of `contender` under `condition`; it is ready for orders at once. */
  constructor(contender: string, condition: Condition) {
    this.contender = contender
    const [command, ...words] = [
      ...condition.prefix,
      process.execPath,
      `${DIST_FOLDER}/contenders/host.js`,
      contender,
    ]
    this.#process = spawn(command, words, { stdio: ['ignore', 'inherit', 'pipe', 'ipc'] })
    this.#process
      .stderr!.setEncoding('utf8')
      .on('data', (text: string) => (this.#words = (this.#words + text).slice(-4000)))
  }

  /**
   * Have a job done; jobs of one child must not overlap.
   * @throws {BenchError} `WRONG_ANSWER` from the job, `CONTENDER_DIED` when the process failed or ended.
   */
  async do<Name extends keyof Jobs>(job: Name, order: Jobs[Name]['order']): Promise<Jobs[Name]['result']> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) throw this.#died(this.#words)
    const outcome = this.#outcome()
    this.#process.send({ job, order } satisfies Order, () => {}) // a failure to send shows as the exit
    const arrived = await outcome
    if ('result' in arrived) return arrived.result as Jobs[Name]['result']
    if (arrived.code === undefined) throw this.#died(arrived.text)
    throw new BenchError(arrived.code as keyof BenchCodes, arrived.facts as never)
  }

  /** End the process: its pool first, then by signal when it does not go. */
  end(): Promise<void> {
    return endProcess(this.#process)
  }

  #outcome(): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      const child = this.#process
      const late = setTimeout(() => this.#process.kill('SIGKILL'), JOB_MS_MAX)
      const onExit = (code: number | null, signal: string | null): void => {
        clearTimeout(late)
        child.off('message', onMessage)
        reject(this.#died(`exit ${code ?? signal}\n${this.#words}`))
      }
      const onMessage = (message: unknown): void => {
        clearTimeout(late)
        child.off('exit', onExit)
        resolve(message as Outcome)
      }
      child.once('message', onMessage)
      child.once('exit', onExit)
    })
  }

  #died(why: string): BenchError {
    return new BenchError('CONTENDER_DIED', { contender: this.contender, why: why.trim() })
  }
}

/**
 * Start one child for each contender, give them to `body`, end them all.
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
      const child = new Child(contender, setting.condition)
      started.push(child)
      try {
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
 * Give each of `children` its turn. A rival whose process ends in its turn, or hangs, is left out from then
 * on, by `skip`, and what it had measured with it; Skein's is not forgiven.
 */
export async function inTurn(
  children: Child[],
  samples: Samples,
  setting: { readonly skip: (what: string, why: string) => void },
  turn: (child: Child) => Promise<void>,
): Promise<void> {
  for (const child of [...children]) {
    try {
      await turn(child)
    } catch (error) {
      const why = deathOf(error)
      if (child.contender.startsWith('skein')) throw error
      setting.skip(`${child.contender}, after it had begun`, why)
      children.splice(children.indexOf(child), 1)
      samples.drop(child.contender)
    }
  }
}

/** Why a contender's process ended; any other error is thrown on. */
function deathOf(error: unknown): string {
  if (!(error instanceof BenchError) || error.code !== 'CONTENDER_DIED') throw error
  return error.message.split('\n').slice(0, 3).join(' ')
}
