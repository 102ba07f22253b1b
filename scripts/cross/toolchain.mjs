/**
 * The compiler of all platforms, below .set-up: Debian's rustc with the source of std, cargo-zigbuild, zig.
 *
 * rustup downloads a std per target, but not every machine reaches its server. Debian's packages have the
 * source of std, which cargo compiles for any target (-Zbuild-std). They are unpacked and not installed,
 * because they exclude other packages. Nothing is downloaded when the folders are there.
 */
import { chmodSync, existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { MEMORY, must, run, Stop } from '../set-up/index.mjs'
import { fromPypi } from './pypi.mjs'

/** Debian replaces a version by a newer one: then it is to be updated here. apt checks their signatures. */
const RUST_OF_WEB = ['rustc-web', 'libstd-rust-web-1.96', 'libstd-rust-web-dev', 'rust-web-src']
const DEBIAN = [
  ...RUST_OF_WEB.map((name) => `${name}=1.96.0+dfsg1-1~deb12u2`),
  'libllvm22=1:22.1.8-1~deb12u1',
]
/** @type {import('./pypi.mjs').Pin[]} */
const PYPI = [
  ['ziglang', '0.17.1', 'ea6cc5d87b033cf0aedfbc8f9549a908cae6c50ac31f1698188fa48a74524b54'],
  ['cargo-zigbuild', '0.24.1', '238a1ab54a95053a4eadc34775c81f795a8ad75f80bfed63f3f445f518102375'],
]
const RUST = join(MEMORY, `cross-${DEBIAN[0]}`)
const ZIG = join(MEMORY, `cross-${PYPI.map(([name, version]) => `${name}-${version}`).join('-')}`)

/**
 * The toolchain, downloaded when it is not there.
 * @returns {Promise<{rustc: string, sysroot: string, zig: string, zigbuild: string, cache: string}>} The
 *   paths of `sysroot` and `zig` are not to be in what is compiled; `zig` has licences of what is linked.
 * @throws {Stop} When this is not Linux on x64, a tool is missing, or a download fails.
 */
export async function toolchain(report) {
  if (process.platform !== 'linux' || process.arch !== 'x64')
    throw new Stop('This needs Linux x64: the programs it downloads are packages of Debian for it.')
  if (!existsSync(RUST)) {
    report('cross: downloading Debian packages of Rust, 150 MB')
    await unpackRust()
  }
  await fromPypi(PYPI, ZIG)
  const [sysroot, zig] = [join(RUST, 'usr'), join(ZIG, 'ziglang')]
  const zigbuild = join(ZIG, 'bin', 'cargo-zigbuild')
  return { rustc: join(RUST, 'rustc'), sysroot, zig, zigbuild, cache: join(MEMORY, 'cross-cache') }
}

/** Whole or not at all. */
async function unpackRust() {
  const part = `${RUST}.part`
  rmSync(part, { recursive: true, force: true })
  mkdirSync(part, { recursive: true })
  // Refreshing Debian's lists needs root; without, those of the machine are used.
  await run('apt-get', ['update', '-qq'])
  await must('Downloading Rust (Debian 12)', 'apt-get', ['download', '-qq', ...DEBIAN], { cwd: part })
  const unpack = 'for each in *.deb; do dpkg-deb -x "$each" .; done; rm *.deb'
  await must('Unpacking Rust', 'sh', ['-c', unpack], { cwd: part })
  const libraries = 'export LD_LIBRARY_PATH="$here/lib/x86_64-linux-gnu"'
  const lines = ['#!/bin/sh', 'here=$(dirname "$0")/usr', libraries, 'exec "$here/bin/rustc" "$@"', '']
  writeFileSync(join(part, 'rustc'), lines.join('\n'))
  chmodSync(join(part, 'rustc'), 0o755)
  renameSync(part, RUST)
}
