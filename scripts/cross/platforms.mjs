/**
 * The platforms that a core is published for, and how each is compiled on Linux.
 *
 * The names are those of packages and files; pack.test.mjs compares them with those of src/native/load.ts.
 */

/**
 * @typedef {object} Platform
 * @property {string} triple In names of packages: `linux-x64-gnu`.
 * @property {string} rust Rust's name of the target.
 * @property {string} zig zig's; its number is the oldest glibc that the core runs on.
 * @property {string[]} flags Of rustc.
 */

/** The oldest glibc; Node 20 itself needs 2.28. */
export const GLIBC_MIN = '2.28'

/** musl's target is static by default, and a static program cannot load a library. */
const DYNAMIC = ['-Ctarget-feature=-crt-static']

/** @type {readonly Platform[]} */
export const PLATFORMS = [
  platform('linux-x64-gnu', 'x86_64-unknown-linux-gnu', `x86_64-linux-gnu.${GLIBC_MIN}`),
  platform('linux-arm64-gnu', 'aarch64-unknown-linux-gnu', `aarch64-linux-gnu.${GLIBC_MIN}`),
  platform('linux-x64-musl', 'x86_64-unknown-linux-musl', 'x86_64-linux-musl', DYNAMIC),
  platform('linux-arm64-musl', 'aarch64-unknown-linux-musl', 'aarch64-linux-musl', DYNAMIC),
]

function platform(triple, rust, zig, flags = []) {
  return { triple, rust, zig, flags }
}
