/**
 * The SQL of the engine in Postgres, each statement a transaction of its own, with the tables' names in it.
 *
 * - Requests of a kind are rows of one statement, from arrays that are its parameters.
 * - Who writes in `corespun_values` has locked the row of the store until its commit, so revisions are
 *   committed in their order, and who has read up to one has missed none. Conditions are checked again on
 *   what others have committed meanwhile, by `ON CONFLICT` and `UPDATE`.
 * - Settings are those of the transaction, so no connection remembers any. What only lends and ends items is
 *   not waited for on the disk: a crash of the server lends it again, and its record decides.
 * - Rows are locked in one order by all, so none of these waits for another that waits for it.
 */
import type { Names } from './schema.ts'

/** What has ended, by the server's clock. */
const LIVE = 'v.bytes IS NOT NULL AND (v.ends_at IS NULL OR v.ends_at > now())'
/** In ms since 1970, as a whole number: within a millisecond the number of the row distinguishes items. */
const ADDED = 'floor(extract(epoch FROM added_at) * 1000)::float8 AS added_ms'
const setting = (name: string, value: string): string => `set_config('${name}', '${value}', true)`
const UNSYNCED = `unsynced AS MATERIALIZED (SELECT ${setting('synchronous_commit', 'off')} AS value)`
const IS_UNSYNCED = '(SELECT value FROM unsynced) IS NOT NULL'
/** How long somebody else's transaction is waited for by many, and by one. */
const LOCK_MS = { many: 250, one: 2000 }
const lockTimeout = (count: string): string =>
  `set_config('lock_timeout', CASE WHEN ${count} > 1 THEN '${LOCK_MS.many}' ELSE '${LOCK_MS.one}' END, true)`

/** How long it is remembered that a value was deleted. */
export const MARK_MS = 3_600_000

/** Items. */
// oxlint-disable-next-line max-lines-per-function -- a list of statements, not steps
export const itemStatements = ({ items, names, seq }: Names) => ({
  openQueue: `INSERT INTO ${names} (kind, name) VALUES ('queue', $1) ON CONFLICT DO NOTHING`,

  /** Queues, ids, ranks, bytes. Returns those that were added. */
  add: `WITH input AS MATERIALIZED (
      SELECT nextval('${seq.replaceAll("'", "''")}') AS seq, u.*, ${lockTimeout('cardinality($1)')} AS setting
      FROM unnest($1::text[], $2::text[], $3::smallint[], $4::bytea[]) AS u(queue, id, rank, bytes))
    INSERT INTO ${items} (seq, queue, id, rank, added_at, bytes)
    SELECT seq, queue, id, rank, clock_timestamp(), bytes FROM input WHERE setting IS NOT NULL
    ORDER BY queue, id ON CONFLICT (queue, id) DO NOTHING RETURNING queue, id`,

  /** Within a transaction of somebody else, whose settings are left as they are. */
  addWithin: `INSERT INTO ${items} (queue, id, rank, added_at, bytes)
    VALUES ($1, $2, $3, clock_timestamp(), $4) ON CONFLICT (queue, id) DO NOTHING RETURNING 1 AS added`,

  /** Queue, id, rank, bytes; when the one was added that is replaced, and its number within that ms. */
  replace: `UPDATE ${items} SET seq = nextval('${seq.replaceAll("'", "''")}'), rank = $3, bytes = $4,
      added_at = clock_timestamp(), attempts = 0, until_at = NULL
    WHERE queue = $1 AND id = $2 AND seq % 1000 = $6
      AND floor(extract(epoch FROM added_at) * 1000)::float8 = $5
    RETURNING 1 AS replaced`,

  /** Queues, ids. */
  find: `SELECT u.at::int AS at, i.seq, ${ADDED}, i.bytes
    FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS u(queue, id, at)
    JOIN ${items} i ON i.queue = u.queue AND i.id = u.id`,

  /** Queue, id behind which it begins, most items, bytes after which it ends, whether only those lent. */
  page: `WITH part AS (
        SELECT seq, id, octet_length(bytes) AS size FROM ${items}
        WHERE queue = $1 AND id > $2 AND (NOT $5::boolean OR attempts > 0)
        ORDER BY id LIMIT $3::int + 1),
      sums AS (SELECT seq, row_number() OVER later AS at, sum(size) OVER later - size AS before FROM part
        WINDOW later AS (ORDER BY id)),
      kept AS (SELECT seq FROM sums WHERE at <= $3 AND before < $4)
    SELECT i.id, i.seq, ${ADDED}, i.bytes, (SELECT count(*) FROM part)::int AS found
    FROM kept JOIN ${items} i USING (seq) ORDER BY i.id`,

  /** Queue, id; when the item was added, and its number within that ms; NULL: whichever has the id. */
  remove: `DELETE FROM ${items} WHERE queue = $1 AND id = $2 AND ($3::float8 IS NULL OR seq % 1000 = $4
      AND floor(extract(epoch FROM added_at) * 1000)::float8 = $3)`,
  count: `SELECT count(*)::int AS count FROM ${items} WHERE queue = $1`,

  queues: `SELECT n.name, count(i.seq)::float8 AS items,
      (count(i.seq) FILTER (WHERE i.attempts = 0))::float8 AS waiting,
      coalesce(greatest(0, extract(epoch FROM
        now() - min(i.added_at) FILTER (WHERE i.attempts = 0)) * 1000), 0)::float8 AS waited_ms
    FROM ${names} n LEFT JOIN ${items} i ON i.queue = n.name WHERE n.kind = 'queue' GROUP BY n.name`,

  /** Queue, most items, for how many ms. */
  lend: `WITH ${UNSYNCED} UPDATE ${items}
    SET attempts = attempts + 1, until_at = clock_timestamp() + $3::float8 * interval '1 ms'
    WHERE ${IS_UNSYNCED} AND seq = ANY (ARRAY(
      SELECT seq FROM ${items} WHERE queue = $1 AND until_at IS NULL ORDER BY rank, seq LIMIT $2
      FOR UPDATE SKIP LOCKED))
    RETURNING seq, id, rank, bytes, attempts, ${ADDED},
      (extract(epoch FROM clock_timestamp() - added_at) * 1000)::float8 AS age_ms`,

  /** Numbers, lendings, for how many ms; NULL: it may be lent again. Returns those that were still lent. */
  until: `WITH ${UNSYNCED}, input AS (
      SELECT i.seq, u.ms FROM unnest($1::bigint[], $2::int[], $3::float8[]) AS u(seq, attempt, ms)
      JOIN ${items} i ON i.seq = u.seq AND i.attempts = u.attempt AND i.until_at IS NOT NULL
      ORDER BY i.seq FOR UPDATE OF i)
    UPDATE ${items} i SET until_at = clock_timestamp() + input.ms * interval '1 ms'
    FROM input WHERE ${IS_UNSYNCED} AND i.seq = input.seq RETURNING i.seq`,

  done: `WITH ${UNSYNCED} DELETE FROM ${items} WHERE ${IS_UNSYNCED} AND seq IN (
      SELECT seq FROM ${items} WHERE seq = ANY ($1::bigint[]) ORDER BY seq FOR UPDATE)`,

  /** Of whose lending or pause is over. Returns their queues, and in how many ms the next one is. */
  promote: `WITH ${UNSYNCED}, due AS (
      SELECT seq FROM ${items} WHERE until_at <= now() ORDER BY until_at LIMIT 1000 FOR UPDATE SKIP LOCKED),
      freed AS (UPDATE ${items} i SET until_at = NULL FROM due
        WHERE ${IS_UNSYNCED} AND i.seq = due.seq RETURNING i.queue)
    SELECT ARRAY(SELECT DISTINCT queue FROM freed) AS queues, (SELECT count(*) FROM freed)::int AS count,
      (SELECT (extract(epoch FROM min(until_at) - now()) * 1000)::float8 FROM ${items} WHERE until_at > now())
        AS due_ms`,
})

/** Values. */
// oxlint-disable-next-line max-lines-per-function -- a list of statements, not steps
export const valueStatements = ({ values, names }: Names) => ({
  /** Name, time to live. Returns that of a store which exists. */
  openStore: `WITH made AS (
      INSERT INTO ${names} (kind, name, ttl_ms) VALUES ('store', $1, $2) ON CONFLICT DO NOTHING)
    SELECT ttl_ms FROM ${names} WHERE kind = 'store' AND name = $1`,

  /** Stores, keys. */
  get: `SELECT u.at::int AS at, v.revision, v.bytes
    FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS u(store, key, at)
    JOIN ${values} v ON v.store = u.store AND v.key = u.key WHERE ${LIVE}`,

  /** Store, key, most bytes. */
  getObject: `SELECT octet_length(v.bytes) AS size,
      CASE WHEN octet_length(v.bytes) <= $3 THEN v.bytes END AS bytes
    FROM ${values} v WHERE v.store = $1 AND v.key = $2 AND ${LIVE}`,

  /**
   * Store; keys, bytes (NULL: deleted), revisions (NULL: any), times to live (0: for good). Returns what was
   * written.
   */
  put: `WITH input AS MATERIALIZED (
      SELECT u.*, ${lockTimeout('cardinality($2)')} AS setting,
        CASE WHEN u.bytes IS NULL THEN clock_timestamp() + interval '${MARK_MS} ms'
          WHEN u.ttl_ms > 0 THEN clock_timestamp() + u.ttl_ms * interval '1 ms' END AS ends_at
      FROM unnest($2::text[], $3::bytea[], $4::bigint[], $5::float8[])
        WITH ORDINALITY AS u(key, bytes, revision, ttl_ms, at)),
    locked AS (
      UPDATE ${names} SET last = last + (SELECT count(setting) FROM input) WHERE kind = 'store' AND name = $1
      RETURNING last - (SELECT count(*) FROM input) AS last),
    fresh AS (
      INSERT INTO ${values} AS v (store, key, revision, ends_at, bytes)
      SELECT $1, key, locked.last + at, ends_at, bytes FROM input, locked
      WHERE bytes IS NOT NULL AND revision = 0
      ON CONFLICT (store, key) DO UPDATE
      SET revision = excluded.revision, ends_at = excluded.ends_at, bytes = excluded.bytes WHERE NOT (${LIVE})
      RETURNING v.key, v.revision),
    anyway AS (
      INSERT INTO ${values} AS v (store, key, revision, ends_at, bytes)
      SELECT $1, key, locked.last + at, ends_at, bytes FROM input, locked
      WHERE bytes IS NOT NULL AND revision IS NULL
      ON CONFLICT (store, key) DO UPDATE
      SET revision = excluded.revision, ends_at = excluded.ends_at, bytes = excluded.bytes
      RETURNING v.key, v.revision),
    changed AS (
      UPDATE ${values} v SET revision = locked.last + at, ends_at = input.ends_at, bytes = input.bytes
      FROM input, locked
      WHERE (input.bytes IS NULL OR input.revision > 0) AND v.store = $1 AND v.key = input.key
        AND (input.revision IS NULL OR v.revision = input.revision) AND ${LIVE}
      RETURNING v.key, v.revision)
    SELECT * FROM fresh UNION ALL SELECT * FROM anyway UNION ALL SELECT * FROM changed`,

  /**
   * Store, key, bytes. Within a transaction of somebody else, who would hold up all that write to the store
   * by a lock of its row; so its revision may be another one's too.
   */
  putWithin: `INSERT INTO ${values} (store, key, revision, bytes) VALUES ($1, $2,
      coalesce((SELECT last FROM ${names} WHERE kind = 'store' AND name = $1), 0) + 1, $3)`,

  /** Store, the key behind which it begins (NULL: at the first), most values, bytes after which it ends. */
  page: `WITH part AS (
        SELECT key, octet_length(bytes) AS size FROM ${values} v
        WHERE store = $1 AND ($2::text IS NULL OR key > $2) AND ${LIVE} ORDER BY key LIMIT $3::int + 1),
      sums AS (SELECT key, row_number() OVER later AS at, sum(size) OVER later - size AS before FROM part
        WINDOW later AS (ORDER BY key)),
      kept AS (SELECT key FROM sums WHERE at <= $3 AND before < $4)
    SELECT v.key, v.revision, v.bytes, (SELECT count(*) FROM part)::int AS found
    FROM kept JOIN ${values} v ON v.store = $1 AND v.key = kept.key ORDER BY v.key`,

  /** Stores. The row of the last write is never swept. */
  lasts: `SELECT u.at::int AS at, max(v.revision) AS last
    FROM unnest($1::text[]) WITH ORDINALITY AS u(store, at)
    JOIN LATERAL (SELECT revision FROM ${values} WHERE store = u.store
      ORDER BY revision DESC LIMIT 1) v ON true
    GROUP BY u.at`,

  valuesIn: `SELECT count(*)::int AS count FROM ${values} v WHERE store = $1 AND ${LIVE}`,

  /** Watches, their stores, the revisions behind which they are, most changes of each. */
  changes: `SELECT w.id, c.key, c.revision, c.bytes
    FROM unnest($1::int[], $2::text[], $3::bigint[]) AS w(id, store, after)
    CROSS JOIN LATERAL (
      SELECT v.key, v.revision, CASE WHEN ${LIVE} THEN v.bytes END AS bytes FROM ${values} v
      WHERE v.store = w.store AND v.revision > w.after ORDER BY v.revision LIMIT $4) c
    ORDER BY w.id, c.revision`,

  /** Watches, their stores, the revisions behind which they are, their keys; of those at -1 what is there. */
  changesOf: `SELECT w.id, v.key, v.revision, v.bytes
    FROM unnest($1::int[], $2::text[], $3::bigint[], $4::text[]) AS w(id, store, after, key)
    JOIN ${values} v ON v.store = w.store AND v.key = w.key AND v.revision > w.after
      AND (w.after >= 0 OR (${LIVE}))`,

  /** Channel, hints. A commit with a notification is synced otherwise, and is late by that. */
  hint: `WITH ${UNSYNCED} SELECT pg_notify($1, hint) FROM unnest($2::text[]) AS hint WHERE ${IS_UNSYNCED}`,

  /** Some of what has ended. */
  sweep: `WITH ${UNSYNCED} DELETE FROM ${values} WHERE ${IS_UNSYNCED} AND (store, key) IN (
      SELECT v.store, v.key FROM ${values} v WHERE v.ends_at <= now()
        AND EXISTS (SELECT 1 FROM ${values} w WHERE w.store = v.store AND w.revision > v.revision)
      LIMIT 500 FOR UPDATE OF v SKIP LOCKED)`,
})
