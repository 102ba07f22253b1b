/**
 * `node build.js <folder>`: a minified bundle by esbuild, with the plugin if PLUGIN is yes.
 * The module that workers load by name is an entry of its own.
 */
import { esbuild as corespun } from 'corespun/plugin'
import { build } from 'esbuild'

await build({
  entryPoints: ['src/main.js', 'src/tasks.js'],
  outdir: process.argv[2],
  bundle: true,
  format: 'esm',
  platform: 'node',
  target: 'node20',
  minify: true,
  keepNames: true,
  external: ['corespun'],
  plugins: process.env.PLUGIN === 'yes' ? [corespun()] : [],
})
