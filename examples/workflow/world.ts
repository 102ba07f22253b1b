/**
 * A World for Vercel's Workflow SDK in one file: its storage, queue and streams on SQLite and durable jobs.
 *
 * `WORKFLOW_TARGET_WORLD=./world.ts` makes a program use it, and CORESPUN_WORKFLOW_FILE names the file. It is
 * for the 5.0 beta of the SDK and needs Node 24.
 */
import { DatabaseSync } from 'node:sqlite'
import { type World, MessageId, SPEC_VERSION_CURRENT, parseQueueName } from '@workflow/world'
import { type Fleet, type Hosting, connect, host } from 'corespun/fleet'
import { zone } from 'corespun/zone'
import { monotonicFactory } from 'ulid'
import { createStorage } from './storage.ts'
import { createStreamer } from './streams.ts'

type Module = typeof import('./deliver.ts')

/** Messages that are under way at once; one that sleeps is. */
const MESSAGES_MAX = 1000
/** A message outlives so many crashes: the most that a job may. */
const HOSTS_LOST_MAX = 1000
const newId = monotonicFactory()

export function createWorld(file = process.env['CORESPUN_WORKFLOW_FILE'] ?? 'workflow.db'): World {
  const db = new DatabaseSync(file)
  db.exec('PRAGMA busy_timeout = 10000; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL')
  const closes = new AbortController()
  let connection: Promise<Fleet> | undefined
  const fleet = (): Promise<Fleet> =>
    (connection ??= connect(`sqlite:${file}`).catch((error) => {
      connection = undefined
      throw error
    }))
  let hosting: Hosting | undefined
  return {
    specVersion: SPEC_VERSION_CURRENT,
    ...createStorage(db),
    ...createStreamer(db, closes.signal),
    getDeploymentId: async () => 'corespun',
    async queue(name, message, { idempotencyKey, headers, delaySeconds = 0 } = {}) {
      const id = MessageId.parse(`msg_${idempotencyKey ?? newId()}`)
      const path = parseQueueName(name).kind === 'workflow' ? 'flow' : 'step'
      const all = { ...headers, 'x-vqs-queue-name': name, 'x-vqs-message-id': id }
      const body = JSON.stringify(message, asText)
      const jobs = (await fleet()).jobs<Module>('workflows')
      const options = { delayMs: delaySeconds * 1000, retry: { hostsLostMax: HOSTS_LOST_MAX } }
      const submit = () => jobs.submit(id, 'deliver', [path, all, body], options)
      // A key is free again when its message was delivered.
      if (!(await submit()) && (await jobs.forget(id))) await submit()
      return { messageId: id }
    },
    createQueueHandler: (prefix, handler) => async (request) => {
      const about = (field: string): string => request.headers.get(`x-vqs-${field}`) ?? ''
      const [queueName, messageId] = [about('queue-name') as never, MessageId.parse(about('message-id'))]
      if (!String(queueName).startsWith(prefix))
        return Response.json({ error: 'another queue' }, { status: 400 })
      try {
        const message: unknown = JSON.parse(await request.text(), asValue)
        const attempt = Number(about('message-attempt'))
        return Response.json((await handler(message, { attempt, queueName, messageId })) ?? { ok: true })
      } catch (error) {
        return Response.json(String(error), { status: 500 })
      }
    },
    async start() {
      const module = new URL('./deliver.ts', import.meta.url)
      hosting = await host(await fleet(), {
        name: 'workflows',
        module,
        zone: zone.node,
        jobsMax: MESSAGES_MAX,
      })
    },
    async close() {
      closes.abort()
      await hosting?.close()
      await (await connection)?.close()
      db.close()
    },
  }
}

/** Bytes in a message, as JSON: of a Buffer, `value` is what its `toJSON` has made. */
function asText(this: Record<string, unknown>, key: string, value: unknown): unknown {
  const original = this[key]
  return original instanceof Uint8Array ? { $bytes: Buffer.from(original).toString('base64') } : value
}
const asValue = (_: string, value: unknown): unknown => {
  const { $bytes } = Object(value) as { $bytes?: unknown }
  return typeof $bytes === 'string' ? new Uint8Array(Buffer.from($bytes, 'base64')) : value
}
