/**
 * The compiler of all platforms, below .set-up/cross: Debian's rustc with the source of std, zig as linker.
 *
 * rustup downloads a std per target, but not every machine reaches its server. Debian's packages have the
 * source of std, which cargo compiles for any target (-Zbuild-std). They are unpacked and not installed,
 * because they exclude other packages. Nothing is downloaded when the folder is complete.
 */
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { MEMORY } from '../set-up/index.mjs'
import { debian, once, wheel } from './download.mjs'
import { PLATFORMS } from './platforms.mjs'

const version = '1.96.0+dfsg1-1~deb12u2'
/** @type {import('./download.mjs').Pin[]} */
const RUST = [
  {
    name: 'rustc-web',
    version,
    sha256: '8fefe1d6377fe4082f5a9d2a47e095e2d20319eaab9754bd2f0275155c9adf90',
  },
  {
    name: 'libstd-rust-web-1.96',
    version,
    sha256: '3755f30434ae29574c91b0beb86632bee401607b0ac35c3e52810f9a53fae0d1',
  },
  {
    name: 'libstd-rust-web-dev',
    version,
    sha256: 'e38dbeaaad673fc63fb47c5140cf34da271ac71c3ecafc828b762c2fb01fe77a',
  },
  {
    name: 'rust-web-src',
    version,
    sha256: '9de8597c464d0a9283672973ed7e50092b49a92b95861429043fe8b57468a208',
  },
  {
    name: 'libllvm22',
    version: '1:22.1.8-1~deb12u1',
    sha256: '729ec3e943d320515c2bbdc96acfffd7ce34861e62bd5c42726bf586d644dfe2',
  },
]
const ZIG = {
  name: 'ziglang',
  version: '0.17.1',
  sha256: 'ea6cc5d87b033cf0aedfbc8f9549a908cae6c50ac31f1698188fa48a74524b54',
}

/**
 * What rustc asks of other linkers and zig has itself or does not need: C libraries, and iconv, which the
 * crate libc names for macOS and the core does not call. The list of a Windows library's exports is a file
 * to zig.
 */
const TRANSLATED = `for argument do
  shift
  case $argument in
    -Wl,*.def) set -- "$@" "\${argument#-Wl,}" ;;
    -liconv | -lmingw32 | -lmingwex | -lmsvcrt | -nolibc) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
`

/**
 * What crates with C code ask of clang: the target in its words, which `-target` names to zig, and the oldest
 * macOS, which is part of that. By default zig adds checks of undefined behaviour.
 */
const COMPILED = `for argument do
  shift
  case $argument in
    --target=* | -mmacosx-version-min=*) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
`

const FOLDER = join(MEMORY, 'cross')
const CACHE = join(FOLDER, 'cache')

/**
 * @typedef {object} Toolchain
 * @property {string} rustc
 * @property {string} sysroot Where it lies: its paths are not to be in what it compiles.
 * @property {string} zig Where the linker lies, with the licences of what it links.
 * @property {(rust: string) => string} linkerOf A program for a target of Rust.
 * @property {(rust: string) => string} compilerOf A compiler of C for it.
 * @property {string} archiver Makes libraries of what that has compiled.
 */

/**
 * The toolchain, downloaded when it is not there.
 * @param {(line: string) => void} report
 * @returns {Promise<Toolchain>}
 * @throws {Stop} When this is not Linux on x64, a tool is missing, or a download is not what was pinned.
 */
export async function toolchain(report) {
  await once(FOLDER, [RUST, ZIG], async () => {
    report('cross: downloading Debian packages of Rust and zig, 240 MB')
    for (const pin of RUST) await debian(pin, FOLDER, join(FOLDER, 'rust'))
    await wheel(ZIG, FOLDER, FOLDER)
    chmodSync(join(FOLDER, 'ziglang', 'zig'), 0o755)
  })
  writeTools()
  const sysroot = join(FOLDER, 'rust', 'usr')
  const linkerOf = (rust) => join(FOLDER, `link-${rust}`)
  const compilerOf = (rust) => join(FOLDER, `cc-${rust}`)
  const [rustc, zig, archiver] = ['rustc', 'ziglang', 'ar'].map((name) => join(FOLDER, name))
  return { rustc, sysroot, zig, linkerOf, compilerOf, archiver }
}

function writeTools() {
  const rust = join(FOLDER, 'rust', 'usr')
  const libraries = join(rust, 'lib', 'x86_64-linux-gnu')
  writeTool('rustc', `LD_LIBRARY_PATH='${libraries}' exec '${join(rust, 'bin', 'rustc')}' "$@"`)
  // zig keeps what it compiles of C libraries in its caches.
  const caches = `ZIG_GLOBAL_CACHE_DIR='${CACHE}' ZIG_LOCAL_CACHE_DIR='${CACHE}'`
  const zig = `${caches} exec '${join(FOLDER, 'ziglang', 'zig')}'`
  writeTool('ar', `${zig} ar "$@"`)
  for (const { rust: target, zig: own } of PLATFORMS) {
    writeTool(`link-${target}`, `${TRANSLATED}${zig} cc -target ${own} "$@"`)
    writeTool(`cc-${target}`, `${COMPILED}${zig} cc -target ${own} "$@" -fno-sanitize=undefined`)
  }
}

/** A tool that is there is left alone: another build may be running it. */
function writeTool(name, line) {
  const [path, text] = [join(FOLDER, name), `#!/bin/sh\n${line}\n`]
  if (!existsSync(path) || readFileSync(path, 'utf8') !== text) writeFileSync(path, text, { mode: 0o755 })
}
