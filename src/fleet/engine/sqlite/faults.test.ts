/**
 * What a file promises when connections to it die in the middle of a transaction, disks are full, writes fail
 * before or behind the commit, and others are in the way: by seeds.
 *
 * Connections are played in one thread, in simulated time, on a real file. CORESPUN_SEED runs the seed that a
 * failure names, CORESPUN_SEEDS=1000 so many instead of 100. Power cuts are not played.
 */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import type { DatabaseSync } from 'node:sqlite'
import { newName, bytes, text } from '../conformance.test.support.ts'
import type { Entry } from '../engine.ts'
import { generator, seeds } from '../../../base/index.ts'
import type { Keeper } from './keeper.ts'
import { folderOf, runsHere } from './node.test.support.ts'
import type { Name, Request, Requests } from './requests.ts'
import type { Lent, Refusal } from './tables.ts'

const SEEDS = seeds(100)
const LEASE_MS = 1000
/** What may be repeated. */
const OPEN: ReadonlySet<unknown> = new Set(['FLEET_ENGINE', 'FLEET_DISK_FULL', 'FLEET_TIMEOUT'])
const [BUSY, IOERR, FULL] = [5, 10, 13]

if (runsHere(import.meta.url)) {
  const { DatabaseSync: Database } = await import('node:sqlite')
  // Loaded by the Node that runs the tests alone: the counts of lines of two are not comparable.
  const [{ Keeper: Own }, { openFile }, { MARK_MS }] = await Promise.all([
    import('./keeper.ts'),
    import('./open.ts'),
    import('./tables.ts'),
  ])
  const folder = folderOf('faults')

  class World {
    readonly random: () => number
    readonly file = join(folder, newName())
    nowMs = 1_000_000_000
    isQuiet = false
    readonly clients: Client[] = []

    constructor(seed: number) {
      this.random = generator(seed)
    }

    connect(): Client {
      const client = new Client(this)
      this.clients.push(client)
      return client
    }

    /** Whether one of so many happens. */
    happens(share: number): boolean {
      return !this.isQuiet && this.random() < share
    }
  }

  /** A connection whose disk may fail, and which dies and comes again. */
  class Client {
    readonly world: World
    readonly leases: Lent[] = []
    readonly entries: Entry[] = []
    epochs = 0
    #isDead = false
    #keeper!: Keeper
    #db!: DatabaseSync
    #ids = 0

    constructor(world: World) {
      this.world = world
      this.#open()
    }

    #open(): void {
      const { file } = this.world
      const now = (): number => this.world.nowMs
      this.#db = openFile(Database, file, now)
      this.#keeper = new Own(new Faulty(this.#db, this) as unknown as DatabaseSync, file, now)
      this.epochs++
      this.#isDead = false
      this.leases.length = 0
    }

    close(): void {
      if (!this.#isDead) this.#db.close()
    }

    /** What was asked and is not replied to is unknown. */
    die(db: DatabaseSync): never {
      this.#isDead = true
      db.close()
      throw new Error('it dies')
    }

    /** The replies, or nothing of a connection that has died. */
    run(
      ...asked: { [Asked in Name]: [Asked, ...Requests[Asked]] }[Name][]
    ): (Refusal | unknown)[] | undefined {
      const requests = asked.map(([name, ...args]) => [++this.#ids, name, ...args] as unknown as Request)
      const { leases, entries, replies, fatal } = this.#keeper.run(requests)
      if (this.#isDead) {
        this.#open()
        return undefined
      }
      assert.equal(fatal, undefined)
      this.leases.push(...leases.map(([, lent]) => lent))
      this.entries.push(...entries.map(([, entry]) => entry))
      assert.deepEqual(
        replies.map(([id]) => id),
        requests.map(([id]) => id),
      )
      return replies.map(([, value, failure]) => failure ?? value)
    }
  }

  /** A disk by a seed. */
  class Faulty {
    readonly #db: DatabaseSync
    readonly #client: Client

    constructor(db: DatabaseSync, client: Client) {
      this.#db = db
      this.#client = client
    }

    exec(sql: string): void {
      const { world } = this.#client
      if (sql.startsWith('PRAGMA synchronous')) return this.#db.exec('PRAGMA synchronous = OFF')
      if (sql.startsWith('BEGIN') && world.happens(0.1)) {
        world.nowMs += world.happens(0.2) ? 6000 : 1
        throw failure(BUSY)
      }
      if (sql === 'COMMIT' && world.happens(0.05)) throw failure(world.happens(0.5) ? FULL : IOERR)
      if (sql === 'COMMIT' && world.happens(0.05)) this.#client.die(this.#db)
      this.#db.exec(sql)
      if (sql === 'COMMIT' && world.happens(0.05)) this.#client.die(this.#db)
      if (sql === 'COMMIT' && world.happens(0.03)) throw failure(IOERR)
    }

    prepare(sql: string): unknown {
      return this.#db.prepare(sql)
    }

    close(): void {
      this.#db.close()
    }
  }

  const failure = (errcode: number): Error => Object.assign(new Error(`played: ${errcode}`), { errcode })

  const seeded = (work: (world: World) => void): void => {
    for (const seed of SEEDS) {
      const world = new World(seed)
      try {
        work(world)
      } catch (cause) {
        throw new Error(`CORESPUN_SEED=${seed}: ${String(cause)}`, { cause })
      } finally {
        for (const client of world.clients) client.close()
      }
    }
  }
  const isOpen = (reply: unknown): boolean => OPEN.has(Object(reply).code)

  test('sqlite: every item is lent to one at a time, until it is done, and none is lost', () =>
    seeded((world) => {
      const [producer, one, two] = [world.connect(), world.connect(), world.connect()]
      const ids = Array.from({ length: 20 }, (_, index) => `item ${index}`)
      const [waiting, done, lent] = [[...ids], new Set<string>(), new Set<string>()]
      const epochs = new Map<Client, number>()
      while (producer.run(['openQueue', 'q'])?.[0] !== undefined);
      for (let turn = 0; done.size < ids.length || waiting.length > 0; turn++) {
        assert.ok(turn < 5000, 'it does not end')
        world.isQuiet = turn > 3000
        world.nowMs += world.random() * 300
        const group = waiting.slice(0, 1 + world.random() * 4)
        const added = producer.run(
          ...group.map((id): ['add', ...Requests['add']] => ['add', 'q', id, bytes(id), 1]),
        )
        // What is not confirmed is added again; false means that it is there, or was done already.
        for (const [index, reply] of (added ?? []).entries())
          if (!isOpen(reply)) waiting.splice(waiting.indexOf(group[index]), 1)
        for (const taker of [one, two]) {
          if (epochs.get(taker) !== taker.epochs) {
            const reply = taker.run(['take', taker.epochs, 'q', { leasesMax: 3, leaseMs: LEASE_MS }])
            if (reply !== undefined && !isOpen(reply[0])) epochs.set(taker, taker.epochs)
          } else taker.run()
          for (const { id, seq, attempt } of taker.leases.splice(0)) {
            const key = `${seq} ${attempt}`
            assert.ok(!lent.has(key), `${id} was lent twice as its lending ${attempt}`)
            lent.add(key)
            const choice = world.random()
            if (choice < 0.2) taker.run(['again', seq, attempt, world.random() * 500])
            else if (choice < 0.4) taker.run(['extend', seq, attempt, LEASE_MS])
            else {
              done.add(id)
              const item = [seq, attempt] as const
              taker.run(
                world.happens(0.5) ? ['put', 'v', id, bytes(id), undefined, 0, item] : ['done', ...item],
              )
            }
          }
        }
      }
      world.isQuiet = true
      for (let turn = 0; producer.run(['count', 'q'])![0] !== 0; turn++) {
        assert.ok(turn < 1000, 'items are left')
        world.nowMs += LEASE_MS
        for (const taker of [one, two]) {
          if (epochs.get(taker) !== taker.epochs) {
            taker.run(['take', taker.epochs, 'q', { leasesMax: 3, leaseMs: LEASE_MS }])
            epochs.set(taker, taker.epochs)
          }
          for (const { seq, attempt } of taker.leases.splice(0)) taker.run(['done', seq, attempt])
          taker.run()
        }
      }
      assert.deepEqual([...done].sort(), [...ids].sort())
    }))

  test('sqlite: of writes by revision none is lost or done on an older value, and the last is seen', () =>
    seeded((world) => {
      const [watcher, ...writers] = [0, 1, 2, 3].map(() => world.connect())
      while (watcher.run(['openStore', 'v', 0])?.[0] !== undefined);
      let [confirmed, epoch] = [0, 0]
      for (let turn = 0; turn < 60; turn++) {
        world.nowMs += world.random() * 100
        if (epoch !== watcher.epochs) {
          watcher.entries.length = 0
          const reply = watcher.run(['watch', watcher.epochs, 'v', false, undefined])
          if (reply !== undefined && !isOpen(reply[0])) epoch = watcher.epochs
        } else watcher.run()
        const writer = writers[Math.floor(world.random() * writers.length)]
        const found = writer.run(['get', 'v', 'n'])?.[0] as Entry | Refusal | undefined
        if (isOpen(found)) continue
        const { bytes: before, revision = 0 } = Object(found) as Partial<Entry>
        const next = bytes(String(Number(text(before) ?? 0) + 1))
        // Somebody else writes between the two, now and then.
        if (world.random() < 0.3) writers[0].run(['put', 'v', 'other', next, undefined, 0])
        const reply = writer.run(['put', 'v', 'n', next, revision, 0])?.[0]
        if (typeof reply === 'number') confirmed++
        else if (reply !== undefined)
          assert.match(String(Object(reply).code), /^FLEET_(ENGINE|DISK_FULL|TIMEOUT|CONFLICT)$/)
      }
      world.isQuiet = true
      if (epoch !== watcher.epochs) {
        watcher.entries.length = 0
        watcher.run(['watch', watcher.epochs, 'v', false, undefined])
      }
      watcher.run()
      const [last] = writers[0].run(['get', 'v', 'n']) as [Entry]
      assert.ok(Number(text(last.bytes)) >= confirmed)
      const seen = watcher.entries.filter(({ key }) => key === 'n')
      assert.deepEqual(seen.at(-1)?.revision, last.revision)
      for (const [index, { revision }] of seen.entries())
        assert.ok(index === 0 || revision > seen[index - 1].revision)
    }))

  test('sqlite: the number of values is that of a count, whatever ends, is replaced or is deleted', () =>
    seeded((world) => {
      const writers = [world.connect(), world.connect()]
      const db = new Database(world.file)
      const count = db.prepare(
        'SELECT count(*) AS count FROM corespun_values ' +
          'WHERE store = ? AND bytes IS NOT NULL AND (ends_ms = 0 OR ends_ms > ?)',
      )
      const stores = ['v', 'w']
      world.isQuiet = true
      for (const store of stores) writers[0].run(['openStore', store, 0])
      for (let turn = 0; turn < 30; turn++) {
        world.nowMs += world.random() * 2000
        const writer = writers[Math.floor(world.random() * writers.length)]
        const store = stores[Math.floor(world.random() * stores.length)]
        const key = `k${Math.floor(world.random() * 6)}`
        const value = world.random() < 0.7 ? bytes('x') : undefined
        world.isQuiet = false
        writer.run(['put', store, key, value, undefined, world.random() < 0.5 ? 0 : 1000])
        world.isQuiet = true
        const counts = writer.run(...stores.map((name): ['valuesIn', string] => ['valuesIn', name]))
        assert.deepEqual(
          counts,
          stores.map((name) => count.get(name, world.nowMs)?.['count']),
        )
      }
      db.close()
    }))

  test('sqlite: who has not looked for longer than deletions are remembered ends its watches', () => {
    const file = join(folder, newName())
    let nowMs = 1_000_000_000
    const now = (): number => nowMs
    const keeper = new Own(openFile(Database, file, now), file, now)
    const run = (...requests: Request[]) => keeper.run(requests)
    run([1, 'openStore', 'v', 0], [2, 'put', 'v', 'k', bytes('1'), undefined, 0])
    nowMs += 2 * MARK_MS
    assert.deepEqual(run([3, 'watch', 30, 'v', false, undefined]).entries[0][1].key, 'k')
    nowMs += MARK_MS
    assert.deepEqual(run([4, 'put', 'v', 'k', undefined, undefined, 0]).over, [])
    nowMs += MARK_MS + 1
    assert.deepEqual(run().over, [30])
    assert.deepEqual(run([5, 'put', 'v', 'k', bytes('2'), undefined, 0]).entries, [])
    keeper.close()
  })

  test('sqlite: with a full disk what is there is read, what fits is written, and nothing is lost', () => {
    const file = join(folder, newName())
    const db = openFile(Database, file, Date.now)
    const keeper = new Own(db, file, Date.now)
    let ids = 0
    const put = (key: string, size: number) =>
      [++ids, 'put', 'v', key, new Uint8Array(size), undefined, 0] as const
    keeper.run([[++ids, 'openStore', 'v', 0], put('first', 10)])
    const pages = Number(db.prepare('PRAGMA page_count').get()?.['page_count'])
    db.exec(`PRAGMA max_page_count = ${pages + 8}`)
    const { replies } = keeper.run([
      put('small', 100),
      put('large', 1_000_000),
      [++ids, 'get', 'v', 'first'],
      put('next', 100),
    ])
    assert.deepEqual(
      replies.map(([, , refusal]) => refusal?.code),
      [undefined, 'FLEET_DISK_FULL', undefined, undefined],
    )
    db.exec('PRAGMA max_page_count = 100000')
    const { replies: after } = keeper.run([put('large', 1_000_000)])
    assert.equal(after[0][2], undefined)
    assert.equal(keeper.run([[++ids, 'valuesIn', 'v']]).replies[0][1], 4)
    keeper.close()
  })
}
