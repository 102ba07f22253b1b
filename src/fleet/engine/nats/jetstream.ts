/**
 * Queues, values and objects on JetStream.
 *
 * Only a wrong sequence (10071, 10164) means that a key is taken. Everything that may be a server without a
 * leader is `FLEET_TIMEOUT`: not confirmed, and to be repeated; taken for a conflict it would lose results.
 */
import type { Consumer, ConsumerMessages, JsMsg } from '@nats-io/jetstream'
import type { KV } from '@nats-io/kv'
import type { NatsConnection } from '@nats-io/transport-node'
import { reasonOf } from '../../../base/index.ts'
import { FleetError, checkSize } from '../../errors.ts'
import { CLOCK, type Entry, type KeyValue, type Lease, type Objects, type Queue } from '../engine.ts'
import { peer } from './peer.ts'

/** Of the server's confirmation of one operation. */
const CONFIRM_MS = 5000
const WRONG_SEQUENCE = new Set([10071, 10164])
const UNAVAILABLE = 503
/** Leases of one consumer, over all hosts. */
const PENDING_MAX = 10_000
/** How long one request for items waits at the server. */
const FETCH_MS = 10_000
const RETRY_MS = 250

const load = () =>
  Promise.all([
    peer('@nats-io/jetstream', () => import('@nats-io/jetstream')),
    peer('@nats-io/kv', () => import('@nats-io/kv')),
    peer('@nats-io/obj', () => import('@nats-io/obj')),
  ])

/** What engines keep. */
export type JetStream = Awaited<ReturnType<typeof openJetStream>>

/** @throws {FleetError} `FLEET_PEER_MISSING`, `FLEET_ENGINE` and `FLEET_TIMEOUT`. */
export async function openJetStream(connection: NatsConnection, replicas: number) {
  const [{ jetstream, jetstreamManager, AckPolicy, RetentionPolicy, StorageType }, { Kvm }, { Objm }] =
    await load()
  const manager = await confirmed('opening JetStream', jetstreamManager(connection, { timeout: CONFIRM_MS }))
  const client = jetstream(connection, { timeout: CONFIRM_MS })
  return {
    async queue(name: string, leaseMs: number): Promise<Queue> {
      const stream = `corespun_queue_${name}`
      const subjects = `corespun.queue.${name}`
      const config = {
        name: stream,
        subjects: [`${subjects}.*`],
        retention: RetentionPolicy.Workqueue,
        storage: StorageType.File,
        num_replicas: replicas,
      }
      await confirmed(`opening the queue ${name}`, manager.streams.add(config))
      const takers = {
        durable_name: 'takers',
        ack_policy: AckPolicy.Explicit,
        ack_wait: leaseMs * 1_000_000,
        max_ack_pending: PENDING_MAX,
      }
      await confirmed(`opening the queue ${name}`, manager.consumers.add(stream, takers))
      return {
        async add(id, bytes) {
          const expect = { lastSubjectSequence: 0 }
          const published = client.publish(`${subjects}.${token(id)}`, bytes, { expect, timeout: CONFIRM_MS })
          try {
            await confirmed(`adding ${id}`, published, { key: id, revision: 0 })
            return true
          } catch (error) {
            if (error instanceof FleetError && error.code === 'FLEET_CONFLICT') return false
            throw error
          }
        },
        async take(on, leasesMax) {
          const consumer = await confirmed(`taking from ${name}`, client.consumers.get(stream, 'takers'))
          const taking = new Taking(consumer, on, leasesMax, subjects.length + 1)
          void taking.run()
          return () => taking.end()
        },
        count: async () => (await confirmed(`counting ${name}`, manager.streams.info(stream))).state.messages,
      }
    },

    async keyValue(name: string, ttlMs: number): Promise<KeyValue> {
      const options = { history: 1, ttl: ttlMs, replicas, storage: StorageType.File }
      const created = new Kvm(client).create(`corespun_${name}`, options)
      return keyValueOf(name, await confirmed(`opening the store ${name}`, created))
    },

    async objects(name: string, ttlMs: number): Promise<Objects> {
      const options = { ttl: ttlMs * 1_000_000, replicas, storage: StorageType.File }
      const created = new Objm(client).create(`corespun_${name}`, options)
      const store = await confirmed(`opening the objects ${name}`, created)
      return {
        put: async (key, bytes) =>
          void (await confirmed(`writing ${key}`, store.putBlob({ name: key }, bytes))),
        async get(key, bytesMax) {
          const info = await confirmed(`reading ${key}`, store.info(key))
          if (info === null || info.deleted) return undefined
          checkSize(info.size, bytesMax)
          return (await confirmed(`reading ${key}`, store.getBlob(key))) ?? undefined
        },
        delete: async (key) => void (await confirmed(`deleting ${key}`, store.delete(key))),
      }
    },
  }
}

function keyValueOf(name: string, values: KV): KeyValue {
  return {
    async get(key) {
      const found = await confirmed(`reading ${key}`, values.get(token(key)))
      if (found === null || found.operation !== 'PUT') return undefined
      return { key, bytes: found.value, revision: found.revision }
    },
    put(key, bytes, revision) {
      const written =
        revision === 0
          ? values.create(token(key), bytes)
          : values.put(token(key), bytes, revision === undefined ? {} : { previousSeq: revision })
      return confirmed(`writing ${key}`, written, { key, revision: revision ?? 0 })
    },
    delete: (key) => confirmed(`deleting ${key}`, values.delete(token(key))),
    async watch(on) {
      const { values: count } = await confirmed(`watching ${name}`, values.status())
      const changes = await confirmed(`watching ${name}`, values.watch())
      let begun = (): void => {}
      const isComplete = new Promise<void>((resolve) => (begun = resolve))
      const read = async (): Promise<void> => {
        for await (const { key, value, operation, revision, delta } of changes) {
          const bytes = operation === 'PUT' ? value : undefined
          on({ key: keyOf(key), bytes, revision } satisfies Entry)
          if (delta === 0) begun()
        }
        begun()
      }
      // Ended with the connection, which everybody receives.
      read().catch(begun)
      if (count > 0) await isComplete
      return () => changes.stop()
    },
  }
}

/** Takes as many items as there is room for, again and again. */
class Taking {
  readonly #consumer: Consumer
  readonly #on: (lease: Lease) => void
  readonly #idAt: number
  #room: number
  #isOver = false
  #batch: ConsumerMessages | undefined
  #wake: () => void = () => {}

  /** @param idAt Where the id begins in a subject. */
  constructor(consumer: Consumer, on: (lease: Lease) => void, leasesMax: number, idAt: number) {
    this.#consumer = consumer
    this.#on = on
    this.#room = leasesMax
    this.#idAt = idAt
  }

  async run(): Promise<void> {
    while (!this.#isOver) {
      if (this.#room === 0) await new Promise<void>((resolve) => (this.#wake = resolve))
      if (this.#isOver) return
      try {
        this.#batch = await this.#consumer.fetch({ max_messages: this.#room, expires: FETCH_MS })
        if (this.#isOver) this.#batch.stop()
        for await (const message of this.#batch) this.#lend(message)
      } catch {
        // The server has no leader or the connection is lost: the lease of what was sent runs out.
        await new Promise<void>((resolve) => CLOCK.after(RETRY_MS, resolve))
      }
    }
  }

  #lend(message: JsMsg): void {
    this.#room--
    let isOver = false
    const over = (): void => {
      if (isOver) return
      isOver = true
      this.#room++
      this.#wake()
    }
    this.#on({
      id: keyOf(message.subject.slice(this.#idAt)),
      bytes: message.data,
      attempt: message.info.deliveryCount,
      extend: () => message.working(),
      done: async () => {
        over()
        if (!(await confirmed('ending an item', message.ackAck({ timeout: CONFIRM_MS }))))
          throw new FleetError('FLEET_TIMEOUT', { operation: 'ending an item', timeoutMs: CONFIRM_MS })
      },
      again: (delayMs) => {
        over()
        message.nak(delayMs)
      },
    })
  }

  end(): void {
    this.#isOver = true
    this.#batch?.stop()
    this.#wake()
  }
}

/** What the server confirms. @throws {FleetError} `FLEET_CONFLICT`, `FLEET_TIMEOUT` or `FLEET_ENGINE`. */
async function confirmed<Value>(
  operation: string,
  work: Promise<Value>,
  expected?: { readonly key: string; readonly revision: number },
): Promise<Value> {
  try {
    return await work
  } catch (cause) {
    const { code, status, name } = Object(cause) as Partial<Record<'code' | 'status' | 'name', unknown>>
    if (expected !== undefined && WRONG_SEQUENCE.has(code as number))
      throw new FleetError('FLEET_CONFLICT', expected, { cause })
    const isOpen =
      status === UNAVAILABLE || ['TimeoutError', 'RequestError', 'NoRespondersError'].includes(name as string)
    if (isOpen) throw new FleetError('FLEET_TIMEOUT', { operation, timeoutMs: CONFIRM_MS }, { cause })
    throw new FleetError('FLEET_ENGINE', { operation, reason: reasonOf(cause) }, { cause })
  }
}

/** A key as a part of a subject, whatever it contains. */
function token(key: string): string {
  const written = key.replace(/[^\w-]/gu, (char) =>
    [...Buffer.from(char)].map((byte) => `=${byte.toString(16).padStart(2, '0')}`).join(''),
  )
  return written === '' ? '=' : written
}

function keyOf(written: string): string {
  return written === '=' ? '' : decodeURIComponent(written.replaceAll('=', '%'))
}
