/**
 * The cores of all platforms, compiled on Linux, each with the licences of what is in it.
 *
 * Two runs in one checkout make the same bytes: the compiler is pinned, each crate is one unit of code, and
 * paths and the time of this machine are replaced. Each core is checked before it is packed (binary.mjs).
 */
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { inRoot, MESSAGES, messagesOf, must, ROOT } from '../set-up/index.mjs'
import { checkCore } from './binary.mjs'
import { notices, partsOf, partWith } from './notices.mjs'
import { MACOS_MIN, noticesFile, PLATFORMS } from './platforms.mjs'
import { toolchain } from './toolchain.mjs'

const BUILD = ['zigbuild', '--release', '--locked', '--quiet', '--package', 'corespun-node', MESSAGES]
const TARGET = inRoot('target', 'cross')
/** std, with both ways to panic: the release profile unwinds. */
const STD = '-Zbuild-std=std,panic_abort'

const LLVM = 'LLVM: libunwind, and what compiler_builtins has of it'
/** By the C library: what is linked of it, also if the library itself is the machine's. */
const START = {
  gnu: ['start and end of a library, of glibc', 'LGPL-2.1-or-later with exceptions', 'glibc', 'LICENSES'],
  musl: ['start and end of a library, of musl', 'MIT', 'musl', 'COPYRIGHT'],
  windows: ['start of a library, of mingw-w64', 'ZPL-2.1 and others', 'mingw', 'COPYING'],
}

/**
 * Compile cores.
 * @param {string[]} [triples] Of which platforms; of all, if none is named.
 * @returns {Promise<string>} The folder that has `corespun.<triple>.node` and
 *   `corespun.<triple>.notices.txt` of each.
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
    const messages = await compile(platform, tools)
    copyFileSync(join(TARGET, platform.rust, 'release', platform.library), path)
    const parts = [...partsOf(messages), ...linkedParts(platform.triple, tools)]
    writeFileSync(join(folder, noticesFile(platform.triple)), notices(parts))
    const facts = checkCore(readFileSync(path), platform.triple)
    report(`cross: ${platform.triple}, ${facts}, ${((performance.now() - startedMs) / 1000).toFixed(0)} s`)
  }
  return folder
}

/** What zig links besides crates: its own code for processors, the unwinder, and the start of a library. */
function linkedParts(triple, { zig }) {
  const library = join(zig, 'lib')
  const parts = [
    partWith('compiler-rt of zig', 'MIT', join(zig, 'LICENSE')),
    partWith(LLVM, 'Apache-2.0 WITH LLVM-exception', join(library, 'libunwind', 'LICENSE.TXT')),
  ]
  if (triple.startsWith('darwin')) return parts
  const [name, license, ...path] = START[triple.split('-')[2] ?? 'windows']
  return [...parts, partWith(name, license, join(library, 'libc', ...path))]
}

async function compile({ triple, rust, glibc, flags }, { rustc, sysroot, zig, zigbuild, cache }) {
  const paths = {
    [sysroot]: '/rust',
    [zig]: '/zig',
    [process.env.CARGO_HOME ?? join(homedir(), '.cargo')]: '/cargo',
    [ROOT]: '/',
  }
  const replaced = Object.entries(paths).map(([from, to]) => `${from}=${to}`)
  const remap = replaced.map((pair) => `--remap-path-prefix=${pair}`)
  const env = {
    ...process.env,
    RUSTC: rustc,
    RUSTC_BOOTSTRAP: '1', // -Zbuild-std with a released compiler
    CARGO_TARGET_DIR: TARGET,
    CARGO_ZIGBUILD_ZIG_PATH: join(zig, 'zig'),
    CARGO_ZIGBUILD_CACHE_DIR: cache,
    MACOSX_DEPLOYMENT_TARGET: MACOS_MIN,
    SOURCE_DATE_EPOCH: '0', // A Windows library has the time of its linking in it.
    CARGO_ENCODED_RUSTFLAGS: [...flags, ...remap].join('\x1f'),
    // Build scripts of crates with C code read it.
    [`CFLAGS_${rust.replaceAll('-', '_')}`]: replaced.map((pair) => `-ffile-prefix-map=${pair}`).join(' '),
  }
  const args = [...BUILD, STD, '--target', `${rust}${glibc}`]
  return messagesOf(await must(`Compiling the core of ${triple}`, zigbuild, args, { env }))
}
