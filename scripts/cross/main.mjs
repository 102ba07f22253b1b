/**
 * The cores of all platforms, compiled on Linux.
 *
 * Two runs in one checkout make the same bytes: the compiler is pinned, each crate is one unit of code, and
 * paths and the time of this machine are replaced. Each core is checked before it is packed (binary.mjs).
 */
import { copyFileSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { inRoot, must, ROOT } from '../set-up/index.mjs'
import { checkCore } from './binary.mjs'
import { MACOS_MIN, PLATFORMS } from './platforms.mjs'
import { toolchain } from './toolchain.mjs'

const BUILD = ['build', '--release', '--locked', '--quiet', '--package', 'corespun-node']
const TARGET = inRoot('target', 'cross')
/** std, with both ways to panic: the release profile unwinds. */
const STD = '-Zbuild-std=std,panic_abort'

/**
 * Compile cores.
 * @param {(line: string) => void} report
 * @param {string[]} [triples] Of which platforms; of all, if none is named.
 * @returns {Promise<string>} The folder that has `corespun.<triple>.node` of each.
 * @throws {Stop} When the toolchain is missing, or compiling or a check of the result fails.
 */
export async function compileCores(report, triples = PLATFORMS.map(({ triple }) => triple)) {
  const tools = await toolchain(report)
  const folder = join(TARGET, 'cores')
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  for (const platform of PLATFORMS.filter(({ triple }) => triples.includes(triple))) {
    const startedMs = performance.now()
    const path = join(folder, `corespun.${platform.triple}.node`)
    copyFileSync(await compile(platform, tools), path)
    const { facts } = checkCore(readFileSync(path), platform.triple)
    report(`cross: ${platform.triple}, ${facts}, ${((performance.now() - startedMs) / 1000).toFixed(0)} s`)
  }
  return folder
}

async function compile({ triple, rust, library, flags }, { rustc, sysroot, linkerOf }) {
  const paths = {
    [sysroot]: '/rust',
    [process.env.CARGO_HOME ?? join(homedir(), '.cargo')]: '/cargo',
    [ROOT]: '/',
  }
  const remap = Object.entries(paths).map(([from, to]) => `--remap-path-prefix=${from}=${to}`)
  const env = {
    ...process.env,
    RUSTC: rustc,
    RUSTC_BOOTSTRAP: '1', // -Zbuild-std with a released compiler
    CARGO_TARGET_DIR: TARGET,
    MACOSX_DEPLOYMENT_TARGET: MACOS_MIN,
    SOURCE_DATE_EPOCH: '0', // A Windows library has the time of its linking in it.
    CARGO_ENCODED_RUSTFLAGS: [...flags, ...remap].join('\x1f'),
    [`CARGO_TARGET_${rust.toUpperCase().replaceAll('-', '_')}_LINKER`]: linkerOf(rust),
  }
  await must(`Compiling the core of ${triple}`, 'cargo', [...BUILD, STD, '--target', rust], { env })
  return join(TARGET, rust, 'release', library)
}
