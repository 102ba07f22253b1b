/**
 * Blocks its worker until all items run at once: each item is a file that it creates in the folder MEETING,
 * where ITEMS are awaited.
 */
import { readdirSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'

const { MEETING, ITEMS } = process.env

export default function meet(path) {
  writeFileSync(join(MEETING, basename(path)), '')
  while (readdirSync(MEETING).length < Number(ITEMS));
  return readdirSync(MEETING).length
}
