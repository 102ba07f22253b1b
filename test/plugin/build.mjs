/**
 * `node build.mjs <tool> yes|no <out>`: bundle src/main.ts of the current folder, with the plugin or without.
 *
 * The tools and the plugin are those of the current folder, except rolldown, which the checkout has itself.
 */
import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { stripTypes } from '../../dist/zone/worker/loader/strip.js'

const [name, used, out] = process.argv.slice(2)
const input = resolve('src', 'main.ts')
const external = /^(node:|corespun)/
const tool = (id) => import(pathToFileURL(createRequire(join(process.cwd(), 'x.js')).resolve(id)).href)
const of = await tool('corespun/plugin')
const plugins = used === 'yes' ? [of.rollup()] : []

const OUTPUTS = {
  commonjs: {},
  module: { module: true, chunkFormat: 'module', library: { type: 'module' } },
  next: {
    publicPath: '/_next/',
    filename: 'app/[name].cjs',
    chunkFilename: 'chunks/[id].cjs',
    library: { type: 'commonjs2' },
  },
}
const cacheDirectory = resolve(`${name}.cache`)
/** On the disk: modules of a second build pass no loader. */
const CACHES = {
  webpack: { type: 'filesystem', cacheDirectory },
  rspack: { type: 'persistent', storage: { type: 'filesystem', directory: cacheDirectory } },
}
const SPLIT = { runtimeChunk: { name: 'runtime' }, splitChunks: { chunks: 'all', minSize: 0 } }

const builds = {
  async rolldown() {
    const { rolldown } = await import('rolldown')
    const build = await rolldown({ input, external, platform: 'node', plugins })
    await build.write({ dir: out, minify: true })
    await build.close()
  },
  async rollup() {
    const { rollup } = await tool('rollup')
    const types = { name: 'types', transform: (code, id) => ({ code: stripTypes(code, id), map: null }) }
    const build = await rollup({ input, external, plugins: [...plugins, types] })
    await build.write({ dir: out })
    await build.close()
  },
  async vite() {
    const { build } = await tool('vite')
    await build({
      configFile: false,
      logLevel: 'error',
      plugins,
      build: { ssr: input, outDir: out, emptyOutDir: false, minify: true },
      ssr: { external: ['corespun'] },
    })
  },
  esbuild: () => byEsbuild({}),
  'esbuild, minified': () => byEsbuild({ minify: true, keepNames: true }),
}

async function byEsbuild(options) {
  const { build } = await tool('esbuild')
  await build({
    entryPoints: [input],
    outdir: out,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    external: ['corespun'],
    plugins: used === 'yes' ? [of.esbuild()] : [],
    ...options,
  })
}

/** webpack and rspack, in the two formats and in the way that Next calls webpack for its server. */
for (const id of ['webpack', '@rspack/core']) {
  for (const kind of ['commonjs', 'module', 'next']) {
    builds[`${id.replace(/\W|core/g, '')}, ${kind}`] = async () => packed(await tool(id), kind)
  }
}

async function packed(packer, kind) {
  const config = {
    mode: 'production',
    entry: { main: input },
    target: kind === 'module' ? 'node20.19' : 'node18',
    devtool: false,
    output: { path: out, filename: kind === 'module' ? '[name].js' : '[name].cjs', ...OUTPUTS[kind] },
    module: { rules: [{ test: /\.ts$/, type: 'javascript/auto', loader: resolve('types-loader.mjs') }] },
    optimization: kind === 'next' ? SPLIT : {},
    // As a user without the plugin writes it.
    externals: used === 'yes' ? [] : [/^corespun/],
    externalsType: kind === 'module' ? 'module' : 'commonjs',
    cache: kind === 'next' && CACHES[name.split(',')[0]],
    plugins: [],
  }
  if (used === 'yes') config.plugins.push(of.webpack())
  const stats = await new Promise((done, fail) => {
    const run = packer.webpack ?? packer.rspack ?? packer.default
    run(config, (error, found) => (error ? fail(error) : done(found)))
  })
  if (stats.hasErrors()) throw new Error(stats.toString())
}

await builds[name]()
