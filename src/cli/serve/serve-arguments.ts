/**
 * The words after `corespun serve`, checked and completed.
 *
 * As those of `corespun run` (arguments.ts): a frozen record leaves here, and a wrong word is named.
 */
import { availableParallelism } from 'node:os'
import type { ParseArgsConfig } from 'node:util'
import { duration, HELP, splitTarget, usage, wholeNumber, wordsOf } from '../arguments.ts'

/** One `corespun serve`, as asked for. Undefined: the app's setting, or the default. */
export type ServeOptions = Exclude<ReturnType<typeof readServeArguments>, typeof HELP>

const WORKERS_MAX = 1024
const PORT_MAX = 65_535
const FD_MAX = 1_048_575
const DRAIN_MS = 10_000

const flags = {
  port: { type: 'string', short: 'p' },
  host: { type: 'string' },
  fd: { type: 'string' },
  workers: { type: 'string', short: 'w' },
  core: { type: 'string' },
  'trust-proxy': { type: 'string' },
  cert: { type: 'string' },
  key: { type: 'string' },
  'dev-tls': { type: 'boolean' },
  drain: { type: 'string' },
  'close-delay': { type: 'string' },
  quiet: { type: 'boolean', short: 'q' },
  watch: { type: 'boolean' },
  'access-log': { type: 'boolean' },
  'no-observe': { type: 'boolean' },
  'allow-control': { type: 'boolean' },
  'parallel-gc': { type: 'boolean' }, // read by main.ts, before anything else is loaded
  help: { type: 'boolean', short: 'h' },
} as const satisfies ParseArgsConfig['options']

/**
 * Read the arguments of `corespun serve`.
 * @param words The words after `serve`.
 * @param forcedCore The variable CORESPUN_HTTP_CORE.
 * @param folder Where the module's path starts from.
 * @throws {CliError} `CLI_USAGE` naming the argument that is wrong and what was received.
 */
export function readServeArguments(words: readonly string[], forcedCore: string | undefined, folder: string) {
  const { values, positionals } = wordsOf(words, flags)
  if (values.help === true) return HELP
  const [target, ...more] = positionals
  if (target === undefined || target === '') throw usage('name the module whose app to serve')
  if (more.length > 0) throw usage(`one module is served, not also ${more.join(' ')}`)
  if (values.fd !== undefined) checkInherited(values)
  if (values.host === '') throw usage('--host takes an address or a name, not ""')
  const core = coreOf(values.core ?? (forcedCore === '' ? undefined : forcedCore))
  const workers = core === 'node' ? 1 : availableParallelism()
  return Object.freeze({
    /** Without an export: `default`, `app`, or the module itself. */
    ...splitTarget(target, folder),
    port: values.port === undefined ? undefined : wholeNumber('--port', values.port, 0, PORT_MAX, 0),
    host: values.host,
    /** The descriptor of a listening socket that was inherited, instead of a port. */
    fd: values.fd === undefined ? undefined : wholeNumber('--fd', values.fd, 0, FD_MAX, 0),
    workers: wholeNumber('--workers', values.workers, workers, WORKERS_MAX),
    core,
    trustProxy: proxiesOf(values['trust-proxy']),
    tls: tlsOf(values),
    /** How long a stop waits for what was accepted. */
    drainMs: values.drain === undefined ? DRAIN_MS : duration('--drain', values.drain),
    /** How long a stop goes on accepting before that. */
    closeDelayMs: values['close-delay'] === undefined ? 0 : duration('--close-delay', values['close-delay']),
    quiet: values.quiet === true,
    accessLog: values['access-log'] === true,
    /** Whether it has a control socket. */
    observe: values['no-observe'] !== true,
    /** Whether that allows to change something. */
    allowControl: values['allow-control'] === true,
    watch: values.watch === true,
  })
}

/** An inherited socket has its address; each version of `--watch` is a process of its own. */
function checkInherited(values: { port?: string; host?: string; watch?: boolean }): void {
  for (const name of ['port', 'host', 'watch'] as const)
    if (values[name] !== undefined) throw usage(`--fd cannot be combined with --${name}`)
}

function coreOf(text: string | undefined): 'native' | 'node' | undefined {
  if (text === undefined || text === 'native' || text === 'node') return text
  throw usage(`--core (or CORESPUN_HTTP_CORE) takes native or node, not "${text}"`)
}

function tlsOf({
  cert,
  key,
  'dev-tls': isDevelopment,
}: {
  readonly cert?: string | undefined
  readonly key?: string | undefined
  readonly 'dev-tls'?: boolean | undefined
}): { readonly cert: string; readonly key: string } | 'development' | undefined {
  if (isDevelopment === true) {
    if (cert !== undefined || key !== undefined)
      throw usage('--dev-tls makes a certificate: leave out --cert and --key')
    return 'development'
  }
  if (cert === undefined && key === undefined) return undefined
  if (cert === undefined || cert === '') throw usage('--key needs --cert, the file of its certificate')
  if (key === undefined || key === '') throw usage('--cert needs --key, the file of its private key')
  return { cert, key }
}

/** A number is how many there are; the server checks addresses. */
function proxiesOf(text: string | undefined): number | string | undefined {
  if (text === '') throw usage('--trust-proxy takes a number of proxies, or their addresses, not ""')
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : text
}
