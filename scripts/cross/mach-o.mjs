/**
 * Mach-O: what a core for macOS asks of the machine that loads it.
 *
 * Read are the load commands and the table of symbols. An undefined symbol names the library that must have
 * it, by its number, or none: the loader then looks in the whole program, which is right for Node-API and
 * libuv only.
 */
import { compareVersions, ENTRY, MACOS_MIN } from './platforms.mjs'

const MAGIC = 0xfeedfacf
const HEADER_BYTES = 32
/** cputype of a header. */
const PROCESSORS = { x64: 0x01000007, arm64: 0x0100000c }
/** Types of files that `dlopen` takes: a library and a bundle. */
const LIBRARIES = [6, 8]
const SYMTAB = 0x2
const LOAD_LIBRARY = 0xc
const OWN_NAME = 0xd
const SIGNATURE = 0x1d
const BUILD_VERSION = 0x32
const MACOS = 1
const SYMBOL_BYTES = 16
/** Bits of a symbol's type: of a debugger, defined or not, visible to others. */
const [DEBUG, TYPE, EXTERNAL] = [0xe0, 0x0e, 0x01]
/** The number of the library of a symbol that is looked up in the whole program. */
const ANY_LIBRARY = 0xfe
const SYSTEM = '/usr/lib/libSystem.B.dylib'

/**
 * Check a library for macOS.
 * @param {Buffer} bytes
 * @param {{arch: string}} platform
 * @param {(problem: string) => never} refuse
 * @returns {string[]} Facts for a log: the oldest macOS.
 */
export function checkMachO(bytes, { arch }, refuse) {
  const isMachO = bytes.length > HEADER_BYTES && bytes.readUInt32LE(0) === MAGIC
  if (!isMachO || !LIBRARIES.includes(bytes.readUInt32LE(12))) refuse('is not a 64-bit Mach-O library')
  const processor = bytes.readUInt32LE(4)
  if (processor !== PROCESSORS[arch])
    refuse(`is for the processor ${processor} instead of ${PROCESSORS[arch]}`)
  const commands = commandsOf(bytes)
  const odd = commands.filter(({ type, text }) => type === LOAD_LIBRARY && text(24) !== SYSTEM)
  if (odd.length > 0) refuse(`needs the library ${odd[0].text(24)}`)
  const own = commands.find(({ type }) => type === OWN_NAME)?.text(24) ?? ''
  if (own.startsWith('/')) refuse(`has the name ${own}, a path of the machine that linked it`)
  checkSymbols(bytes, commands, refuse)
  // The kernel of an Apple processor ends a process that runs unsigned code; zig's linker signs.
  if (arch === 'arm64' && !commands.some(({ type }) => type === SIGNATURE)) refuse('is not signed')
  const version = commands.find(({ type, word }) => type === BUILD_VERSION && word(8) === MACOS)
  if (version === undefined) refuse('does not name the oldest macOS that it runs on')
  const oldest = `${version.word(12) >>> 16}.${(version.word(12) >>> 8) & 0xff}`
  if (compareVersions(oldest, MACOS_MIN) > 0) refuse(`needs macOS ${oldest}, newer than ${MACOS_MIN}`)
  return [`macOS ${oldest}`]
}

/** Each load command: its type, and readers of the word and of the text at an offset. */
function commandsOf(bytes) {
  let at = HEADER_BYTES
  return Array.from({ length: bytes.readUInt32LE(16) }, () => {
    const command = bytes.subarray(at, at + bytes.readUInt32LE(at + 4))
    at += command.length
    const word = (offset) => command.readUInt32LE(offset)
    return { type: word(0), word, text: (offset) => textAt(command, offset) }
  })
}

function checkSymbols(bytes, commands, refuse) {
  const table = commands.find(({ type }) => type === SYMTAB)
  const symbols = table === undefined ? [] : symbolsOf(bytes, table)
  if (!symbols.some(({ name, isDefined }) => isDefined && name === `_${ENTRY}`))
    refuse(`does not export ${ENTRY}`)
  const foreign = symbols.find(
    ({ name, isDefined, library }) =>
      !isDefined && library === ANY_LIBRARY && !/^_(napi|node_api|uv)_/.test(name),
  )
  if (foreign !== undefined) refuse(`needs ${foreign.name}, which no library that it names has`)
}

/** The symbols that other files see or have. */
function symbolsOf(bytes, { word }) {
  const [first, count, strings] = [word(8), word(12), word(16)]
  return Array.from({ length: count }, (_, index) => {
    const at = first + index * SYMBOL_BYTES
    const type = bytes[at + 4]
    return {
      name: textAt(bytes, strings + bytes.readUInt32LE(at)),
      isDefined: (type & TYPE) !== 0,
      isShared: (type & EXTERNAL) !== 0 && (type & DEBUG) === 0,
      library: bytes[at + 7],
    }
  }).filter(({ isShared }) => isShared)
}

function textAt(bytes, offset) {
  return bytes.toString('latin1', offset, bytes.indexOf(0, offset))
}
