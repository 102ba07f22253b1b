/**
 * PE: what a core for Windows asks of the machine that loads it.
 *
 * Read are the headers and the tables of exports and imports. Node itself is not among the imports: the core
 * looks its functions up in the program that has loaded it.
 */
import { ENTRY } from './platforms.mjs'

/** Machine of a COFF header. */
const MACHINES = { x64: 0x8664 }
const IS_LIBRARY = 0x2000
const IS_64_BIT = 0x20b
/** Libraries that are part of Windows 10 and newer: the system's own, and the C library. */
const WINDOWS =
  /^((advapi32|kernel32|ntdll|bcryptprimitives|userenv|ws2_32)|api-ms-win-(core|crt)-[a-z0-9-]+)\.dll$/i
const IMPORT_BYTES = 20
const SECTION_BYTES = 40

/**
 * Check a library for Windows.
 * @param {Buffer} bytes
 * @param {{arch: string}} platform
 * @param {(problem: string) => never} refuse
 * @returns {string[]} Facts for a log: the libraries that it needs.
 */
export function checkPe(bytes, { arch }, refuse) {
  const head = bytes.length > 64 && bytes.toString('latin1', 0, 2) === 'MZ' ? bytes.readUInt32LE(60) : 0
  const isPe = head > 0 && bytes.toString('latin1', head, head + 4) === 'PE\0\0'
  const [coff, optional] = [head + 4, head + 24]
  const isLibrary = isPe && (bytes.readUInt16LE(coff + 18) & IS_LIBRARY) !== 0
  if (!isLibrary || bytes.readUInt16LE(optional) !== IS_64_BIT) refuse('is not a 64-bit PE library')
  const machine = bytes.readUInt16LE(coff)
  if (machine !== MACHINES[arch]) refuse(`is for the processor ${machine} instead of ${MACHINES[arch]}`)
  // Linkers write the time there, and two runs would differ.
  if (bytes.readUInt32LE(coff + 4) !== 0) refuse('names the time at which it was linked')
  const read = reader(bytes, coff, optional)
  if (!exportsOf(read).includes(ENTRY)) refuse(`does not export ${ENTRY}`)
  const libraries = importsOf(read)
  const odd = libraries.find((name) => !WINDOWS.test(name))
  if (odd !== undefined) refuse(`needs the library ${odd}`)
  return [`${libraries.length} libraries of Windows`]
}

/** Readers of what lies at addresses of the loaded library. */
function reader(bytes, coff, optional) {
  const first = optional + bytes.readUInt16LE(coff + 16)
  const sections = Array.from({ length: bytes.readUInt16LE(coff + 2) }, (_, index) => {
    const at = first + index * SECTION_BYTES
    const [address, size, start] = [12, 16, 20].map((offset) => bytes.readUInt32LE(at + offset))
    return { address, size, start }
  })
  const offsetOf = (virtual) => {
    const section = sections.find(({ address, size }) => virtual >= address && virtual < address + size)
    return section === undefined ? bytes.length : virtual - section.address + section.start
  }
  return {
    /** Where the table with a number begins; 0 without one. */
    table: (number) => bytes.readUInt32LE(optional + 112 + 8 * number),
    word: (address) => bytes.readUInt32LE(offsetOf(address)),
    text: (address) => bytes.toString('latin1', offsetOf(address), bytes.indexOf(0, offsetOf(address))),
  }
}

function exportsOf({ table, word, text }) {
  const exported = table(0)
  if (exported === 0) return []
  const names = word(exported + 32)
  return Array.from({ length: word(exported + 24) }, (_, index) => text(word(names + 4 * index)))
}

function importsOf({ table, word, text }) {
  const libraries = []
  if (table(1) === 0) return libraries
  for (let at = table(1); word(at + 12) !== 0; at += IMPORT_BYTES) libraries.push(text(word(at + 12)))
  return libraries
}
