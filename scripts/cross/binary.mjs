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

/** By system: how a 64-bit library begins, where its processor is named, and how. */
const FORMATS = {
  linux: {
    begins: (bytes) => bytes.toString('latin1', 0, 5) === '\x7fELF\x02' && bytes.readUInt16LE(16) === 3,
    machine: (bytes) => bytes.readUInt16LE(18),
    machines: { x64: 62, arm64: 183 },
  },
  darwin: {
    begins: (bytes) => bytes.readUInt32LE(0) === 0xfeedfacf && [6, 8].includes(bytes.readUInt32LE(12)),
    machine: (bytes) => bytes.readUInt32LE(4),
    machines: { x64: 0x01000007, arm64: 0x0100000c },
  },
  win32: {
    begins: (bytes) =>
      bytes.toString('latin1', 0, 2) === 'MZ' &&
      bytes.toString('latin1', at(bytes), at(bytes) + 4) === 'PE\0\0',
    machine: (bytes) => bytes.readUInt16LE(at(bytes) + 4),
    machines: { x64: 0x8664 },
  },
}

/** Where the header of a PE file begins. */
const at = (bytes) => bytes.readUInt32LE(60)

/**
 * Check a core against the name of its platform.
 * @param {Buffer} bytes
 * @param {string} triple
 * @returns {string} Facts for a log: its size, and the glibc that it needs.
 * @throws {Stop} With what is wrong.
 */
export function checkCore(bytes, triple) {
  const [system, arch, abi] = triple.split('-')
  const { begins, machine, machines } = FORMATS[system]
  const refuse = (problem) => {
    throw new Stop(`The core of ${triple} ${problem}.`)
  }
  if (bytes.length < 64 || !begins(bytes)) refuse(`is not a 64-bit library for ${system}`)
  if (machine(bytes) !== machines[arch]) refuse(`is for processor ${machine(bytes)}, not ${machines[arch]}`)
  const text = bytes.toString('latin1')
  if (!new RegExp(`[\\0_]${ENTRY}\\0`).test(text)) refuse(`does not export ${ENTRY}`)
  const needed = glibcOf(text)
  if (abi === 'gnu' && needed === undefined) refuse('has no symbols of glibc')
  if (abi === 'gnu' && compareVersions(needed, GLIBC_MIN) > 0)
    refuse(`needs glibc ${needed}, newer than ${GLIBC_MIN}`)
  if (abi !== 'gnu' && needed !== undefined) refuse(`needs glibc ${needed}`)
  return `${bytes.length} bytes${needed === undefined ? '' : `, glibc ${needed}`}`
}

/** The newest version of glibc whose symbols are named; `undefined` without any. @param {string} text */
function glibcOf(text) {
  const versions = [...text.matchAll(/\0GLIBC_(\d+(?:\.\d+)+)(?=\0)/g)].map(([, version]) => version)
  return versions.sort(compareVersions).at(-1)
}

/** The order of versions such as `2.28`. @param {string} left @param {string} right */
function compareVersions(left, right) {
  return left.localeCompare(right, 'en', { numeric: true })
}
