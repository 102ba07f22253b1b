/**
 * A folder for tables that measure what is synced to a disk, with SQLite.
 *
 * Where nothing is synced, the record names it.
 */
import { mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Context, Row } from './table.ts'

/** A file system in memory. */
const TMPFS = 0x01021994

/** @returns None without SQLite, where `own` is skipped. */
export async function onDisk(
  context: Context,
  own: string,
  measure: (folder: string) => Promise<Row[]>,
): Promise<Row[]> {
  if (!isBuiltin('node:sqlite')) {
    context.skip(own, `sqlite: needs Node 22.13, and this is ${process.versions.node}`)
    return []
  }
  const folder = mkdtempSync(join(tmpdir(), 'corespun-bench-'))
  try {
    if (statfsSync(folder).type === TMPFS)
      context.skip('a disk', `${folder} is in memory: TMPDIR names another`)
    return await measure(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
