/**
 * The engine on NATS does what every engine must do, at a server of its own.
 *
 * Skipped without a server: see server.test.support.ts.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { FleetError } from '../../errors.ts'
import { Arrivals } from '../conformance.test.support.ts'
import type { Engine, Entry, Lease } from '../engine.ts'
import { keepsConformance } from '../keeps.test.support.ts'
import { messagesConformance } from '../messages.test.support.ts'
import { keyOf, token } from './confirmed.ts'
import { natsEngine } from './nats.ts'
import { SKIP, startServer } from './server.test.support.ts'

const settingsFor = (url: string) => ({
  servers: [url],
  name: 'test',
  connectMs: 5000,
  inbox: undefined,
  replicas: 1,
  tls: undefined,
  credentials: undefined,
  nkey: undefined,
  user: undefined,
  password: undefined,
  token: undefined,
})

if (SKIP === false) {
  const server = startServer()
  after(async () => (await server)[Symbol.asyncDispose]())
  for (const conformance of [messagesConformance, keepsConformance])
    conformance('nats', async () => ({
      connect: async () => natsEngine(settingsFor((await server).url)),
      close: async () => {},
    }))
  // Of a user that may make no consumer of values and objects, as those with roles: it reads without one.
  const denied = ['*', '*.*', '*.*.$KV.>', '*.*.$O.>'].map((rest) => `"$JS.API.CONSUMER.CREATE.${rest}"`)
  const publish = `{ allow: ">", deny: [${denied.join()}, "$JS.API.CONSUMER.DURABLE.CREATE.*.x"] }`
  const user = `{ user: "role", password: "p", permissions: { publish: ${publish} } }`
  const config = (folder: string): string =>
    `jetstream { store_dir: ${JSON.stringify(folder)} }\nauthorization { users: [${user}] }`
  const narrow = startServer(-1, undefined, config)
  after(async () => (await narrow)[Symbol.asyncDispose]())
  keepsConformance('nats without consumers', async () => ({
    connect: async () =>
      natsEngine({ ...settingsFor((await narrow).url), user: 'role', password: 'p', replicas: undefined }),
    close: async () => {},
  }))
}

test(
  'nats: replicas that differ from what exists are one refusal, for queues, values and objects',
  {
    skip: SKIP,
  },
  async () => {
    await using server = await startServer()
    const [one, three, any] = await Promise.all(
      [1, 3, undefined].map((replicas) => natsEngine({ ...settingsFor(server.url), replicas })),
    )
    const opening = (engine: Engine): (() => Promise<unknown>)[] => [
      () => engine.queue('q'),
      () => engine.keyValue('v', { ttlMs: 0 }),
      () => engine.objects('o', { ttlMs: 60_000 }),
    ]
    for (const open of opening(one)) await open()
    for (const open of opening(any)) await open()
    const facts = { option: 'replicas', asked: 3, found: 1 }
    for (const [index, open] of opening(three).entries())
      await assert.rejects(open(), (error: FleetError) => {
        const of = ['corespun_queue_q', 'KV_corespun_v', 'OBJ_corespun_o'][index]
        assert.deepEqual([error.code, error.facts], ['FLEET_MISMATCH', { of, ...facts }])
        return true
      })
    await Promise.all([one, three, any].map((engine) => engine.close()))
  },
)

test('keys are parts of subjects, and parts that are not keys are read as they are', () => {
  for (const key of ['', 'a.b > *', 'ключ', '=', '%41', 'plain-1_']) assert.equal(keyOf(token(key)), key)
  for (const part of ['=ff', '=', '=zz', 'x=c3']) assert.equal(keyOf(part), part === '=' ? '' : part)
})

test('nats: an item under a subject that is not a key is lent', { skip: SKIP }, async () => {
  await using server = await startServer()
  const engine = await natsEngine(settingsFor(server.url))
  const raw = await connect({ servers: server.url })
  const queue = await engine.queue('q')
  const leases = new Arrivals<Lease>()
  const end = await queue.take(leases.push, { leasesMax: 1, leaseMs: 60_000 })
  // Neither does a message that no server has sent harm it.
  const inboxes = new Arrivals<string>()
  raw.subscribe('$JS.API.CONSUMER.MSG.NEXT.>', { callback: (_, { reply }) => inboxes.push(reply!) })
  await raw.flush()
  raw.publish('corespun.queue.q.1.=ff', 'x')
  const lease = await leases.next()
  assert.equal(lease.id, '=ff')
  await lease.done()
  for (let count = 0; count < 4; count++) raw.publish(await inboxes.next(), 'forged', { reply: 'a.b.c' })
  await queue.add('next', new Uint8Array([1]), 1)
  const next = await leases.next()
  assert.equal(next.id, 'next')
  await next.done()
  end()
  await raw.close()
  await engine.close()
})

test('nats: a server that falls silent is given up, and found again', { skip: SKIP }, async () => {
  await using server = await startServer()
  const engine = await natsEngine(settingsFor(server.url))
  const links = new Arrivals<boolean>()
  engine.messages!.watchLink(links.push)
  // It reads nothing and closes nothing, as one behind a switch that has failed.
  server.child.kill('SIGSTOP')
  try {
    const late = setTimeout(120_000, undefined, { ref: false }).then(() => assert.fail('it is waited for'))
    assert.equal(await Promise.race([links.next(), late]), false)
  } finally {
    server.child.kill('SIGCONT')
  }
  assert.equal(await links.next(), true)
  await engine.close()
})

test('nats: an item of a rank that nobody takes is refused, and takes no id', { skip: SKIP }, async () => {
  await using server = await startServer()
  const engine = await natsEngine(settingsFor(server.url))
  const raw = await connect({ servers: server.url })
  const manager = await jetstreamManager(raw)
  const bytes = new Uint8Array([1])
  const stranger = (queue: string): Promise<unknown> => raw.request(`corespun.queue.${queue}.7.a`, bytes)
  const queue = await engine.queue('q')
  // Nobody stores it.
  await assert.rejects(stranger('q'), /no responders/)
  assert.equal(await queue.add('a', bytes, 1), true)
  assert.equal(await queue.add('a', bytes, 2), false)

  const retention = 'workqueue' as const
  await manager.streams.add({ name: 'corespun_queue_wide', subjects: ['corespun.queue.wide.*.*'], retention })
  const wide = await engine.queue('wide')
  assert.equal(await wide.add('b', bytes, 0), true)
  await stranger('wide')
  assert.deepEqual([await wide.count(), await wide.add('a', bytes, 1)], [2, false])
  await wide.prepare(10_000)
  assert.deepEqual([await wide.count(), await wide.add('a', bytes, 1)], [1, true])
  await assert.rejects(stranger('wide'), /no responders/)
  assert.deepEqual((await engine.queues()).map(({ name }) => name).sort(), ['q', 'wide'])
  await raw.close()
  await engine.close()
})

test('nats: of a value that was deleted nothing stays', { skip: SKIP }, async () => {
  await using server = await startServer()
  const engine = await natsEngine(settingsFor(server.url))
  const values = await engine.keyValue('v', { ttlMs: 0 })
  for (const key of ['a', 'b']) await values.delete(key, await values.put(key, new Uint8Array([1])))
  const raw = await connect({ servers: server.url })
  const manager = await jetstreamManager(raw)
  while ((await manager.streams.info('KV_corespun_v')).state.messages > 0) await setTimeout(20)
  const over = new Arrivals<Entry>()
  const end = await values.watch(over.push)
  end()
  assert.equal(over.count, 0)
  await raw.close()
  await engine.close()
})

test('nats: a server that is not there is an error that names it', { skip: SKIP }, async () => {
  await assert.rejects(natsEngine(settingsFor('nats://127.0.0.1:1')), (error) => {
    assert.ok(error instanceof FleetError)
    assert.equal(error.code, 'FLEET_CONNECT')
    assert.match(error.message, /127\.0\.0\.1:1/)
    assert.equal((error as FleetError<'FLEET_CONNECT'>).facts.isAway, true)
    return true
  })
})
