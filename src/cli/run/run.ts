/**
 * `corespun run`: one job from its arguments to its exit code.
 *
 * It puts the parts together (source, mapper, pump, output, progress) and decides what the user is told. All
 * of the process that it touches is handed in, so tests run it with their own streams, signals and zones.
 */
import type { Readable, Writable } from 'node:stream'
import type { RunOptions } from '../arguments.ts'
import { ExitCode } from '../errors.ts'
import { openSource, type Source } from './input.ts'
import { CALLS_MAX, Mapper, type OpenZone } from './mapper.ts'
import { Output } from './output.ts'
import type { Progress, TerminalStream } from './progress.ts'
import { Pump, type PumpSummary } from './pump.ts'
import type { RecordStyle } from './records.ts'
import { resolveModule } from '../resolve.ts'

/** The process around a run. */
export interface Surroundings {
  readonly stdin: Readable & { readonly fd?: number }
  readonly stdout: Writable & { readonly isTTY?: boolean }
  readonly stderr: TerminalStream & { readonly isTTY?: boolean }
  /** The current directory. */
  readonly folder: string
  readonly openZone: OpenZone
  /** Call `listener` at each signal that asks to stop, until the returned function is called. */
  onSignal(listener: (signal: StopSignal) => void): () => void
  /** End the process now. */
  exit(code: number): void
}

/** Signals that ask a run to stop. */
export type StopSignal = 'SIGINT' | 'SIGTERM'

/** An item is held from its call until its line is written; a power of two. */
const HELD_MAX = CALLS_MAX
const HELD_CHARS_MAX = 2 ** 25
/** A module that has not loaded by then may never: its user is told. */
const LOADING_TOLD_MS = 10_000

/**
 * Do the whole job.
 * @returns The exit code; see `ExitCode`.
 * @throws {CliError} When nothing could start: a module, an export or an input that is not there.
 */
export async function run(options: RunOptions, around: Surroundings): Promise<number> {
  return new Run(options, around).whole()
}

class Run {
  readonly #options: RunOptions
  readonly #around: Surroundings
  readonly #startMs = performance.now()
  readonly #inputStop = new AbortController()
  #pump: Pump | undefined
  #output: Output | undefined
  #progress: Progress | undefined
  #signal: StopSignal | undefined
  #inputsFailed = false

  constructor(options: RunOptions, around: Surroundings) {
    this.#options = options
    this.#around = around
  }

  async whole(): Promise<number> {
    const around = this.#around
    const url = resolveModule(this.#options.module, around.folder)
    const { numbered, stacks, items } = this.#options
    const style: RecordStyle = { numbered, stacks, paths: items === 'paths' }
    const ignoreSignals = around.onSignal((signal) => this.#onSignal(signal))
    try {
      const mapper = await Mapper.open(url, this.#options, style, around.openZone)
      return await this.#inZone(mapper, style)
    } finally {
      ignoreSignals()
    }
  }

  async #inZone(mapper: Mapper, style: RecordStyle): Promise<number> {
    try {
      const [source] = await Promise.all([this.#source(), this.#prepared(mapper)])
      const code = await this.#mapped(mapper, source, style)
      if (code !== undefined) return code
    } catch (thrown) {
      await mapper.close()
      throw thrown
    }
    await mapper.close()
    return this.#exitCode()
  }

  /** Loading takes the time it takes, as in Node: a module may wait for a network. */
  async #prepared(mapper: Mapper): Promise<void> {
    const tell = (): void => this.#tell(`still loading ${this.#options.module}; Ctrl-C gives up`)
    const timer = setTimeout(tell, LOADING_TOLD_MS)
    try {
      await mapper.prepare()
    } finally {
      clearTimeout(timer)
    }
  }

  /** Map all items. An exit code when the run ends here and now, without waiting for what still runs. */
  async #mapped(mapper: Mapper, source: Source, style: RecordStyle): Promise<number | undefined> {
    let stopWith!: (code: number) => void
    const broken = new Promise<number>((resolve) => (stopWith = resolve))
    const output = new Output(this.#around.stdout, {
      onRoom: () => pump.resume(),
      onClosed: () => stopWith(ExitCode.fine),
      onFailed: (error) => {
        this.#tell(error.message)
        stopWith(ExitCode.unusable)
      },
      beforeWrite: () => {
        if (this.#around.stdout.isTTY === true) this.#progress?.hide()
      },
    })
    const pump = new Pump({
      call: (text, item) => mapper.call(text, item),
      sink: output,
      style,
      ordered: this.#options.ordered,
      failFast: this.#options.failFast,
      runningMax: mapper.runningMax,
      heldMax: HELD_MAX,
      heldCharsMax: HELD_CHARS_MAX,
      onStop: (failed) => {
        mapper.closeGate(failed)
        this.#inputStop.abort()
      },
    })
    this.#pump = pump
    this.#output = output
    await this.#showProgress(pump, source)
    try {
      const code = await Promise.race([broken, pump.run(source.batches(this.#inputStop.signal))])
      if (typeof code === 'number') return code
      const ended = await Promise.race([broken, output.end()])
      if (ended !== undefined) return ended
    } finally {
      this.#progress?.stop()
    }
    this.#report(pump.summary())
    return this.#options.failFast && pump.summary().failedCount > 0 ? this.#exitCode() : undefined
  }

  async #source(): Promise<Source> {
    const { inputs, ignored, items, lineCharsMax } = this.#options
    return openSource({
      inputs,
      ignored,
      items,
      lineCharsMax,
      stdin: this.#around.stdin,
      complain: (error) => {
        this.#inputsFailed = true
        this.#tell(error.message)
      },
    })
  }

  #onSignal(signal: StopSignal): void {
    const isFirst = this.#signal === undefined
    this.#signal ??= signal
    const code = signalCode(this.#signal)
    if (this.#pump === undefined) {
      this.#tell('interrupted before the first item')
      this.#around.exit(code)
    } else if (isFirst) {
      if (this.#around.stderr.isTTY === true) this.#tell('finishing what runs; again to stop at once')
      this.#pump.stop()
    } else {
      this.#tell(`stopped at once; ${this.#doubtful()} may lack a result`)
      this.#around.exit(code)
    }
  }

  /** The items whose lines may be lost if the process ends now. */
  #doubtful(): string {
    // A line that only waits to be written is lost too. Without an order no number divides the items.
    if (!this.#options.ordered) return 'items that ran'
    return `item ${(this.#output?.deliveredCount ?? 0) + 1} and later ones`
  }

  async #showProgress(pump: Pump, source: Source): Promise<void> {
    if (!this.#options.progress || this.#around.stderr.isTTY !== true) return
    // Loaded only here: most runs have no terminal and should start without it.
    const { Progress } = await import('./progress.ts')
    this.#progress = new Progress(this.#around.stderr, () => {
      const { writtenCount, failedCount } = pump.summary()
      return { doneCount: writtenCount, failedCount, total: source.total, fraction: source.fraction() }
    })
  }

  #report({ writtenCount, failedCount, nextItem }: PumpSummary): void {
    const failed = failedCount === 0 ? '' : `${counted(failedCount)} of ${items(writtenCount)} failed`
    if (this.#signal !== undefined) {
      const done = writtenCount === 1 ? '1 item is done' : `${items(writtenCount)} are done`
      const of = failedCount === 0 ? '' : ` (${counted(failedCount)} failed)`
      this.#tell(`interrupted: ${done}${of}, the next would be item ${nextItem}`)
    } else if (failedCount > 0) {
      const which = this.#options.ordered ? `item ${counted(writtenCount)}, which` : 'the first item that'
      this.#tell(this.#options.failFast ? `stopped at ${which} failed` : failed)
    } else if (this.#progress !== undefined) {
      const seconds = (performance.now() - this.#startMs) / 1000
      const rate = Math.round(writtenCount / seconds)
      this.#around.stderr.write(`${items(writtenCount)} in ${seconds.toFixed(1)} s (${counted(rate)}/s)\n`)
    }
  }

  #exitCode(): number {
    if (this.#signal !== undefined) return signalCode(this.#signal)
    const failedCount = this.#pump?.summary().failedCount ?? 0
    return failedCount > 0 || this.#inputsFailed ? ExitCode.itemsFailed : ExitCode.fine
  }

  #tell(sentence: string): void {
    this.#progress?.hide()
    this.#around.stderr.write(`corespun: ${sentence.replace(/[\r\n\u2028\u2029]+/g, ' ')}\n`)
  }
}

function signalCode(signal: StopSignal): number {
  return signal === 'SIGINT' ? ExitCode.interrupted : ExitCode.terminated
}

function counted(count: number): string {
  return count.toLocaleString('en-US')
}

function items(count: number): string {
  return `${counted(count)} ${count === 1 ? 'item' : 'items'}`
}
