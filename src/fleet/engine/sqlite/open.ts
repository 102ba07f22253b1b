/**
 * Opens the file of an engine, or refuses it before anything in it is changed.
 *
 * WAL needs memory that all its processes share, so they are on one machine, and its disk is not that of
 * another: there locks are lost, and then data.
 */
/* c8 ignore start: another Node runs it where this one lacks SQLite; the counts of two do not add up */
import { accessSync, constants, statfsSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { dirname } from 'node:path'
import { failureOf, transaction, whenFree } from './failures.ts'
import { VERSION, migrate, versionIn } from './schema.ts'
import { Refusal } from './tables.ts'

/** Numbers by which Linux names file systems of other machines. */
const REMOTE: ReadonlyMap<number, string> = new Map([
  [0x6969, 'NFS'],
  [0x517b, 'SMB'],
  [0xff534d42, 'CIFS'],
  [0xfe534d42, 'SMB2'],
  [0x01021997, '9P'],
  [0x5346414f, 'AFS'],
  [0x00c36400, 'Ceph'],
  [0x0bd00bd0, 'Lustre'],
  [0x47504653, 'GPFS'],
  [0x7461636f, 'OCFS2'],
])

/** The name of a file system of other machines, by the number that `statfs` has for it. */
export const remoteName = (type: number): string | undefined => REMOTE.get(type >>> 0)

/** The number of the file system of a folder. */
const typeOf = (folder: string): number => statfsSync(folder).type

/** @param type What tests have for it. @throws {Refusal} A code of the file. */
export function openFile(
  Database: typeof DatabaseSync,
  file: string,
  nowMs: () => number,
  type = typeOf,
): DatabaseSync {
  checkFolder(file, dirname(file), type)
  let db: DatabaseSync | undefined
  try {
    const opened = (db = new Database(file))
    whenFree(nowMs, () => prepare(opened, file))
    return db
  } catch (error) {
    db?.close()
    throw failureOf(error, file, `opening ${file}`)
  }
}

function checkFolder(file: string, folder: string, type: typeof typeOf): void {
  let remote
  try {
    remote = remoteName(type(folder))
    accessSync(folder, constants.W_OK | constants.X_OK)
  } catch (error) {
    const { code, message: what } = error as NodeJS.ErrnoException
    throw new Refusal(code === 'ENOENT' ? 'FLEET_FILE_FOLDER_MISSING' : 'FLEET_FILE_DENIED', { file, what })
  }
  if (remote !== undefined) throw new Refusal('FLEET_FILE_REMOTE', { file, what: remote })
}

function prepare(db: DatabaseSync, file: string): void {
  const version = versionIn(db)
  if (version > VERSION) throw new Refusal('FLEET_FILE_VERSION', { file, what: String(version) })
  const mode = db.prepare('PRAGMA journal_mode = WAL').get()?.['journal_mode']
  if (mode !== 'wal')
    throw new Refusal('FLEET_FILE_REMOTE', { file, what: `one without WAL (${String(mode)})` })
  db.exec('PRAGMA synchronous = FULL; PRAGMA fullfsync = 1; PRAGMA cache_size = -16384')
  if (version === VERSION) return
  transaction(db, true, () => migrate(db))
}
