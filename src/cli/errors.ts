/**
 * The errors of the command line.
 *
 * Each message is one line that starts with its subject: it is printed after `corespun: `, without a stack.
 * Records of failed items contain the code as well.
 */
import { CorespunError, reasonOf, type Sentences } from '../base/index.ts'

/** The facts of every {@link CliError} code. */
export interface CliCodes {
  /** The arguments are wrong. */
  CLI_USAGE: { readonly problem: string; readonly command?: string }
  /** No file and no package has the name of the module; `hint` is what was probably meant, or ''. */
  CLI_MODULE_MISSING: { readonly module: string; readonly hint: string }
  /** The module exists and failed to load. */
  CLI_MODULE_FAILED: { readonly module: string; readonly reason: string }
  /** The module has no such export; `exported` are the functions it has. */
  CLI_EXPORT_MISSING: { readonly module: string; readonly name: string; readonly exported: readonly string[] }
  /** The export is not a function but `received`; without a written name, `exported` has the functions. */
  CLI_EXPORT_NOT_FUNCTION: {
    readonly module: string
    readonly name: string
    readonly received: string
    readonly exported: readonly string[]
  }
  /** The module of the app failed to load, exports no app, or its app has an invalid route or option. */
  CLI_APP: { readonly module: string; readonly reason: string }
  /** The core on node:http listens in one thread. */
  CLI_CORE_NODE: { readonly workers: number }
  /** Node's permission model refuses something; `flag` is the option that allows it. */
  CLI_PERMISSION: { readonly permission: string; readonly resource: string; readonly flag: string }
  /** `corespun serve` runs on Node alone. */
  CLI_RUNTIME: { readonly runtime: string }
  /** Workers ended and could not be replaced, or their replacements cannot serve. */
  CLI_WORKERS_DIED: { readonly reason: string }
  /** With `--watch`: the system does not watch a folder of the module. */
  CLI_WATCH: { readonly folder: string; readonly reason: string }
  /** A file, or standard input, cannot be read. */
  CLI_INPUT_UNREADABLE: { readonly input: string; readonly reason: string }
  /** `--skip` leaves out more items than there are, or others than the interrupted run had done. */
  CLI_SKIP: { readonly skipCount: number; readonly problem: string }
  /** A pattern matches no file. */
  CLI_INPUT_NOT_FOUND: { readonly pattern: string }
  /** A line is longer than `--line-max`; the line is skipped. */
  CLI_LINE_TOO_LONG: { readonly lineCharsMax: number }
  /** With `--ndjson`: a line that is not JSON. */
  CLI_LINE_NOT_JSON: { readonly reason: string }
  /** The function returned something JSON cannot write: a BigInt, a cycle. */
  CLI_RESULT_NOT_JSON: { readonly reason: string }
  /** The function ran longer on one item than `--timeout` allows. */
  CLI_ITEM_TIMEOUT: { readonly timeoutMs: number }
  /** Results, or a file of a profile, cannot be written. */
  CLI_OUTPUT_FAILED: { readonly output: string; readonly reason: string }
}

const sentences: Sentences<CliCodes> = {
  CLI_USAGE: ({ problem, command = '' }) =>
    `${problem} (corespun ${command && `${command} `}--help shows how)`,
  CLI_MODULE_MISSING: ({ module, hint }) =>
    `${module}: no such module, neither a file here nor an installed package${hint && `; ${hint}`}`,
  CLI_MODULE_FAILED: (facts) => `${facts.module}: failed to load: ${facts.reason}`,
  CLI_EXPORT_MISSING: (facts) =>
    `${facts.module}: has no ${exportShown(facts.name)}; ${functionsShown(facts)}`,
  CLI_EXPORT_NOT_FUNCTION: (facts) =>
    `${facts.module}: ${exportShown(facts.name)} is not a function but ${facts.received}` +
    (facts.exported.length === 0 ? '' : `; ${functionsShown(facts)}`),
  CLI_APP: (facts) => `${facts.module}: ${facts.reason}`,
  CLI_CORE_NODE: (facts) =>
    `the core on node:http serves a port in one thread: --workers 1, not ${facts.workers} (or --core native)`,
  CLI_PERMISSION: ({ permission, resource, flag }) =>
    `--permission refuses ${permission}${resource && ` of ${resource}`}; allow it by ${flag}`,
  CLI_RUNTIME: ({ runtime }) =>
    `the command serve needs Node, and this is ${runtime}; ` +
    'the function serve of corespun/http runs there, on node:http',
  CLI_WORKERS_DIED: (facts) => `no worker is left to serve: ${facts.reason}`,
  CLI_WATCH: (facts) => `${facts.folder}: cannot be watched: ${facts.reason}`,
  CLI_INPUT_UNREADABLE: (facts) => `${facts.input}: cannot be read: ${facts.reason}`,
  CLI_INPUT_NOT_FOUND: (facts) => `${facts.pattern}: matches no file`,
  CLI_SKIP: (facts) => `--skip ${facts.skipCount}: ${facts.problem}`,
  CLI_LINE_TOO_LONG: (facts) => `the line is longer than ${facts.lineCharsMax} characters (--line-max)`,
  CLI_LINE_NOT_JSON: (facts) => `the line is not JSON: ${facts.reason}`,
  CLI_RESULT_NOT_JSON: (facts) => `the result cannot be written as JSON: ${facts.reason}`,
  CLI_ITEM_TIMEOUT: (facts) => `ran longer than ${facts.timeoutMs} ms (--timeout)`,
  CLI_OUTPUT_FAILED: (facts) => `${facts.output}: cannot be written: ${facts.reason}`,
}

/** An error of the command line, printed as one line. */
export class CliError<Code extends keyof CliCodes = keyof CliCodes> extends CorespunError<CliCodes, Code> {
  /** @internal */
  static readonly sentences = sentences
}

/** The error of an output, by a path or as `standard output`, that cannot be written. */
export function outputFailed(output: string, cause: unknown): CliError {
  return new CliError('CLI_OUTPUT_FAILED', { output, reason: reasonOf(cause) }, { cause })
}

/** The exit codes of `corespun`, as `corespun run --help` lists them. */
export const ExitCode = Object.freeze({
  /** Every item has a result. Also when the reader of the results left (a closed pipe). */
  ok: 0,
  /** Some items failed; their records contain the errors. */
  itemsFailed: 1,
  /** Wrong arguments, a module or export that cannot be used, results that cannot be written. */
  usage: 2,
  /** A bug in Corespun. */
  bug: 70,
  /** Stopped by SIGINT (128 + 2). */
  interrupted: 130,
  /** Stopped by SIGTERM (128 + 15). */
  terminated: 143,
})

function exportShown(name: string): string {
  return name === 'default' ? 'default export' : `export "${name}"`
}

function functionsShown(facts: { readonly exported: readonly string[]; readonly module: string }): string {
  if (facts.exported.length === 0) return 'it exports no function at all'
  const shownMax = 8
  const names = facts.exported
    .slice(0, shownMax)
    .map((name) => (name === 'default' ? facts.module : `${facts.module}#${name}`))
  return `use ${names.join(' or ')}${facts.exported.length > shownMax ? ' or another' : ''}`
}
