/**
 * The loader of webpack.ts, before all others: webpack and rspack load it by its file.
 *
 * What it finds is kept with the module, since a module from the tool's cache passes no loader.
 */
import { isBuiltin } from 'node:module'
import { dirname, relative } from 'node:path'
import { emittedName, moduleOf, type ProgramModule } from './module.ts'
import type { SourceMap } from './source-map.ts'

/** A file that workers load. */
export interface EmittedModule {
  /** The name of the entry. */
  readonly name: string
  /** Relative to the folder of the output. */
  readonly file: string
  /** The folder of the module that imports it. */
  readonly context: string
  /** As it was imported. */
  readonly request: string
}

type Done = (error: Error | null, code?: string, map?: SourceMap) => void

/** What the loader uses of its host. */
export interface LoaderContext {
  readonly resourcePath: string
  readonly _module: { readonly buildInfo: { corespun?: EmittedModule[] } }
  async(): Done
  getOptions(): { readonly extension: string }
  getResolve(options: {
    readonly dependencyType: string
  }): (from: string, request: string) => Promise<unknown>
}

/** The base of the bundle's files for the running program, in each format. */
const BASE = '__webpack_base_uri__'

/** Transform one module. */
export default function load(this: LoaderContext, code: string, given?: SourceMap): void {
  // oxlint-disable-next-line oxc/no-this-in-exported-function -- the tool calls loaders so.
  void loaded(this, this.async(), code, given)
}

async function loaded(host: LoaderContext, done: Done, code: string, given?: SourceMap): Promise<void> {
  let written: { readonly code: string; readonly map?: SourceMap | undefined }
  try {
    const module = moduleOf(code, host.resourcePath, true)
    written = module === undefined ? { code, map: given } : await writtenFor(host, module)
  } catch (error) {
    return done(error as Error)
  }
  done(null, written.code, written.map)
}

async function writtenFor(
  host: LoaderContext,
  module: ProgramModule,
): Promise<{ readonly code: string; readonly map: SourceMap }> {
  const resolve = host.getResolve({ dependencyType: 'esm' })
  const { extension } = host.getOptions()
  const context = dirname(module.path)
  const emitted: EmittedModule[] = []
  const located = new Map<string, string>()
  const locate = async (request: string): Promise<void> => {
    if (isBuiltin(request) || /^corespun(\/|$)/.test(request)) return
    // What does not resolve is external, or an error that the tool reports.
    const path = await resolve(context, request).catch(() => request)
    const name = `corespun/${emittedName(typeof path === 'string' ? path : request)}`
    const file = `${name}.${extension}`
    emitted.push({ name, file, context, request })
    located.set(request, `new URL(${JSON.stringify(file)}, ${BASE}).href`)
  }
  await Promise.all(module.specifiers.map(locate))
  host._module.buildInfo.corespun = emitted
  const shown = relative(process.cwd(), module.path)
  return module.write({ file: `String(${BASE})`, shown, located })
}
