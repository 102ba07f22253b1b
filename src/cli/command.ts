/**
 * From the words of a command line to an exit code: finds the command and prints errors as one line each.
 *
 * Only errors of Corespun are sentences for users; anything else is a bug and keeps its stack. What `run`
 * needs is loaded with this module, because each further file slows its start; the rest is loaded on demand.
 */
import { readFileSync } from 'node:fs'
import { CorespunError, isDenied, nearestOf, oneLine, stackOf } from '../base/index.ts'
import { HELP, readArguments, usage } from './arguments.ts'
import { type CliCodes, CliError, ExitCode } from './errors.ts'
import { type CommandContext, run } from './run/run.ts'

const COMMANDS = ['run', 'serve', 'host', 'fleet', 'jobs', 'runs', 'test', 'top', 'stacks', 'profile']

/**
 * Run one command.
 * @param words The arguments, without the program's own name.
 * @param context The process, or its substitute in tests.
 * @returns The exit code; see {@link ExitCode}.
 */
export async function command(words: readonly string[], context: CommandContext): Promise<number> {
  try {
    return await dispatched(words, context)
  } catch (error) {
    const thrown = ofCommand(words[0], error)
    const isKnown = thrown instanceof CorespunError
    const text = isKnown ? oneLine(thrown.message) : `this is a bug in Corespun: ${stackOf(thrown)}`
    context.stderr.write(`corespun: ${text}\n`)
    return isKnown ? ExitCode.usage : ExitCode.bug
  }
}

/** The options of Node that allow what its permission model refuses. */
const ALLOWING: Readonly<Record<string, string>> = {
  FileSystemRead: '--allow-fs-read',
  FileSystemWrite: '--allow-fs-write',
  ChildProcess: '--allow-child-process',
  WorkerThreads: '--allow-worker',
}

/** Which help a wrong argument refers to is known here alone; and what Node does not permit is not a bug. */
function ofCommand(name: string | undefined, thrown: unknown): unknown {
  if (isDenied(thrown) && !(thrown instanceof CorespunError)) {
    const { permission = '', resource = '' } = thrown as { permission?: string; resource?: string }
    const flag = ALLOWING[permission] ?? 'the option for it'
    return new CliError('CLI_PERMISSION', { permission, resource, flag }, { cause: thrown })
  }
  if (name === undefined || !COMMANDS.includes(name)) return thrown
  if (!(thrown instanceof CliError) || thrown.code !== 'CLI_USAGE') return thrown
  const { problem } = thrown.facts as CliCodes['CLI_USAGE']
  return new CliError('CLI_USAGE', { problem, command: name })
}

async function dispatched(words: readonly string[], context: CommandContext): Promise<number> {
  const [name, ...rest] = words
  switch (name) {
    case 'run': {
      const options = readArguments(rest, () => context.stdin.isTTY === true, context.folder)
      return options === HELP ? print(context, (await help()).RUN_HELP) : run(options, context)
    }
    case 'serve': {
      const { readServeArguments } = await import('./serve/serve-arguments.ts')
      const options = readServeArguments(rest, process.env.CORESPUN_HTTP_CORE, context.folder)
      if (options === HELP) return print(context, (await help()).SERVE_HELP)
      if (options.watch) return (await import('./serve/watch.ts')).watchAndServe(options, rest, context)
      return (await import('./serve/serve.ts')).serve(options, context)
    }
    case 'host': {
      const { readHostArguments } = await import('./host/host-arguments.ts')
      const words = readHostArguments(rest, process.env['CORESPUN_NATS'])
      if (words === HELP) return print(context, (await help()).HOST_HELP)
      return (await import('./host/host.ts')).host(words, context)
    }
    case 'fleet': {
      const { readFleetArguments } = await import('./fleet/fleet-arguments.ts')
      const words = readFleetArguments(rest, process.env['CORESPUN_NATS'])
      if (words === HELP) return print(context, (await help()).FLEET_HELP)
      if ('file' in words) {
        const { createFor, printConfig } = await import('./fleet/config.ts')
        return 'connection' in words ? createFor(words, context) : printConfig(words.file, context)
      }
      return (await import('./fleet/show.ts')).showFleet(words, context)
    }
    case 'jobs':
    case 'runs':
      return name === 'jobs' ? ofJobs(rest, context) : ofRuns(rest, context)
    case 'test':
      return ofTest(rest, context)
    case 'profile': {
      const { profile, readProfileArguments } = await import('./observe/profile.ts')
      const words = readProfileArguments(rest)
      return words === HELP ? print(context, (await help()).PROFILE_HELP) : profile(words, context)
    }
    case 'stacks': {
      const { readStacksArguments, stacks } = await import('./observe/stacks.ts')
      const words = readStacksArguments(rest)
      return words === HELP ? print(context, (await help()).STACKS_HELP) : stacks(words, context)
    }
    case 'top': {
      const { readTopArguments, top } = await import('./observe/top.ts')
      const words = readTopArguments(rest)
      return words === HELP ? print(context, (await help()).TOP_HELP) : top(words, context)
    }
    case 'serve-version': // started by `serve --watch`
      return (await import('./serve/version.ts')).serveVersion(rest, context)
    case 'help':
    case '--help':
    case '-h':
      return print(context, await helpOf(rest[0]))
    case '--version':
    case '-v':
      return print(context, `${version()}\n`)
    case undefined:
      context.stderr.write((await help()).GENERAL_HELP)
      return ExitCode.usage
    default:
      throw unknown(name)
  }
}

async function ofTest(rest: readonly string[], context: CommandContext): Promise<number> {
  const { readTestArguments } = await import('./test/test-arguments.ts')
  const words = readTestArguments(rest)
  if (words === HELP) return print(context, (await help()).TEST_HELP)
  return (await import('./test/test.ts')).test(words, context)
}

async function ofJobs(rest: readonly string[], context: CommandContext): Promise<number> {
  const { readJobsArguments } = await import('./jobs/jobs-arguments.ts')
  const words = readJobsArguments(rest)
  if (words === HELP) return print(context, (await help()).JOBS_HELP)
  return (await import('./jobs/jobs.ts')).jobs(words, context)
}

async function ofRuns(rest: readonly string[], context: CommandContext): Promise<number> {
  const { readRunsArguments } = await import('./runs/runs-arguments.ts')
  const words = readRunsArguments(rest)
  if (words === HELP) return print(context, (await help()).RUNS_HELP)
  return (await import('./runs/runs.ts')).runs(words, context)
}

function unknown(name: string): CliError {
  const near = nearestOf(name, COMMANDS)
  const all = `expected ${COMMANDS.slice(0, -1).join(', ')} or ${COMMANDS.at(-1)}`
  return usage(`unknown command '${name}'${near === undefined ? ` (${all})` : `; did you mean ${near}?`}`)
}

const help = () => import('./help.ts')

async function helpOf(name = ''): Promise<string> {
  const all = await help()
  const texts = new Map([
    ['', all.GENERAL_HELP],
    ['run', all.RUN_HELP],
    ['serve', all.SERVE_HELP],
    ['host', all.HOST_HELP],
    ['fleet', all.FLEET_HELP],
    ['jobs', all.JOBS_HELP],
    ['runs', all.RUNS_HELP],
    ['test', all.TEST_HELP],
    ['top', all.TOP_HELP],
    ['stacks', all.STACKS_HELP],
    ['profile', all.PROFILE_HELP],
  ])
  const text = texts.get(name)
  if (text === undefined) throw unknown(name)
  return text
}

function print(context: CommandContext, text: string): number {
  context.stdout.write(text)
  return ExitCode.ok
}

function version(): string {
  const manifest = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  return (JSON.parse(manifest) as { version: string }).version
}
