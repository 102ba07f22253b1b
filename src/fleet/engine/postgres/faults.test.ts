/**
 * What Postgres promises when servers are killed, connections are ended and transactions of others stay open.
 *
 * Without a server these are skipped.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import pg from 'pg'
import { connect } from '../../connect.ts'
import type { FleetError } from '../../errors.ts'
import { host } from '../../host/host.ts'
import { Arrivals, bytes, newName, text } from '../conformance.test.support.ts'
import type { Entry, Lease } from '../engine.ts'
import { SKIP, serverOfFile, startServer } from './server.test.support.ts'

interface Module {
  double(n: number): number
}
const module = new URL('data:text/javascript,export const double = (n) => n * 2')

if (SKIP !== false) test('postgres: faults', { skip: SKIP })
else {
  const server = serverOfFile()

  // It takes some seconds: a server that was killed starts again.
  test('postgres: of jobs under kill -9 of the server none is lost or ends twice', async () => {
    await using own = await startServer([])
    await using caller = await connect(own.url())
    await using taker = await connect(own.url())
    await host(taker, { name: 'z', module, version: 'v1', jobsMax: 8, leaseMs: 1000 })
    const jobs = caller.jobs<Module>('z')
    const keys = Array.from({ length: 100 }, (_, index) => `job ${index}`)
    const results = Promise.all(
      keys.map(async (key, index) => {
        await jobs.submit(key, 'double', [index])
        return jobs.result(key)
      }),
    )
    results.catch(() => {})
    while ((await jobs.counts()).ended < 20);
    await own.kill()
    await own.start()
    assert.deepEqual(
      await results,
      keys.map((_, index) => index * 2),
    )
    // A result is written before its item is taken away.
    while ((await jobs.count()) > 0);
    assert.equal((await jobs.counts()).ended, keys.length)
  })

  test('postgres: connections that an operator ends are made again, with what waits on them', async () => {
    await using fleet = await connect((await server()).url(), { schema: newName(), name: 'ended' })
    const { engine } = fleet
    const [queue, values] = [await engine.queue('q'), await engine.keyValue('v', { ttlMs: 0 })]
    const [leases, entries] = [new Arrivals<Lease>(), new Arrivals<Entry>()]
    await queue.take(leases.push, { leasesMax: 1, leaseMs: 1000 })
    await values.watch(entries.push, { from: 'now' })
    for (let times = 0; times < 3; times++) {
      await (
        await server()
      ).sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'ended'")
      // Whether what was on its way is done is unknown: it is done again.
      while (!(await queue.add(`a${times}`, bytes('x'), 1).catch(() => false)))
        if ((await queue.find(`a${times}`).catch(() => undefined)) !== undefined) break
      // One whose lending was cut off is lent again, and so may be one that is done late.
      let lease = await leases.next()
      while (lease.id !== `a${times}`) lease = await leases.next()
      while ((await values.put('k', bytes(String(times))).catch(() => 0)) === 0);
      while (text((await entries.next()).bytes) !== String(times));
      await lease.done()
    }
  })

  test('postgres: an open transaction holds up its own key alone', async () => {
    const schema = newName()
    const url = (await server()).url()
    await using fleet = await connect(url, { schema })
    const jobs = fleet.jobs<Module>('z')
    const client = new pg.Client(url)
    await client.connect()
    try {
      await client.query('BEGIN')
      assert.equal(await jobs.submit('held', 'double', [1], { client }), true)
      const held = jobs.submit('held', 'double', [2])
      const others = ['a', 'b', 'c'].map((key) => jobs.submit(key, 'double', [1]))
      assert.deepEqual(await Promise.all(others), [true, true, true])
      await client.query('COMMIT')
      assert.equal(await held, false)
    } finally {
      await client.end()
    }
    assert.equal(await jobs.count(), 4)
  })

  test('postgres: a long transaction of somebody else stops no job', async () => {
    const schema = newName()
    const url = (await server()).url()
    await using fleet = await connect(url, { schema })
    const jobs = fleet.jobs<Module>('z')
    await jobs.submit('before', 'double', [1])
    const client = new pg.Client(url)
    await client.connect()
    try {
      // All that is removed from now on is there for it.
      await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
      const count = `SELECT count(*)::int AS count FROM ${schema}.corespun_items`
      assert.equal((await client.query(count)).rows[0].count, 1)
      await host(fleet, { name: 'z', module, version: 'v1', jobsMax: 4 })
      const keys = Array.from({ length: 100 }, (_, index) => `job ${index}`)
      await jobs.submitMany(keys.map((key, index) => ({ key, name: 'double', args: [index] }) as const))
      const results = await Promise.all(keys.map((key) => jobs.result(key)))
      assert.deepEqual(
        results,
        keys.map((_, index) => index * 2),
      )
      while ((await jobs.count()) > 0);
      assert.equal((await client.query(count)).rows[0].count, 1)
    } finally {
      await client.end()
    }
  })

  test('postgres: a job is added when the transaction of its caller is committed', async () => {
    const schema = newName()
    const url = (await server()).url()
    await using fleet = await connect(url, { schema })
    const jobs = fleet.jobs<Module>('z')
    await using hosting = await host(fleet, { name: 'z', module, version: 'v1', jobsMax: 1 })
    const client = new pg.Client(url)
    await client.connect()
    try {
      await client.query('BEGIN')
      assert.equal(await jobs.submit('undone', 'double', [1], { client }), true)
      await client.query('ROLLBACK')
      await client.query('BEGIN')
      assert.equal(await jobs.submit('done', 'double', [2], { client }), true)
      assert.equal(await jobs.submit('done', 'double', [2], { client }), false)
      assert.equal(await jobs.get('done'), undefined)
      await client.query('COMMIT')
      assert.equal(await jobs.result('done'), 4)
      assert.equal(await jobs.submit('done', 'double', [2], { client }), false)
      assert.equal(await jobs.get('undone'), undefined)
      await assert.rejects(jobs.submit('s', 'double', [1], { client, schedule: { everyMs: 1000 } }), {
        code: 'FLEET_ARGUMENT',
        message: /client must be left out with schedule/,
      })
      await client.query('BEGIN')
      await assert.rejects(client.query('SELECT 1 / 0'))
      // An error of the caller's own transaction is the caller's.
      await assert.rejects(jobs.submit('late', 'double', [1], { client }), { code: '25P02' })
    } finally {
      await client.end()
    }
    await using memory = await connect('memory:')
    await assert.rejects(memory.jobs<Module>('z').submit('a', 'double', [1], { client }), {
      code: 'FLEET_ARGUMENT',
      message: /left out over memory:.*connect to postgres:/,
    })
    assert.equal(hosting.name, 'z')
  })

  test('postgres: large arguments are there when the transaction of their caller is committed', async () => {
    const [schema, url] = [newName(), (await server()).url()]
    await using fleet = await connect(url, { schema })
    const jobs = fleet.jobs<{ length(text: string): number }>('z')
    const lengths = new URL('data:text/javascript,export const length = (text) => text.length')
    await using hosting = await host(fleet, { name: 'z', module: lengths, version: 'v1', jobsMax: 1 })
    const long = 'x'.repeat(2_500_000)
    const kept = async (): Promise<unknown> => {
      const stores = `store IN ('large_z', 'parts_z') AND bytes IS NOT NULL`
      const [{ count }] = await (
        await server()
      ).sql(`SELECT count(*)::int AS count FROM ${schema}.corespun_values WHERE ${stores}`)
      return count
    }
    const client = new pg.Client(url)
    await client.connect()
    try {
      // Of a view that is older than the stores.
      await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
      await client.query('SELECT 1 FROM pg_tables')
      assert.equal(await jobs.submit('undone', 'length', [long], { client }), true)
      await client.query('ROLLBACK')
      assert.equal(await kept(), 0)
      await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
      assert.equal(await jobs.submit('done', 'length', [long], { client }), true)
      assert.equal(await jobs.submit('done', 'length', [long], { client }), false)
      // Nobody waits for the transaction.
      assert.equal(await jobs.submit('other', 'length', [long]), true)
      assert.equal(await jobs.result('other'), long.length)
      await client.query('COMMIT')
      assert.equal(await jobs.result('done'), long.length)
      assert.equal(await jobs.get('undone'), undefined)
    } finally {
      await client.end()
    }
    while ((await kept()) !== 0);
    assert.equal(hosting.name, 'z')
  })

  test('postgres: what a closed server was asked fails, and nobody who closes waits for it', async () => {
    const own = await startServer()
    const fleet = await connect(own.url())
    const values = await fleet.engine.keyValue('v', { ttlMs: 0 })
    await values.put('k', bytes('1'))
    const over = new Arrivals<FleetError>()
    await values.watch(() => {}, { from: 'now', over: over.push })
    await own[Symbol.asyncDispose]()
    const writing = values.put('k', bytes('2'))
    writing.catch(() => {})
    await fleet.close()
    await assert.rejects(writing, { code: 'FLEET_CLOSED' })
    assert.equal((await over.next()).code, 'FLEET_CLOSED')
  })
}
