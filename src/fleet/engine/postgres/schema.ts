/**
 * The tables of an engine in Postgres: three, in a schema of their own, for this module and for any SQL.
 *
 * docs/guide/engines.md describes each column. A change of the tables is one more step here; a schema whose
 * version is newer than the last step is refused. Texts are compared by their bytes, so no update of a
 * system's collations changes an index.
 */
import { createHash } from 'node:crypto'
import { FleetError } from '../../errors.ts'
import { type Link, OPERATION_MS } from './link.ts'

/** The tables and the sequence, as SQL names them. */
export interface Names {
  readonly schema: string
  readonly items: string
  readonly values: string
  readonly names: string
  readonly seq: string
  /** Of `NOTIFY`. A name has 63 bytes at most, and a schema's may have all of them. */
  readonly channel: string
}

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`

export function namesIn(name: string): Names {
  const schema = quoted(name)
  const of = (table: string): string => `${schema}.corespun_${table}`
  const channel = `corespun_${createHash('sha256').update(name).digest('hex').slice(0, 24)}`
  return { schema, items: of('items'), values: of('values'), names: of('names'), seq: of('seq'), channel }
}

const STEPS: readonly ((names: Names) => string)[] = [
  ({ items, values, names, seq }) => `
  CREATE TABLE ${names} (
    kind text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    ttl_ms bigint NOT NULL DEFAULT 0,
    last bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (kind, name)
  );
  CREATE SEQUENCE ${seq};
  CREATE TABLE ${items} (
    seq bigint PRIMARY KEY DEFAULT nextval('${seq.replaceAll("'", "''")}'),
    queue text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    rank smallint NOT NULL,
    added_at timestamptz NOT NULL,
    attempts integer NOT NULL DEFAULT 0,
    until_at timestamptz,
    bytes bytea NOT NULL,
    UNIQUE (queue, id)
  );
  CREATE INDEX corespun_items_ready ON ${items} (queue, rank, seq) WHERE until_at IS NULL;
  CREATE INDEX corespun_items_later ON ${items} (until_at) WHERE until_at IS NOT NULL;
  CREATE TABLE ${values} (
    store text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    revision bigint NOT NULL,
    ends_at timestamptz,
    bytes bytea,
    PRIMARY KEY (store, key)
  );
  CREATE INDEX corespun_values_revision ON ${values} (store, revision);
  CREATE INDEX corespun_values_ends ON ${values} (ends_at) WHERE ends_at IS NOT NULL;`,
  // By id what somebody has had, also when it waits again: lists and counts read nothing else.
  ({ items }) => `CREATE INDEX corespun_items_had ON ${items} (queue, id) WHERE attempts > 0`,
]
/** Of the tables that this module writes. */
const VERSION = STEPS.length
/** Of the lock that one who makes tables holds: no other program has this number by chance. */
const LOCK = '7165083941'

/** Make the tables, or change those of an older version. @throws {FleetError} `FLEET_SCHEMA_VERSION`. */
export async function prepareSchema(link: Link, schema: string, names: Names): Promise<void> {
  const versionNow = async (query: Link['query']): Promise<number> => {
    // Of the catalog itself: what a name leads to is remembered by a connection, behind the lock too.
    const tables = "SELECT 1 FROM pg_tables WHERE schemaname = $1 AND tablename = 'corespun_names'"
    if ((await query(tables, [schema])).length === 0) return 0
    const [row] = await query(`SELECT last FROM ${names.names} WHERE kind = 'schema' AND name = 'version'`)
    return Number(row?.['last'] ?? 0)
  }
  const version = await versionNow((...asked) => link.query(...asked))
  if (version > VERSION)
    throw new FleetError('FLEET_SCHEMA_VERSION', { server: link.server, schema, version, known: VERSION })
  if (version === VERSION) return
  await link.transaction(`making the tables of schema ${schema}`, async (query) => {
    // Whoever has the lock may be cut off, and keep it until the server finds out.
    await query(`SET LOCAL lock_timeout = ${OPERATION_MS}`)
    await query(`SELECT pg_advisory_xact_lock(${LOCK})`)
    const done = await versionNow(query)
    if (done >= VERSION) return
    // One who may not create schemas can use one that an operator has made.
    const found = await query('SELECT 1 FROM pg_namespace WHERE nspname = $1', [schema])
    if (found.length === 0) await query(`CREATE SCHEMA ${names.schema}`)
    for (const step of STEPS.slice(done)) await query(step(names))
    await query(
      `INSERT INTO ${names.names} (kind, name, last) VALUES ('schema', 'version', ${VERSION})
      ON CONFLICT (kind, name) DO UPDATE SET last = excluded.last`,
    )
  })
}
