/**
 * What a compiled core is, read from the first words of its file: for its platform, loadable by Node, and for
 * no glibc newer than promised. In doubt the check refuses.
 *
 * What a system refuses at loading (a missing library or symbol, no signature) is tested on that system.
 */
import { Stop } from '../set-up/index.mjs'
import { GLIBC_MIN } from './platforms.mjs'

/** What Node calls when it has loaded an add-on. */
export const ENTRY = 'napi_register_module_v1'

/** How a 64-bit library for a system and a processor begins, in hexadecimal. */
const HEADS = {
  'linux-x64': /^7f454c4602.{22}03003e00/,
  'linux-arm64': /^7f454c4602.{22}0300b700/,
  'darwin-x64': /^cffaedfe07000001.{8}0[68]000000/,
  'darwin-arm64': /^cffaedfe0c000001.{8}0[68]000000/,
  'win32-x64': /^4d5a(..)*?504500006486/,
}
const HEAD_BYTES = 1024

/**
 * Check a core against the name of its platform.
 * @returns {string} Facts for a log: its size, and the glibc that it needs.
 */
export function checkCore(bytes, triple) {
  const [system, arch, abi] = triple.split('-')
  const refuse = (problem) => {
    throw new Stop(`The core of ${triple} ${problem}.`)
  }
  const head = bytes.toString('hex', 0, HEAD_BYTES)
  const text = bytes.toString('latin1')
  if (!HEADS[`${system}-${arch}`].test(head)) refuse(`is not a 64-bit library for ${system} on ${arch}`)
  if (!new RegExp(`[\\0_]${ENTRY}\\0`).test(text)) refuse(`does not export ${ENTRY}`)
  const needed = glibcOf(text)
  if (abi === 'gnu' && needed === undefined) refuse('has no symbols of glibc')
  if (abi === 'gnu' && compareVersions(needed, GLIBC_MIN) > 0)
    refuse(`needs glibc ${needed}, newer than ${GLIBC_MIN}`)
  if (abi !== 'gnu' && needed !== undefined) refuse(`needs glibc ${needed}`)
  return `${bytes.length} bytes${needed === undefined ? '' : `, glibc ${needed}`}`
}

/** The newest version of glibc whose symbols are named; `undefined` without any. */
function glibcOf(text) {
  const versions = [...text.matchAll(/\0GLIBC_(\d+(?:\.\d+)+)(?=\0)/g)].map(([, version]) => version)
  return versions.sort(compareVersions).at(-1)
}

/** The order of versions such as `2.28`. */
function compareVersions(left, right) {
  return left.localeCompare(right, 'en', { numeric: true })
}
