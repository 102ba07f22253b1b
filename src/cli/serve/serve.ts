/**
 * `corespun serve`: the same app on every core, from its module to its graceful end.
 *
 * `serve({zone})` of corespun/http does the serving, in a zone made for it; what is left here is what a
 * command adds: its words, its lines, and its end by a signal or with the last worker.
 */
import { otherRuntime } from '../../base/index.ts'
import type { CloseOptions, ZoneServer } from '../../http/index.ts'
import type { VersionOrder } from '../../http/internal.ts'
import type { Zone } from '../../zone/index.ts'
import { CliError, ExitCode } from '../errors.ts'
import { EventLines, printWorkers } from '../events.ts'
import { resolveModule } from '../resolve.ts'
import { observeSoon } from '../soon.ts'
import { loadedWithNotice, OWN_CODE } from '../loading.ts'
import type { StopSignal, CommandContext } from '../run/run.ts'
import type { ServeOptions } from './serve-arguments.ts'
import type { ServeJob } from './serve-worker.ts'

const APP = new URL('./serve-worker.js', import.meta.url)
const ZONE = 'corespun serve'
/** What closing the zone takes at most; then the process just ends. */
const END_MS = 3000

/** How one version of `--watch` differs from a server of its own. */
export interface VersionSettings {
  /** The address is printed for the first; the next listen on the port of the one before. */
  readonly order: VersionOrder
  onServing(server: ZoneServer): void
}

/**
 * Serve until a signal asks to stop.
 * @param version For `--watch`; signals then concern the process that watches, which reports them.
 * @returns The exit code: 0 when every open request was answered, otherwise that of the signal.
 * @throws {CliError} When it cannot be served, or nobody is left to serve.
 */
export async function serve(
  options: ServeOptions,
  context: CommandContext,
  version?: VersionSettings,
): Promise<number> {
  const url = resolveModule(options.module, context.folder)
  const runtime = otherRuntime()
  if (runtime !== undefined) throw new CliError('CLI_RUNTIME', { runtime })
  const { core, workers, drainMs, closeDelayMs } = options
  if (core === 'node' && workers > 1) throw new CliError('CLI_CORE_NODE', { workers })
  const stop = stopOf(context)
  const { module, observe, allowControl } = options
  const unobserve = observeSoon({ module, observe, allowControl, actions: { drain: stop.now } }, context)
  const zone = await openZone(workers)
  const watch = watchOf(zone, context)
  try {
    const loaded = new Int32Array(new SharedArrayBuffer(8))
    const waitsFor = (): string => {
      if (loaded[0] !== 0) return 'not all workers have loaded it'
      return loaded[1] === 0 ? OWN_CODE : 'the promise of its app has not settled'
    }
    const print = (line: string): void => void context.stderr.write(`corespun: ${line}\n`)
    const beginning = begin(zone, { url, loaded }, options, version?.order)
    const begun = loadedWithNotice(module, beginning, print, waitsFor)
    const early = await Promise.race([stop.signal, begun.then(() => undefined)])
    // The first worker answers before the last one has started: what it has accepted is finished as well.
    const accepts = loaded[0] !== 0
    const server = early === undefined ? await begun : await inTime(begun, accepts ? drainMs : 0)
    if (server === undefined) return accepts ? codeOf(early!) : ExitCode.ok
    version?.onServing(server)
    const isQuiet = options.quiet || version?.order === 'next'
    if (early === undefined && !isQuiet) context.stdout.write(await lineOf(server, workers))
    const signal = await Promise.race([stop.signal, watch.allEnded, nobodyLeft(server)])
    if (context.stderr.isTTY === true && version === undefined)
      context.stderr.write('\ncorespun: finishing open requests; press Ctrl-C again to stop at once\n')
    const isDrained = await drain(server, { timeoutMs: drainMs, delayMs: closeDelayMs }).catch(
      (error: Error) => print((appError(error, module) ?? error).message),
    )
    return isDrained === true ? ExitCode.ok : codeOf(signal)
  } finally {
    unobserve()
    stop.ignore()
    watch.ignore()
    await Promise.race([zone.close(), pause(END_MS)])
  }
}

/** What `promise` resolves to; undefined when it takes longer. */
async function inTime<Value>(promise: Promise<Value>, mostMs: number): Promise<Value | undefined> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>((resolve) => (timer = setTimeout(resolve, mostMs, undefined)))
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}

/** Stop the server. Whether every open request was answered. */
async function drain(server: ZoneServer, options: CloseOptions): Promise<boolean> {
  await server.close(options)
  return (await server.stats()).cut === 0
}

/** For the error of an app: that module is the user's, which the command's own has loaded. */
function appError(error: unknown, module: string): CliError | undefined {
  const { code, facts } = error as { readonly code?: unknown; readonly facts: { readonly reason: string } }
  if (code !== 'HTTP_APP') return undefined
  return new CliError('CLI_APP', { module, reason: facts.reason }, { cause: error })
}

async function openZone(workers: number): Promise<Zone> {
  // Loaded here: help and wrong arguments need no workers.
  const { createGradually, installTypeScript, takeEarly } = await import('../../zone/internal.ts')
  const { register } = await import('../../transport/internal.ts')
  register(CliError, { cid: 'corespun.CliError' }) // as the workers do
  // Before the workers start: those of Nodes that strip no types take the hooks over from this thread.
  installTypeScript()
  const first = { spare: takeEarly(), environment: [] } // it has started while the command was loaded
  const { zone, startOthers } = createGradually(ZONE, { workers, closeMs: 0, graceMs: 0 }, first)
  startOthers()
  return zone
}

/** What is wrong with the module, since the command has checked its own arguments. */
const CODES_OF_APP: ReadonlySet<string> = new Set([
  'HTTP_APP',
  'HTTP_ARGUMENT',
  'HTTP_ROUTE',
  'HTTP_ROUTE_CONFLICT',
])

/** Certificates on the command line are its own; those of the app are the module's. */
const isOfTls = (code: string): boolean => code.startsWith('HTTP_TLS_')

async function begin(
  zone: Zone,
  of: Pick<ServeJob, 'url' | 'loaded'>,
  options: ServeOptions,
  order: VersionOrder | undefined,
): Promise<ZoneServer> {
  const { module, exportName, port, host, fd, core, workers, trustProxy, accessLog } = options
  const [http, { serveVersion, developmentTls }] = await Promise.all([
    import('../../http/index.ts'),
    import('../../http/internal.ts'),
  ])
  const tls = options.tls === 'development' ? await developmentTls() : options.tls
  const job: ServeJob = { ...of, exportName, core, workers, accessLog, quiet: options.quiet }
  const named = Object.entries({ port, host, fd, core, trustProxy, tls })
  const words = named.filter(([, value]) => value !== undefined)
  const own = Object.fromEntries(words) // the rest is the app's
  try {
    const quiet = true // the command prints the line itself, on its standard output
    const settings = { zone, app: APP, appExport: 'appOf', appArgs: [job], quiet, ...own }
    return await serveVersion(settings, order)
  } catch (thrown) {
    if (!(thrown instanceof http.HttpError)) throw thrown
    if (!CODES_OF_APP.has(thrown.code) && (tls !== undefined || !isOfTls(thrown.code))) throw thrown
    throw (
      appError(thrown, module) ??
      new CliError('CLI_APP', { module, reason: thrown.message }, { cause: thrown })
    )
  }
}

/** Rejects when no worker serves, though some may run: the module of one that replaces another can fail. */
async function nobodyLeft(server: ZoneServer): Promise<never> {
  throw new CliError('CLI_WORKERS_DIED', { reason: await server.ended })
}

async function lineOf({ url, core }: ZoneServer, workers: number): Promise<string> {
  const { servingLine } = await import('../../http/internal.ts')
  return `${servingLine(url, core, workers)}\n`
}

/** The first signal; a second one ends the process. */
function stopOf(context: CommandContext): {
  signal: Promise<StopSignal>
  now: () => void
  ignore: () => void
} {
  let first: StopSignal | undefined
  let resolveFirst!: (signal: StopSignal) => void
  const signal = new Promise<StopSignal>((resolve) => (resolveFirst = resolve))
  const ignore = context.onSignal((received) => {
    if (first !== undefined) return context.exit(codeOf(first))
    first = received
    resolveFirst(received)
  })
  return { signal, now: () => resolveFirst('SIGTERM'), ignore }
}

/** Reports workers that end; `allEnded` rejects when no worker is left. */
function watchOf(zone: Zone, context: CommandContext): { allEnded: Promise<never>; ignore: () => void } {
  let reject!: (error: Error) => void
  const allEnded = new Promise<never>((_, rejectAll) => (reject = rejectAll))
  allEnded.catch(() => {}) // While the server starts, its own error is reported.
  const lines = new EventLines((line) => void context.stderr.write(line))
  const ignore = printWorkers(lines, ZONE, (reason) => {
    setImmediate(() => zone.stats().workers === 0 && reject(new CliError('CLI_WORKERS_DIED', { reason })))
  })
  return { allEnded, ignore }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref())
}

function codeOf(signal: StopSignal): number {
  return signal === 'SIGINT' ? ExitCode.interrupted : ExitCode.terminated
}
