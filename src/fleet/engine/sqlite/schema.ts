/**
 * The tables of an engine in a file, for this module and for any tool that reads SQLite.
 *
 * Names begin with `corespun_`, so a file may have tables of others. docs/guide/engines.md describes each
 * column. A change of the tables is one more step here; a file whose version is newer than the last step is
 * refused. Bytes are last, so what reads the other columns leaves their pages alone.
 */
/* c8 ignore start: another Node runs it where this one lacks SQLite; the counts of two do not add up */
import type { DatabaseSync } from 'node:sqlite'

const STEPS: readonly string[] = [
  `CREATE TABLE corespun_queues (name TEXT PRIMARY KEY) WITHOUT ROWID;
  CREATE TABLE corespun_items (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    queue TEXT NOT NULL,
    id TEXT NOT NULL,
    rank INTEGER NOT NULL,
    added_ms INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    until_ms INTEGER NOT NULL DEFAULT 0,
    bytes BLOB NOT NULL,
    UNIQUE (queue, id)
  );
  CREATE INDEX corespun_items_ready ON corespun_items (queue, rank, seq) WHERE until_ms = 0;
  CREATE INDEX corespun_items_later ON corespun_items (until_ms) WHERE until_ms > 0;
  CREATE TABLE corespun_stores (
    name TEXT PRIMARY KEY,
    ttl_ms INTEGER NOT NULL,
    last INTEGER NOT NULL DEFAULT 0
  ) WITHOUT ROWID;
  CREATE TABLE corespun_values (
    revision INTEGER PRIMARY KEY AUTOINCREMENT,
    store TEXT NOT NULL,
    key TEXT NOT NULL,
    ends_ms INTEGER NOT NULL,
    bytes BLOB,
    UNIQUE (store, key)
  );
  CREATE INDEX corespun_values_ends ON corespun_values (ends_ms) WHERE ends_ms > 0;`,
  // How many values a store has, so that nobody counts a million of them. REPLACE runs no deletion's trigger.
  `ALTER TABLE corespun_stores ADD COLUMN count INTEGER NOT NULL DEFAULT 0;
  UPDATE corespun_stores SET count =
    (SELECT count(*) FROM corespun_values WHERE store = name AND bytes IS NOT NULL);
  CREATE TRIGGER corespun_values_replaced BEFORE INSERT ON corespun_values
  WHEN EXISTS (
    SELECT 1 FROM corespun_values WHERE store = NEW.store AND key = NEW.key AND bytes IS NOT NULL
  ) BEGIN
    UPDATE corespun_stores SET count = count - 1 WHERE name = NEW.store;
  END;
  CREATE TRIGGER corespun_values_written AFTER INSERT ON corespun_values BEGIN
    UPDATE corespun_stores SET last = NEW.revision, count = count + (NEW.bytes IS NOT NULL)
    WHERE name = NEW.store;
  END;
  CREATE TRIGGER corespun_values_removed AFTER DELETE ON corespun_values WHEN OLD.bytes IS NOT NULL BEGIN
    UPDATE corespun_stores SET count = count - 1 WHERE name = OLD.store;
  END;`,
  // By id what somebody has had, also when it waits again: lists and counts read nothing else.
  'CREATE INDEX corespun_items_had ON corespun_items (queue, id) WHERE attempts > 0',
  // Who writes counts, once in a transaction.
  'DROP TRIGGER corespun_values_replaced; DROP TRIGGER corespun_values_written',
]
/** Of the tables that this module writes. */
export const VERSION = STEPS.length

/** The version of a file; 0: it has no tables yet. */
export function versionIn(db: DatabaseSync): number {
  const table = db.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'corespun_schema'").get()
  if (table === undefined) return 0
  return Number(db.prepare('SELECT max(version) AS version FROM corespun_schema').get()?.['version'])
}

/**
 * Make the tables, or change those of an older version, within a transaction of the caller.
 * @param to The version that they have then; tests make older files.
 */
export function migrate(db: DatabaseSync, to = VERSION): void {
  const version = versionIn(db)
  if (version >= to) return
  db.exec('CREATE TABLE IF NOT EXISTS corespun_schema (version INTEGER PRIMARY KEY)')
  for (const step of STEPS.slice(version, to)) db.exec(step)
  db.exec(`INSERT INTO corespun_schema VALUES (${to})`)
}
