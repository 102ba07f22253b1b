/**
 * The plugin of webpack 5 and rspack, which share one interface.
 *
 * A loader takes the functions out of each module and notes the files that workers load; they become entries
 * of the same compilation, as a library each. All have one runtime, so a module that two of them import is
 * there once in a worker, as it is without a bundle. Their location is relative to the base URI that the
 * runtime has, which depends neither on `publicPath` nor on where a module's code was put.
 */
import { fileURLToPath } from 'node:url'
import type { EmittedModule } from './webpack-loader.ts'

/** What the plugin uses of a compilation. */
export interface WebpackCompilation {
  /** The modules that were built. */
  readonly modules: Iterable<{ readonly buildInfo?: { readonly corespun?: unknown } | undefined }>
  /** Add an entry. */
  addEntry(context: string, dependency: never, options: object, done: (error?: Error | null) => void): void
}

/** What the plugin uses of its host. */
export interface WebpackCompiler {
  /** The options of the build. */
  readonly options: {
    readonly externalsPresets: { readonly node?: boolean | undefined }
    readonly output: { readonly module?: boolean | undefined; readonly enabledLibraryTypes?: unknown }
    readonly module: { readonly rules: unknown[] }
  }
  /** The tool itself. */
  readonly webpack: {
    readonly EntryPlugin: { createDependency(request: string, options: never): unknown }
    readonly ExternalsPlugin: new (type: string, externals: never) => { apply(compiler: never): void }
  }
  /** Events of the build. */
  readonly hooks: {
    readonly afterEnvironment: { tap(name: string, run: () => void): void }
    readonly finishMake: {
      tapPromise(name: string, run: (compilation: WebpackCompilation) => Promise<void>): void
    }
  }
}

/** A plugin as webpack and rspack accept it. */
export interface WebpackPlugin {
  /** Called by the tool. */
  apply(compiler: WebpackCompiler): void
}

/**
 * The plugin for webpack 5 and rspack, for builds whose `target` is Node; in other builds it does nothing. It
 * declares `corespun` as external.
 * @returns An entry of `plugins`. Next: `webpack: (config) => (config.plugins.push(corespun()), config)`.
 * @example
 * ```ts
 * import { webpack as corespun } from 'corespun/plugin'
 *
 * const config = { target: 'node', plugins: [corespun()] } // of webpack.config.js or rspack.config.js
 * console.log(config.plugins.length) // 1
 * ```
 */
export function corespunWebpack(): WebpackPlugin {
  return { apply }
}

const LOADER = fileURLToPath(new URL('./webpack-loader.js', import.meta.url))
const CORESPUN = /^corespun(\/|$)/

function apply(compiler: WebpackCompiler): void {
  const { options, hooks, webpack } = compiler
  let type: 'module' | 'commonjs2' = 'commonjs2'
  // The defaults of the options are set, and nothing is made of them yet.
  hooks.afterEnvironment.tap('corespun', () => {
    if (options.externalsPresets.node !== true) return
    if (options.output.module === true) type = 'module'
    const libraries = options.output.enabledLibraryTypes as string[]
    if (!libraries.includes(type)) libraries.push(type)
    const extension = type === 'module' ? 'mjs' : 'cjs'
    options.module.rules.push({
      test: /\.[cm]?[jt]s$/,
      enforce: 'pre',
      loader: LOADER,
      options: { extension },
    })
    new webpack.ExternalsPlugin(type, CORESPUN as never).apply(compiler as never)
  })
  hooks.finishMake.tapPromise('corespun', async (compilation) => {
    const added = new Set<string>()
    for (;;) {
      const found = [...compilation.modules].flatMap(
        ({ buildInfo }) => (buildInfo?.corespun ?? []) as EmittedModule[],
      )
      const fresh = found.filter(({ name }) => !added.has(name) && added.add(name))
      if (fresh.length === 0) return
      await Promise.all(fresh.map(async (each) => addEntry(webpack, compilation, each, type)))
    }
  })
}

async function addEntry(
  { EntryPlugin }: WebpackCompiler['webpack'],
  compilation: WebpackCompilation,
  { name, file, context, request }: EmittedModule,
  type: string,
): Promise<void> {
  const options = { name, filename: file, library: { type }, runtime: 'corespun' }
  const dependency = EntryPlugin.createDependency(request, options as never)
  await new Promise<void>((resolve, reject) => {
    compilation.addEntry(context, dependency as never, options, (error) =>
      error == null ? resolve() : reject(error),
    )
  })
}
