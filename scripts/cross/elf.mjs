/**
 * ELF: what a core for Linux asks of the machine that loads it.
 *
 * Read are the first words of the file and the names in its table of strings: versions of glibc's symbols
 * are names such as GLIBC_2.17 between zero bytes. Everything that looks like one counts: in doubt the check
 * refuses.
 */
import { compareVersions, ENTRY, GLIBC_MIN } from './platforms.mjs'

/** e_machine of an ELF header. */
const MACHINES = { x64: 62, arm64: 183 }
const IS_LIBRARY = 3

/**
 * Check a library for Linux.
 * @param {Buffer} bytes
 * @param {{arch: string, abi: string}} platform `abi` is `gnu` or `musl`.
 * @param {(problem: string) => never} refuse
 * @returns {string[]} Facts for a log: the glibc that is needed.
 */
export function checkElf(bytes, { arch, abi }, refuse) {
  const isElf = bytes.length > 64 && bytes.toString('latin1', 0, 5) === '\x7fELF\x02'
  if (!isElf || bytes.readUInt16LE(16) !== IS_LIBRARY) refuse('is not a 64-bit ELF library')
  const machine = bytes.readUInt16LE(18)
  if (machine !== MACHINES[arch]) refuse(`is for the processor ${machine} instead of ${MACHINES[arch]}`)
  const text = bytes.toString('latin1')
  if (!text.includes(`\0${ENTRY}\0`)) refuse(`does not export ${ENTRY}`)
  const needed = glibcOf(text)
  if (abi === 'musl' && needed !== undefined) refuse(`needs glibc ${needed}`)
  if (abi === 'gnu' && needed === undefined) refuse('has no symbols of glibc')
  if (abi === 'gnu' && compareVersions(needed, GLIBC_MIN) > 0)
    refuse(`needs glibc ${needed}, newer than ${GLIBC_MIN}`)
  return needed === undefined ? [] : [`glibc ${needed}`]
}

/** The newest version of glibc that is named; `undefined` without any. @param {string} text */
function glibcOf(text) {
  const versions = [...text.matchAll(/\0GLIBC_(\d+(?:\.\d+)+)(?=\0)/g)].map(([, version]) => version)
  return versions.sort(compareVersions).at(-1)
}
