/**
 * `node build.mjs <tool> yes|no <out>`: bundle src/main.ts of the current folder, with the plugin or without.
 *
 * The tools are those of the current folder, except rolldown, which the checkout has itself.
 */
import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { esbuild as esbuildPlugin, rollup as rollupPlugin } from '../../lib/plugin/index.js'
import { stripTypes } from '../../dist/zone/worker/loader/strip.js'

const [name, used, out] = process.argv.slice(2)
const input = resolve('src', 'main.ts')
const external = /^(node:|corespun)/
const plugins = used === 'yes' ? [rollupPlugin()] : []
const tool = (id) => import(pathToFileURL(createRequire(join(process.cwd(), 'x.js')).resolve(id)).href)

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
  async esbuild() {
    const { build } = await tool('esbuild')
    await build({
      entryPoints: [input],
      outdir: out,
      bundle: true,
      format: 'esm',
      platform: 'node',
      target: 'node20',
      minify: true,
      keepNames: true,
      external: ['corespun'],
      plugins: used === 'yes' ? [esbuildPlugin()] : [],
    })
  },
}
await builds[name]()
