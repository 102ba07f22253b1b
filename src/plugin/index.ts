/**
 * `corespun/plugin`: build-time help for functions that are sent.
 *
 * Such a function is sent as it was written, with what it imports, whatever other tools make of its module.
 * Part of the main package: it needs the parser and the type eraser that this has already, and each tool's
 * interface is a page of code, so neither a package of its own nor a layer over all tools would be smaller.
 * @module corespun/plugin
 */
export { corespunEsbuild as esbuild, type EsbuildPlugin } from './esbuild.ts'
export { corespun as rollup, type RollupPlugin } from './rollup.ts'
export { corespunWebpack as rspack, corespunWebpack as webpack, type WebpackPlugin } from './webpack.ts'
