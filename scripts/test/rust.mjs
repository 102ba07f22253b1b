/**
 * The Rust tests: every crate that has any, one by one, and the loom models.
 *
 * One by one because a workspace-wide run would compile each crate with the union of all features. A crate's
 * loom models are its test target `models`: compiled with `--cfg loom`, in a target folder of their own,
 * optimised. A crate whose tests failed runs once more, alone, as test files do; models, which choose no
 * schedule by chance, do not.
 */
import { inRoot, must } from '../set-up/index.mjs'
import { shown } from './report.mjs'

/** How models are compiled: fast to run, and not slower to compile than need be. */
const LOOM_ENV = {
  RUSTFLAGS: '--cfg loom',
  CARGO_TARGET_DIR: inRoot('target', 'loom'),
  CARGO_PROFILE_RELEASE_LTO: 'off',
  CARGO_PROFILE_RELEASE_CODEGEN_UNITS: '16',
  CARGO_PROFILE_RELEASE_DEBUG: '0',
}

/** The workspace's crates. */
async function crates() {
  const args = ['metadata', '--no-deps', '--format-version', '1', '--locked']
  return JSON.parse(await must('Reading the crates', 'cargo', args)).packages
}

/**
 * Run the tests of every crate. CI compiles them with assertions; `npm test` shares the dependencies that the
 * core was compiled with.
 * @param {string[]} names Of all steps of the run.
 * @returns {Promise<number>} 0 when all pass, or may when they run once more.
 */
export async function rustTests(report, names) {
  const profile = names.includes('coverage') ? 'dev' : 'development'
  const isTested = ({ targets }) => targets.some(({ test, kind }) => test && !kind.includes('custom-build'))
  let failed = 0
  for (const { name } of (await crates()).filter(isTested)) {
    const args = ['test', '--locked', '--profile', profile, '-p', name]
    if ((await shown(name, report, 'cargo', args, { alone: {} })) !== 0) failed += 1
  }
  return failed === 0 ? 0 : 1
}

/** Run the loom models of every crate that has them; 0 when all pass. */
export async function loomModels(report) {
  let failed = 0
  for (const { name, targets } of await crates()) {
    if (!targets.some((target) => target.kind.includes('test') && target.name === 'models')) continue
    const env = { ...process.env, ...LOOM_ENV }
    const args = ['test', '--locked', '--release', '-p', name, '--test', 'models']
    if ((await shown(`the models of ${name}`, report, 'cargo', args, { env })) !== 0) failed += 1
  }
  return failed === 0 ? 0 : 1
}
