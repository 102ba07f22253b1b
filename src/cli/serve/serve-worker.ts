/**
 * The app of `corespun serve`, made in each worker: the user's, with what the command line has for what that
 * leaves open.
 */
import { jsonErrors } from '../../http/index.ts'
import { loadApp, type ModuleApp } from '../../http/internal.ts'
import { register } from '../../transport/internal.ts'
import { CliError } from '../errors.ts'

register(CliError, { cid: 'corespun.CliError' })

/** What all workers of a `corespun serve` share; plain data. */
export interface ServeJob {
  /** What `import()` is given. */
  readonly url: string
  readonly exportName: string | undefined
  readonly core: 'native' | 'node' | undefined
  readonly workers: number
}

/**
 * Make the app.
 * @throws {HttpError} `HTTP_APP` when the module cannot be used.
 * @throws {CliError} `CLI_CORE_NODE` if its core serves in one thread and there are more.
 */
export async function appOf({ url, exportName, core, workers }: ServeJob): Promise<ModuleApp> {
  const app = await loadApp({ app: url, appExport: exportName })
  if ((core ?? app.core) === 'node' && workers > 1) throw new CliError('CLI_CORE_NODE', { workers })
  return { error: jsonErrors(), ...app }
}
