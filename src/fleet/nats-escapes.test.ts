/**
 * What users of a generated configuration cannot do by way of JetStream.
 *
 * JetStream permits names and not contents. At a real server each user tries each operation of the API on
 * each stream: what is permitted is one small table here, and the ways out of a role that a wider one would
 * open are tests of their own.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { jetstreamManager } from '@nats-io/jetstream'
import { type NatsConnection, connect as connectRaw } from '@nats-io/transport-node'
import { zone } from '../zone/index.ts'
import { type Fleet, connect } from './connect.ts'
import { createStreams } from './create.ts'
import { SKIP, startServer } from './engine/nats/server.test.support.ts'
import { host } from './host/host.ts'
import { type FleetUser, serverConfig } from './server-config.ts'
import { hostSubject, written } from './wire.ts'

const USERS: FleetUser[] = [
  { name: 'evil', password: 'e', stores: ['prices'], locks: ['report'] },
  { name: 'owner', password: 'o', stores: ['secret', { name: 'brief', ttlMs: 60_000 }] },
  { name: 'taker', password: 't', hosts: ['pay'], takes: ['pay'] },
  { name: 'submitter', password: 's', submits: ['pay'] },
  { name: 'caller', password: 'c', calls: ['pay'], largeValues: true, rooms: ['r'], limits: ['l'] },
  { name: 'operator', password: 'p', creates: true },
]
const PERMISSION = /Permissions Violation for Publish/
const QUEUE = 'corespun_queue_jobs_pay'
const [RECORDS, LETTERS] = ['KV_corespun_jobs_pay', 'KV_corespun_dead_pay']
const LIMITS = 'KV_corespun_limits_pay'
const [LARGE, PARTS] = ['KV_corespun_large_pay', 'KV_corespun_parts_pay']
const [PRICES, SECRET, BRIEF] = ['prices', 'secret', 'brief'].map((name) => `KV_corespun_store_${name}`)
const [LOCKS, OBJECTS] = ['KV_corespun_locks', 'OBJ_corespun_payloads']
const STREAMS = [QUEUE, RECORDS, LETTERS, LIMITS, LARGE, PARTS, PRICES, SECRET, BRIEF, LOCKS, OBJECTS]
/** Operations of the API on a stream; `*`: with the name of something behind it. */
const OPERATIONS = [
  ...['CREATE', 'UPDATE', 'DELETE', 'INFO', 'PURGE', 'MSG.GET', 'MSG.DELETE', 'SNAPSHOT', 'RESTORE'],
  ...['LEADER.STEPDOWN', 'PEER.REMOVE'],
].map((operation) => `STREAM.${operation}`)
const OF_CONSUMERS = [
  ...['CREATE', 'DURABLE.CREATE', 'INFO', 'DELETE', 'MSG.NEXT', 'PAUSE', 'RESET', 'LEADER.STEPDOWN', 'UNPIN'],
].map((operation) => `CONSUMER.${operation}`)
/** What each may do with which streams. */
const READS = ['STREAM.INFO', 'STREAM.MSG.GET']
const MAY: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  evil: { [PRICES]: READS, [LOCKS]: READS },
  owner: { [SECRET]: READS, [BRIEF]: READS },
  taker: {
    [QUEUE]: [...READS, 'STREAM.PURGE', 'CONSUMER.INFO', 'CONSUMER.MSG.NEXT'],
    [RECORDS]: READS,
    [LETTERS]: READS,
    [LIMITS]: READS,
    [LARGE]: READS,
    [PARTS]: READS,
  },
  submitter: {
    [QUEUE]: [...READS, 'STREAM.PURGE'],
    [RECORDS]: READS,
    [LETTERS]: READS,
    [LARGE]: READS,
    [PARTS]: READS,
  },
  caller: { [OBJECTS]: [...READS, 'STREAM.PURGE'] },
}

async function setting() {
  const config = (folder: string): string =>
    `jetstream { store_dir: ${JSON.stringify(folder)} }\n${serverConfig(USERS)}`
  const server = await startServer(-1, undefined, config)
  const open: (() => Promise<void>)[] = []
  const passwordOf = (name: string): string => USERS.find((user) => user.name === name)!.password!
  const as = async (name: string): Promise<Fleet> => {
    const fleet = await connect(server.url, { user: name, password: passwordOf(name), inbox: name })
    open.unshift(() => fleet.close())
    return fleet
  }
  const raw = async (name: string): Promise<NatsConnection> => {
    const inboxPrefix = `_INBOX.${name}`
    const own = await connectRaw({ servers: server.url, user: name, pass: passwordOf(name), inboxPrefix })
    open.unshift(() => own.close())
    return own
  }
  return {
    as,
    raw,
    async [Symbol.asyncDispose]() {
      for (const close of open) await close()
      await server[Symbol.asyncDispose]()
    },
  }
}

const cpu = zone.create('escapes', { workers: 1, graceMs: 100 })
after(() => cpu.close())

/** Which of the subjects the server refuses. */
async function refusedOf(raw: NatsConnection, subjects: readonly string[]): Promise<Set<string>> {
  const refused = new Set<string>()
  const statuses = raw.status()
  const last = 'the.last.one'
  const read = (async () => {
    for await (const status of statuses) {
      if (status.type !== 'error') continue
      const { subject = '' } = status.error as { readonly subject?: string }
      if (subject === last) return
      refused.add(subject)
    }
  })()
  for (const subject of subjects) raw.publish(subject, '{}')
  raw.publish(last)
  await read
  return refused
}

test('nats: no user does more with a stream than its role has', { skip: SKIP }, async () => {
  await using server = await setting()
  assert.equal(await createStreams(await server.as('operator'), USERS), STREAMS.length)
  // Again, it changes nothing.
  assert.equal(await createStreams(await server.as('operator'), USERS), STREAMS.length)
  for (const [user, may] of Object.entries(MAY)) {
    const raw = await server.raw(user)
    const all = STREAMS.flatMap((stream) => [
      ...OPERATIONS.map((operation) => [stream, operation, `$JS.API.${operation}.${stream}`] as const),
      ...OF_CONSUMERS.flatMap((operation) =>
        ['takers_1', 'mine', 'mine.corespun.queue.jobs_pay.1.*'].map((name) => {
          return [stream, operation, `$JS.API.${operation}.${stream}.${name}`] as const
        }),
      ),
      [stream, 'DIRECT.GET', `$JS.API.DIRECT.GET.${stream}`] as const,
      [stream, 'DIRECT.GET', `$JS.API.DIRECT.GET.${stream}.x`] as const,
    ])
    const isPermitted = (stream: string, operation: string, subject: string): boolean =>
      may[stream]?.includes(operation) === true && !subject.includes('.mine')
    const forbidden = all.filter((one) => !isPermitted(...one)).map(([, , subject]) => subject)
    assert.deepEqual(await refusedOf(raw, forbidden), new Set(forbidden), user)
    // Not those: they are the messages of the work that it has.
    const reads = all
      .filter((one) => isPermitted(...one) && one[1] === 'STREAM.INFO')
      .map(([, , subject]) => subject)
    assert.deepEqual(await refusedOf(raw, reads), new Set(), user)
  }
})

test('nats: no stream of a user reads the stream of another one', { skip: SKIP }, async () => {
  await using server = await setting()
  await createStreams(await server.as('operator'), USERS.slice(1))
  await (await server.as('owner')).store('secret').set('k', 'SECRET')
  const manager = await jetstreamManager(await server.raw('evil'), { checkAPI: false, timeout: 2000 })
  const subjects = ['$KV.corespun_store_prices.>']
  await assert.rejects(
    manager.streams.add({ name: PRICES, subjects, sources: [{ name: SECRET }] }),
    PERMISSION,
  )
})

test(
  'nats: no user makes the stream that all locks are in, with subjects of others',
  { skip: SKIP },
  async () => {
    await using server = await setting()
    const manager = await jetstreamManager(await server.raw('evil'), { checkAPI: false, timeout: 2000 })
    const subjects = ['$KV.corespun_locks.>', 'corespun.host.>']
    await assert.rejects(manager.streams.add({ name: LOCKS, subjects }), PERMISSION)
  },
)

test('nats: a host runs nothing that a stream sends to it', { skip: SKIP }, async () => {
  await using server = await setting()
  await createStreams(await server.as('operator'), USERS)
  const far = await server.as('taker')
  const module = new URL(
    'data:text/javascript,let paid = 0; export const pay = () => ++paid; export const count = () => paid',
  )
  const hosting = await host(far, { name: 'pay', module, version: 'v1', zone: cpu, inFlightMax: 8 })
  const subject = hostSubject('pay', hosting.id)
  const call = written('run', 'call', '', 'pay', 'evil', 0, 0, 0, new Uint8Array(written('pay')))
  // By an operator, who may: the host refuses it all the same.
  const raw = await server.raw('operator')
  const manager = await jetstreamManager(raw, { timeout: 5000 })
  const evil = await server.raw('evil')
  evil.publish('$KV.corespun_store_prices.k', call)
  await evil.flush()
  let seen = 0
  const { engine } = await server.as('taker')
  await engine.messages!.listen(hostSubject('pay', 'witness'), () => void seen++)
  for (const deliver_subject of [subject, hostSubject('pay', 'witness')])
    for (const ack_policy of ['none', 'explicit'] as const)
      await manager.consumers.add(PRICES, {
        name: `${ack_policy}${deliver_subject.length}`,
        deliver_subject,
        ack_policy,
      })
  raw.publish(`$JS.API.DIRECT.GET.${PRICES}`, JSON.stringify({ seq: 1 }), { reply: subject })
  await raw.flush()
  const caller = await server.as('caller')
  const scores = caller.zone<{ pay(): number; count(): number }>('pay')
  assert.equal(await scores.run('count', []), 0)
  assert.equal(seen, 0)
  assert.equal(await scores.run('pay', []), 1)
  await hosting.close()
})

test('nats: a stream that is missing names the command of operators', { skip: SKIP }, async () => {
  await using server = await setting()
  await assert.rejects((await server.as('evil')).store('prices').set('k', 1), {
    code: 'FLEET_DENIED',
    message: /corespun fleet create/,
  })
})
