/**
 * The compiler of all platforms, below .set-up/cross: Debian's rustc with the source of std, zig as linker.
 *
 * rustup downloads a std per target, but not every machine reaches its server. Debian's packages have the
 * source of std, which cargo compiles for any target (-Zbuild-std). They are unpacked and not installed,
 * because they exclude other packages. Everything is pinned by version and SHA-256; nothing is
 * downloaded when the folder is complete.
 */
import { createHash } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { MEMORY, must, run, Stop } from '../set-up/index.mjs'
import { PLATFORMS } from './platforms.mjs'

const RUST = '1.96.0'
const DEBIAN = `${RUST}+dfsg1-1~deb12u2`
/** Name, version and SHA-256 of Debian's packages. */
const PACKAGES = [
  ['rustc-web', DEBIAN, '8fefe1d6377fe4082f5a9d2a47e095e2d20319eaab9754bd2f0275155c9adf90'],
  ['libstd-rust-web-1.96', DEBIAN, '3755f30434ae29574c91b0beb86632bee401607b0ac35c3e52810f9a53fae0d1'],
  ['libstd-rust-web-dev', DEBIAN, 'e38dbeaaad673fc63fb47c5140cf34da271ac71c3ecafc828b762c2fb01fe77a'],
  ['rust-web-src', DEBIAN, '9de8597c464d0a9283672973ed7e50092b49a92b95861429043fe8b57468a208'],
  ['libllvm22', '1:22.1.8-1~deb12u1', '729ec3e943d320515c2bbdc96acfffd7ce34861e62bd5c42726bf586d644dfe2'],
]
const ZIG = ['0.17.1', 'ea6cc5d87b033cf0aedfbc8f9549a908cae6c50ac31f1698188fa48a74524b54']

const FOLDER = join(MEMORY, 'cross')
const CACHE = join(FOLDER, 'cache')
/** Changes with what is in the folder; the folder of another one is not used. */
const COMPLETE = join(FOLDER, `complete-${digest(Buffer.from(JSON.stringify([PACKAGES, ZIG])))}`)

/**
 * @typedef {object} Toolchain
 * @property {string} rustc
 * @property {string} sysroot Where it lies: its paths are not to be in what it compiles.
 * @property {(rust: string) => string} linkerOf A program for a target of Rust.
 */

/**
 * The toolchain, downloaded when it is not there.
 * @param {(line: string) => void} report
 * @returns {Promise<Toolchain>}
 * @throws {Stop} When this is not a Debian on x64, a tool is missing, or a download is not what was pinned.
 */
export async function toolchain(report) {
  if (!existsSync(COMPLETE)) {
    await checkTools()
    report('cross: downloading Debian packages of Rust and zig, 240 MB')
    rmSync(FOLDER, { recursive: true, force: true })
    mkdirSync(join(FOLDER, 'download'), { recursive: true })
    await unpackRust()
    await unpackZig()
    rmSync(join(FOLDER, 'download'), { recursive: true })
    writeFileSync(COMPLETE, '')
  }
  writeTools()
  const sysroot = join(FOLDER, 'rust', 'usr')
  return { rustc: join(FOLDER, 'rustc'), sysroot, linkerOf: (rust) => join(FOLDER, `link-${rust}`) }
}

/** What is started here, and what has it on Debian. */
const TOOLS = { 'apt-get': 'apt', 'dpkg-deb': 'dpkg', python3: 'python3-pip' }

async function checkTools() {
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    throw new Stop(
      'The cores of all platforms are compiled on Linux x64: the compiler is a package of Debian for it.',
    )
  }
  for (const [tool, from] of Object.entries(TOOLS)) {
    const { code } = await run(tool, ['--version'])
    if (code !== 0)
      throw new Stop(`\`npm run package -- --all\` needs ${tool}: install ${from} (Debian 12 or newer).`)
  }
}

async function unpackRust() {
  const download = join(FOLDER, 'download')
  // Refreshing the lists needs root; without, those of the machine are used.
  await run('apt-get', ['update', '-qq'])
  for (const [name, version, sha256] of PACKAGES) {
    const { code, output } = await run('apt-get', ['download', '-qq', `${name}=${version}`], {
      cwd: download,
    })
    if (code !== 0) {
      const where = 'Debian 12 with its security archive has it, until a newer version replaces it'
      throw new Stop(
        `${output}\n${name} ${version} cannot be downloaded. ${where}: see scripts/cross/toolchain.mjs.`,
      )
    }
    const file = take(download, `${name}_`, sha256)
    await must(`Unpacking ${name}`, 'dpkg-deb', ['-x', file, join(FOLDER, 'rust')])
  }
}

async function unpackZig() {
  const [version, sha256] = ZIG
  const download = join(FOLDER, 'download')
  const flags = ['-m', 'pip', 'download', '--quiet', '--no-deps', '--only-binary=:all:', '--dest', download]
  await must('Downloading zig', 'python3', [...flags, `ziglang==${version}`])
  const wheel = take(download, 'ziglang-', sha256)
  await must('Unpacking zig', 'python3', ['-m', 'zipfile', '-e', wheel, download])
  renameSync(join(download, 'ziglang'), join(FOLDER, 'zig'))
  chmodSync(join(FOLDER, 'zig', 'zig'), 0o755)
}

/** The one file with a prefix, which must be what was pinned. */
function take(folder, prefix, sha256) {
  const file = join(folder, readdirSync(folder).find((name) => name.startsWith(prefix)) ?? prefix)
  const found = existsSync(file) ? digest(readFileSync(file)) : 'missing'
  if (found !== sha256) throw new Stop(`${file} has the SHA-256 ${found}; pinned is ${sha256}.`)
  return file
}

function writeTools() {
  const rust = join(FOLDER, 'rust', 'usr')
  const libraries = join(rust, 'lib', 'x86_64-linux-gnu')
  writeTool('rustc', `LD_LIBRARY_PATH='${libraries}' exec '${join(rust, 'bin', 'rustc')}' "$@"`)
  for (const { rust: target, zig } of PLATFORMS) {
    // zig keeps what it compiles of C libraries in its caches.
    const caches = `ZIG_GLOBAL_CACHE_DIR='${CACHE}' ZIG_LOCAL_CACHE_DIR='${CACHE}'`
    writeTool(`link-${target}`, `${caches} exec '${join(FOLDER, 'zig', 'zig')}' cc -target ${zig} "$@"`)
  }
}

function writeTool(name, line) {
  writeFileSync(join(FOLDER, name), `#!/bin/sh\n${line}\n`, { mode: 0o755 })
}

function digest(bytes) {
  return createHash('sha256').update(bytes).digest('hex')
}
