/**
 * `corespun stacks`: what every thread of a process does, and of the processes that are its workers.
 * A process that does not answer does not keep the others from being printed.
 */
import type { ParseArgsConfig } from 'node:util'
import { messageOf, oneLine } from '../../base/index.ts'
import {
  type RunningTask,
  type ThreadStack,
  ask,
  findProcess,
  textOf as shown,
} from '../../observe/internal.ts'
import { duration, HELP, usage, wordsOf } from '../arguments.ts'
import { ExitCode } from '../errors.ts'
import type { CommandContext } from '../run/run.ts'

/** `corespun stacks`, as asked for. */
interface StacksWords {
  readonly process: string
  readonly json: boolean
  readonly timeoutMs: number
}

/** What one process answers. */
interface ProcessStacks {
  readonly pid: number
  readonly name: string
  readonly threads: readonly ThreadStack[]
  readonly tasks: readonly RunningTask[]
  /** Why it did not answer. */
  readonly problem?: string
}

const TIMEOUT_MS = 10_000

const flags = {
  json: { type: 'boolean' },
  timeout: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const satisfies ParseArgsConfig['options']

/** @throws {CliError} `CLI_USAGE`. */
export function readStacksArguments(words: readonly string[]): StacksWords | typeof HELP {
  const { values, positionals } = wordsOf(words, flags)
  if (values.help === true) return HELP
  return Object.freeze({
    process: oneProcess(positionals),
    json: values.json === true,
    timeoutMs: duration('--timeout', values.timeout) || TIMEOUT_MS,
  })
}

/** @throws {CliError} `CLI_USAGE` unless it is one word. */
export function oneProcess([process, ...more]: readonly string[]): string {
  if (process === undefined || process === '') throw usage('name the process, by its pid or its name')
  if (more.length > 0) throw usage(`expected one process, received more: ${more.join(' ')}`)
  return process
}

/** A document of JSON without what a terminal would obey. */
export function jsonLine(value: unknown): string {
  const json = JSON.stringify(value).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (char) =>
    [...Array(char.length).keys()]
      .map((at) => `\\u${char.charCodeAt(at).toString(16).padStart(4, '0')}`)
      .join(''),
  )
  return `${json}\n`
}

/** @throws {ObserveError} Where the process is not found. */
export async function stacks(
  { process, json, timeoutMs }: StacksWords,
  context: CommandContext,
): Promise<number> {
  const found = await findProcess(process)
  const all = await Promise.all(
    found.map(async (socket): Promise<ProcessStacks> => {
      const { pid, name } = socket
      try {
        const answer = await ask(socket, 'stacks', {}, { timeoutMs })
        return { pid, name, ...(answer as Pick<ProcessStacks, 'threads' | 'tasks'>) }
      } catch (error) {
        return { pid, name, threads: [], tasks: [], problem: messageOf(error) }
      }
    }),
  )
  context.stdout.write(json ? jsonLine(all) : all.map((one) => textOf(one, all)).join('\n'))
  const isWhole = all.every(
    ({ problem, threads }) => problem === undefined && threads.every((each) => !each.problem),
  )
  return isWhole ? ExitCode.ok : ExitCode.itemsFailed
}

/** @param all The caller of a task in a worker that is a process is in the process that has started it. */
function textOf(
  { pid, name: called, threads, problem }: ProcessStacks,
  all: readonly ProcessStacks[],
): string {
  const lines = [`process ${pid} (${called})${problem === undefined ? '' : `: ${oneLine(problem)}`}`]
  for (const { thread, name, worker = '', frames, fibers, problem } of threads) {
    lines.push(`  thread ${thread}, ${worker === '' ? name : `worker ${worker}`}`)
    const tasksOf = (one: ProcessStacks): readonly RunningTask[] =>
      one.tasks.filter((task) => task.worker === worker || (one.pid === pid && task.thread === name))
    for (const task of all.map(tasksOf).find(({ length }) => length > 0) ?? [])
      lines.push(`    ${taskText(task)}`)
    if (problem !== undefined) lines.push(`    ${problem.code}: ${oneLine(problem.message)}`)
    else if (frames.length === 0) lines.push('    runs no JavaScript')
    for (const frame of folded(frames)) lines.push(`    ${frame}`)
    if (fibers !== undefined) lines.push('    fibers', ...fibers.split('\n').map((line) => `      ${line}`))
  }
  return `${lines.map((line) => shown(line, Infinity)).join('\n')}\n`
}

/** Frames without those at the end that are Corespun's own; all, where there are no others. */
export function folded(frames: readonly string[]): string[] {
  const end = frames.findLastIndex((frame) => !frame.includes('/node_modules/corespun/lib/')) + 1
  const shownFrames = frames.slice(0, end || frames.length).map((frame) => `at ${frame}`)
  return shownFrames.length < frames.length ? [...shownFrames, '…'] : shownFrames
}

function taskText({ name, source, ageMs, caller, isCancelled }: RunningTask): string {
  const where = source === '' ? '' : ` (${source})`
  const seconds = (ageMs / 1000).toFixed(ageMs < 10_000 ? 3 : 0)
  return `task ${name}${where}, for ${seconds} s, called by ${caller}${isCancelled ? ', cancelled' : ''}`
}
