/**
 * Queues, values and objects on JetStream.
 *
 * A queue is a stream with one subject for each item, `corespun.queue.<name>.<rank>.<id>`, and a consumer for
 * each rank. A value is the last message of its subject.
 */
import type { ConsumerConfig, JetStreamManager, StreamInfo } from '@nats-io/jetstream'
import type { KV, KvWatchInclude } from '@nats-io/kv'
import type { ObjectStore } from '@nats-io/obj'
import type { MsgHdrs, NatsConnection } from '@nats-io/transport-node'
import { FleetError, checkSame, checkSize, hasCode, unlessConflict } from '../../errors.ts'
import { reasonOf } from '../../../base/index.ts'
import {
  CLOCK,
  type End,
  type Entry,
  type Found,
  type KeyValue,
  type Objects,
  type Queue,
  RANKS,
  type TakeOptions,
  type Writing,
} from '../engine.ts'
import { CONFIRM_MS, confirmed, isWrongSequence, keyOf, token } from './confirmed.ts'
import { deliveredOf, queueStates, valuesIn } from './states.ts'
import {
  bucketName,
  itemSubject,
  itemSubjects,
  objectSubject,
  objectsStream,
  queueStream,
  takersName,
  valueSubject,
  valuesStream,
} from './names.ts'
import { peer } from '../../peer.ts'
import { follow, readAll, readPage } from './reading.ts'
import type { Requests } from './requests.ts'
import { ServerTime } from './server-time.ts'
import { type Stored, Streams } from './stored.ts'
import { type Source, Taking } from './taking.ts'

const NANOSECONDS = 1_000_000
/** An error code of the server: there is no such stream. */
const NO_STREAM = 10059
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
  /** How many servers keep each value and queue; `undefined`: as it exists, and 1 of what is made. */
  readonly replicas: number | undefined
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
  const check = (info: StreamInfo, ttlMs?: number): StreamInfo => {
    const { name, num_replicas: count, max_age: ageNs = 0 } = info.config
    checkSame(name, 'replicas', replicas, count)
    checkSame(name, 'ttlMs', ttlMs, ageNs / NANOSECONDS)
    return info
  }
  const manager = await confirmed('opening JetStream', jetstreamManager(connection, { timeout: CONFIRM_MS }))
  const client = jetstream(connection, { timeout: CONFIRM_MS })
  return {
    async queue(name: string): Promise<Queue> {
      const stream = queueStream(name)
      const config = {
        name: stream,
        subjects: itemSubjects(name),
        retention: RetentionPolicy.Workqueue,
        storage: StorageType.File,
        num_replicas: replicas ?? 1,
      }
      // What a user may not make is not asked for where it exists.
      const existing = manager.streams.info(stream)
      const made = existing.catch((error) => unlessMissing(error) ?? manager.streams.add(config))
      const info = check(await confirmed(`opening the queue ${name}`, made))
      const prepare = (leaseMs: number): Promise<void> =>
        prepared(manager, name, info, { ack_policy: AckPolicy.Explicit, ack_wait: leaseMs * NANOSECONDS })
      const source = async ({ leaseMs }: TakeOptions): Promise<Source> => {
        await prepare(leaseMs)
        return {
          connection,
          requests,
          inbox: () => `${inbox}.pull.${++pulls}`,
          subjects: RANKS.map((rank) => `$JS.API.CONSUMER.MSG.NEXT.${stream}.${takersName(rank)}`),
          time: await serverTime(connection, manager, stream),
        }
      }
      return queueOf(name, stream, streams, manager, { prepare, source })
    },

    async keyValue(name: string, ttlMs: number): Promise<KeyValue> {
      const options = {
        history: 1,
        ttl: ttlMs,
        markerTTL: MARKER_MS,
        replicas: replicas ?? 1,
        storage: StorageType.File,
        // The leader alone is read: one that lags behind would return what was replaced.
        allow_direct: (replicas ?? 1) === 1,
      }
      const opening = `opening the store ${name}`
      const values = await confirmed(opening, new Kvm(client).create(bucketName(name), options))
      await readAlone(streams, check((await confirmed(opening, values.status())).streamInfo, ttlMs), name)
      return keyValueOf(name, streams, KvWatchInclude.UpdatesOnly, values, connection)
    },

    async objects(name: string, ttlMs: number): Promise<Objects> {
      const opening = `opening the objects ${name}`
      const options = { ttl: ttlMs * NANOSECONDS, replicas: replicas ?? 1, storage: StorageType.File }
      const store = await confirmed(opening, new Objm(client).create(bucketName(name), options))
      check((await confirmed(opening, store.status())).streamInfo, ttlMs)
      return objectsOf(name, streams, store)
    },

    queues: () => queueStates(manager),
    valuesIn: (name: string) => valuesIn(manager, name),
  }
}

async function readAlone(streams: Streams, { config }: StreamInfo, name: string): Promise<void> {
  if (config.allow_direct && config.num_replicas === 1)
    await streams.readAlone(config.name, valueSubject(name, '_'))
}

/** @throws The error, unless there is no such stream. */
function unlessMissing(error: unknown): undefined {
  if ((Object(error) as { code?: unknown }).code !== NO_STREAM) throw error
}

/** The stream of a queue that was made for items of any rank: those that nobody takes leave it. */
async function narrow(manager: JetStreamManager, queue: string, { config }: StreamInfo): Promise<void> {
  const subjects = itemSubjects(queue)
  if (config.subjects.length === subjects.length) return
  const work = async (): Promise<void> => {
    await manager.streams.update(config.name, { subjects })
    const { state } = await manager.streams.info(config.name, { subjects_filter: '>' })
    const isTaken = (subject: string): boolean => subjects.some((one) => subject.startsWith(one.slice(0, -1)))
    for (const filter of Object.keys(state.subjects ?? {}))
      if (!isTaken(filter)) await manager.streams.purge(config.name, { filter })
  }
  // A host with roles may not, and an operator does.
  await confirmed(`narrowing ${config.name}`, work()).catch(ifDenied)
}

/** A consumer for each rank. */
async function prepared(
  manager: JetStreamManager,
  queue: string,
  info: StreamInfo,
  config: Partial<ConsumerConfig>,
): Promise<void> {
  await narrow(manager, queue, info)
  for (const rank of RANKS)
    await addConsumer(manager, queueStream(queue), {
      ...config,
      durable_name: takersName(rank),
      filter_subject: itemSubject(queue, rank, '*'),
      // Items that wait for their time count as lent.
      max_ack_pending: -1,
    })
}

/** The time of the servers, read again when the connection is to another one. */
async function serverTime(
  connection: NatsConnection,
  manager: JetStreamManager,
  stream: string,
): Promise<ServerTime> {
  const time = new ServerTime(CLOCK, async () => {
    const { ts } = await manager.streams.info(stream)
    return ts === undefined ? Date.now() : Date.parse(ts)
  })
  await time.begin()
  const watch = async (): Promise<void> => {
    for await (const { type } of connection.status()) if (type === 'reconnect') time.refresh()
  }
  void watch()
  return time
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
  taker: { source(options: TakeOptions): Promise<Source>; prepare(leaseMs: number): Promise<void> },
): Queue {
  /** An item of any rank. */
  const anyOf = (id: string): string => itemSubject(name, '*', token(id))
  return {
    async add(id, bytes, rank, instead) {
      const subject = itemSubject(name, rank, token(id))
      const before = instead && (await confirmed(`finding ${id}`, streams.last(stream, anyOf(id))))
      if (before?.addedMs !== instead?.addedMs) return false
      const condition = { sequence: before?.sequence ?? 0, of: anyOf(id) }
      const written = streams.write(subject, bytes, condition)
      const expected = { key: id, revision: condition.sequence }
      const seq = await unlessConflict(confirmed(`adding ${id}`, written, expected))
      if (seq === undefined) return false
      // Until then both are there, and the first one finds that it is not the last.
      const replaced = before && manager.streams.purge(stream, { filter: anyOf(id), seq })
      await confirmed(`replacing ${id}`, Promise.resolve(replaced))
      return true
    },
    find: (id) => confirmed(`finding ${id}`, streams.last(stream, anyOf(id))),
    async page(paging, isLent = false) {
      const delivered = isLent ? await deliveredOf(manager, stream) : undefined
      const read = ({ subject, bytes, addedMs, sequence }: Stored): Found | undefined => {
        const [rank, id] = subject.split('.').slice(-2)
        const isHad = delivered === undefined || sequence <= delivered[Number(rank)]
        return isHad ? { id: keyOf(id), bytes, addedMs } : undefined
      }
      const until = delivered && Math.max(...delivered)
      const source = { streams, stream, subject: itemSubject(name, '*', '*') }
      return readPage(source, paging, read, until)
    },
    async remove(id, item) {
      const found = item && (await confirmed(`finding ${id}`, streams.last(stream, anyOf(id))))
      if (found?.addedMs !== item?.addedMs) return
      // Up to it: another one that is added meanwhile comes behind.
      const until = found && { seq: found.sequence + 1 }
      await confirmed(`removing ${id}`, manager.streams.purge(stream, { filter: anyOf(id), ...until }))
    },
    async take(on, options) {
      const taking = new Taking(await confirmed(`taking from ${name}`, taker.source(options)), on, options)
      void taking.run()
      return () => taking.end()
    },
    prepare: (leaseMs) => taker.prepare(leaseMs),
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

function keyValueOf(
  name: string,
  streams: Streams,
  updates: KvWatchInclude,
  values: KV,
  connection: NatsConnection,
): KeyValue {
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
    page(paging) {
      const prefix = valueSubject(name, '')
      const read = ({ subject, bytes, sequence }: Stored): Entry => {
        return { key: keyOf(subject.slice(prefix.length)), bytes, revision: sequence }
      }
      const source = { streams, stream, subject: `${prefix}>` }
      return readPage(source, paging, read)
    },
    async last() {
      const { streamInfo } = await confirmed(`reading ${name}`, values.status())
      return streamInfo.state.last_seq
    },
    async watch(on, { from, key, over = () => {} } = {}) {
      const isNow = from === 'now'
      const { values: count, streamInfo } = await confirmed(`watching ${name}`, values.status())
      const only = key === undefined ? {} : { key: token(key) }
      const watched = values.watch({ ...(isNow && { include: updates }), ...only })
      const changes = await confirmed(`watching ${name}`, watched).catch(ifDenied)
      if (changes !== undefined) return consumed(changes, on, count > 0 && !isNow && key === undefined, over)
      const prefix = valueSubject(name, '')
      const read = ({ subject, bytes, isMark, sequence }: Stored): void => {
        on({
          key: keyOf(subject.slice(prefix.length)),
          bytes: isMark ? undefined : bytes,
          revision: sequence,
        })
      }
      const subject = key === undefined ? `${prefix}>` : subjectOf(key)
      const followed = { connection, streams, stream, subject, on: read, over }
      return follow(followed, isNow ? streamInfo.state.last_seq + 1 : 1)
    },
  }
}

/** @param isWaited Whether it resolves when `on` has had what there was. */
async function consumed(
  changes: Awaited<ReturnType<KV['watch']>>,
  on: (entry: Entry) => void,
  isWaited: boolean,
  over: (why: FleetError) => void,
): Promise<End> {
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
    if (!isEnded) over(new FleetError('FLEET_CLOSED', { reason: reasonOf(error ?? 'the watch has ended') }))
  }
  read().then(ended, ended)
  if (isWaited) {
    // Nothing comes for values whose time was over meanwhile.
    const end = CLOCK.after(CONFIRM_MS, begun)
    await isComplete
    end()
  }
  return () => {
    isEnded = true
    changes.stop()
  }
}

/** A user with roles may make no consumer, and reads without one. */
function ifDenied(error: unknown): undefined {
  if (!hasCode(error, 'FLEET_DENIED')) throw error
}

function objectsOf(name: string, streams: Streams, store: ObjectStore): Objects {
  return {
    put: async (key, bytes) => void (await confirmed(`writing ${key}`, store.putBlob({ name: key }, bytes))),
    async get(key, bytesMax) {
      const info = await confirmed(`reading ${key}`, store.info(key))
      if (info === null || info.deleted) return undefined
      checkSize(info.size, bytesMax)
      const blob = await confirmed(`reading ${key}`, store.getBlob(key)).catch(ifDenied)
      const parts = objectSubject(name, `C.${info.nuid}`)
      return blob ?? confirmed(`reading ${key}`, readAll(streams, objectsStream(name), parts, info.chunks))
    },
    delete: async (key) => void (await confirmed(`deleting ${key}`, store.delete(key))),
  }
}
