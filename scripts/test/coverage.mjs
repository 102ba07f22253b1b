/**
 * Which lines of src and crates the tests reach, and that it does not become less.
 *
 * TypeScript: the suite of `npm test` with V8's own counters, of all threads and child processes, mapped
 * back to the sources by c8; it fails below LINES_MIN. Of the tests that need a server of NATS, the fast ones
 * run as well, so a run with this step leaves out the suite. Rust: the tests of each crate by cargo-llvm-cov,
 * where that is installed, without a bound yet; crates/node has no tests, and what the suite runs of it is
 * not counted.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { inRoot, MEMORY, run } from '../set-up/index.mjs'
import { fastOf } from './files.mjs'
import { natsEnv } from './nats.mjs'
import { shown } from './report.mjs'
import { testedCrates } from './rust.mjs'
import { suite } from './suite.mjs'

/** Percent of lines of src that tests reach at least. A change that raises the figure raises this. */
const LINES_MIN = 98.5

/**
 * Measure both; 0 when all tests passed and enough lines of src are reached.
 * @param {string[]} words
 * @param {import('./report.mjs').Report} report
 */
export async function coverage(words, report) {
  const codes = [await typescriptCoverage(words, report), await rustCoverage(report)]
  return codes.every((code) => code === 0) ? 0 : 1
}

async function typescriptCoverage(words, report) {
  // Not below the tests' own folder for temporary files, which they must leave empty.
  const folder = mkdtempSync(join(MEMORY, 'coverage-'))
  const node = { name: `Node ${process.versions.node}, with coverage`, path: process.execPath }
  // `import 'corespun'` loads dist, whose source maps lead to src, as those of joined do; lib is without.
  const options = `${process.env.NODE_OPTIONS ?? ''} --conditions=corespun-unbundled`.trim()
  const nats = await natsEnv()
  const env = { NODE_V8_COVERAGE: folder, NODE_OPTIONS: options, ...nats }
  try {
    const code = await suite(words, node, report, fastOf, env, nats)
    // One file after the other: there are some 1,700 of 1.4 MB, which together need 3.5 GB of heap, and Node
    // takes 2 GB where the machine has less than 15.
    const judge = [inRoot('node_modules', 'c8', 'bin', 'c8.js'), 'report', '--merge-async']
    judge.push('--temp-directory', folder)
    // By what was loaded, before it is mapped to src: Node's own modules would cost more time than ours.
    judge.push('--include', '{dist,joined}/**/*.js', '--exclude', '**/*.test.*')
    judge.push('--reporter', 'text-summary')
    const limits = ['--check-coverage', '--lines', String(LINES_MIN)]
    const judged = await shown('coverage', report, process.execPath, [...judge, ...limits])
    return Math.max(code, judged)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function rustCoverage(report) {
  const { code } = await run('cargo', ['llvm-cov', '--version'])
  if (code !== 0) {
    console.log('Rust: skipped, without `cargo install cargo-llvm-cov` and `rustup component add llvm-tools`')
    return 0
  }
  for (const name of await testedCrates()) {
    const code = await shown(name, report, 'cargo', ['llvm-cov', '--no-report', '--locked', '-p', name])
    if (code !== 0) return code
  }
  return shown('coverage of Rust', report, 'cargo', ['llvm-cov', 'report', '--summary-only'])
}
