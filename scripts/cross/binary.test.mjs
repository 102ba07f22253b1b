/**
 * The check of compiled cores, on libraries that are made here: the smallest that are right, and each fault.
 *
 * A real core of each platform is checked when it is compiled.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Stop } from '../set-up/index.mjs'
import { checkCore } from './binary.mjs'
import { ENTRY } from './platforms.mjs'

/** A library that passes, with what is read from it; and libraries with a fault each. */
function check(triple, good, facts, refused) {
  assert.match(checkCore(good, triple).facts, facts)
  for (const [bytes, words] of refused) {
    assert.throws(
      () => checkCore(bytes, triple),
      (error) => error instanceof Stop && words.test(error.message),
      `${triple} ${words}`,
    )
  }
}

/** The head of an ELF library with a table of strings. */
function elf({ machine = 62, type = 3, names = [ENTRY] }) {
  const head = Buffer.alloc(128)
  head.write('\x7fELF\x02', 'latin1')
  head.writeUInt16LE(type, 16)
  head.writeUInt16LE(machine, 18)
  return Buffer.concat([head, Buffer.from(`\0${names.join('\0')}\0`)])
}

test('a core for Linux is for the processor, and needs no glibc newer than promised', () => {
  const good = elf({ names: [ENTRY, 'GLIBC_2.17', 'GLIBC_2.28', 'GLIBC_2.4'] })
  check('linux-x64-gnu', good, /glibc 2\.28$/, [
    [elf({ names: [ENTRY, 'GLIBC_2.17', 'GLIBC_2.34'] }), /needs glibc 2\.34, newer than 2\.28/],
    [elf({}), /no symbols of glibc/],
    [elf({ names: ['GLIBC_2.17'] }), /does not export napi_register_module_v1/],
    [elf({ type: 2 }), /not a 64-bit ELF library/],
    [Buffer.alloc(10), /not a 64-bit ELF library/],
  ])
  check('linux-arm64-musl', elf({ machine: 183 }), /^\d+ bytes$/, [
    [good, /processor 62 instead of 183/],
    [elf({ machine: 183, names: [ENTRY, 'GLIBC_2.17'] }), /needs glibc 2\.17/],
  ])
})

const words = (...values) => {
  const bytes = Buffer.alloc(4 * values.length)
  for (const [index, value] of values.entries()) bytes.writeUInt32LE(value, 4 * index)
  return bytes
}
const SYSTEM = '/usr/lib/libSystem.B.dylib'
const SYMBOLS = [
  { name: `_${ENTRY}`, type: 0x0f, library: 0 },
  { name: '_uv_now', type: 0x01, library: 0xfe },
  { name: '_napi_create_object', type: 0x01, library: 0xfe },
  { name: '_malloc', type: 0x01, library: 1 },
  { name: '_local', type: 0x0e, library: 0xfe },
]

/** A Mach-O library: its header, its commands, and its symbols. */
function machO({ magic = 0xfeedfacf, processor = 0x0100000c, type: kind = 6, ...rest }) {
  const {
    libraries = [SYSTEM],
    symbols = SYMBOLS,
    version = [1, 11 << 16],
    isSigned = true,
    own = 'corespun.node',
  } = rest
  const named = (type, name) => {
    const text = Buffer.alloc(32)
    text.write(name)
    return Buffer.concat([words(type, 24 + text.length, 24, 2, 0, 0), text])
  }
  const loads = [named(0xd, own), ...libraries.map((name) => named(0xc, name))]
  const others = [isSigned ? words(0x1d, 16, 0, 0) : [], words(0x32, 24, ...version, 0, 0)].flat()
  const sizes = [...loads, ...others].reduce((sum, { length }) => sum + length, 24)
  const first = 32 + sizes
  const names = symbols.map(({ name }) => `${name}\0`)
  const table = symbols.map(({ type, library }, index) => {
    const at = names.slice(0, index).join('').length
    return Buffer.concat([words(at), Buffer.from([type, 0, 0, library]), words(0, 0)])
  })
  const symtab = words(0x2, 24, first, symbols.length, first + 16 * symbols.length, names.join('').length)
  const commands = [symtab, ...loads, ...others]
  const header = words(magic, processor, 0, kind, commands.length, sizes, 0, 0)
  return Buffer.concat([header, ...commands, ...table, Buffer.from(names.join(''))])
}

test('a core for macOS is signed, and finds what it needs in the system and in Node', () => {
  const missing = SYMBOLS.slice(1)
  const foreign = [...SYMBOLS, { name: '_iconv', type: 0x01, library: 0xfe }]
  const cut = machO({}).subarray(0, 100)
  check('darwin-arm64', machO({}), /^\d+ bytes, macOS 11\.0$/, [
    [machO({ processor: 0x01000007 }), /processor 16777223 instead of 16777228/],
    [machO({ type: 2 }), /not a 64-bit Mach-O library/],
    [machO({ magic: 0xfeedface }), /not a 64-bit Mach-O library/],
    [machO({ libraries: [SYSTEM, '/usr/lib/libiconv.2.dylib'] }), /needs the library .*libiconv\.2\.dylib/],
    [machO({ symbols: missing }), /does not export napi_register_module_v1/],
    [machO({ symbols: foreign }), /needs _iconv, which no library that it names has/],
    [machO({ own: '/home/someone/corespun.dylib' }), /has the name .*a path of the machine/],
    [machO({ isSigned: false }), /is not signed/],
    [machO({ version: [2, 11 << 16] }), /does not name the oldest macOS/],
    [machO({ version: [1, (13 << 16) | (5 << 8)] }), /needs macOS 13\.5, newer than 11\.0/],
    [cut, /damaged/],
    [Buffer.alloc(10), /not a 64-bit Mach-O library/],
  ])
  check('darwin-x64', machO({ processor: 0x01000007, isSigned: false }), /macOS 11\.0$/, [])
})

const AT = 0x1000

/** A PE library: headers, and one section with its exports, imports and their names. */
function pe({ machine = 0x8664, characteristics = 0x2022, kind = 0x20b, timeS = 0, ...rest }) {
  const { exported = [ENTRY], imported = ['KERNEL32.dll', 'api-ms-win-crt-heap-l1-1-0.dll'] } = rest
  const section = Buffer.alloc(1024)
  let free = 512
  const put = (name) => {
    section.write(`${name}\0`, free, 'latin1')
    free += name.length + 1
    return AT + free - name.length - 1
  }
  section.writeUInt32LE(exported.length, 24)
  section.writeUInt32LE(AT + 400, 32)
  for (const [index, name] of exported.entries()) section.writeUInt32LE(put(name), 400 + 4 * index)
  for (const [index, name] of imported.entries()) section.writeUInt32LE(put(name), 40 + 20 * index + 12)
  const head = Buffer.alloc(512)
  head.write('MZ')
  head.writeUInt32LE(64, 60)
  head.write('PE\0\0', 64, 'latin1')
  head.writeUInt16LE(machine, 68)
  head.writeUInt16LE(1, 70)
  head.writeUInt32LE(timeS, 72)
  head.writeUInt16LE(240, 84)
  head.writeUInt16LE(characteristics, 86)
  head.writeUInt16LE(kind, 88)
  words(AT, 40, AT + 40, 200).copy(head, 88 + 112)
  words(1024, AT, 1024, 512).copy(head, 88 + 240 + 8)
  return Buffer.concat([head, section])
}

test('a core for Windows imports from Windows alone, and has no time in it', () => {
  check('win32-x64', pe({}), /^\d+ bytes, 2 libraries of Windows$/, [
    [pe({ machine: 0xaa64 }), /processor 43620 instead of 34404/],
    [pe({ characteristics: 0x22 }), /not a 64-bit PE library/],
    [pe({ kind: 0x10b }), /not a 64-bit PE library/],
    [pe({ timeS: 1795476416 }), /names the time at which it was linked/],
    [pe({ exported: ['other'] }), /does not export napi_register_module_v1/],
    [pe({ imported: ['KERNEL32.dll', 'libunwind.dll'] }), /needs the library libunwind\.dll/],
    [pe({}).subarray(0, 600), /damaged/],
    [Buffer.from('MZ'), /not a 64-bit PE library/],
    [elf({}), /not a 64-bit PE library/],
  ])
})
