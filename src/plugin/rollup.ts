/**
 * The plugin of rollup, Rolldown, vite and vitest, which share one interface.
 *
 * What a sent function imports becomes a chunk of the bundle, which workers load. vite's development server
 * and vitest have no bundle: there, workers load the files.
 */
import { posix, relative } from 'node:path'
import { pathToFileURL } from 'node:url'
import { moduleOf, type ProgramModule } from './module.ts'
import type { SourceMap } from './source-map.ts'

/** What the plugin uses of its host. */
export interface RollupContext {
  /** Find the module of an import. */
  resolve(
    specifier: string,
    from: string,
  ): Promise<{ readonly id: string; readonly external?: unknown } | null>
  /** Add an entry to the bundle. */
  emitFile(file: { readonly type: 'chunk'; readonly id: string }): string
}

/** A plugin as rollup, Rolldown and vite accept it. */
export interface RollupPlugin {
  /** `corespun`. */
  readonly name: string
  /** Before vite compiles. */
  readonly enforce: 'pre'
  /** Called by vite. */
  configResolved(config: { readonly command: string }): void
  /** Called for each module. */
  transform(this: RollupContext, code: string, id: string): Promise<{ code: string; map: SourceMap } | null>
  /** Called for each reference to an emitted file. */
  resolveFileUrl(reference: FileReference): string | null
}

/** A reference in a chunk to an emitted file. */
export interface FileReference {
  /** What `emitFile` returned. */
  readonly referenceId: string
  /** The emitted file, relative to the folder of the bundle. */
  readonly fileName: string
  /** The chunk, relative to the folder of the bundle. */
  readonly chunkId: string
}

/**
 * The plugin for rollup, Rolldown, vite and vitest. `corespun` itself is external in bundles.
 * @returns An entry of `plugins`, before those that compile.
 * @example
 * ```ts
 * import { rollup as corespun } from 'corespun/plugin'
 *
 * const config = { plugins: [corespun()] } // of vite.config.ts, vitest.config.ts or rollup.config.js
 * console.log(config.plugins[0]?.name) // corespun
 * ```
 */
export function corespun(): RollupPlugin {
  let isServed = false
  const emitted = new Set<string>()
  return {
    name: 'corespun',
    enforce: 'pre',
    configResolved({ command }) {
      isServed = command === 'serve'
    },
    async transform(code, id) {
      const module = moduleOf(code, id, !isServed)
      if (module === undefined) return null
      const located = new Map<string, string>()
      for (const specifier of module.specifiers) {
        const location = await locationOf(this, specifier, module, isServed ? undefined : emitted)
        if (location !== undefined) located.set(specifier, location)
      }
      if (isServed) return module.write({ file: JSON.stringify(module.url), located })
      return module.write({ file: "''", shown: relative(process.cwd(), module.path), located })
    },
    // Workers resolve it against the chunk, so it needs no `import.meta.url`, which CommonJS lacks.
    resolveFileUrl({ referenceId, fileName, chunkId }) {
      if (!emitted.has(referenceId)) return null
      return JSON.stringify(`./${posix.relative(posix.dirname(chunkId), fileName)}`)
    },
  }
}

/** JavaScript for the location of an import; `undefined` keeps the specifier, for what is external. */
async function locationOf(
  host: RollupContext,
  specifier: string,
  { path }: ProgramModule,
  emitted: Set<string> | undefined,
): Promise<string | undefined> {
  const found = await host.resolve(specifier, path)
  if (found === null || Boolean(found.external) || /^(node:|\0)/.test(found.id)) return undefined
  if (emitted !== undefined) {
    const reference = host.emitFile({ type: 'chunk', id: found.id })
    emitted.add(reference)
    return `import.meta.ROLLUP_FILE_URL_${reference}`
  }
  const file = found.id.replace(/[?#].*$/s, '')
  return /[\\/]node_modules[\\/]/.test(file) ? undefined : JSON.stringify(pathToFileURL(file).href)
}
