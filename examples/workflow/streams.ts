/**
 * The streams of Vercel's Workflow SDK in a file of SQLite: chunks with their numbers, and an end.
 *
 * Who reads a stream that has not ended looks at once for what this process writes, and each 50 ms for what
 * others do.
 */
import { EventEmitter, once } from 'node:events'
import type { DatabaseSync } from 'node:sqlite'
import type { Streamer } from '@workflow/world'
import { transaction } from './transaction.ts'

const SCHEMA = `CREATE TABLE IF NOT EXISTS workflow_chunks (run TEXT NOT NULL, name TEXT NOT NULL,
  number INTEGER NOT NULL, bytes BLOB, PRIMARY KEY (run, name, number)) WITHOUT ROWID`
const LOOK_MS = 50

interface Chunk {
  readonly number: number
  /** `null`: the end. */
  readonly bytes: Uint8Array | null
}

export function createStreamer(db: DatabaseSync, closed: AbortSignal): Streamer {
  db.exec(SCHEMA)
  const news = new EventEmitter().setMaxListeners(0)
  const append = async (run: string, name: string, chunks: readonly (string | Uint8Array | null)[]) => {
    const insert = db.prepare(
      'INSERT INTO workflow_chunks SELECT ?1, ?2, coalesce(max(number) + 1, 0), ?3 FROM workflow_chunks ' +
        'WHERE run = ?1 AND name = ?2',
    )
    transaction(db, () => {
      for (const chunk of chunks)
        insert.run(run, name, typeof chunk === 'string' ? Buffer.from(chunk) : chunk && new Uint8Array(chunk))
    })
    news.emit(`${run} ${name}`)
  }
  const read = (run: string, name: string, from: number, limit = 1000): Chunk[] => {
    const where = 'WHERE run = ? AND name = ? AND number >= ? ORDER BY number LIMIT ?'
    const rows: any = db
      .prepare(`SELECT number, bytes FROM workflow_chunks ${where}`)
      .all(run, name, from, limit)
    return rows
  }
  const infoOf = (run: string, name: string): { tailIndex: number; done: boolean } => {
    const all = 'SELECT count(bytes) AS count, count(*) AS all_count FROM workflow_chunks'
    const row = db.prepare(`${all} WHERE run = ? AND name = ?`).get(run, name)!
    return { tailIndex: Number(row['count']) - 1, done: Number(row['all_count']) > Number(row['count']) }
  }
  async function* follow(run: string, name: string, from: number): AsyncGenerator<Uint8Array> {
    for (let next = from; ;) {
      const chunks = read(run, name, next)
      for (const { bytes } of chunks) {
        if (bytes === null) return
        next += 1
        yield bytes
      }
      const signal = AbortSignal.any([closed, AbortSignal.timeout(LOOK_MS)])
      if (chunks.length === 0) await once(news, `${run} ${name}`, { signal }).catch(() => {})
      closed.throwIfAborted()
    }
  }
  return {
    streamFlushIntervalMs: 0,
    streams: {
      write: (run, name, chunk) => append(run, name, [chunk]),
      writeMulti: (run, name, chunks) => append(run, name, chunks),
      close: async (run, name) => {
        if (!infoOf(run, name).done) await append(run, name, [null])
      },
      get: async (run, name, start = 0) => {
        const from = start < 0 ? Math.max(0, infoOf(run, name).tailIndex + 1 + start) : start
        const stream: any = ReadableStream.from(follow(run, name, from))
        return stream
      },
      list: async (run) =>
        db
          .prepare('SELECT DISTINCT name FROM workflow_chunks WHERE run = ?')
          .all(run)
          .map(({ name }) => String(name)),
      getChunks: async (run, name, { limit = 100, cursor } = {}) => {
        const from = Number(cursor ?? 0)
        const rows = read(run, name, from, limit + 1).filter(({ bytes }) => bytes !== null)
        const data = rows.slice(0, limit).map(({ number, bytes }) => ({ index: number, data: bytes! }))
        const hasMore = rows.length > limit
        return { data, hasMore, cursor: hasMore ? String(from + limit) : null, done: infoOf(run, name).done }
      },
      getInfo: async (run, name) => infoOf(run, name),
    },
  }
}
