/**
 * The plugin of esbuild.
 *
 * A plugin cannot add entries to a running build of esbuild, so what sent functions import is built when the
 * build ends: all of it at once, as ES modules with shared chunks, beside the output.
 */
import { readFile } from 'node:fs/promises'
import { basename, dirname, relative } from 'node:path'
import { emittedName, moduleOf } from './module.ts'

/** What the plugin uses of its host. */
export interface EsbuildBuild {
  /** The options of the build. */
  readonly initialOptions: {
    readonly outdir?: string
    readonly outfile?: string
    readonly bundle?: boolean
    readonly minify?: boolean
    readonly target?: string | string[]
    readonly external?: string[]
    readonly packages?: 'bundle' | 'external'
    readonly conditions?: string[]
    readonly write?: boolean
  }
  /** esbuild itself. */
  readonly esbuild: { build(options: object): Promise<unknown> }
  /** Find the file of an import. */
  resolve(
    specifier: string,
    options: { readonly resolveDir: string; readonly kind: 'import-statement' },
  ): Promise<{ readonly path: string; readonly external: boolean; readonly namespace: string }>
  /** Load files that match. */
  onLoad(
    options: { readonly filter: RegExp; readonly namespace: string },
    load: (file: { readonly path: string }) => Promise<{ contents: string; loader: 'js' } | undefined>,
  ): void
  /** Call `end` after the build. */
  onEnd(end: () => Promise<void>): void
}

/** A plugin as esbuild accepts it. */
export interface EsbuildPlugin {
  /** `corespun`. */
  readonly name: string
  /** Called by esbuild. */
  setup(build: EsbuildBuild): void
}

/**
 * The plugin for esbuild, for builds with `bundle: true` whose entries are written to one folder. `corespun`
 * itself is external.
 * @returns An entry of `plugins`, before those that load the same files.
 * @example
 * ```ts
 * import { esbuild as corespun } from 'corespun/plugin'
 *
 * const options = { plugins: [corespun()], external: ['corespun'], bundle: true } // of esbuild's build()
 * console.log(options.plugins[0]?.name) // corespun
 * ```
 */
export function corespunEsbuild(): EsbuildPlugin {
  return { name: 'corespun', setup }
}

function setup(build: EsbuildBuild): void {
  const { initialOptions: options } = build
  const entries = new Map<string, string>()
  build.onLoad({ filter: /\.[cm]?[jt]s$/, namespace: 'file' }, async ({ path }) => {
    const module = moduleOf(await readFile(path, 'utf8'), path, true)
    if (module === undefined) return undefined
    const located = new Map<string, string>()
    for (const specifier of module.specifiers) {
      const found = await build.resolve(specifier, { resolveDir: dirname(path), kind: 'import-statement' })
      if (found.external || found.namespace !== 'file') continue
      const name = `corespun-${emittedName(found.path)}`
      entries.set(name, found.path)
      located.set(specifier, JSON.stringify(`./${name}.mjs`))
    }
    const { code, map } = module.write({ file: "''", shown: relative(process.cwd(), path), located })
    const encoded = Buffer.from(JSON.stringify({ ...map, sources: [basename(path)] })).toString('base64')
    const comment = `//# sourceMappingURL=data:application/json;base64,${encoded}\n`
    return { contents: code + comment, loader: 'js' }
  })
  build.onEnd(async () => {
    const outdir = options.outdir ?? (options.outfile === undefined ? undefined : dirname(options.outfile))
    if (entries.size === 0 || outdir === undefined || options.write === false) return
    const { minify, target, external, packages, conditions } = options
    await build.esbuild.build({
      ...defined({ minify, target, external, packages, conditions }),
      entryPoints: Object.fromEntries(entries),
      outdir,
      bundle: true,
      splitting: true,
      format: 'esm',
      platform: 'node',
      outExtension: { '.js': '.mjs' },
      chunkNames: 'corespun-[hash]',
      logLevel: 'warning',
    })
  })
}

function defined(options: object): object {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))
}
