/**
 * `skein serve`: the same app on every core, from its module to its graceful end.
 *
 * Each worker of a zone loads the module and listens on the same port; the kernel spreads the connections.
 * One worker begins, so that what is wrong is told once; the others join. The main thread only waits, for a
 * signal or for the end of the last worker.
 */
import { CliError, ExitCode, oneLine } from './errors.ts'
import { resolveModule } from './resolve.ts'
import type { StopSignal, Surroundings } from './run.ts'
import type { ServeOptions } from './serve-arguments.ts'
import type { Served, ServeJob } from './serve-worker.ts'

const WORKER_URL = new URL('./serve-worker.js', import.meta.url).href
const ZONE = 'skein serve'
/** How often the main thread looks whether anybody is left. */
const LOOK_MS = 1000
/** What ending takes at most beyond the time for open requests; then the process just ends. */
const END_MS = 3000

/** The part of a zone that is needed here. */
interface ServeZone {
  execute(module: string, name: string, args: unknown[]): Promise<{ readonly value: unknown }>
  broadcast(code: string): Promise<void>
  stats(): { readonly workers: number }
  close(options?: { readonly timeoutMs?: number }): Promise<void>
}

/** Code that calls an export of the worker's module in every worker, and again in those that come later. */
function callThere(name: string, argument: unknown): string {
  return `import(${JSON.stringify(WORKER_URL)}).then((module) => module.${name}(${JSON.stringify(argument)}))`
}

/**
 * Serve until a signal asks to stop.
 * @returns The exit code: that of the signal.
 * @throws {CliError} When it cannot be served, or nobody is left to serve.
 */
export async function serve(options: ServeOptions, around: Surroundings): Promise<number> {
  const url = resolveModule(options.module, around.folder)
  const { module, exportName, port, host, core, workers, drainMs } = options
  if (core === 'node' && workers > 1) throw new CliError('CLI_CORE_NODE', { workers })
  const stop = stopOf(around)
  const zone = await openZone(workers)
  try {
    const job: ServeJob = { url, module, exportName, port, host, core, workers, drainMs }
    const began = await Promise.race([stop.signal, begin(zone, job)])
    if (typeof began === 'string') return codeOf(began)
    if (!options.quiet) around.stdout.write(lineOf(began, workers))
    const signal = await Promise.race([stop.signal, gone(zone)])
    if (signal === undefined)
      throw new CliError('CLI_WORKERS_GONE', { reason: 'each one ended at its start' })
    if (around.stderr.isTTY === true)
      around.stderr.write('\nskein: finishing open requests; Ctrl-C again to stop at once\n')
    await ended(zone, drainMs)
    return codeOf(signal)
  } finally {
    stop.ignore()
    await Promise.race([zone.close(), pause(END_MS)])
  }
}

async function openZone(workers: number): Promise<ServeZone> {
  // Loaded here: help and wrong arguments need no workers.
  const { installTypeScript, zone } = await import('../zone/index.ts')
  // Before the workers start: those of Nodes that strip no types take the hooks over from this thread.
  installTypeScript()
  return zone.create(ZONE, { workers, closeMs: 0, graceMs: 0 }) as unknown as ServeZone
}

async function begin(zone: ServeZone, job: ServeJob): Promise<Exclude<Served, { code: string }>> {
  const served = (await zone.execute(WORKER_URL, 'serveHere', [job])).value as Served
  if ('code' in served) throw new CliError(served.code, served.facts)
  // The port of the first is that of all, also where the system chose it.
  await zone.broadcast(callThere('joinHere', { ...job, port: served.port }))
  return served
}

function lineOf({ url, core }: Exclude<Served, { code: string }>, workers: number): string {
  return `skein: serving ${url} with ${workers} ${workers === 1 ? 'worker' : 'workers'} (${core} core)\n`
}

/** The first signal; a second one ends the process. */
function stopOf(around: Surroundings): { signal: Promise<StopSignal>; ignore: () => void } {
  let first: StopSignal | undefined
  let resolveFirst!: (signal: StopSignal) => void
  const signal = new Promise<StopSignal>((resolve) => (resolveFirst = resolve))
  const ignore = around.onSignal((received) => {
    if (first !== undefined) return around.exit(codeOf(first))
    first = received
    resolveFirst(received)
  })
  return { signal, ignore }
}

/** Resolves when no worker is left; keeps the process alive until then. */
function gone(zone: ServeZone): Promise<undefined> {
  return new Promise((resolve) => {
    const timer = setInterval(() => {
      if (zone.stats().workers > 0) return
      clearInterval(timer)
      resolve(undefined)
    }, LOOK_MS)
  })
}

/** Every worker has finished what it had accepted, or its time is over. */
async function ended(zone: ServeZone, drainMs: number): Promise<void> {
  const all = zone.broadcast(callThere('stopHere', drainMs))
  // A worker that fails at this has ended as well.
  await Promise.race([all.catch((error: unknown) => void oneLine(String(error))), pause(drainMs + END_MS)])
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref())
}

function codeOf(signal: StopSignal): number {
  return signal === 'SIGINT' ? ExitCode.interrupted : ExitCode.terminated
}
