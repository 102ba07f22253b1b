/**
 * ELF files for x64, changed so that they run below a folder and with an older loader than they ask for.
 *
 * Nothing in a file moves: what is added lies behind its end, and the program headers point there.
 */
import { Stop } from '../../set-up/index.mjs'

/** Types of program headers. */
const LOAD = 1
const DYNAMIC = 2
const INTERPRETER = 3
const NOTE = 4
/** Tags of the dynamic section. */
const RELA = 7
const RELA_SIZE = 8
const RELR_SIZE = 35
const RELR = 36
/** The type of a relocation that adds the address at which the library lies: R_X86_64_RELATIVE. */
const RELATIVE = 8n
const READABLE = 4
const PAGE = 4096
const WORD = 8

/**
 * A program that the kernel starts with a loader at another path, of any length.
 * @param {Buffer} bytes
 * @param {string} loader
 * @returns {Buffer}
 */
export function withLoader(bytes, loader) {
  const changed = Buffer.concat([bytes, Buffer.from(`${loader}\0`)])
  const { at } = headerOf(headersOf(changed), INTERPRETER)
  changed.writeBigUInt64LE(BigInt(bytes.length), at + WORD)
  changed.writeBigUInt64LE(BigInt(changed.length - bytes.length), at + 4 * WORD)
  return changed
}

/**
 * A library whose packed relocations (RELR), which musl reads since 1.2.4, are ordinary ones (RELA). Their
 * table is a segment of its own, whose program header was that of a note.
 * @param {Buffer} bytes
 * @returns {Buffer}
 * @throws {Stop} When its relocations are not packed.
 */
export function withoutPackedRelocations(bytes) {
  const headers = headersOf(bytes)
  const loads = headers.filter(({ type }) => type === LOAD)
  const offsetOf = (address) => {
    const load = loads.find(({ start, inFile }) => start <= address && address < start + inFile)
    if (load === undefined) throw new Stop(`A library for musl has no byte at the address ${address}.`)
    return address - load.start + load.offset
  }
  const dynamic = dynamicOf(bytes, headerOf(headers, DYNAMIC).offset)
  if (!dynamic.has(RELR)) throw new Stop('A library for musl has no packed relocations: leave it as it is.')
  const valueOf = (tag) => word(bytes, dynamic.get(tag))
  const packed = bytes.subarray(offsetOf(valueOf(RELR))).subarray(0, valueOf(RELR_SIZE))
  const entries = unpacked(packed).map((address) => entry(address, word(bytes, offsetOf(address))))
  const own = bytes.subarray(offsetOf(valueOf(RELA))).subarray(0, valueOf(RELA_SIZE))
  const table = Buffer.concat([own, ...entries])
  const offset = pages(bytes.length)
  const changed = Buffer.concat([bytes, Buffer.alloc(offset - bytes.length), table])
  const start = pages(Math.max(...loads.map((each) => each.start + each.inMemory)))
  changed.writeBigUInt64LE(BigInt(start), dynamic.get(RELA))
  changed.writeBigUInt64LE(BigInt(table.length), dynamic.get(RELA_SIZE))
  changed.writeBigUInt64LE(0n, dynamic.get(RELR_SIZE))
  const { at } = headerOf(headers, NOTE)
  changed.writeUInt32LE(LOAD, at)
  changed.writeUInt32LE(READABLE, at + 4)
  const fields = [offset, start, start, table.length, table.length, PAGE]
  write(changed, at + WORD, fields.map(BigInt))
  return changed
}

/** The program headers; `at` is where each lies in the file, the other numbers are what it names. */
function headersOf(bytes) {
  const [first, size, count] = [word(bytes, 32), bytes.readUInt16LE(54), bytes.readUInt16LE(56)]
  return Array.from({ length: count }, (_, index) => {
    const at = first + index * size
    const [offset, start, , inFile, inMemory] = [1, 2, 3, 4, 5].map((field) => word(bytes, at + field * WORD))
    return { at, type: bytes.readUInt32LE(at), offset, start, inFile, inMemory }
  })
}

function headerOf(headers, type) {
  const header = headers.find((each) => each.type === type)
  if (header === undefined) throw new Stop(`An ELF file for musl has no program header of the type ${type}.`)
  return header
}

/** Where the value of each tag lies. */
function dynamicOf(bytes, offset) {
  const values = new Map()
  for (let at = offset; word(bytes, at) !== 0; at += 2 * WORD) values.set(word(bytes, at), at + WORD)
  return values
}

/** An even word is an address; in an odd one, each bit after the first is for one of the next 63 words. */
function unpacked(packed) {
  const addresses = []
  let next = 0
  for (let at = 0; at < packed.length; at += WORD) {
    const value = packed.readBigUInt64LE(at)
    if ((value & 1n) === 0n) {
      addresses.push(Number(value))
      next = Number(value) + WORD
      continue
    }
    for (let bit = 1n; bit < 64n; bit += 1n) {
      if ((value >> bit) & 1n) addresses.push(next)
      next += WORD
    }
  }
  return addresses
}

/** A relocation with what it adds beside it; a packed one has that where it is applied. */
function entry(address, addend) {
  const bytes = Buffer.alloc(3 * WORD)
  write(bytes, 0, [BigInt(address), RELATIVE, BigInt(addend)])
  return bytes
}

function write(bytes, at, words) {
  for (const [index, value] of words.entries()) bytes.writeBigUInt64LE(value, at + index * WORD)
}

function word(bytes, at) {
  return Number(bytes.readBigUInt64LE(at))
}

function pages(size) {
  return Math.ceil(size / PAGE) * PAGE
}
