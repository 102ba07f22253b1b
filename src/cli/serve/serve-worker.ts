/**
 * The app of `corespun serve`, made in each worker: the user's, with what the command line has for what that
 * leaves open.
 */
import { accessLog, jsonErrors, requestId, use } from '../../http/index.ts'
import { loadApp, type ModuleApp } from '../../http/internal.ts'
import { register } from '../../transport/internal.ts'
import { CliError } from '../errors.ts'
import { EventLines, printRefusals } from '../events.ts'

register(CliError, { cid: 'corespun.CliError' })

/** What all workers of a `corespun serve` share; plain data. */
export interface ServeJob {
  /** What `import()` is given. */
  readonly url: string
  readonly exportName: string | undefined
  readonly core: 'native' | 'node' | undefined
  readonly workers: number
  /** Whether each request is a line on standard output. */
  readonly accessLog: boolean
  /** Whether refusals are not printed. */
  readonly quiet: boolean
  /**
   * Shared. The first is not 0 when a worker has loaded the app, and may have accepted requests; the second
   * is not 0 when the code of its module has ended.
   */
  readonly loaded: Int32Array
}

/**
 * Make the app.
 * @throws {HttpError} `HTTP_APP` when the module cannot be used.
 * @throws {CliError} `CLI_CORE_NODE` if its core serves in one thread and there are more.
 */
export async function appOf(job: ServeJob): Promise<ModuleApp> {
  const { url, exportName, core, workers, accessLog, quiet, loaded } = job
  await import(url).catch(() => {}) // reported by what follows
  Atomics.store(loaded, 1, 1)
  const app = await loadApp({ app: url, appExport: exportName })
  Atomics.store(loaded, 0, 1)
  if ((core ?? app.core) === 'node' && workers > 1) throw new CliError('CLI_CORE_NODE', { workers })
  // Published in the thread that serves; of an app that receives them itself, that is enough.
  if (!quiet && app.onRefused === undefined)
    printRefusals(new EventLines((line) => process.stderr.write(line)))
  return { error: jsonErrors(), ...app, ...(accessLog ? logging(app) : {}) }
}

/** The app's parts with the log around them. */
function logging({ routes, fetch }: ModuleApp): Pick<ModuleApp, 'routes' | 'fetch'> {
  const log = [accessLog(), requestId()] as const
  return {
    ...(routes === undefined ? {} : { routes: use(routes, ...log) }),
    ...(fetch === undefined ? {} : { fetch: use({ '/*': { fetch } }, ...log)['/*'] as typeof fetch }),
  }
}
