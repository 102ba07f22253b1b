/**
 * vitest, with the plugin if PLUGIN is yes.
 * The pool and the provider of the coverage come from the command line.
 */
import { rollup as corespun } from 'corespun/plugin'

export default {
  plugins: process.env.PLUGIN === 'yes' ? [corespun()] : [],
  test: {
    include: ['program.vitest.js'],
    coverage: { reporter: ['json-summary'], include: ['src/program.js'] },
  },
}
