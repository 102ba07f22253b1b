/**
 * `corespun profile`: one file of what all threads of a process, and of its processes, did for some seconds.
 * The processes sample and label; what becomes of the samples is decided here.
 */
import { accessSync, constants, statSync, writeFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { ParseArgsConfig } from 'node:util'
import { messageOf, oneLine } from '../../base/index.ts'
import {
  type Answers,
  type ControlSocket,
  type ThreadProfile,
  ask,
  findProcess,
  textOf,
} from '../../observe/internal.ts'
import { HELP, usage, wholeNumber, wordsOf } from '../arguments.ts'
import { ExitCode, outputFailed } from '../errors.ts'
import type { CommandContext } from '../run/run.ts'
import { cpuProfile, heapProfile, speedscope } from './formats.ts'
import { type Lane, laneOf, sharesOf } from './lanes.ts'
import { oneProcess } from './stacks.ts'

/** `corespun profile`, as asked for. */
interface ProfileWords {
  readonly process: string
  readonly seconds: number
  readonly kind: 'cpu' | 'heap'
  readonly format: keyof typeof ENDINGS
  readonly output: string | undefined
}

const ENDINGS = { cpuprofile: 'cpuprofile', speedscope: 'speedscope.json', heap: 'heapprofile' } as const
const SECONDS_MAX = 600
/** How long a process may take besides: a profile of minutes is long. */
const ANSWER_MS = 120_000
/** Labels whose share is printed. */
const SHARES_SHOWN = 8

const flags = {
  seconds: { type: 'string', short: 's' },
  output: { type: 'string', short: 'o' },
  format: { type: 'string' },
  heap: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const satisfies ParseArgsConfig['options']

/** @throws {CliError} `CLI_USAGE`. */
export function readProfileArguments(words: readonly string[]): ProfileWords | typeof HELP {
  const { values, positionals } = wordsOf(words, flags)
  if (values.help === true) return HELP
  const { format = 'cpuprofile', heap = false, output, seconds } = values
  if (format !== 'cpuprofile' && format !== 'speedscope')
    throw usage(`--format takes cpuprofile or speedscope, not "${format}"`)
  if (heap && values.format !== undefined) throw usage('--heap has a format of its own: leave out --format')
  return Object.freeze({
    process: oneProcess(positionals),
    seconds: wholeNumber('--seconds', seconds, 10, SECONDS_MAX),
    kind: heap ? 'heap' : 'cpu',
    format: heap ? 'heap' : format,
    output,
  })
}

/**
 * @throws {ObserveError} Where the process is not found, or does not answer.
 * @throws {CliError} `CLI_OUTPUT_FAILED`.
 */
export async function profile(words: ProfileWords, context: CommandContext): Promise<number> {
  const sockets = await findProcess(words.process)
  const [{ pid, name }] = sockets
  const file = resolve(context.folder, words.output ?? `${name}-${pid}.${ENDINGS[words.format]}`)
  checkOutput(file)
  const stop = new AbortController()
  const ignoreSignals = context.onSignal((signal) => {
    if (stop.signal.aborted) context.exit(signal === 'SIGINT' ? ExitCode.interrupted : ExitCode.terminated)
    stop.abort()
  })
  const problems: string[] = []
  try {
    const begun = new Set<ControlSocket>()
    const add = (socket: ControlSocket): void => {
      if (begun.has(socket) || begun.add(socket).size < sockets.length) return
      void context.stderr.write(`profiling for ${words.seconds} s; Ctrl-C ends it early\n`)
    }
    // The process itself must answer; the others may have ended.
    const asked = sockets.map((socket, index) => {
      const answer = askFor(socket, words, { stop: stop.signal, event: () => add(socket) })
      if (index > 0) answer.catch(() => add(socket))
      return answer
    })
    const [own, ...others] = await Promise.allSettled(asked)
    if (own.status === 'rejected') throw own.reason
    const threads = [...own.value]
    for (const other of others)
      if (other.status === 'fulfilled') threads.push(...other.value)
      else problems.push(messageOf(other.reason))
    for (const { name, problem } of threads) if (problem !== undefined) problems.push(`${name}: ${problem}`)
    write(file, words.kind === 'heap' ? heapProfile(threads) : timed(threads, words, context))
    context.stdout.write(`${file}\n`)
  } finally {
    ignoreSignals()
  }
  for (const problem of problems) context.stderr.write(`corespun: ${oneLine(problem)}\n`)
  return problems.length === 0 ? ExitCode.ok : ExitCode.itemsFailed
}

async function askFor(
  socket: ControlSocket,
  { seconds, kind }: ProfileWords,
  answers: Pick<Answers, 'stop' | 'event'>,
): Promise<ThreadProfile[]> {
  const timeoutMs = seconds * 1000 + ANSWER_MS
  const { threads } = (await ask(socket, 'profile', { seconds, kind }, { timeoutMs, ...answers })) as {
    threads: ThreadProfile[]
  }
  if (socket.parent === undefined) return threads
  return threads.map((thread) => ({ ...thread, name: `process ${socket.pid}, ${thread.name}` }))
}

function timed(threads: readonly ThreadProfile[], { format }: ProfileWords, context: CommandContext): object {
  const lanes = threads.flatMap((thread): Lane | Lane[] => laneOf(thread) ?? [])
  const { busyMs, shares } = sharesOf(lanes)
  const percent = (share: number): string => `${(share * 100).toFixed(1).padStart(5)} %`
  const named = shares.filter(([label]) => label !== '')
  const all = named.reduce((sum, [, share]) => sum + share, 0)
  context.stderr.write(
    `${(busyMs / 1000).toFixed(2)} s of CPU time, ${percent(all).trim()} of it with a label\n`,
  )
  for (const [label, share] of named.slice(0, SHARES_SHOWN))
    context.stderr.write(`  ${percent(share)}  ${textOf(label)}\n`)
  return format === 'speedscope' ? speedscope(lanes) : cpuProfile(lanes)
}

/**
 * Before the profile is made: a minute of it would be lost.
 * @throws {CliError} `CLI_OUTPUT_FAILED`.
 */
function checkOutput(file: string): void {
  try {
    const stats = statSync(file, { throwIfNoEntry: false })
    if (stats?.isDirectory()) throw Object.assign(new Error('is a directory'), { code: 'EISDIR' })
    accessSync(stats === undefined ? dirname(file) : file, constants.W_OK)
  } catch (cause) {
    throw outputFailed(file, cause)
  }
}

/** @throws {CliError} `CLI_OUTPUT_FAILED`. */
function write(file: string, content: object): void {
  try {
    writeFileSync(file, JSON.stringify(content))
  } catch (cause) {
    throw outputFailed(file, cause)
  }
}
