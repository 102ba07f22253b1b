/**
 * The words after `corespun run`, checked and completed.
 *
 * What leaves here is a frozen record without optional fields, so nothing further inside asks again. Every
 * wrong argument is a `CLI_USAGE` error that names it and what was received.
 */
import { availableParallelism } from 'node:os'
import { parseArgs, type ParseArgsConfig } from 'node:util'
import { messageOf, nearestOf, oneLine } from '../base/index.ts'
import { CliError } from './errors.ts'
import { isModuleFile } from './resolve.ts'

/** How the inputs become items. */
export type ItemKind = 'paths' | 'lines' | 'ndjson'

/** One `corespun run`, as asked for. */
export type RunOptions = Exclude<ReturnType<typeof readArguments>, typeof HELP>

/** Help was asked for; not an error. */
export const HELP = 'help'

const WORKERS_MAX = 1024
const CONCURRENCY_MAX = 65_536
const TIMEOUT_MS_MAX = 2 ** 30
const SKIP_MAX = Number.MAX_SAFE_INTEGER
const LINE_CHARS_MAX = 2 ** 28
const LINE_CHARS_DEFAULT = 2 ** 24

const flags = {
  lines: { type: 'boolean' },
  ndjson: { type: 'boolean' },
  ignore: { type: 'string', multiple: true },
  skip: { type: 'string' },
  journal: { type: 'string' },
  'journal-hash': { type: 'boolean' },
  failed: { type: 'boolean' },
  workers: { type: 'string', short: 'w' },
  concurrency: { type: 'string', short: 'c' },
  timeout: { type: 'string', short: 't' },
  'line-max': { type: 'string' },
  unordered: { type: 'boolean', short: 'u' },
  numbered: { type: 'boolean', short: 'n' },
  'fail-fast': { type: 'boolean' },
  stacks: { type: 'boolean' },
  'no-progress': { type: 'boolean' },
  'no-observe': { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const satisfies ParseArgsConfig['options']

/**
 * Read the arguments of `corespun run`.
 * @param words The words after `run`.
 * @param isTyped Returns whether a person would have to type the items; called when no input is named.
 * @param folder Where the module's path starts from.
 * @throws {CliError} `CLI_USAGE` naming the argument that is wrong and what was received.
 */
export function readArguments(words: readonly string[], isTyped: () => boolean, folder: string) {
  const { values, positionals } = parsed(words)
  if (values.help === true) return HELP
  const [target, ...named] = positionals
  if (target === undefined || target === '') throw usage('name the module whose function to run')
  if (values.lines === true && values.ndjson === true) throw usage('--lines and --ndjson exclude each other')
  if (named.length === 0 && values.failed !== true && isTyped())
    throw usage('name files or globs, or - to read standard input')
  const inputs = named.length === 0 ? ['-'] : named
  if (inputs.indexOf('-') !== inputs.lastIndexOf('-')) throw usage('standard input (-) can be read only once')
  const { module, exportName } = splitTarget(target, folder)
  return Object.freeze({
    /** A path, a URL or a package, as written before `#`. */
    module,
    exportName: exportName ?? 'default',
    /** Whether the export was written; without it the only exported function will do. */
    exportNamed: exportName !== undefined,
    /** Paths, globs and `-`, as written; never empty. */
    inputs: Object.freeze(inputs),
    /** Globs whose files are left out. */
    ignored: Object.freeze(values.ignore ?? []),
    ...skipOf(values.skip),
    ...journalOf(values),
    items: itemKind(values, inputs),
    workers: wholeNumber('--workers', values.workers, availableParallelism(), WORKERS_MAX),
    /** Items that one worker may have begun and not ended; more than 1 lets asynchronous calls overlap. */
    concurrency: wholeNumber('--concurrency', values.concurrency, 1, CONCURRENCY_MAX),
    /** 0: no limit. */
    timeoutMs: duration('--timeout', values.timeout),
    lineCharsMax: wholeNumber('--line-max', values['line-max'], LINE_CHARS_DEFAULT, LINE_CHARS_MAX),
    ordered: values.unordered !== true,
    numbered: values.numbered === true,
    failFast: values['fail-fast'] === true,
    stacks: values.stacks === true,
    progress: values['no-progress'] !== true,
    /** Whether it has a control socket. */
    observe: values['no-observe'] !== true,
  })
}

/**
 * `module#export` in its two parts: the last `#` divides, and either side may be absent.
 * @param folder Where a path starts from: a `#` in the path of a file divides nothing.
 * @throws {CliError} `CLI_USAGE`.
 */
export function splitTarget(
  target: string,
  folder: string,
): { module: string; exportName: string | undefined } {
  const at = target.lastIndexOf('#')
  // A leading '#' is a package's own import (package.json "imports"), not an export's name.
  if (at <= 0 || isModuleFile(target, folder)) return { module: target, exportName: undefined }
  const exportName = target.slice(at + 1)
  if (exportName === '') throw usage(`an export's name is missing behind # in ${target}`)
  return { module: target.slice(0, at), exportName }
}

/**
 * How many items of the beginning are left out, where the others keep their numbers, and their mark:
 * `--skip 3`, or `3:0f1e2d3c` as an interrupted run prints it.
 * @throws {CliError} `CLI_USAGE`.
 */
function skipOf(text: string | undefined): { skipCount: number; skipMark?: string } {
  const [count, mark] = text === undefined ? [] : (/^(\d+):([0-9a-f]{8})$/.exec(text)?.slice(1) ?? [text])
  const skipCount = wholeNumber('--skip', count, 0, SKIP_MAX, 0)
  return mark === undefined ? { skipCount } : { skipCount, skipMark: mark }
}

/** The journal, if there is one, and how it is used. @throws {CliError} `CLI_USAGE`. */
function journalOf(values: {
  readonly journal?: string
  readonly 'journal-hash'?: boolean
  readonly failed?: boolean
  readonly skip?: string
}) {
  const { 'journal-hash': hash = false, failed = false, skip } = values
  // As the address of its engine, too.
  const journal = values.journal?.replace(/^sqlite:/, '')
  if (journal === '') throw usage('--journal needs a value')
  if (journal === undefined && (hash || failed))
    throw usage(`--${failed ? 'failed' : 'journal-hash'} needs --journal, such as --journal work.db`)
  if (journal !== undefined && skip !== undefined) throw usage('--journal and --skip exclude each other')
  return {
    /** The path of the file that keeps what became of each item. */
    journal,
    /** Whether the content of a file is compared by its hash. */
    journalHash: hash,
    /** Whether the failures in the journal are printed, and nothing runs. */
    failed,
  }
}

function itemKind(values: { lines?: boolean; ndjson?: boolean }, inputs: readonly string[]): ItemKind {
  if (values.ndjson === true) return 'ndjson'
  if (values.lines === true) return 'lines'
  if (!inputs.includes('-')) return 'paths'
  if (inputs.length > 1)
    throw usage('add --lines or --ndjson: standard input (-) among files leaves open what an item is')
  return 'lines'
}

function parsed(words: readonly string[]) {
  return wordsOf(words, flags)
}

/** The words as flags and positionals. @throws {CliError} `CLI_USAGE`. */
export function wordsOf<const Flags extends NonNullable<ParseArgsConfig['options']>>(
  words: readonly string[],
  options: Flags,
) {
  try {
    return parseArgs({ args: [...words], options, allowPositionals: true, strict: true })
  } catch (thrown) {
    // Node explains at length how to pass odd positionals; its first sentence names the argument.
    const problem = oneLine(
      messageOf(thrown)
        .split(/\. |\n/)[0]
        .replace(/\.$/, ''),
    )
    const [, name] = /^Unknown option '--([\w-]+)'$/.exec(problem) ?? []
    const nearest = name === undefined ? undefined : nearestOf(name, Object.keys(options))
    throw usage(problem + (nearest === undefined ? '' : `; did you mean --${nearest}?`))
  }
}

/** A flag's whole number. @throws {CliError} `CLI_USAGE`. */
export function wholeNumber(
  flag: string,
  text: string | undefined,
  otherwise: number,
  max: number,
  min = 1,
): number {
  if (text === undefined) return otherwise
  const value = /^\d+$/.test(text) ? Number(text) : NaN
  if (value >= min && value <= max) return value
  throw usage(`${flag} takes a whole number from ${min} to ${max}, not "${text}"`)
}

/** A flag's time in ms, 0 when it was not given. @throws {CliError} `CLI_USAGE`. */
export function duration(flag: string, text: string | undefined): number {
  if (text === undefined) return 0
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h)?$/.exec(text)
  const unitMs = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }[match?.[2] ?? 'ms'] as number
  const ms = match === null ? NaN : Math.round(Number(match[1]) * unitMs)
  if (!(ms >= 1 && ms <= TIMEOUT_MS_MAX)) {
    throw usage(`${flag} takes a time such as 250 (milliseconds), 250ms, 2s, 1.5m or 1h, not "${text}"`)
  }
  return ms
}

/** The error for arguments that are wrong. */
export function usage(problem: string): CliError {
  return new CliError('CLI_USAGE', { problem })
}
