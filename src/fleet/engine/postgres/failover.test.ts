/**
 * A standby of Postgres that is promoted when its primary is lost, and the addresses that name both.
 *
 * The standby confirms what is committed before it is confirmed to anybody (synchronous replication), so
 * nothing that was confirmed is lost. Without the programs of Postgres the test of servers is skipped.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { connect } from '../../connect.ts'
import type { FleetError } from '../../errors.ts'
import { host } from '../../host/host.ts'
import { SKIP, type PostgresServer, startPair } from './server.test.support.ts'
import { serversOf } from './servers.ts'

interface Module {
  double(n: number): number
}
const module = new URL('data:text/javascript,export const double = (n) => n * 2')
const JOBS = 60

test('postgres: an address of several servers is an address of each', () => {
  const env = { PGHOST: 'e,f', PGPORT: '1,2' }
  for (const [where, ...expected] of [
    ['h/d?sslmode=require', 'h/d?sslmode=require'],
    ['h:1/d?target_session_attrs=primary&sslmode=require', 'h:1/d?sslmode=require'],
    ['a:1,b:2/d', 'a:1/d?', 'b:2/d?'],
    ['[::1]:1,[::2]/d?target_session_attrs=read-write', '[::1]:1/d?', '[::2]/d?'],
    ['a,b/d?port=1,2', 'a/d?port=1', 'b/d?port=2'],
    ['/d?host=/a,/b&port=1&x=y', '/d?host=%2Fa&port=1&x=y', '/d?host=%2Fb&port=1&x=y'],
    ['', '/?port=1&host=e', '/?port=2&host=f'],
  ])
    assert.deepEqual(serversOf(where, env), expected)
  assert.deepEqual(serversOf('', {}), [''])
  for (const where of ['a,b,c/d?port=1,2', 'a,b/d?target_session_attrs=standby'])
    assert.throws(() => serversOf(where), { code: 'FLEET_ARGUMENT', message: /connect\(\)/ })
})

test(
  'postgres: a standby that is promoted goes on, and nothing confirmed is lost',
  { skip: SKIP },
  async () => {
    const [primary, standby] = await startPair()
    await using _primary = primary
    await using _standby = standby
    await assert.rejects(connect(standby.url()), (error) => {
      const { code, facts, message } = error as FleetError<'FLEET_CONNECT'>
      assert.deepEqual([code, facts.isAway], ['FLEET_CONNECT', true])
      assert.match(message, /may only be read, as a standby; name the server that may be written/)
      return true
    })
    const address = addressOf([standby, primary])
    await using caller = await connect(address)
    await using taker = await connect(address)
    await host(taker, { name: 'z', module, version: 'v1', jobsMax: 8, leaseMs: 1000 })
    const jobs = caller.jobs<Module>('z')
    const keys = Array.from({ length: JOBS }, (_, index) => `job ${index}`)
    const confirmed: string[] = []
    const results = Promise.all(
      keys.map(async (key, index) => {
        await jobs.submit(key, 'double', [index])
        confirmed.push(key)
        return jobs.result(key)
      }),
    )
    results.catch(() => {})
    while ((await jobs.counts()).ended < JOBS / 4);
    await primary.kill()
    const before = [...confirmed]
    await standby.sql('SELECT pg_promote()')
    const all = keys.map((_, index) => index * 2)
    assert.deepEqual(await results, all)
    // Also by a connection that begins now.
    await using other = await connect(address)
    const again = other.jobs<Module>('z')
    for (const key of before) assert.equal(await again.submit(key, 'double', [0]), false)
    assert.deepEqual(await Promise.all(keys.map((key) => again.result(key))), all)
    // That an item is done is not waited for: it is lent again, and dropped.
    while ((await jobs.count()) > 0);
  },
)

/** One that names several, in an order. */
function addressOf(servers: readonly PostgresServer[]): string {
  const hosts = servers.map(({ folder }) => encodeURIComponent(folder)).join(',')
  return `postgres://postgres@/postgres?host=${hosts}&target_session_attrs=read-write`
}
