/**
 * Queues, values and objects on JetStream.
 *
 * A queue is a stream with one subject for each item, `corespun.queue.<name>.<rank>.<id>`, and a consumer for
 * each rank. A value is the last message of its subject.
 */
import type { ConsumerConfig, JetStreamManager } from '@nats-io/jetstream'
import type { KV, KvWatchInclude } from '@nats-io/kv'
import type { ObjectStore } from '@nats-io/obj'
import type { MsgHdrs, NatsConnection } from '@nats-io/transport-node'
import { FleetError, checkSize, hasCode } from '../../errors.ts'
import { reasonOf } from '../../../base/index.ts'
import {
  CLOCK,
  type Entry,
  type KeyValue,
  type Objects,
  type Queue,
  RANKS,
  type TakeOptions,
  type Writing,
} from '../engine.ts'
import { CONFIRM_MS, confirmed, isWrongSequence, keyOf, token } from './confirmed.ts'
import { queueStates, valuesIn } from './states.ts'
import { bucketName, itemSubject, queueStream, valueSubject, valuesStream } from './names.ts'
import { peer } from '../../peer.ts'
import type { Requests } from './requests.ts'
import { Streams } from './stored.ts'
import { type Source, Taking } from './taking.ts'

/** How long a deletion by the server, when the time of a value is over, is kept for watchers. */
const MARKER_MS = 1000
const NOTHING = new Uint8Array()

const load = () =>
  Promise.all([
    peer('@nats-io/jetstream', () => import('@nats-io/jetstream')),
    peer('@nats-io/kv', () => import('@nats-io/kv')),
    peer('@nats-io/obj', () => import('@nats-io/obj')),
  ])

/** What it is opened with. */
export interface Opening {
  readonly connection: NatsConnection
  readonly requests: Requests
  readonly newHeaders: () => MsgHdrs
  /** How many servers keep each value and queue. */
  readonly replicas: number
  /** What subjects of replies begin with. */
  readonly inbox: string
}

/** What engines keep. */
export type JetStream = Awaited<ReturnType<typeof openJetStream>>

/** @throws {FleetError} `FLEET_PEER_MISSING`, `FLEET_ENGINE` and `FLEET_TIMEOUT`. */
export async function openJetStream({ connection, requests, newHeaders, replicas, inbox }: Opening) {
  const streams = new Streams(requests, newHeaders)
  const [jet, { Kvm, KvWatchInclude }, { Objm }] = await load()
  const { jetstream, jetstreamManager, AckPolicy, RetentionPolicy, StorageType } = jet
  let pulls = 0
  const manager = await confirmed('opening JetStream', jetstreamManager(connection, { timeout: CONFIRM_MS }))
  const client = jetstream(connection, { timeout: CONFIRM_MS })
  return {
    async queue(name: string): Promise<Queue> {
      const stream = queueStream(name)
      const config = {
        name: stream,
        subjects: [itemSubject(name, '*', '*')],
        retention: RetentionPolicy.Workqueue,
        storage: StorageType.File,
        num_replicas: replicas,
      }
      await confirmed(`opening the queue ${name}`, manager.streams.add(config))
      const source = async ({ leaseMs }: TakeOptions): Promise<Source> => {
        for (const rank of RANKS)
          await addConsumer(manager, stream, {
            durable_name: `takers_${rank}`,
            filter_subject: itemSubject(name, rank, '*'),
            ack_policy: AckPolicy.Explicit,
            ack_wait: leaseMs * 1_000_000,
            // Items that wait for their time count as lent.
            max_ack_pending: -1,
          })
        const { ts } = await manager.streams.info(stream)
        return {
          connection,
          requests,
          inbox: () => `${inbox}.pull.${++pulls}`,
          subjects: RANKS.map((rank) => `$JS.API.CONSUMER.MSG.NEXT.${stream}.takers_${rank}`),
          aheadMs: (ts === undefined ? Date.now() : Date.parse(ts)) - CLOCK.nowMs(),
        }
      }
      return queueOf(name, stream, streams, manager, source)
    },

    async keyValue(name: string, ttlMs: number): Promise<KeyValue> {
      const options = {
        history: 1,
        ttl: ttlMs,
        markerTTL: MARKER_MS,
        replicas,
        storage: StorageType.File,
        // The leader alone is read: one that lags behind would return what was replaced.
        allow_direct: false,
      }
      const created = new Kvm(client).create(bucketName(name), options)
      return keyValueOf(
        name,
        streams,
        KvWatchInclude.UpdatesOnly,
        await confirmed(`opening the store ${name}`, created),
      )
    },

    async objects(name: string, ttlMs: number): Promise<Objects> {
      const options = { ttl: ttlMs * 1_000_000, replicas, storage: StorageType.File }
      const created = new Objm(client).create(bucketName(name), options)
      return objectsOf(await confirmed(`opening the objects ${name}`, created))
    },

    queues: () => queueStates(manager),
    valuesIn: (name: string) => valuesIn(manager, name),
  }
}

/** Another lease than that of the consumer that exists replaces it. */
async function addConsumer(
  manager: JetStreamManager,
  stream: string,
  config: Partial<ConsumerConfig> & { readonly durable_name: string },
): Promise<void> {
  const { durable_name: name } = config
  const opening = `taking from ${stream}`
  const found = await manager.consumers.info(stream, name).catch(() => undefined)
  if (found === undefined) await confirmed(opening, manager.consumers.add(stream, config))
  else if (found.config.ack_wait !== config.ack_wait)
    await confirmed(opening, manager.consumers.update(stream, name, config))
}

function queueOf(
  name: string,
  stream: string,
  streams: Streams,
  manager: JetStreamManager,
  source: (options: TakeOptions) => Promise<Source>,
): Queue {
  /** An item of any rank. */
  const anyOf = (id: string): string => itemSubject(name, '*', token(id))
  return {
    async add(id, bytes, rank) {
      const subject = itemSubject(name, rank, token(id))
      const written = streams.write(subject, bytes, { sequence: 0, of: anyOf(id) })
      try {
        await confirmed(`adding ${id}`, written, { key: id, revision: 0 })
        return true
      } catch (error) {
        if (!hasCode(error, 'FLEET_CONFLICT')) throw error
        return false
      }
    },
    find: (id) => confirmed(`finding ${id}`, streams.last(stream, anyOf(id))),
    async remove(id) {
      await confirmed(`removing ${id}`, manager.streams.purge(stream, { filter: anyOf(id) }))
    },
    async take(on, options) {
      const taking = new Taking(await confirmed(`taking from ${name}`, source(options)), on, options)
      void taking.run()
      return () => taking.end()
    },
    count: async () => (await confirmed(`counting ${name}`, manager.streams.info(stream))).state.messages,
  }
}

/** Writes values, and marks of deletions. */
function writerOf(name: string, streams: Streams) {
  return async (key: string, bytes: Uint8Array, how: Writing, isMark = false): Promise<number> => {
    const { revision, ttlMs } = how
    const ttl = ttlMs === undefined ? undefined : `${Math.ceil(ttlMs / 1000)}s`
    const subject = valueSubject(name, token(key))
    try {
      return await streams.write(subject, bytes, { sequence: revision, ttl, isMark })
    } catch (error) {
      if (revision !== 0 || !isWrongSequence(error)) throw error
      // After a deletion its mark is the last message.
      const last = await streams.last(valuesStream(name), subject)
      if (last !== undefined && !last.isMark) throw error
      return streams.write(subject, bytes, { sequence: last?.sequence ?? 0, ttl, isMark })
    }
  }
}

function keyValueOf(name: string, streams: Streams, updates: KvWatchInclude, values: KV): KeyValue {
  const stream = valuesStream(name)
  const subjectOf = (key: string): string => valueSubject(name, token(key))
  const write = writerOf(name, streams)
  return {
    async get(key) {
      const found = await confirmed(`reading ${key}`, streams.last(stream, subjectOf(key)))
      if (found === undefined || found.isMark) return undefined
      return { key, bytes: found.bytes, revision: found.sequence }
    },
    put: (key, bytes, how = {}) =>
      confirmed(`writing ${key}`, write(key, bytes, how), { key, revision: how.revision ?? 0 }),
    async delete(key, revision) {
      // The mark that it was deleted does not stay.
      const how = { ttlMs: MARKER_MS, ...(revision !== undefined && { revision }) }
      await confirmed(`deleting ${key}`, write(key, NOTHING, how, true), { key, revision: revision ?? 0 })
    },
    async last() {
      const { streamInfo } = await confirmed(`reading ${name}`, values.status())
      return streamInfo.state.last_seq
    },
    async watch(on, from = 'start', over) {
      const { values: count } = await confirmed(`watching ${name}`, values.status())
      const watched = values.watch(from === 'now' ? { include: updates } : {})
      const changes = await confirmed(`watching ${name}`, watched)
      let begun = (): void => {}
      const isComplete = new Promise<void>((resolve) => (begun = resolve))
      const read = async (): Promise<void> => {
        for await (const { key, value, operation, revision, delta } of changes) {
          const bytes = operation === 'PUT' ? value : undefined
          on({ key: keyOf(key), bytes, revision } satisfies Entry)
          if (delta === 0) begun()
        }
      }
      let isEnded = false
      const ended = (error?: unknown): void => {
        begun()
        if (!isEnded)
          over?.(new FleetError('FLEET_CLOSED', { reason: reasonOf(error ?? 'the watch has ended') }))
      }
      read().then(ended, ended)
      if (count > 0 && from === 'start') {
        // Of values whose time was over meanwhile nothing comes.
        const end = CLOCK.after(CONFIRM_MS, begun)
        await isComplete
        end()
      }
      return () => {
        isEnded = true
        changes.stop()
      }
    },
  }
}

function objectsOf(store: ObjectStore): Objects {
  return {
    put: async (key, bytes) => void (await confirmed(`writing ${key}`, store.putBlob({ name: key }, bytes))),
    async get(key, bytesMax) {
      const info = await confirmed(`reading ${key}`, store.info(key))
      if (info === null || info.deleted) return undefined
      checkSize(info.size, bytesMax)
      return (await confirmed(`reading ${key}`, store.getBlob(key))) ?? undefined
    },
    delete: async (key) => void (await confirmed(`deleting ${key}`, store.delete(key))),
  }
}
