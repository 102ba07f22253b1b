/**
 * `corespun run`: one job from its arguments to its exit code.
 *
 * Connects source, mapper, runner, output and progress, and writes the messages. The process is passed in, so
 * that tests use their own streams, signals and zones.
 */
import type { Readable, Writable } from 'node:stream'
import type { RunOptions } from '../arguments.ts'
import { oneLine, reasonOf } from '../../base/index.ts'
import { ExitCode } from '../errors.ts'
import { openSource, type ItemSource } from './input.ts'
import { CALLS_MAX, Mapper, type OpenZone } from './mapper.ts'
import { Output } from './output.ts'
import type { Progress, TerminalStream } from './progress.ts'
import type { KeptResults } from './kept.ts'
import { type Call, ItemRunner, type RunnerSummary } from './item-runner.ts'
import type { RecordStyle } from './records.ts'
import { loadedWithNotice } from '../loading.ts'
import { observeSoon } from '../soon.ts'
import { resolveModule } from '../resolve.ts'

/** The process that a command runs in; tests replace it. */
export interface CommandContext {
  readonly stdin: Readable & { readonly fd?: number; readonly isTTY?: boolean }
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
/** What a run with a journal ends with before its time. */
const CONTINUES = 'the same command continues'
/** So many items may be done before a second worker would be there; and finding them takes no longer. */
const FEW_ITEMS = 32
const FEW_FOUND_MS = 10

/**
 * Do the whole job.
 * @returns The exit code; see `ExitCode`.
 * @throws {CliError} When nothing could start: a module, an export or an input that is not there.
 * @throws {FleetError} What a file of `--journal` is refused for.
 */
export async function run(options: RunOptions, context: CommandContext): Promise<number> {
  return new CommandRun(options, context).whole()
}

class CommandRun {
  readonly #options: RunOptions
  readonly #context: CommandContext
  readonly #startMs = performance.now()
  readonly #inputStop = new AbortController()
  #runner: ItemRunner | undefined
  #output: Output | undefined
  #progress: Progress | undefined
  #itemSource: ItemSource | undefined
  #kept: KeptResults | undefined
  #signal: StopSignal | undefined
  #inputsFailed = false

  constructor(options: RunOptions, context: CommandContext) {
    this.#options = options
    this.#context = context
  }

  async whole(): Promise<number> {
    const context = this.#context
    const url = resolveModule(this.#options.module, context.folder)
    const { numbered, stacks, items } = this.#options
    const style: RecordStyle = { numbered, stacks, paths: items === 'paths' }
    const { journal } = this.#options
    if (journal !== undefined) {
      // Loaded only here: most runs have no journal and should start without it.
      const { openKept } = await import('./kept.ts')
      const { folder } = context
      this.#kept = await openKept({ ...this.#options, journal }, { url, folder, style })
      if (this.#options.failed) return this.#printFailed(this.#kept)
    }
    const unobserve = observeSoon(this.#options, context)
    const ignoreSignals = context.onSignal((signal) => this.#onSignal(signal))
    try {
      const mapper = await Mapper.open(url, this.#options, style, context.openZone)
      return await this.#inZone(mapper, style)
    } finally {
      unobserve()
      ignoreSignals()
      await this.#kept?.close()
    }
  }

  /* c8 ignore start: the main run of the suite is on a Node without SQLite, and has no journal */
  /** What the journal has of items that failed. */
  async #printFailed(kept: KeptResults): Promise<number> {
    try {
      for await (const line of kept.failures()) this.#context.stdout.write(`${line}\n`)
      return ExitCode.ok
    } finally {
      await kept.close()
    }
  }
  /* c8 ignore stop */

  async #inZone(mapper: Mapper, style: RecordStyle): Promise<number> {
    try {
      const { module } = this.#options
      const loading = loadedWithNotice(module, mapper.prepare(), (line) => this.#print(line))
      const [source] = await Promise.all([this.#found(mapper), loading])
      const code = await this.#mapped(mapper, source, style)
      if (code !== undefined) return code
    } catch (thrown) {
      await mapper.close()
      throw thrown
    }
    await mapper.close()
    return this.#exitCode()
  }

  /** The source. All workers start when it has many items, or looking for them takes a while. */
  async #found(mapper: Mapper): Promise<ItemSource> {
    const timer = setTimeout(() => mapper.startAll(), FEW_FOUND_MS)
    try {
      const source = await this.#source()
      if (source.total === undefined || source.total > FEW_ITEMS) mapper.startAll()
      return source
    } finally {
      clearTimeout(timer)
    }
  }

  /** Map all items. An exit code if the run ends at once, without waiting for calls in flight. */
  async #mapped(mapper: Mapper, source: ItemSource, style: RecordStyle): Promise<number | undefined> {
    this.#itemSource = source
    let stopWith!: (code: number) => void
    const broken = new Promise<number>((resolve) => (stopWith = resolve))
    const output = new Output(this.#context.stdout, {
      onDrain: () => runner.resume(),
      onClosed: () => stopWith(ExitCode.ok),
      onFailed: (error) => {
        this.#print(error.message)
        stopWith(ExitCode.usage)
      },
      beforeWrite: () => {
        if (this.#context.stdout.isTTY === true) this.#progress?.hide()
      },
    })
    const call: Call = (texts, first) => mapper.call(texts, first)
    const kept = this.#kept
    let isOver = false
    const unwritable = (error: unknown): void => {
      // Behind the end, as where the reader of the lines has left, the journal is closed.
      if (isOver) return
      this.#print(`${oneLine(reasonOf(error))}; what it has is kept, and ${CONTINUES}`)
      stopWith(ExitCode.usage)
    }
    const runner = new ItemRunner({
      call: kept?.recording(call, unwritable) ?? call,
      sizeNow: () => mapper.sizeNow(),
      sink: output,
      style,
      firstItem: this.#options.skipCount + 1,
      ordered: this.#options.ordered,
      failFast: this.#options.failFast,
      runningMax: mapper.runningMax,
      heldMax: HELD_MAX,
      heldCharsMax: HELD_CHARS_MAX,
      onStop: (failed) => {
        mapper.stopStarting(failed)
        this.#inputStop.abort()
      },
    })
    this.#runner = runner
    this.#output = output
    await this.#showProgress(runner, source)
    try {
      const batches = source.batches(this.#inputStop.signal)
      const code = await Promise.race([broken, runner.run(kept?.lookedUp(batches) ?? batches)])
      if (typeof code === 'number') return code
      const ended = await Promise.race([broken, output.end()])
      if (ended !== undefined) return ended
    } finally {
      isOver = true
      this.#progress?.stop()
    }
    this.#report(runner.summary())
    if (kept !== undefined) this.#reportKept(kept)
    return this.#options.failFast && runner.summary().failedCount > 0 ? this.#exitCode() : undefined
  }

  async #source(): Promise<ItemSource> {
    const { inputs, ignored, skipCount, skipMark, items, lineCharsMax } = this.#options
    const context = this.#context
    return openSource({
      inputs,
      ignored,
      skipCount,
      skipMark,
      items,
      lineCharsMax,
      get stdin() {
        return context.stdin
      },
      complain: (error) => {
        this.#inputsFailed = true
        this.#print(error.message)
      },
    })
  }

  #onSignal(signal: StopSignal): void {
    const isFirst = this.#signal === undefined
    this.#signal ??= signal
    const code = signalCode(this.#signal)
    if (this.#runner === undefined) {
      this.#print('interrupted before the first item')
      this.#context.exit(code)
    } else if (isFirst) {
      if (this.#context.stderr.isTTY === true)
        this.#print('finishing the items in flight; press Ctrl-C again to stop at once')
      this.#runner.stop()
    } else {
      const end = this.#kept === undefined ? `${this.#doubtful()} may lack a result` : CONTINUES
      this.#print(`stopped at once; ${end}`)
      this.#context.exit(code)
    }
  }

  /** The items whose lines may be lost if the process ends now. */
  #doubtful(): string {
    // A line that only waits to be written is lost too. Without an order no number divides the items.
    if (!this.#options.ordered) return 'items that ran'
    return `item ${this.#options.skipCount + (this.#output?.deliveredCount ?? 0) + 1} and later ones`
  }

  async #showProgress(runner: ItemRunner, source: ItemSource): Promise<void> {
    if (!this.#options.progress || this.#context.stderr.isTTY !== true) return
    // Loaded only here: most runs have no terminal and should start without it.
    const { Progress } = await import('./progress.ts')
    this.#progress = new Progress(this.#context.stderr, () => {
      const { writtenCount, failedCount } = runner.summary()
      return { doneCount: writtenCount, failedCount, total: source.total, fraction: source.fraction() }
    })
  }

  /* c8 ignore start: as above */
  /** How many results are those of earlier runs. */
  #reportKept({ keptCount, earlierCount }: KeptResults): void {
    if (keptCount === 0) return
    const { journal, module } = this.#options
    const made = keptCount === 1 ? 'result is' : 'results are'
    const earlier = `, ${counted(earlierCount)} of an earlier ${module}: another --journal runs all items`
    this.#print(`${counted(keptCount)} ${made} from ${journal}${earlierCount === 0 ? '' : earlier}`)
  }
  /* c8 ignore stop */

  #report({ writtenCount, failedCount, nextItem }: RunnerSummary): void {
    const failed = failedCount === 0 ? '' : `${counted(failedCount)} of ${items(writtenCount)} failed`
    if (this.#signal !== undefined) {
      const mark = this.#itemSource?.mark(nextItem - 1) ?? ''
      const done = writtenCount === 1 ? '1 item is done' : `${items(writtenCount)} are done`
      const of = failedCount === 0 ? '' : ` (${counted(failedCount)} failed)`
      const how = this.#kept === undefined ? `continue with --skip ${nextItem - 1}${mark}` : CONTINUES
      this.#print(`interrupted: ${done}${of}; ${how}`)
    } else if (failedCount > 0) {
      const which = this.#options.ordered ? `item ${counted(nextItem - 1)}, which` : 'the first item that'
      this.#print(this.#options.failFast ? `stopped at ${which} failed` : failed)
    } else if (this.#progress !== undefined) {
      const seconds = (performance.now() - this.#startMs) / 1000
      const rate = Math.round(writtenCount / seconds)
      this.#context.stderr.write(`${items(writtenCount)} in ${seconds.toFixed(1)} s (${counted(rate)}/s)\n`)
    }
  }

  #exitCode(): number {
    if (this.#signal !== undefined) return signalCode(this.#signal)
    const failedCount = this.#runner?.summary().failedCount ?? 0
    return failedCount > 0 || this.#inputsFailed ? ExitCode.itemsFailed : ExitCode.ok
  }

  #print(sentence: string): void {
    this.#progress?.hide()
    this.#context.stderr.write(`corespun: ${sentence.replace(/[\r\n\u2028\u2029]+/g, ' ')}\n`)
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
