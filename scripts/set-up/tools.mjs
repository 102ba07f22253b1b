/**
 * The tools set-up cannot install by itself: npm and a Rust toolchain.
 *
 * Each missing or too old one is a single sentence with what to install. Node is checked earlier, see
 * node-version.mjs. rustfmt and clippy belong to `npm run check`: they are added through rustup when it is
 * there.
 */
import { npm, run } from './run.mjs'
import { Stop } from './stop.mjs'

/** Oldest cargo that compiles the crates and their dependencies; a test compares it with the locked ones. */
export const CARGO_MIN = '1.89.0'

/** Oldest npm that reads this package-lock.json (lockfileVersion 3). */
const NPM_MIN = '7.0.0'

const INSTALL_RUST = 'install Rust from https://rustup.rs'

/**
 * Compare two versions such as '1.88.0'.
 * @param {string} version
 * @param {string} least
 */
export function atLeast(version, least) {
  const [have, needed] = [version, least].map((text) => text.split(/[.-]/).slice(0, 3).map(Number))
  for (const [index, number] of needed.entries()) if (have[index] !== number) return have[index] > number
  return true
}

/**
 * The version of cargo.
 * @param {typeof run} [start] How programs are started; tests replace it.
 * @throws {Stop} When cargo is missing or older than {@link CARGO_MIN}.
 */
export async function cargoVersion(start = run) {
  const { code, output } = await start('cargo', ['--version'])
  if (code === 127)
    throw new Stop(`Corespun compiles its core with Rust and there is no cargo: ${INSTALL_RUST}.`)
  const version = /^cargo (\d+\.\d+\.\d+)/m.exec(output)?.[1]
  if (code !== 0 || version === undefined) {
    throw new Stop(`${output.trim()}\ncargo does not start: ${INSTALL_RUST}.`)
  }
  if (!atLeast(version, CARGO_MIN)) {
    throw new Stop(
      `Corespun needs Rust ${CARGO_MIN} and cargo is ${version}: run \`rustup update\` or ${INSTALL_RUST}.`,
    )
  }
  return version
}

/**
 * Make sure that npm starts and reads our lock file.
 * @param {typeof run} [start]
 * @throws {Stop} When it does not.
 */
export async function checkNpm(start = run) {
  const { program, args } = npm()
  const { code, output } = await start(program, [...args, '--version'])
  if (code !== 0)
    throw new Stop(
      'Corespun installs its packages with npm, which was not found: it comes with https://nodejs.org.',
    )
  const version = /^\d+\.\d+\.\d+/m.exec(output)?.[0]
  if (version !== undefined && !atLeast(version, NPM_MIN)) {
    const remedy = 'run `npm install -g npm@10` or use the npm of your Node'
    throw new Stop(`Corespun needs npm ${NPM_MIN} and npm is ${version}: ${remedy}.`)
  }
}

/**
 * Make sure that a cargo component such as clippy exists; rustup, where it is, is asked to add it.
 * @param {'clippy' | 'rustfmt'} component
 * @param {typeof run} [start]
 * @throws {Stop} When it is missing and cannot be added.
 */
export async function needComponent(component, start = run) {
  const probe = component === 'clippy' ? ['clippy', '--version'] : ['fmt', '--version']
  if ((await start('cargo', probe)).code === 0) return
  await start('rustup', ['component', 'add', component])
  if ((await start('cargo', probe)).code === 0) return
  throw new Stop(
    `\`npm run check\` needs ${component}: run \`rustup component add ${component}\` or install its package.`,
  )
}
