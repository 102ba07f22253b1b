/**
 * The engine in Postgres does what every engine must keep; and what it is refused for.
 *
 * What happens when servers and connections die is in faults.test.ts. Without a server these are skipped.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { connect } from '../../connect.ts'
import { FleetError, type FleetCodes } from '../../errors.ts'
import { Arrivals, bytes, newName, text } from '../conformance.test.support.ts'
import type { Entry } from '../engine.ts'
import { keepsConformance } from '../keeps.test.support.ts'
import { Group } from './group.ts'
import type { Link, Row } from './link.ts'
import { namesIn } from './schema.ts'
import { SKIP, serverOfFile } from './server.test.support.ts'
import { valueStatements } from './statements.ts'
import { keyOf, textOf } from './text.ts'
import { Watching } from './watching.ts'

test('postgres: any key is a text, and is read as it was', () => {
  for (const key of ['', 'a', 'ä/ключ', '\0', '\u0001', 'a\0b\u0001\u0001\u0002\0'])
    assert.deepEqual([keyOf(textOf(key)), textOf(key).includes('\0')], [key, false])
})

test('postgres: what waits is one group, and of a group that is refused each is tried alone', async () => {
  const groups: string[][] = []
  const group = new Group<string, string>({
    run: async (all) => {
      groups.push([...all])
      if (all.includes('bad')) throw Object.assign(new Error('refused'), { code: '22000' })
      return all.map((each) => each.toUpperCase())
    },
    keyOf: (each) => each,
    failed: (cause) => new Error('failed', { cause }),
  })
  const asked = ['a', 'b', 'a', 'bad', 'c'].map((each) => group.ask(each))
  const settled = await Promise.allSettled(asked)
  assert.deepEqual(
    settled.map((each) => (each.status === 'fulfilled' ? each.value : each.reason.message)),
    ['A', 'B', 'A', 'failed', 'C'],
  )
  assert.deepEqual(groups.slice(0, 2), [
    ['a', 'b'],
    ['a', 'bad', 'c'],
  ])
  await group.idle()
})

test('postgres: who watches a key has its value at once, also while others wait for changes', async () => {
  let paused = (): void => {}
  const isPaused = new Promise<void>((resolve) => (paused = resolve))
  // Time does not pass.
  const clock = { nowMs: () => 0, after: () => (paused(), () => {}) }
  const sql = valueStatements(namesIn('corespun'))
  const query = async (text: string, values: readonly unknown[] = []): Promise<Row[]> => {
    const [ids, , afters] = values as readonly (readonly number[])[]
    if (text === sql.lasts) return [{ at: 1, last: 7 }]
    return ids.flatMap((id, at) => (afters[at] < 7 ? [{ id, key: 'a', revision: 7, bytes: bytes('x') }] : []))
  }
  const watching = new Watching({ query } as unknown as Link, clock, sql)
  const changes = new Arrivals<Entry>()
  await watching.watch('s', () => assert.fail(), { from: 'now', key: 'a' })
  await isPaused
  await watching.watch('s', changes.push, { key: 'a' })
  assert.equal(text((await changes.next()).bytes), 'x')
  watching.close()
})

if (SKIP !== false) test('postgres', { skip: SKIP })
else {
  const server = serverOfFile()

  keepsConformance('postgres', async () => {
    const [{ url }, schema] = [{ url: (await server()).url() }, newName()]
    return { connect: async () => (await connect(url, { schema })).engine, close: async () => {} }
  })

  const refused = async (
    address: string,
    options: object,
    code: keyof FleetCodes,
    message: RegExp,
  ): Promise<void> => {
    await assert.rejects(connect(address, options), (error) => {
      assert.ok(error instanceof FleetError, String(error))
      assert.equal(error.code, code, error.message)
      assert.match(error.message, message)
      assert.doesNotMatch(`${error.message}${JSON.stringify(error.facts)}`, /hunter2/)
      return true
    })
  }

  test('postgres: what is wrong with an address is named, without its password', async () => {
    const url = (await server()).url().replace('postgres@', 'postgres:hunter2@')
    await refused(url.replace('/postgres?', '/none?'), {}, 'FLEET_CONNECT', /create the database/)
    await refused('postgres://u:hunter2@127.0.0.1:1/d', {}, 'FLEET_CONNECT', /127\.0\.0\.1:1, database d/)
    await refused('postgres://u:hunter2@h:port/d', {}, 'FLEET_ARGUMENT', /postgres:\/\/user/)
    await refused('postgres://u:hunter2@h/d e', {}, 'FLEET_ARGUMENT', /postgres:/)
    await refused(url, { schema: '' }, 'FLEET_ARGUMENT', /schema/)
    await refused(url, { schema: 'pg_x' }, 'FLEET_ARGUMENT', /schema/)
    await refused(url, { user: 'other' }, 'FLEET_ARGUMENT', /without credentials/)
    await refused(
      url.replace('postgres:hunter2@', 'nobody:hunter2@'),
      {},
      'FLEET_DENIED',
      /role "nobody" does not exist; check user and password/,
    )
  })

  test('postgres: what an address leaves out is as in the environment', async () => {
    const { folder } = await server()
    const before = { ...process.env }
    Object.assign(process.env, { PGHOST: folder, PGUSER: 'postgres', PGDATABASE: 'postgres' })
    try {
      for (const address of ['postgres:', 'postgresql://', 'postgres:///postgres']) {
        await using fleet = await connect(address, { schema: 'environment' })
        assert.deepEqual(await fleet.queues(), [])
      }
      await using named = await connect('postgres:', { user: 'postgres', password: 'hunter2' })
      assert.deepEqual(await named.queues(), [])
    } finally {
      for (const name of ['PGHOST', 'PGUSER', 'PGDATABASE'])
        if (before[name] === undefined) delete process.env[name]
        else process.env[name] = before[name]
    }
  })

  test('postgres: tables of a newer version are refused, and left as they are', async () => {
    const own = await server()
    await (await connect(own.url(), { schema: 'newer' })).close()
    await own.sql("UPDATE newer.corespun_names SET last = 99 WHERE kind = 'schema'")
    await refused(own.url(), { schema: 'newer' }, 'FLEET_SCHEMA_VERSION', /"newer" of .* version 99 .*newer/)
  })

  test('postgres: a user needs rights, and no more than those of the guide', async () => {
    const own = await server()
    await own.sql('CREATE ROLE shop LOGIN')
    const url = own.url('postgres', 'shop')
    await refused(url, { schema: 'rights' }, 'FLEET_DENIED', /permission denied .*grant what/)
    await (await connect(own.url(), { schema: 'rights' })).close()
    await refused(url, { schema: 'rights' }, 'FLEET_DENIED', /permission denied for schema rights/)
    await own.sql(`GRANT USAGE ON SCHEMA rights TO shop;
      GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA rights TO shop;
      GRANT USAGE ON ALL SEQUENCES IN SCHEMA rights TO shop`)
    await using fleet = await connect(url, { schema: 'rights' })
    await fleet.jobs('z').submit('a', 'one' as never, [] as never)
    await fleet.store('s').set('k', 1)
    await own.sql('REVOKE ALL ON rights.corespun_items FROM shop')
    const denied = fleet.jobs('z').submit('b', 'one' as never, [] as never)
    await assert.rejects(denied, { code: 'FLEET_DENIED' })
  })

  test('postgres: programs that start together make the tables once, in a schema of any name', async () => {
    const [own, schema] = [await server(), 'Kunden "ä" \'x\'']
    const fleets = await Promise.all([1, 2, 3, 4].map(() => connect(own.url(), { schema })))
    const jobs = fleets[0].jobs('z')
    assert.equal(await jobs.submit('a\0b', 'one' as never, [] as never), true)
    assert.deepEqual(
      (await jobs.list()).jobs.map(({ key }) => key),
      ['a\0b'],
    )
    const [row] = await own.sql(`SELECT queue, id, rank, attempts FROM "Kunden ""ä"" 'x'".corespun_items`)
    assert.deepEqual(row, { queue: 'jobs_z', id: 'a\u0001\u0002b', rank: 1, attempts: 0 })
    for (const fleet of fleets) await fleet.close()
  })

  test('postgres: what needs messages is refused, with the engines that have them', async () => {
    await using fleet = await connect((await server()).url())
    assert.throws(() => fleet.zone('z'), { code: 'FLEET_MESSAGES', message: /postgres: does not have/ })
  })

  test('postgres: a watch of more changes than are read at once has all of them', async () => {
    await using fleet = await connect((await server()).url(), { schema: newName() })
    const { engine } = fleet
    const values = await engine.keyValue('v', { ttlMs: 0 })
    const keys = Array.from({ length: 1200 }, (_, index) => `k${index}`)
    const changes = new Arrivals<Entry>()
    await values.watch(changes.push, { from: 'now' })
    await Promise.all(keys.map((key) => values.put(key, bytes(key))))
    const seen: Entry[] = []
    while (seen.length < keys.length) seen.push(await changes.next())
    assert.deepEqual(new Set(seen.map(({ key }) => key)), new Set(keys))
    const all: (string | undefined)[] = []
    const end = await values.watch((entry) => all.push(text(entry.bytes)))
    assert.deepEqual(new Set(all), new Set(keys))
    end()
  })
}
