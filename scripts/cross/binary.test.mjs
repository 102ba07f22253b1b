/**
 * The check of compiled cores, on the smallest files that pass, and each fault.
 *
 * A real core of each platform is checked when it is compiled.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkCore, ENTRY } from './binary.mjs'

/** A head of 128 bytes with words at offsets, and names behind it. */
function file(words, names) {
  const head = Buffer.alloc(128)
  for (const [offset, word] of Object.entries(words)) head.writeUInt32LE(word, Number(offset))
  return Buffer.concat([head, Buffer.from(`\0${names.join('\0')}\0`)])
}
const MAGIC = 0x464c457f
const elf = (machine, names, type = 3) => file({ 0: MAGIC, 4: 2, 16: (machine << 16) | type }, names)
const machO = (processor, names, type = 6) => file({ 0: 0xfeedfacf, 4: processor, 12: type }, names)
const pe = (machine, names) => file({ 0: 0x5a4d, 60: 64, 64: 0x4550, 68: machine }, names)

test('a core is for its platform, exports what Node calls, and needs no glibc newer than promised', () => {
  const glibc = [ENTRY, 'GLIBC_2.4', 'GLIBC_2.28', 'GLIBC_2.17']
  for (const [triple, bytes, expected] of [
    ['linux-x64-gnu', elf(62, glibc), /^\d+ bytes, glibc 2\.28$/],
    ['linux-x64-gnu', elf(62, [...glibc, 'GLIBC_2.34']), /needs glibc 2\.34, newer than 2\.28/],
    ['linux-x64-gnu', elf(62, [ENTRY]), /no symbols of glibc/],
    ['linux-x64-gnu', elf(62, glibc.slice(1)), /does not export napi_register_module_v1/],
    ['linux-x64-gnu', elf(62, glibc, 2), /not a 64-bit library for linux/],
    ['linux-x64-gnu', Buffer.alloc(10), /not a 64-bit library for linux/],
    ['linux-arm64-gnu', elf(62, glibc), /not a 64-bit library for linux on arm64/],
    ['linux-arm64-musl', elf(183, [ENTRY]), /^\d+ bytes$/],
    ['linux-arm64-musl', elf(183, glibc), /needs glibc 2\.28/],
    ['darwin-arm64', machO(0x0100000c, [`_${ENTRY}`]), /^\d+ bytes$/],
    ['darwin-x64', machO(0x0100000c, [`_${ENTRY}`]), /not a 64-bit library for darwin on x64/],
    ['darwin-arm64', machO(0x0100000c, [`_${ENTRY}`], 2), /not a 64-bit library for darwin/],
    ['win32-x64', pe(0x8664, [ENTRY]), /^\d+ bytes$/],
    ['win32-x64', pe(0xaa64, [ENTRY]), /not a 64-bit library for win32 on x64/],
    ['win32-x64', elf(62, [ENTRY]), /not a 64-bit library for win32/],
  ]) {
    let outcome
    try {
      outcome = checkCore(bytes, triple)
    } catch (error) {
      assert.equal(error.name, 'Stop', error.stack)
      outcome = error.message
    }
    assert.match(outcome, expected)
  }
})
