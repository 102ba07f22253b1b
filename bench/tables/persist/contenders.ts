/**
 * The contenders of table `persist`: each a map in a file, as its authors recommend for synced writes.
 *
 * Where a call of theirs acknowledges before the disk has the entry, the call that waits for it is added.
 */
import { join } from 'node:path'

/** A contender with an open file. */
export interface Keeper {
  readonly get: (key: string) => unknown
  /** Resolves when the entry is synced. */
  readonly write: (key: string, value: unknown) => Promise<void>
  /** The same for several entries that arrive at once; without it, they are separate writes. */
  readonly writeAll?: (entries: readonly (readonly [string, unknown])[]) => Promise<void>
  readonly close: () => Promise<void>
}

export interface Contender {
  readonly isThere: () => Promise<boolean>
  readonly open: (folder: string) => Promise<Keeper>
  /** Whether its entries are in a file. */
  readonly isFile: boolean
}

/** A module that old versions of Node do not have, and their types neither. */
const SQLITE: string = 'node:sqlite'

const always = async (): Promise<boolean> => true

/** All of them by name. */
export const CONTENDERS: Readonly<Record<string, Contender>> = {
  corespun: { isThere: always, isFile: true, open: (folder) => openCorespun(join(folder, 'store')) },
  'corespun, without a file': { isThere: always, isFile: false, open: () => openCorespun(undefined) },
  lmdb: { isThere: always, isFile: true, open: (folder) => openLmdb(folder, false) },
  'lmdb, cached': { isThere: always, isFile: true, open: (folder) => openLmdb(folder, true) },
  'node:sqlite': { isThere: hasSqlite, isFile: true, open: openSqlite },
}

async function openCorespun(file: string | undefined): Promise<Keeper> {
  const { store } = await import('corespun/store')
  const opened = store.create('persist', file === undefined ? {} : { file })
  return {
    get: (key) => opened.get(key),
    write: async (key, value) => {
      opened.set(key, value)
      await opened.flush()
    },
    close: async () => opened.close(),
  }
}

async function openLmdb(folder: string, cache: boolean): Promise<Keeper> {
  const { open } = await import('lmdb')
  const sharedStructuresKey = Symbol.for('structures')
  const database = open({ path: join(folder, 'lmdb'), cache, encoding: 'msgpack', sharedStructuresKey })
  return {
    get: (key) => database.get(key) as unknown,
    write: async (key, value) => {
      await database.put(key, value)
      await database.flushed
    },
    close: () => database.close() as Promise<void>,
  }
}

async function hasSqlite(): Promise<boolean> {
  return import(SQLITE).then(
    () => true,
    () => false,
  )
}

interface Statement {
  run(...values: string[]): void
  get(...values: string[]): { value: string } | undefined
}

interface Sqlite {
  DatabaseSync: new (path: string) => {
    exec(sql: string): void
    prepare(sql: string): Statement
    close(): void
  }
}

async function openSqlite(folder: string): Promise<Keeper> {
  const { DatabaseSync } = (await import(SQLITE)) as Sqlite
  const database = new DatabaseSync(join(folder, 'sqlite'))
  database.exec('PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL')
  database.exec('CREATE TABLE IF NOT EXISTS entries (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID')
  const put = database.prepare(
    'INSERT INTO entries VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value',
  )
  const find = database.prepare('SELECT value FROM entries WHERE key = ?')
  return {
    get: (key) => {
      const row = find.get(key)
      return row === undefined ? undefined : (JSON.parse(row.value) as unknown)
    },
    write: async (key, value) => put.run(key, JSON.stringify(value)),
    writeAll: async (entries) => {
      database.exec('BEGIN')
      for (const [key, value] of entries) put.run(key, JSON.stringify(value))
      database.exec('COMMIT')
    },
    close: async () => database.close(),
  }
}
