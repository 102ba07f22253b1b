/**
 * `corespun test`: the checks of files under many seeds, on every core.
 *
 * A file runs in several processes, as `node file` would run it; each plays a part of the seeds and reports
 * its checks (src/test/part.ts). A process that ends with another code than 0 has failed: by a seed of a
 * check, or by something else, whose output is printed; so has one that ends before a check does. A find that
 * a process has expected, so that it ended with 0, is not a failure.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { reasonOf } from '../../base/index.ts'
import type { CheckBegun, CheckReport } from '../../test/internal.ts'
import { CliError, ExitCode } from '../errors.ts'
import { resolveModule } from '../resolve.ts'
import type { CommandContext } from '../run/run.ts'
import { firstSignal } from '../signals.ts'
import type { TestWords } from './test-arguments.ts'

/** The last that a process has written is kept. */
const OUTPUT_CHARS_MAX = 16_384

/** A file, and what became of its parts. */
interface TestFile {
  readonly file: string
  readonly path: string
  readonly parts: PartEnd[]
}

/** A process that has ended. */
interface PartEnd {
  readonly reports: readonly CheckReport[]
  /** Why it has failed; empty if it has not. */
  readonly failure: string
  readonly output: string
}

/**
 * Play the checks of all files.
 * @returns The exit code: 1 if a process of a file has failed, or a file has no check.
 * @throws {CliError} `CLI_MODULE_MISSING`.
 */
export async function test(words: TestWords, context: CommandContext): Promise<number> {
  const files = words.files.map((file) => ({ file, path: pathOf(file, context.folder), parts: [] }))
  const stop = firstSignal(context)
  const run = new TestRun(words, context)
  let ended: number | undefined
  void stop.first.then((signal) => {
    ended = signal === 'SIGINT' ? ExitCode.interrupted : ExitCode.terminated
    run.stop()
  })
  try {
    const code = await run.all(files)
    return ended ?? code
  } finally {
    stop.ignore()
  }
}

function pathOf(module: string, folder: string): string {
  const url = resolveModule(module, folder)
  if (!url.startsWith('file:')) throw new CliError('CLI_MODULE_MISSING', { module, hint: 'name a file' })
  return fileURLToPath(url)
}

class TestRun {
  readonly #words: TestWords
  readonly #context: CommandContext
  readonly #running = new Set<ChildProcess>()
  readonly #startMs = performance.now()
  #isStopped = false
  #checkCount = 0
  #failedCount = 0
  #seedCount = 0
  #code: number = ExitCode.ok

  constructor(words: TestWords, context: CommandContext) {
    this.#words = words
    this.#context = context
  }

  async all(files: readonly TestFile[]): Promise<number> {
    const { workers, json } = this.#words
    // One seed has no parts.
    const of = process.env['CORESPUN_SEED'] === undefined ? workers : 1
    const left = files.flatMap((file) => Array.from({ length: of }, (_, index) => ({ file, at: index + 1 })))
    const lane = async (): Promise<void> => {
      for (let next = left.shift(); next !== undefined && !this.#isStopped; next = left.shift()) {
        const { file, at } = next
        file.parts.push(await this.#play(file, `${at}/${of}`))
        if (file.parts.length === of) this.#report(file)
      }
    }
    await Promise.all(Array.from({ length: workers }, lane))
    if (this.#isStopped) for (const file of files) if (file.parts.length < of) this.#report(file)
    const seconds = ((performance.now() - this.#startMs) / 1000).toFixed(1)
    const checks = `${this.#checkCount} ${this.#checkCount === 1 ? 'check' : 'checks'}`
    const failed = this.#failedCount === 0 ? '' : `, ${this.#failedCount} failed`
    // A check that fails does not report how many it has played.
    const seeds = this.#seedCount === 0 ? '' : `, ${counted(this.#seedCount)} seeds`
    if (!json) this.#print(`${checks}${failed}${seeds} in ${seconds} s`)
    return this.#code
  }

  /** End all that run, at once. */
  stop(): void {
    this.#isStopped = true
    for (const child of this.#running) kill(child)
  }

  #play({ file, path }: TestFile, part: string): Promise<PartEnd> {
    const { seeds, timeoutMs } = this.#words
    const child = fork(path, [], {
      cwd: this.#context.folder,
      // In a group of its own: a terminal sends Ctrl-C to the command alone.
      detached: process.platform !== 'win32',
      execArgv: [...process.execArgv, ...loaderOf()],
      env: {
        ...process.env,
        // Of a run of node:test around this command, which has another form of output.
        NODE_TEST_CONTEXT: undefined,
        CORESPUN_TEST_FILE: file,
        CORESPUN_SEEDS_PART: part,
        ...(seeds !== undefined && { CORESPUN_SEEDS: String(seeds) }),
      },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    } as Parameters<typeof fork>[2])
    this.#running.add(child)
    const reports: CheckReport[] = []
    /** Checks that have begun and not ended. */
    const open: string[] = []
    let output = ''
    const add = (text: string): void => void (output = (output + text).slice(-OUTPUT_CHARS_MAX))
    child.on('message', (message) => {
      if (isBegun(message)) open.push(whereOf(message))
      if (!isReport(message)) return
      reports.push(message)
      open.splice(open.indexOf(whereOf(message)), 1)
    })
    for (const stream of [child.stdout!, child.stderr!]) stream.setEncoding('utf8').on('data', add)
    let late = ''
    const expire = (): void => {
      late = `process ${part} has not ended after ${timeoutMs} ms (--timeout)`
      kill(child)
    }
    const timer = timeoutMs === 0 ? undefined : setTimeout(expire, timeoutMs)
    return new Promise((resolve) => {
      const end = (failure: string): void => {
        clearTimeout(timer)
        this.#running.delete(child)
        resolve({ reports, failure: this.#isStopped ? '' : failure, output })
      }
      child.once('error', (error) => end(`process ${part} could not start: ${reasonOf(error)}`))
      child.once('close', (code, signal) => {
        const how = code === null ? `by ${signal}` : `with code ${code}`
        const [where] = open.map((each) => relative(this.#context.folder, each))
        const before = where === undefined ? '' : `, before the check of ${where}`
        end(late || (code === 0 && before === '' ? '' : `process ${part} has ended ${how}${before}`))
      })
    })
  }

  /** Print what became of a file. */
  #report({ file, parts }: TestFile): void {
    const checks = new Map<string, CheckReport[]>()
    for (const report of parts.flatMap(({ reports }) => reports)) {
      const where = whereOf(report)
      checks.set(where, [...(checks.get(where) ?? []), report])
    }
    const foundBy = (part: PartEnd): string[] => part.reports.filter(isFound).map(whereOf)
    const expected = new Set(parts.filter(({ failure }) => failure === '').flatMap(foundBy))
    const blamed = new Set<string>()
    for (const [where, reports] of checks) {
      const [first] = reports.filter(isFound).sort((a, b) => a.found.seed - b.found.seed)
      if (first !== undefined && (this.#isStopped || !expected.has(where))) blamed.add(where)
      this.#check(reports, blamed.has(where) ? first : undefined)
    }
    const isExplained = (part: PartEnd): boolean => foundBy(part).some((where) => blamed.has(where))
    const other = parts.find((part) => part.failure !== '' && !isExplained(part))
    if (other !== undefined) this.#failed(file, other.failure, other.output)
    else if (checks.size === 0 && !this.#isStopped) this.#failed(file, 'it calls no check()', '')
  }

  /** Print what became of a check. */
  #check(reports: readonly CheckReport[], first: Found | undefined): void {
    const { file, line } = reports[0]
    const name = relative(this.#context.folder, file)
    const sum = (of: 'seeds' | 'steps'): number => reports.reduce((all, report) => all + report[of], 0)
    const [seeds, steps] = [sum('seeds'), sum('steps')]
    const schedules = schedulesOf(reports)
    this.#checkCount += 1
    this.#seedCount += seeds
    if (first !== undefined) {
      this.#code = ExitCode.itemsFailed
      this.#failedCount += 1
    }
    if (this.#words.json)
      this.#print(JSON.stringify({ file: name, line, seeds, schedules, steps, ...first?.found }))
    else if (first !== undefined) this.#print(`${name}:${line}: ${first.found.code}\n${first.found.message}`)
    else
      this.#print(
        `${name}:${line}: ${counted(seeds)} seeds, ${counted(schedules)} schedules, ${counted(steps)} steps`,
      )
  }

  #failed(file: string, reason: string, output: string): void {
    this.#code = ExitCode.itemsFailed
    if (this.#words.json) this.#print(JSON.stringify({ file, error: reason, output }))
    else this.#print(`${file}: ${reason}${output && `:\n${output}`}`)
  }

  #print(text: string): void {
    this.#context.stdout.write(`${text.trimEnd()}\n`)
  }
}

type Found = CheckReport & { readonly found: NonNullable<CheckReport['found']> }
const isFound = (report: CheckReport): report is Found => report.found !== undefined
const whereOf = ({ file, line }: Pick<CheckBegun, 'file' | 'line'>): string => `${file}:${line}`

/** A set holds some millions, and each process may report a million. */
const SCHEDULES_MAX = 1_000_000

function schedulesOf(reports: readonly CheckReport[]): number {
  const all = new Set<number>()
  for (const { traces } of reports) for (const trace of traces) if (all.size < SCHEDULES_MAX) all.add(trace)
  return all.size
}

const counted = (count: number): string => count.toLocaleString('en-US')

function isBegun(message: unknown): message is CheckBegun {
  return (message as Partial<CheckBegun> | null)?.kind === 'begun'
}

function isReport(message: unknown): message is CheckReport {
  return (message as Partial<CheckReport> | null)?.kind === 'check'
}

/** A process, and what it has started. */
function kill(child: ChildProcess): void {
  try {
    if (process.platform === 'win32') child.kill('SIGKILL')
    else process.kill(-child.pid!, 'SIGKILL')
  } catch {
    // It has ended.
  }
}

/** The options of Node that load TypeScript, where it does not by itself. */
function loaderOf(): string[] {
  const { typescript: strips }: { readonly typescript?: unknown } = process.features
  return strips ? [] : ['--import', import.meta.resolve('corespun/typescript')]
}
