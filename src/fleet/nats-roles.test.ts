/**
 * Users of a generated configuration of nats-server: each does the work of its roles, and none of another's.
 *
 * The server is a real one with that configuration.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { connect as connectRaw } from '@nats-io/transport-node'
import { type Fleet, connect } from './connect.ts'
import { createStreams } from './create.ts'
import { Arrivals } from './engine/conformance.test.support.ts'
import { SKIP, startServer } from './engine/nats/server.test.support.ts'
import { host } from './host/host.ts'
import { Large } from './jobs/large.ts'
import { lettersName, queueName, recordsName } from './jobs/record.ts'
import { type FleetUser, serverConfig } from './server-config.ts'
import { zone } from '../zone/index.ts'

type Scores = typeof import('./scores.test.support.ts')
const MODULE = new URL('./scores.test.support.js', import.meta.url)

const USERS: FleetUser[] = [
  { name: 'host', password: 'h', hosts: ['scores', 'large'], takes: ['scores'], largeValues: true },
  {
    name: 'caller',
    password: 'c "$1$',
    calls: ['scores'],
    submits: ['scores'],
    stores: ['prices'],
    locks: ['report'],
    limits: ['api'],
  },
  { name: 'large', password: 'l', calls: ['large'], largeValues: true },
  { name: 'observer', password: 'o', observes: true },
  { name: 'nothing', password: 'n' },
  { name: 'operator', password: 'p', creates: true },
]

async function setting() {
  const config = (folder: string): string =>
    `jetstream { store_dir: ${JSON.stringify(folder)} }\n${serverConfig(USERS)}`
  const server = await startServer(-1, undefined, config)
  const open: (() => Promise<void>)[] = []
  const as = async (name: string): Promise<Fleet> => {
    const { password } = USERS.find((user) => user.name === name)!
    const fleet = await connect(server.url, { user: name, password, inbox: name })
    open.unshift(() => fleet.close())
    return fleet
  }
  await createStreams(await as('operator'), USERS)
  return {
    url: server.url,
    as,
    async [Symbol.asyncDispose]() {
      for (const close of open) await close()
      await server[Symbol.asyncDispose]()
    },
  }
}

const cpu = zone.create('roles', { workers: 2, graceMs: 100 })
after(() => cpu.close())
const hosting = { name: 'scores', module: MODULE, version: 'v1', zone: cpu }

test('nats: a host and a caller do the work of their roles', { skip: SKIP }, async () => {
  await using server = await setting()
  const [hosts, far, large] = [await server.as('host'), await server.as('caller'), await server.as('large')]
  await host(hosts, { ...hosting, jobsMax: 2 })
  await host(hosts, { ...hosting, name: 'large' })
  const scores = far.zone<Scores>('scores', { version: 'v1' })
  assert.equal(await scores.run('score', ['abc']), 3)
  assert.deepEqual(await scores.map(['a', 'bb'], 'score'), [1, 2])
  const rows: number[] = []
  for await (const row of scores.stream('rows', [200], { aheadMax: 8 })) rows.push(row)
  assert.equal(rows.length, 200)
  const bytes = new Uint8Array(2_000_000)
  assert.equal(((await large.zone<Scores>('large').run('echo', [bytes])) as Uint8Array).length, bytes.length)

  const jobs = far.jobs<Scores>('scores')
  const changes = await jobs.watch()
  assert.equal(await jobs.submit('one', 'score', ['four']), true)
  // It may not ask who hosts, and states nothing of it.
  await jobs.submit('much later', 'score', ['x'], { delayMs: 3_600_000 })
  await assert.rejects(jobs.result('much later', { timeoutMs: 1 }), /within 1 ms; it goes on/)
  assert.equal(await jobs.cancel('much later'), true)
  assert.equal(await jobs.result('one'), 4)
  assert.equal((await changes.next()).value?.key, 'one')
  await changes.return()
  assert.equal(await jobs.submit('bad', 'fail', ['LOW'], { retry: { attemptsMax: 1 } }), true)
  await assert.rejects(jobs.result('bad'), { code: 'JOB_DEAD' })
  assert.equal((await jobs.dead())[0]?.key, 'bad')
  assert.equal(await jobs.again('bad'), true)
  await assert.rejects(jobs.result('bad'), { code: 'JOB_DEAD' })
  assert.equal(await jobs.forget('bad'), true)
  await jobs.submit('later', 'score', ['x'], { delayMs: 3_600_000 })
  assert.equal(await jobs.cancel('later'), true)
  await jobs.submit('each', 'score', ['x'], { schedule: { everyMs: 3_600_000 } })
  assert.equal(await jobs.cancel('each'), true)
  assert.equal(await jobs.count(), 0)
  await jobs.submit('waits', 'score', ['x'], { delayMs: 3_600_000 })
  // It may not ask which items were lent, and reads all of them.
  assert.deepEqual((await jobs.list({ state: 'running' })).jobs, [])
  assert.equal((await jobs.list({ state: 'waiting' })).jobs[0]?.key, 'waits')
  assert.equal((await jobs.counts()).waiting, 1)
  assert.deepEqual([await jobs.pause(), await jobs.isPaused(), await jobs.resume()], [true, true, true])
  const limited = ['limited 1', 'limited 2', 'limited 3']
  for (const key of limited) await jobs.submit(key, 'score', ['x'], { limit: { concurrency: 1 } })
  await jobs.submit('joins', 'joined', [], { after: limited })
  assert.equal(((await jobs.result('joins')) as unknown[]).length, 3)
  const observer = await server.as('observer')
  let overview = await observer.overview()
  while (overview.hosts.length < 2 || overview.queues[0]?.taken !== 1) overview = await observer.overview()
  assert.deepEqual(
    overview.hosts.map(({ zone: name }) => name),
    ['large', 'scores'],
  )
  await assert.rejects(observer.zone<Scores>('scores').run('score', ['x']), { code: 'FLEET_DENIED' })
  await assert.rejects(observer.jobs('scores').cancel('waits'), { code: 'FLEET_DENIED' })
  await assert.rejects(far.overview(), { code: 'FLEET_DENIED' })
  await jobs.cancel('waits')

  await (await far.limits('api').join()).leave()
  const prices = far.store<number>('prices')
  const changed = await prices.watch()
  await prices.set('tea', 1)
  assert.equal((await changed.next()).value?.value, 1)
  await changed.return()
  assert.equal((await prices.update('tea', (cents = 0) => cents + 1)).value, 2)
  const copy = await prices.copy()
  assert.equal(copy.get('tea'), 2)
  copy.close()
  await prices.delete('tea')
  assert.equal(await far.lock('report').guard(() => far.lock('report').tryGuard(() => 1)), undefined)
})

test('nats: large arguments and results are for whoever submits and takes', { skip: SKIP }, async () => {
  await using server = await setting()
  const [hosts, far] = [await server.as('host'), await server.as('caller')]
  await host(hosts, { ...hosting, jobsMax: 2 })
  const jobs = far.jobs<Scores>('scores')
  const long = 'x'.repeat(1_200_000)
  await jobs.submit('long', 'echo', [long])
  assert.equal(await jobs.result('long'), long)
  await jobs.submit('sized', 'sized', [long.length])
  assert.equal((await jobs.result<'sized'>('sized')).length, long.length)
  // What a crash has left is looked for by a host.
  const { engine } = hosts
  const [queue, records, letters] = [
    await engine.queue(queueName('scores')),
    await engine.keyValue(recordsName('scores'), { ttlMs: 0 }),
    await engine.keyValue(lettersName('scores'), { ttlMs: 0 }),
  ]
  const certainly = <Value>(work: () => Promise<Value>): Promise<Value> => work()
  const swept = new Large({ engine, zone: 'scores', valueBytesMax: 10 * long.length, certainly })
  assert.equal(await swept.sweep({ queue, records, letters }), 0)
  for (const key of ['long', 'sized']) assert.equal(await jobs.forget(key), true)
})

test('nats: no user does what belongs to another one', { skip: SKIP }, async () => {
  await using server = await setting()
  const [hosts, far, nothing] = [
    await server.as('host'),
    await server.as('caller'),
    await server.as('nothing'),
  ]
  await host(hosts, { ...hosting, jobsMax: 2 })
  const denied = { code: 'FLEET_DENIED' }
  await assert.rejects(host(far, hosting), denied)
  await assert.rejects(host(hosts, { ...hosting, name: 'other' }), denied)
  await assert.rejects(far.zone<Scores>('other').run('score', ['x']), denied)
  await assert.rejects(far.jobs<Scores>('other').submit('k', 'score', ['x']), denied)
  await assert.rejects(far.jobs('other').get('k'), denied)
  await assert.rejects(far.store('other').get('k'), denied)
  await assert.rejects(far.limits('other').join(), denied)
  await assert.rejects(hosts.store('prices').set('k', 1), denied)
  await assert.rejects(
    hosts.lock('report').guard(() => 1),
    denied,
  )
  for (const call of [nothing.zone<Scores>('scores').run('score', ['x']), nothing.store('prices').get('k')])
    await assert.rejects(call, denied)
  // A lock of another name is in the same store, whose subjects are granted one by one.
  await assert.rejects(
    far.lock('other').guard(() => 1),
    denied,
  )
})

test('nats: the server refuses what no part of Corespun would ask for', { skip: SKIP }, async () => {
  await using server = await setting()
  const far = await server.as('caller')
  // So that the streams exist.
  await far.jobs<Scores>('scores').submit('k', 'score', ['x'])
  const { password } = USERS[1]
  const raw = await connectRaw({
    servers: server.url,
    user: 'caller',
    pass: password!,
    inboxPrefix: '_INBOX.caller',
  })
  const errors = new Arrivals<string>()
  void (async () => {
    for await (const status of raw.status()) if (status.type === 'error') errors.push(String(status.error))
  })()
  const queue = 'corespun_queue_jobs_scores'
  for (const subject of [
    '_INBOX.host.x',
    `$JS.API.CONSUMER.CREATE.${queue}.spy`,
    `$JS.API.CONSUMER.MSG.NEXT.${queue}.takers_1`,
    `$JS.API.STREAM.DELETE.${queue}`,
    '$JS.API.STREAM.MSG.GET.KV_corespun_store_other',
    '$KV.corespun_locks.other',
    'corespun.card.scores',
    'corespun.limits.other',
  ]) {
    raw.publish(subject, 'x')
    assert.match(await errors.next(), /Permissions Violation for Publish/, subject)
  }
  for (const subject of ['_INBOX.>', '_INBOX.host.>', 'corespun.host.scores.*', 'corespun.>', '$KV.>']) {
    raw.subscribe(subject, { callback: () => {} })
    assert.match(await errors.next(), /Permissions Violation for Subscription/, subject)
  }
  await raw.close()
})

test('users that are not whole are refused by name', () => {
  const rows: [unknown, RegExp][] = [
    [[], /users must be an array with at least one user/],
    ['x', /users must be an array/],
    [[{ name: 'a b', password: 'p' }], /users\[0\]\.name: the name must be a name of 1 to 64/],
    [[{ password: 'p' }], /users\[0\]\.name: the name must be a name/],
    [[{ name: 'a' }], /users\[0\] must be a user with nkey or password; received "neither"/],
    [[{ name: 'a', nkey: 'U', password: 'p' }], /nkey or password; received "both"/],
    [[{ name: 'a', nkey: 'SUAB' }], /users\[0\]\.nkey must be the public key of a user/],
    [[{ name: 'a', password: 'p', hosts: 'x' }], /users\[0\]\.hosts must be an array of names/],
    [[{ name: 'a', password: 'p', calls: ['>'] }], /users\[0\]\.calls: the name must be a name of 1 to 64/],
    [[{ name: 'a', password: 'p', stores: [{ ttlMs: 5 }] }], /ttlMs must be/],
    [[{ name: 'a', password: 'p', stores: [{ ttlMs: 5000 }] }], /users\[0\]\.stores: the name must be/],
    [[{ name: 'a', password: 'p', takes: ['x'] }], /users\[0\]\.takes must be zones that hosts has too/],
    [[{ name: 'a', password: 'p', host: ['x'] }], /unknown option "users\[0\]\.host"; did you mean "hosts"/],
    [[...USERS, USERS[0]], /users\[6\]\.name must be another one for each user/],
  ]
  for (const [users, sentence] of rows)
    assert.throws(() => serverConfig(users as FleetUser[]), { code: 'FLEET_ARGUMENT', message: sentence })
})
