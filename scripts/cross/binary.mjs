/**
 * What a compiled core asks of the machine that loads it, read from the file itself.
 *
 * A core for the wrong processor, one that needs a system newer than promised or a library that the system
 * does not have, is an error here and not on a user's machine. In doubt the check refuses.
 */
import { Stop } from '../set-up/index.mjs'
import { checkElf } from './elf.mjs'
import { checkMachO } from './mach-o.mjs'
import { checkPe } from './pe.mjs'

const FORMATS = { linux: checkElf, darwin: checkMachO, win32: checkPe }

/**
 * Check a core against the name of its platform.
 * @param {Buffer} bytes
 * @param {string} triple
 * @returns {{facts: string}} For a log: the size, and what is needed.
 * @throws {Stop} With what is wrong.
 */
export function checkCore(bytes, triple) {
  const [system, arch, abi] = triple.split('-')
  const refuse = (problem) => {
    throw new Stop(`The core of ${triple} ${problem}.`)
  }
  let facts
  try {
    facts = FORMATS[system](bytes, { arch, abi }, refuse)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    refuse('is damaged: a table of it lies beyond its end')
  }
  return { facts: [`${bytes.length} bytes`, ...facts].join(', ') }
}
