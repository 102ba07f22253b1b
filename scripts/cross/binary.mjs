/**
 * What a compiled core asks of the machine that loads it, read from the file itself.
 *
 * Read are the first words of an ELF file and the names in its table of strings: versions of glibc's symbols
 * are names such as GLIBC_2.17 between zero bytes. Everything that looks like one counts: in doubt the check
 * refuses.
 */
import { Stop } from '../set-up/index.mjs'
import { GLIBC_MIN } from './platforms.mjs'

/** e_machine of an ELF header. */
const MACHINES = { x64: 62, arm64: 183 }
const IS_LIBRARY = 3

/**
 * Check a core against the name of its platform.
 * @param {Buffer} bytes
 * @param {string} triple
 * @returns {{facts: string}} For a log: the size, and the glibc that is needed.
 * @throws {Stop} With what is wrong.
 */
export function checkCore(bytes, triple) {
  const [, arch, abi] = triple.split('-')
  const refuse = (problem) => {
    throw new Stop(`The core of ${triple} ${problem}.`)
  }
  const isElf = bytes.length > 64 && bytes.toString('latin1', 0, 5) === '\x7fELF\x02'
  if (!isElf || bytes.readUInt16LE(16) !== IS_LIBRARY) refuse('is not a 64-bit ELF library')
  const machine = bytes.readUInt16LE(18)
  if (machine !== MACHINES[arch]) refuse(`is for the processor ${machine} instead of ${MACHINES[arch]}`)
  const text = bytes.toString('latin1')
  if (!text.includes('\0napi_register_module_v1\0')) refuse('does not export napi_register_module_v1')
  const needed = glibcOf(text)
  if (abi === 'musl' && needed !== undefined) refuse(`needs glibc ${needed}`)
  if (abi === 'gnu' && needed === undefined) refuse('has no symbols of glibc')
  if (abi === 'gnu' && compare(needed, GLIBC_MIN) > 0)
    refuse(`needs glibc ${needed}, newer than ${GLIBC_MIN}`)
  return { facts: [`${bytes.length} bytes`, ...(needed === undefined ? [] : [`glibc ${needed}`])].join(', ') }
}

/** The newest version of glibc that is named; `undefined` without any. @param {string} text */
function glibcOf(text) {
  const versions = [...text.matchAll(/\0GLIBC_(\d+(?:\.\d+)+)(?=\0)/g)].map(([, version]) => version)
  return versions.sort(compare).at(-1)
}

function compare(left, right) {
  const [a, b] = [left, right].map((version) => version.split('.').map(Number))
  return a[0] - b[0] || a[1] - b[1] || (a[2] ?? 0) - (b[2] ?? 0)
}
