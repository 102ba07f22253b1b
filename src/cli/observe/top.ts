/**
 * `corespun top`: what a process of this machine does, drawn anew each second.
 *
 * The process counts, and sends its totals by its control socket; rates are computed here from two of them.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { ParseArgsConfig } from 'node:util'
import { messageOf, oneLine } from '../../base/index.ts'
import {
  type ControlSocket,
  type RowAction,
  type Snapshot,
  ask,
  controlSockets,
  findProcess,
  isAnswered,
  textOf,
  viewOf,
} from '../../observe/internal.ts'
import { ObserveError } from '../../observe/index.ts'
import { duration, HELP, usage, wordsOf } from '../arguments.ts'
import { ExitCode } from '../errors.ts'
import type { CommandContext } from '../run/run.ts'
import { type Choice, printed, screenOf } from './layout.ts'
import { jsonLine, oneProcess } from './stacks.ts'
import { Screen } from './terminal.ts'

/** `corespun top`, as asked for. */
interface TopWords {
  readonly process: string | undefined
  readonly json: boolean
  readonly once: boolean
  readonly everyMs: number
}

const EVERY_MS = 1000
const ANSWER_MS = 10_000
/** A drain or a reload waits for tasks. */
const CONTROL_MS = 60_000
const PAGE = 10

const flags = {
  json: { type: 'boolean' },
  once: { type: 'boolean' },
  every: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const satisfies ParseArgsConfig['options']

/** @throws {CliError} `CLI_USAGE`. */
export function readTopArguments(words: readonly string[]): TopWords | typeof HELP {
  const { values, positionals } = wordsOf(words, flags)
  if (values.help === true) return HELP
  return Object.freeze({
    process: positionals.length === 0 ? undefined : oneProcess(positionals),
    json: values.json === true,
    once: values.once === true,
    everyMs: duration('--every', values.every) || EVERY_MS,
  })
}

/**
 * Watch a process until a key or a signal ends it, or print what it does now.
 * @throws {ObserveError} Where the process is not found, or does not answer at first.
 * @throws {CliError} `CLI_USAGE` where no process is named and there is not just one.
 */
export async function top(words: TopWords, context: CommandContext): Promise<number> {
  const { stdout } = context
  const socket = await chosen(words.process)
  const before = await snapshotOf(socket)
  if (words.json) {
    stdout.write(jsonLine(before))
    return ExitCode.ok
  }
  if (stdout.isTTY === true && !words.once) return new Watch(socket, before, words, context).ended()
  await pause(words.everyMs)
  const { columns = Infinity } = stdout as { readonly columns?: number } // Of a terminal.
  stdout.write(printed(viewOf(await snapshotOf(socket), before), columns))
  return ExitCode.ok
}

/** A process that is named, or the only one. */
async function chosen(named: string | undefined): Promise<ControlSocket> {
  if (named !== undefined) return (await findProcess(named))[0]
  const known = (await controlSockets()).filter(({ parent }) => parent === undefined)
  const answers = await Promise.all(known.map(({ path }) => isAnswered(path)))
  const [only, ...others] = known.filter((_, index) => answers[index])
  if (only === undefined)
    throw usage(
      'no process of this user has a control socket: corespun serve, run and host open one after a second, ' +
        'a program by observe() of corespun/observe',
    )
  if (others.length === 0) return only
  const all = [only, ...others].map(({ pid, name }) => `${pid} (${name})`)
  throw usage(`name one of these processes: ${all.join(', ')}`)
}

async function snapshotOf(socket: ControlSocket): Promise<Snapshot> {
  const snapshot = (await ask(socket, 'snapshot', {}, { timeoutMs: ANSWER_MS })) as Partial<Snapshot> | null
  const { version } = snapshot ?? {}
  if (version === 1) return snapshot as Snapshot
  throw new ObserveError('OBSERVE_VERSION', {
    expected: 1,
    received: JSON.stringify(version)?.slice(0, 100),
  })
}

class Watch {
  readonly #socket: ControlSocket
  readonly #words: TopWords
  readonly #context: CommandContext
  readonly #screen: Screen
  readonly #stop = new AbortController()
  #choice: Choice
  #before: Snapshot | undefined
  #now: Snapshot

  constructor(socket: ControlSocket, now: Snapshot, words: TopWords, context: CommandContext) {
    this.#socket = socket
    this.#now = now
    this.#words = words
    this.#context = context
    const mayDrain = now.actions?.includes('drain') === true
    this.#choice = { table: undefined, row: 0, question: undefined, note: '', mayDrain }
    this.#screen = new Screen(
      context,
      (key) => this.#pressed(key),
      () => this.#draw(),
    )
  }

  /** Until it is left. @returns The exit code. */
  async ended(): Promise<number> {
    const { signal } = this.#stop
    const ignore = this.#context.onSignal(() => this.#stop.abort())
    const left = new Promise<undefined>((resolve) =>
      signal.addEventListener('abort', () => resolve(undefined)),
    )
    this.#screen.open()
    let problem: string | undefined
    try {
      this.#draw()
      problem = await Promise.race([this.#watched(signal), left])
    } finally {
      this.#screen.close()
      ignore()
    }
    if (problem === undefined) return ExitCode.ok
    this.#context.stderr.write(`corespun: ${problem}\n`)
    return ExitCode.itemsFailed
  }

  /** @returns Why it cannot go on. */
  async #watched(signal: AbortSignal): Promise<string | undefined> {
    while (!signal.aborted) {
      await pause(this.#words.everyMs, undefined, { signal }).catch(() => {}) // left
      if (signal.aborted) break
      try {
        const now = await snapshotOf(this.#socket)
        this.#before = this.#now
        this.#now = now
        if (this.#choice.note.startsWith(SILENT)) this.#choose({ note: '' })
      } catch (error) {
        const { pid, name, path } = this.#socket
        if (!(await isAnswered(path))) return `process ${pid} (${name}) has ended`
        this.#choose({ note: SILENT + oneLine(messageOf(error)) })
      }
      this.#draw()
    }
    return undefined
  }

  #choose(choice: Partial<Choice>): void {
    this.#choice = { ...this.#choice, ...choice }
  }

  #draw(): void {
    const view = viewOf(this.#now, this.#before)
    this.#screen.draw(screenOf(view, this.#choice, ...this.#screen.size))
  }

  #pressed(key: string): void {
    if (key === 'quit') return this.#stop.abort()
    const { question } = this.#choice
    if (question !== undefined) {
      this.#choose({ question: undefined, note: '' })
      if (key === 'y') void this.#act(question)
    } else this.#moved(key)
    this.#draw()
  }

  #moved(key: string): void {
    const { tables } = viewOf(this.#now, this.#before)
    const { table, row, mayDrain } = this.#choice
    const at = tables.findIndex(({ id }) => id === table)
    const { rows = [] } = tables[at] ?? {}
    const to = (index: number): void => this.#choose({ table: tables[index]?.id, row: 0, note: '' })
    const move = (by: number): void =>
      this.#choose({ row: Math.max(0, Math.min(rows.length - 1, row + by)), note: '' })
    if (/^\d$/.test(key)) to(Number(key) - 1)
    else if (key === 'next') to(at + 1 === tables.length ? -1 : at + 1)
    else if (key === 'previous') to(at === -1 ? tables.length - 1 : at - 1)
    else if (key === 'up') move(-1)
    else if (key === 'down') move(1)
    else if (key === 'page up') move(-PAGE)
    else if (key === 'page down') move(PAGE)
    else if (key === 'enter') this.#choose({ question: rows[row]?.act })
    else if (key === 'd' && mayDrain) this.#choose({ question: DRAIN })
  }

  async #act({ action, params }: RowAction): Promise<void> {
    this.#choose({ note: `${action} ...` })
    const timeoutMs = CONTROL_MS
    try {
      const result = await ask(this.#socket, 'control', { action, params }, { timeoutMs })
      this.#choose({
        note: result === null ? `${action}: done` : `${action}: ${textOf(JSON.stringify(result))}`,
      })
    } catch (error) {
      this.#choose({ note: `${action}: ${textOf(messageOf(error), 200)}` })
    }
    this.#draw()
  }
}

/** Begins the note of a process that does not answer. */
const SILENT = 'no answer: '
const DRAIN: RowAction = {
  action: 'drain',
  params: {},
  question: 'drain: finish what has begun and stop this process?',
}
