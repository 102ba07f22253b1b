/**
 * What Postgres promises when the way to it loses requests, and replies to what was done: by seeds.
 *
 * A relay on a socket of its own lies between the connections and a real server. It refuses connections, and
 * ends them before or behind what they ask for, as the seed decides; in which order requests come is the
 * machine's. CORESPUN_SEED runs the seed that a failure names, CORESPUN_SEEDS=100 so many.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { type Server, type Socket, connect as dial, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { generator, seeds } from '../../../base/index.ts'
import { certainly } from '../../certainly.ts'
import { type Fleet, connect } from '../../connect.ts'
import { mayPass } from '../../errors.ts'
import { bytes, newName, text } from '../conformance.test.support.ts'
import { CLOCK, type Entry, type Lease } from '../engine.ts'
import { SKIP, serverOfFile } from './server.test.support.ts'

const SEEDS = seeds(4)
const SOCKET = '.s.PGSQL.5432'
const LEASE_MS = 1000

/** The way to a server: each part of what passes it may be the last one of its connection. */
class Relay {
  readonly folder = mkdtempSync(join(tmpdir(), 'relay-'))
  readonly random: () => number
  isQuiet = true
  /** How often a connection was ended. */
  faults = 0
  readonly #server: Server
  readonly #open = new Set<Socket>()

  constructor(seed: number, folder: string) {
    this.random = generator(seed)
    this.#server = createServer((client) => this.#relay(client, dial(join(folder, SOCKET))))
    this.#server.listen(join(this.folder, SOCKET))
  }

  #happens(share: number): boolean {
    const happens = !this.isQuiet && this.random() < share
    if (happens) this.faults++
    return happens
  }

  #relay(client: Socket, server: Socket): void {
    let isReplyLost = false
    const end = (): void => {
      client.destroy()
      server.destroy()
    }
    for (const socket of [client, server]) {
      this.#open.add(socket)
      socket.on('error', end).on('close', () => {
        this.#open.delete(socket)
        end()
      })
    }
    if (this.#happens(0.05)) return end()
    client.on('data', (asked) => {
      if (this.#happens(0.03)) return end()
      isReplyLost ||= this.#happens(0.03)
      server.write(asked)
    })
    server.on('data', (reply) => (isReplyLost ? end() : client.write(reply)))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#open) socket.destroy()
    this.#server.close()
    await once(this.#server, 'close')
    rmSync(this.folder, { recursive: true, force: true })
  }
}

if (SKIP !== false) test('postgres: faults by seeds', { skip: SKIP })
else {
  const server = serverOfFile()
  const surely = <Value>(work: () => Promise<Value>): Promise<Value> => certainly({ clock: CLOCK }, work)

  /** Seeds at once, since most of their time is that of pauses and leases. */
  const seeded = async (work: (relay: Relay, fleets: readonly Fleet[]) => Promise<void>): Promise<void> => {
    const { folder } = await server()
    const played = await Promise.allSettled(
      SEEDS.map(async (seed) => {
        await using relay = new Relay(seed, folder)
        const url = `postgres://postgres@/postgres?host=${encodeURIComponent(relay.folder)}`
        const schema = newName()
        const fleets: Fleet[] = []
        try {
          for (let made = 0; made < 3; made++) fleets.push(await connect(url, { schema }))
          await work(relay, fleets)
        } finally {
          await Promise.all(fleets.map((fleet) => fleet.close()))
        }
      }),
    )
    for (const [index, one] of played.entries())
      if (one.status === 'rejected')
        throw new Error(`CORESPUN_SEED=${SEEDS[index]}: ${String(one.reason)}`, { cause: one.reason })
  }

  test('postgres: every item is lent to one at a time, until it is done, and none is lost', () =>
    seeded(async (relay, fleets) => {
      const [producer, ...takers] = await Promise.all(fleets.map(({ engine }) => engine.queue('q')))
      const ids = Array.from({ length: 20 }, (_, index) => `item ${index}`)
      const [done, lent] = [new Set<string>(), new Set<string>()]
      const ending: Promise<unknown>[] = []
      const on = (lease: Lease): void => {
        const { id, addedMs, attempt } = lease
        const lending = `${id} of ${addedMs}, lending ${attempt}`
        assert.ok(!lent.has(lending), lending)
        lent.add(lending)
        const choice = relay.random()
        if (choice < 0.2) return lease.again(relay.random() * 100)
        if (choice < 0.4) lease.extend()
        done.add(id)
        ending.push(surely(() => lease.done()))
      }
      const failed: unknown[] = []
      const guarded = (lease: Lease): void => {
        try {
          on(lease)
        } catch (error) {
          failed.push(error)
        }
      }
      const ends = await Promise.all(
        takers.map((taker) => taker.take(guarded, { leasesMax: 3, leaseMs: LEASE_MS })),
      )
      relay.isQuiet = false
      await Promise.all(ids.map((id) => surely(() => producer.add(id, bytes(id), 1))))
      while (done.size < ids.length && failed.length === 0) await surely(() => producer.count())
      relay.isQuiet = true
      await Promise.all(ending)
      while (failed.length === 0 && (await surely(() => producer.count())) > 0);
      for (const end of ends) end()
      await Promise.all(ending)
      assert.deepEqual(failed, [])
      assert.deepEqual([...done].sort(), [...ids].sort())
      assert.ok(relay.faults > 0)
    }))

  test('postgres: of writes by revision none is lost or done on an older value, and the last is seen', () =>
    seeded(async (relay, fleets) => {
      const [watching, ...stores] = await Promise.all(
        fleets.map(({ engine }) => engine.keyValue('v', { ttlMs: 0 })),
      )
      const seen: Entry[] = []
      const end = await watching.watch((entry) => void seen.push(entry))
      relay.isQuiet = false
      let [confirmed, unsure] = [0, 0]
      await Promise.all(
        stores.map(async (store) => {
          for (let turn = 0; turn < 20; turn++) {
            const { bytes: before, revision = 0 } = Object(
              await surely(() => store.get('n')),
            ) as Partial<Entry>
            const next = bytes(String(Number(text(before) ?? 0) + 1))
            try {
              await store.put('n', next, { revision })
              confirmed++
            } catch (error) {
              if (mayPass(error)) unsure++
              else assert.equal(Object(error).code, 'FLEET_CONFLICT')
            }
          }
        }),
      )
      relay.isQuiet = true
      const last = (await stores[0].get('n')) as Entry
      const count = Number(text(last.bytes))
      assert.ok(count >= confirmed && count <= confirmed + unsure, `${count}: ${confirmed}, ${unsure} unsure`)
      while (seen.at(-1)?.revision !== last.revision) await watching.last()
      end()
      for (const [index, { revision }] of seen.entries())
        assert.ok(index === 0 || revision > seen[index - 1].revision)
    }))
}
