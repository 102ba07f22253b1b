/**
 * The engine in a file does what every engine must keep; and what a file is refused for.
 *
 * What happens when processes die and disks are full is in faults.test.ts and test/fleet/sqlite.test.mjs.
 */
import assert from 'node:assert/strict'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { isBuiltin } from 'node:module'
import { join } from 'node:path'
import { test } from 'node:test'
import { FleetError, type FleetCodes } from '../../errors.ts'
import { Arrivals, bytes, newName, text } from '../conformance.test.support.ts'
import type { Entry, Lease, Rank } from '../engine.ts'
import { keepsConformance } from '../keeps.test.support.ts'
import { folderOf, runsHere } from './node.test.support.ts'
import { sqliteEngine } from './sqlite.ts'

if (!isBuiltin('node:sqlite'))
  test('a Node without SQLite is named', async () => {
    await assert.rejects(sqliteEngine('work.db'), {
      code: 'FLEET_NODE',
      message: /sqlite: needs Node 22\.13/,
    })
  })

if (runsHere(import.meta.url)) {
  const { DatabaseSync } = await import('node:sqlite')
  const { openFile, remoteName } = await import('./open.ts')
  const { migrate } = await import('./schema.ts')
  const { Tables } = await import('./tables.ts')
  const folder = folderOf('sqlite')
  const newFile = (): string => join(folder, newName())

  keepsConformance('sqlite', async () => {
    const file = newFile()
    return { connect: () => sqliteEngine(file), close: async () => {} }
  })

  test('file systems of other machines have names', () => {
    for (const [type, name] of [
      [0x6969, 'NFS'],
      [0xff534d42, 'CIFS'],
      [0xff534d42 | 0, 'CIFS'],
      [0xef53, undefined], // ext4
      [0x01021994, undefined], // tmpfs
    ] as const)
      assert.equal(remoteName(type), name)
  })

  test('sqlite: a folder on a disk of another machine is refused, and the file is not made', () => {
    const file = newFile()
    const problem = { code: 'FLEET_FILE_REMOTE', facts: { file, what: 'NFS' } }
    assert.throws(() => openFile(DatabaseSync, file, Date.now, () => 0x6969), problem)
    assert.equal(existsSync(file), false)
  })

  test('sqlite: a file of an older version gets the tables of this one, and has what it had', async () => {
    const file = newFile()
    const db = new DatabaseSync(file)
    migrate(db, 1)
    db.exec(`INSERT INTO corespun_stores (name, ttl_ms) VALUES ('v', 0);
      INSERT INTO corespun_values (store, key, ends_ms, bytes)
        VALUES ('v', 'a', 0, x'31'), ('v', 'b', 0, NULL)`)
    db.close()
    const engine = await sqliteEngine(file)
    const values = await engine.keyValue('v', { ttlMs: 0 })
    assert.equal(text((await values.get('a'))?.bytes), '1')
    assert.equal(await engine.valuesIn('v'), 1)
    assert.equal(await values.put('b', bytes('2')), await values.last())
    assert.equal(await engine.valuesIn('v'), 2)
    await engine.close()
  })

  const refused = async (file: string, code: keyof FleetCodes, message: RegExp): Promise<void> => {
    await assert.rejects(sqliteEngine(file), (error) => {
      assert.ok(error instanceof FleetError)
      assert.deepEqual([error.code, (error.facts as { file: string }).file], [code, file])
      assert.match(error.message, message)
      return true
    })
  }

  test('sqlite: a file that is not a database is refused, and left as it is', async () => {
    const file = newFile()
    const letter = 'Dear SQLite, this is a letter. '.repeat(100)
    writeFileSync(file, letter)
    await refused(file, 'FLEET_FILE_FOREIGN', /is not a database of SQLite/)
    assert.equal(readFileSync(file, 'utf8'), letter)
  })

  test('sqlite: a file of a newer version is refused, and left as it is', async () => {
    const file = newFile()
    await (await sqliteEngine(file)).close()
    const db = new DatabaseSync(file)
    db.exec('INSERT INTO corespun_schema VALUES (99); PRAGMA journal_mode = DELETE')
    db.close()
    const before = readFileSync(file)
    await refused(file, 'FLEET_FILE_VERSION', /version 99 of the tables, newer/)
    assert.ok(before.equals(readFileSync(file)))
  })

  test('sqlite: a folder that does not exist, and one that is a file, are named', async () => {
    await refused(join(folder, 'none', 'work.db'), 'FLEET_FILE_FOLDER_MISSING', /folder .* does not exist/)
    const file = newFile()
    writeFileSync(file, '')
    await refused(join(file, 'work.db'), 'FLEET_FILE_DENIED', /cannot be written/)
    const taken = newFile()
    mkdirSync(taken)
    await refused(taken, 'FLEET_FILE_DENIED', /cannot be written/)
  })

  const isLinux = process.platform === 'linux'
  test('sqlite: a folder that nobody may write to is named', { skip: !isLinux }, () =>
    refused('/sys/corespun.db', 'FLEET_FILE_DENIED', /check the permissions of the file and of its folder/),
  )

  test('sqlite: a damaged file ends the connection with its name, and what is whole is read', async () => {
    const file = newFile()
    const engine = await sqliteEngine(file)
    const values = await engine.keyValue('v', { ttlMs: 0 })
    await Promise.all(
      Array.from({ length: 500 }, (_, index) => values.put(`k${index}`, new Uint8Array(3000))),
    )
    await engine.close()
    const copy = newFile()
    copyFileSync(file, copy)
    const size = readFileSync(copy).length
    truncateSync(copy, size / 2 - ((size / 2) % 4096) + 100)
    let broken
    try {
      broken = await sqliteEngine(copy)
      const damaged = await broken.keyValue('v', { ttlMs: 0 })
      for (let index = 0; index < 500; index++) await damaged.get(`k${index}`)
      assert.fail('half of it is missing')
    } catch (error) {
      assert.ok(error instanceof FleetError)
      assert.equal(error.code, 'FLEET_FILE_CORRUPT', error.message)
    }
    if (broken !== undefined) assert.match(await broken.ended, /is damaged/)
    const again = await sqliteEngine(file)
    assert.equal((await (await again.keyValue('v', { ttlMs: 0 })).get('k499'))?.bytes?.length, 3000)
    await again.close()
  })

  test('sqlite: a connection ends with the name of its file, and confirms nothing more', async () => {
    const file = newFile()
    const engine = await sqliteEngine(file)
    const queue = await engine.queue('q')
    rmSync(file)
    const removed = /was deleted, renamed or replaced while it was open/
    await assert.rejects(queue.add('a', bytes('work'), 1), { code: 'FLEET_CLOSED', message: removed })
    assert.match(await engine.ended, removed)
    const other = await sqliteEngine(file)
    await (await other.queue('q')).take(() => {}, { leasesMax: 1, leaseMs: 1000 })
    // Whoever waits for items finds it without asking.
    renameSync(file, `${file}-old`)
    assert.match(await other.ended, removed)
  })

  test('sqlite: the oldest item that waits is of any rank, and none that somebody has had', () => {
    let nowMs = 1000
    const db = openFile(DatabaseSync, newFile(), () => nowMs)
    const tables = new Tables(db, () => nowMs)
    for (const name of ['q', 'r']) tables.openQueue(name)
    for (const rank of [2, 0, 1] as const) {
      tables.add('q', `of rank ${rank}`, bytes('x'), rank)
      nowMs += 100
    }
    const none = { name: 'r', waiting: 0, lent: 0, waitedMs: 0 }
    assert.deepEqual(tables.queues(), [{ name: 'q', waiting: 3, lent: 0, waitedMs: 300 }, none])
    tables.remove('q', 'of rank 2')
    const [lent] = tables.lend('q', 1, nowMs + 1000)
    assert.equal(lent.id, 'of rank 0')
    tables.lendUntil(lent.seq, lent.attempt, 0)
    assert.deepEqual(tables.queues(), [{ name: 'q', waiting: 1, lent: 1, waitedMs: 100 }, none])
    db.close()
  })

  test('sqlite: a file may have tables of others', async () => {
    const file = newFile()
    const db = new DatabaseSync(file)
    db.exec("CREATE TABLE orders (id INTEGER PRIMARY KEY, name TEXT); INSERT INTO orders VALUES (1, 'tea')")
    const engine = await sqliteEngine(file)
    const queue = await engine.queue('q')
    await queue.add('a', bytes('work'), 1)
    const rows = db.prepare('SELECT queue, id, rank, attempts, bytes FROM corespun_items').all()
    assert.deepEqual({ ...rows[0] }, { queue: 'q', id: 'a', rank: 1, attempts: 0, bytes: bytes('work') })
    assert.equal(db.prepare('SELECT name FROM orders').get()?.['name'], 'tea')
    db.close()
    await engine.close()
    assert.equal(existsSync(`${file}-wal`), false)
  })

  test('sqlite: what one turn asks for is in order, also behind what fails', async () => {
    const engine = await sqliteEngine(newFile())
    const values = await engine.keyValue('v', { ttlMs: 0 })
    const seen: string[] = []
    const end = await values.watch(({ key, bytes: value }) => seen.push(`${key}=${text(value)}`))
    const settled = await Promise.allSettled([
      values.put('a', bytes('1')),
      values.put('a', bytes('2'), { revision: 99 }),
      values.put('b', bytes('3'), { revision: 0 }),
      values.get('b'),
    ])
    assert.deepEqual(
      settled.map(({ status }) => status),
      ['fulfilled', 'rejected', 'fulfilled', 'fulfilled'],
    )
    assert.equal(text((settled[3] as PromiseFulfilledResult<Entry>).value.bytes), '3')
    assert.deepEqual(seen, ['a=1', 'b=3'])
    end()
    await engine.close()
  })

  test('sqlite: a part of a larger memory is written by itself', async () => {
    const engine = await sqliteEngine(newFile())
    const queue = await engine.queue('q')
    await queue.add('part', bytes('0123456789').subarray(2, 5), 1)
    assert.equal(text((await queue.find('part'))?.bytes), '234')
    await engine.close()
  })

  test('sqlite: what waits when the engine is closed is done, and what comes later is refused', async () => {
    const file = newFile()
    const engine = await sqliteEngine(file)
    const queue = await engine.queue('q')
    const adding = queue.add('a', bytes('x'), 1)
    const closed = engine.close()
    assert.equal(await adding, true)
    await assert.rejects(queue.add('b', bytes('x'), 1), { code: 'FLEET_CLOSED' })
    await closed
    const again = await sqliteEngine(file)
    assert.equal(await (await again.queue('q')).count(), 1)
    await again.close()
  })

  test('sqlite: items of a connection that closes are lent to another one at once', async () => {
    const file = newFile()
    const [one, other] = [await sqliteEngine(file), await sqliteEngine(file)]
    const leases = new Arrivals<Lease>()
    const queue = await one.queue('q')
    await queue.add('a', bytes('x'), 1)
    await queue.take(leases.push, { leasesMax: 1, leaseMs: 3_600_000 })
    await leases.next()
    await (await other.queue('q')).take(leases.push, { leasesMax: 1, leaseMs: 3_600_000 })
    await one.close()
    const lease = await leases.next()
    assert.deepEqual([lease.id, lease.attempt], ['a', 2])
    await lease.done()
    await other.close()
  })

  test('sqlite: of two takers of a queue each has one item in turn', async () => {
    const engine = await sqliteEngine(newFile())
    const taken: string[] = []
    const leases = new Arrivals<Lease>()
    const take = async (name: string, taker: string, leasesMax: number): Promise<void> => {
      const on = (lease: Lease): void => {
        taken.push(`${taker} ${lease.id}`)
        leases.push(lease)
      }
      await (await engine.queue(name)).take(on, { leasesMax, leaseMs: 3_600_000 })
    }
    const added = async (name: string, ranks: readonly Rank[]): Promise<void> => {
      const queue = await engine.queue(name)
      await Promise.all(ranks.map((rank, n) => queue.add(`${name}${n}`, bytes('x'), rank)))
      for (const _ of ranks) await leases.next()
    }
    await take('q', 'one', 2)
    await added('q', [1, 0])
    await take('r', 'a', 3)
    await take('r', 'b', 3)
    await added('r', [2, 1, 1, 0])
    assert.deepEqual(taken, ['one q1', 'one q0', 'a r3', 'b r1', 'a r2', 'b r0'])
    await engine.close()
  })

  test('sqlite: another program that writes is waited for', async () => {
    const file = newFile()
    const engine = await sqliteEngine(file)
    const queue = await engine.queue('q')
    await queue.add('a', bytes('x'), 1)
    const db = new DatabaseSync(file)
    db.exec('BEGIN IMMEDIATE')
    // Another program writes, and is waited for.
    const adding = queue.add('b', bytes('x'), 1)
    await new Promise((resolve) => setTimeout(resolve, 20))
    db.exec('COMMIT')
    assert.equal(await adding, true)
    db.close()
    await engine.close()
  })
}
