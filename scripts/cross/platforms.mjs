/**
 * The platforms that a core is published for, and how each is compiled on Linux.
 *
 * The names are those of packages and files; test/package compares them with those of src/native/load.ts.
 */

/**
 * @typedef {object} Platform
 * @property {string} triple In names of packages: `linux-x64-gnu`.
 * @property {string} rust Rust's name of the target.
 * @property {string} glibc What cargo-zigbuild reads behind that: the oldest glibc that the core runs on.
 * @property {string} library The file that cargo makes.
 * @property {string[]} flags Of rustc.
 */

/** The oldest glibc; Node 20 itself needs 2.28. */
export const GLIBC_MIN = '2.28'
/** The oldest macOS; the first one for Apple's processors. */
export const MACOS_MIN = '11.0'

/** musl's target is static by default, and a static program cannot load a library. */
const DYNAMIC = ['-Ctarget-feature=-crt-static']
/** The linker drops the names: a program that drops them later, as rustc runs it, breaks the signature. */
const STRIPPED = ['-Cstrip=none', '-Clink-arg=-Wl,-s']

export const PLATFORMS = [
  linux('x64-gnu', 'x86_64-unknown-linux-gnu', `.${GLIBC_MIN}`),
  linux('arm64-gnu', 'aarch64-unknown-linux-gnu', `.${GLIBC_MIN}`),
  linux('x64-musl', 'x86_64-unknown-linux-musl', '', DYNAMIC),
  linux('arm64-musl', 'aarch64-unknown-linux-musl', '', DYNAMIC),
  macos('darwin-x64', 'x86_64-apple-darwin'),
  macos('darwin-arm64', 'aarch64-apple-darwin'),
  {
    triple: 'win32-x64',
    rust: 'x86_64-pc-windows-gnullvm',
    glibc: '',
    library: 'corespun_node.dll',
    flags: [],
  },
]

/** The licences of what is in a core, beside it. */
export function noticesFile(triple) {
  return `corespun.${triple}.notices.txt`
}

function linux(name, rust, glibc, flags = []) {
  return { triple: `linux-${name}`, rust, glibc, library: 'libcorespun_node.so', flags }
}

function macos(triple, rust) {
  return { triple, rust, glibc: '', library: 'libcorespun_node.dylib', flags: STRIPPED }
}
