/**
 * The part of `skein serve` that lives in the workers: the user's app behind a listener of its own.
 *
 * What all workers share comes with the call, which is broadcast, so workers that replace others serve too.
 * A worker serves once, however often it is asked.
 */
import { SkeinError } from '../base/index.ts'
import {
  appIn,
  errorAnswers,
  type HttpServer,
  type ModuleApp,
  serve as listen,
  type ServeSettings,
} from '../http/index.ts'
import { CliError, oneLine, reasonOf } from './errors.ts'
import type { Problem } from './worker.ts'

/** What all workers of a `skein serve` share; plain data. */
export interface ServeJob {
  /** What `import()` is given. */
  readonly url: string
  /** The module as the user wrote it, for messages. */
  readonly module: string
  readonly exportName: string | undefined
  readonly port: number | undefined
  readonly host: string | undefined
  readonly core: 'native' | 'node' | undefined
  readonly workers: number
  readonly drainMs: number
}

/** Where it listens, or why it does not. */
export type Served = { readonly url: string; readonly port: number; readonly core: string } | Problem

const HOST = '127.0.0.1'
const PORT = 3000

interface Serving {
  readonly server: HttpServer
  readonly close: ModuleApp['close']
}

let serving: Promise<Serving> | undefined

/** Serve in this worker; what is wrong is told as data. @throws {Error} What is a bug. */
export async function serveHere(job: ServeJob): Promise<Served> {
  try {
    const { server } = await (serving ??= begin(job))
    return { url: server.url, port: server.port, core: server.stats().core }
  } catch (thrown) {
    if (thrown instanceof CliError) return { code: thrown.code, facts: thrown.facts } as Problem
    throw thrown
  }
}

/** The same for a worker that is not the first: throws. @throws {CliError} What {@link serveHere} tells. */
export async function joinHere(job: ServeJob): Promise<void> {
  await (serving ??= begin(job))
}

/** Stop in this worker: finish what was accepted, within `drainMs`. */
export async function stopHere(drainMs: number): Promise<void> {
  if (serving === undefined) return
  const { server, close } = await serving
  // It stops accepting at once; the app ends what would go on for ever meanwhile.
  await Promise.all([server.stop({ drainMs }), close?.()])
}

async function begin(job: ServeJob): Promise<Serving> {
  process.on('uncaughtExceptionMonitor', (error) => {
    process.stderr.write(`skein: a worker ends and is replaced: ${stackOf(error)}\n`)
  })
  const { close, ...app } = await loadApp(job)
  const core = job.core ?? app.core
  if (core === 'node' && job.workers > 1) throw new CliError('CLI_CORE_NODE', { workers: job.workers })
  const settings = {
    error: errorAnswers(),
    ...app,
    port: job.port ?? app.port ?? PORT,
    host: job.host ?? app.host ?? HOST,
    reusePort: job.workers > 1,
    drainMs: job.drainMs,
    ...(core === undefined ? {} : { core }),
  } as ServeSettings
  try {
    return { server: await listen(settings), close }
  } catch (thrown) {
    throw new CliError('CLI_SERVE_FAILED', { reason: sentenceOf(thrown) }, { cause: thrown })
  }
}

/** Errors of Skein are sentences already. */
function sentenceOf(thrown: unknown): string {
  return thrown instanceof SkeinError ? oneLine(thrown.message) : reasonOf(thrown)
}

type Exports = Readonly<Record<string, unknown>>

async function loadApp(job: ServeJob): Promise<ModuleApp> {
  let exports: Exports
  try {
    exports = (await import(job.url)) as Exports
  } catch (thrown) {
    throw new CliError('CLI_MODULE_FAILED', { module: job.module, reason: placedReason(thrown) })
  }
  const { exportName: name } = job
  const app = appIn(exports, name)
  if (app !== undefined) return app
  const exported = Object.keys(exports).filter((key) => key !== 'module.exports')
  throw new CliError('CLI_APP_MISSING', { module: job.module, name: name ?? 'default', exported })
}

/** Why a module did not load, with the place of a syntax error, which V8 puts in front of the stack. */
function placedReason(thrown: unknown): string {
  const place = /^(?:file:\/\/)?(\/\S+:\d+)$/m.exec(thrown instanceof Error ? (thrown.stack ?? '') : '')
  return place === null ? reasonOf(thrown) : `${reasonOf(thrown)} (${place[1] as string})`
}

function stackOf(thrown: unknown): string {
  return thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown)
}
