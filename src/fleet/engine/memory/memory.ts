/**
 * The engine in memory: for tests, and for programs that have no server yet.
 *
 * Everything goes over a network: the plain one delivers all in order, soon and once, and that of tests
 * (simulation.ts) loses, delays and repeats.
 */
import { TIMER_MS_MAX } from '../../../base/index.ts'
import { FleetError, checkSize } from '../../errors.ts'
import {
  CLOCK,
  type Clock,
  type End,
  type Engine,
  type Entry,
  type Found,
  type KeyValue,
  type Lease,
  MESSAGE_BYTES_MAX,
  type Message,
  type Messages,
  type Objects,
  type Queue,
  type QueueState,
} from '../engine.ts'
import { Broker, type BrokerQueue, type Item, type Listener, type Network } from './broker.ts'

const PLAIN: Network = {
  clock: CLOCK,
  epochMs: performance.timeOrigin,
  confirmMs: 0,
  carry: (_, arrive) => queueMicrotask(arrive),
  commit: (_, write) => write(),
}

const brokers = new Map<string, { readonly broker: Broker; users: number }>()

/** Connect to the broker of that name in this thread; it goes with its last engine. */
export function memoryEngine(name: string): Engine {
  let entry = brokers.get(name)
  if (entry === undefined) brokers.set(name, (entry = { broker: new Broker(PLAIN), users: 0 }))
  const { broker } = entry
  const counted = entry
  counted.users++
  // It keeps the process alive until it is closed, as a connection does.
  const alive = setInterval(() => {}, TIMER_MS_MAX)
  return new MemoryEngine(broker, broker.clientName(), () => {
    clearInterval(alive)
    if (--counted.users === 0) brokers.delete(name)
  })
}

/** One client of a broker. */
export class MemoryEngine implements Engine, Messages {
  readonly scheme = 'memory'
  readonly messages = this as Messages
  readonly clock: Clock
  readonly messageBytesMax = MESSAGE_BYTES_MAX
  readonly ended: Promise<string>
  readonly #broker: Broker
  readonly #client: string
  readonly #closed: () => void
  /** What this client has begun at the broker. */
  readonly #ends = new Set<End>()
  #resolveEnded!: (reason: string) => void
  #isClosed = false
  #isGone = false

  /**
   * @param client Its name on the network.
   * @param closed Called once, when it is closed.
   * @param clock Of its process, if that is not the one of the network.
   */
  constructor(
    broker: Broker,
    client: string,
    closed: () => void = () => {},
    clock: Clock = broker.network.clock,
  ) {
    this.#broker = broker
    this.#client = client
    this.#closed = closed
    this.clock = clock
    this.ended = new Promise((resolve) => (this.#resolveEnded = resolve))
  }

  send(subject: string, bytes: Uint8Array): void {
    this.#publish(subject, bytes, undefined)
  }

  flush(): Promise<void> {
    return this.#confirmed('sending', () => {})
  }

  /** A thread does not lose itself. */
  watchLink(_on: (isLinked: boolean) => void): void {}

  ask(subject: string, bytes: Uint8Array, on: (reply: Uint8Array | undefined) => void): End {
    let isOver = false
    this.#publish(subject, bytes, (reply) => {
      if (!isOver && !this.#isClosed) on(reply)
    })
    return () => {
      isOver = true
    }
  }

  #publish(
    subject: string,
    bytes: Uint8Array,
    on: ((reply: Uint8Array | undefined) => void) | undefined,
  ): void {
    if (this.#isClosed) throw closedError()
    const { network, listeners } = this.#broker
    const answer = (reply: Uint8Array | undefined): void => network.carry(this.#client, () => on?.(reply))
    network.carry(this.#client, () => {
      const all = listeners.get(subject) ?? []
      for (const listener of all) {
        const reply = (from: Uint8Array): void => network.carry(listener.client, () => answer(from))
        network.carry(listener.client, () => listener.on(bytes, reply))
      }
      if (![...all].length) answer(undefined)
    })
  }

  listen(subject: string, on: (message: Message) => void): Promise<End> {
    return this.#confirmed(`listening to ${subject}`, () => {
      const { listeners } = this.#broker
      const listener: Listener = {
        client: this.#client,
        on: (bytes, reply) => {
          if (!this.#isClosed) on({ bytes, reply: (from) => this.#isClosed || reply(from) })
        },
      }
      const all = listeners.get(subject) ?? new Set()
      listeners.set(subject, all.add(listener))
      return this.#kept(() => {
        all.delete(listener)
        if (all.size === 0) listeners.delete(subject)
      })
    })
  }

  async queue(name: string): Promise<Queue> {
    const queue = this.#broker.queue(name)
    const { network } = this.#broker
    const addedMsOf = (id: string): number | undefined => {
      const item = queue.find(id)
      return item && network.epochMs + item.addedMs
    }
    return {
      add: (id, bytes, rank, instead) =>
        this.#written(`adding ${id}`, () => {
          return addedMsOf(id) === instead?.addedMs && queue.put(id, bytes, rank)
        }),
      find: (id) =>
        this.#confirmed(`finding ${id}`, () => {
          const item = queue.find(id)
          return item && { bytes: item.bytes, addedMs: network.epochMs + item.addedMs }
        }),
      page: (paging, isLent = false) =>
        this.#confirmed(`listing ${name}`, () => {
          const { items, next } = queue.page(paging, isLent)
          const of = ({ id, bytes, addedMs }: Item): Found => ({
            id,
            bytes,
            addedMs: network.epochMs + addedMs,
          })
          return { items: items.map(of), next }
        }),
      remove: (id, item) =>
        this.#written(`removing ${id}`, () => {
          if (item === undefined || item.addedMs === addedMsOf(id)) queue.remove(id)
        }),
      prepare: () => Promise.resolve(),
      count: () => this.#confirmed(`counting ${name}`, () => queue.size),
      take: (on, { leasesMax, leaseMs }) =>
        this.#confirmed(`taking from ${name}`, () => {
          const lent = (item: Item, attempt: number): void =>
            network.carry(this.#client, () => this.#isClosed || on(this.#lease(queue, item, attempt)))
          return this.#kept(queue.take({ client: this.#client, leasesMax, leases: 0, on: lent }, leaseMs))
        }),
    }
  }

  #lease(queue: BrokerQueue, item: Item, attempt: number): Lease {
    const { network } = this.#broker
    const { id, bytes, addedMs } = item
    return {
      id,
      bytes,
      attempt,
      addedMs: network.epochMs + addedMs,
      ageMs: () => network.clock.nowMs() - addedMs,
      extend: () => this.#unconfirmed(() => queue.extend(item, attempt)),
      done: () => this.#written(`ending ${id}`, () => queue.done(item)),
      again: (delayMs) => this.#unconfirmed(() => queue.again(item, attempt, delayMs)),
    }
  }

  async keyValue(name: string, { ttlMs }: { readonly ttlMs: number }): Promise<KeyValue> {
    const values = this.#broker.keyValue(name, ttlMs)
    return {
      get: (key) => this.#confirmed(`reading ${key}`, () => values.get(key)),
      put: (key, bytes, how) => this.#written(`writing ${key}`, () => values.put(key, bytes, how)),
      delete: (key, revision) =>
        this.#written(`deleting ${key}`, () => {
          values.put(key, undefined, revision === undefined ? {} : { revision })
        }),
      page: (paging) => this.#confirmed(`listing ${name}`, () => values.page(paging)),
      last: () => this.#confirmed(`reading ${name}`, () => values.last),
      watch: (on, { from = 'start', key, over } = {}) => {
        let isOver = false
        const late: Entry[] = []
        const arrive = (): void => {
          for (const entry of late.splice(0)) if (!isOver && !this.#isClosed) on(entry)
        }
        const { network } = this.#broker
        // As servers do: in order, and what is lost comes later.
        const again = (): void => {
          if (late.length === 0 || isOver || this.#isClosed) return
          network.carry(this.#client, arrive)
          if (network.confirmMs > 0) this.clock.after(network.confirmMs, again)
        }
        const received: typeof on = (entry) => {
          if (key !== undefined && key !== entry.key) return
          if (late.push(entry) === 1) again()
          else network.carry(this.#client, arrive)
        }
        const begun = this.#confirmed(`watching ${name}`, () => {
          const watched = values.watch(received, from)
          const end = this.#kept(() => {
            watched()
            if (!isOver && !this.#isGone) over?.(closedError())
          })
          return () => {
            isOver = true
            end()
          }
        })
        return begun.then((end) => (arrive(), end))
      },
    }
  }

  async objects(name: string, { ttlMs }: { readonly ttlMs: number }): Promise<Objects> {
    const values = this.#broker.keyValue(`objects of ${name}`, ttlMs)
    return {
      put: (key, bytes) => this.#confirmed(`writing ${key}`, () => void values.put(key, bytes)),
      get: (key, bytesMax) =>
        this.#confirmed(`reading ${key}`, () => {
          const bytes = values.get(key)?.bytes
          if (bytes !== undefined) checkSize(bytes.length, bytesMax)
          return bytes
        }),
      delete: (key) => this.#confirmed(`deleting ${key}`, () => void values.put(key, undefined)),
    }
  }

  queues(): Promise<readonly QueueState[]> {
    return this.#confirmed('listing queues', () => this.#broker.states())
  }

  valuesIn(name: string): Promise<number> {
    return this.#confirmed(`counting ${name}`, () => this.#broker.valuesIn(name))
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    for (const end of this.#ends) end()
    this.#closed()
    this.#resolveEnded('close() was called')
  }

  /** As if its process had died: what it has begun ends at the broker, and its own code does not notice. */
  vanish(): void {
    this.#isClosed = true
    this.#isGone = true
    for (const end of this.#ends) end()
    this.#closed()
  }

  #unconfirmed(write: () => void): void {
    if (this.#isClosed) return
    const { network } = this.#broker
    network.carry(this.#client, () => network.commit(this.#client, write))
  }

  #written<Value>(operation: string, work: () => Value): Promise<Value> {
    return this.#confirmed(operation, work, (write) => this.#broker.network.commit(this.#client, write))
  }

  /** What the broker returns, if both ways are passed in time. */
  #confirmed<Value>(
    operation: string,
    work: () => Value,
    via: (work: () => void) => void = (now) => now(),
  ): Promise<Value> {
    const { network } = this.#broker
    const { clock } = this
    const { confirmMs } = network
    return new Promise((resolve, reject) => {
      if (this.#isClosed) return reject(closedError())
      const late = (): void => reject(new FleetError('FLEET_TIMEOUT', { operation, timeoutMs: confirmMs }))
      const end = confirmMs === 0 ? () => {} : clock.after(confirmMs, late)
      const settled = (settle: () => void): void =>
        network.carry(this.#client, () => {
          end()
          settle()
        })
      network.carry(this.#client, () => {
        if (this.#isClosed) return settled(() => reject(closedError()))
        via(() => {
          try {
            const value = work()
            settled(() => resolve(value))
          } catch (error) {
            settled(() => reject(error))
          }
        })
      })
    })
  }

  #kept(end: End): End {
    const once = (): void => {
      if (this.#ends.delete(once)) end()
    }
    this.#ends.add(once)
    return once
  }
}

function closedError(): FleetError {
  return new FleetError('FLEET_CLOSED', { reason: 'close() was called' })
}
