/**
 * `corespun fleet` as a process.
 *
 * Needs CORESPUN_NATS_SERVER, which `npm test -- fleet` sets, where it connects.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { connect, host, serverConfig } from 'corespun/fleet'
import { SKIP, startServer } from '../../dist/fleet/engine/nats/server.test.support.js'
import { corespun, start, until } from '../cli/corespun.mjs'

const OPERATOR = { name: 'op', password: 's/x', creates: true }
const folder = mkdtempSync(join(tmpdir(), 'fleet-'))
after(() => rmSync(folder, { recursive: true }))

function file(name, text) {
  writeFileSync(join(folder, name), text)
  return join(folder, name)
}

test('fleet config prints users for nats-server', async () => {
  const users = [{ name: 'caller', password: 'p', calls: ['score'] }]
  const { code, out, err } = await corespun(['fleet', 'config', file('users.json', JSON.stringify(users))])
  assert.deepEqual([code, err], [0, ''])
  assert.equal(out, serverConfig(users))
})

test('fleet create makes the streams of users', { skip: SKIP }, async (t) => {
  const users = [
    { name: 'caller', password: 'p', stores: ['prices', { name: 'brief', ttlMs: 60_000 }], submits: ['z'] },
  ]
  const list = file('streams.json', JSON.stringify(users))
  const config = (store) =>
    `jetstream { store_dir: ${JSON.stringify(store)} }\n${serverConfig([...users, OPERATOR])}`
  const server = await startServer(-1, undefined, config)
  t.after(() => server[Symbol.asyncDispose]())
  const { host: address } = new URL(server.url)
  const { code, out, err } = await corespun([
    'fleet',
    'create',
    list,
    '--nats',
    `nats://op:s%2Fx@${address}`,
    '--inbox',
    'op',
  ])
  assert.deepEqual([code, err, out], [0, '', '8 streams for 1 users\n'])
  const far = await connect(server.url, { user: 'caller', password: 'p', inbox: 'caller' })
  t.after(() => far.close())
  assert.equal(await far.store('prices').set('tea', 1), 1)
  assert.equal(await far.store('brief', { ttlMs: 60_000 }).set('tea', 1), 1)
  assert.equal(await far.jobs('z').submit('k', 'f', []), true)
})

test('fleet shows hosts: once, as JSON, and until a signal', { skip: SKIP }, async (t) => {
  const server = await startServer()
  t.after(() => server[Symbol.asyncDispose]())
  const far = await connect(server.url)
  t.after(() => far.close())
  const module = new URL('data:text/javascript,export const one = () => 1')
  await host(far, { name: 'ones', module, version: 'v1', jobsMax: 1 })
  const env = { CORESPUN_NATS: server.url }
  // A host on a busy machine may reply late.
  let shown
  do shown = await corespun(['fleet'], '', { env })
  while (shown.code === 0 && !shown.out.includes('ones'))
  assert.deepEqual([shown.code, shown.err], [0, ''])
  assert.match(shown.out, /^hosts: 1, calls: 0 of 64, jobs: 0 of 1\nZONE .*\nones +v1 /)
  const json = await corespun(['fleet', '--nats', server.url, '--json'])
  assert.equal(json.code, 0)
  assert.equal(JSON.parse(json.out).queues[0].zone, 'ones')
  for (const signal of ['SIGINT', 'SIGTERM']) {
    const watching = start(['fleet', '--watch', '--every', '20ms'], { env })
    await until(watching.child.stdout, () => watching.out.split('hosts: ').length > 3)
    watching.child.kill(signal)
    const { code, err } = await watching.ended
    assert.deepEqual([code, err], [0, ''])
  }
})

test('fleet names what is wrong', async () => {
  for (const [words, sentence] of [
    [['other'], /fleet takes config, create or no word, not "other"/],
    [['--every', 'x', '--nats', 'nats://x'], /--every takes a time/],
    [['--nats', 'http://x'], /--nats takes nats:/],
    [['config'], /name the file of users/],
    [['config', 'a', 'b'], /takes one file; unexpected "b"/],
    [['config', join(folder, 'none')], /none: cannot be read: no such file/],
    [['config', file('bad.json', 'x')], /bad\.json: cannot be read: SyntaxError/],
    [['config', file('whole.json', '[{}]')], /users\[0\]\.name: the name must be/],
  ]) {
    const { code, err } = await corespun(['fleet', ...words])
    assert.equal(code, 2, err)
    assert.match(err, sentence)
  }
})

test('fleet --help is its manual', async () => {
  for (const words of [
    ['fleet', '--help'],
    ['help', 'fleet'],
  ]) {
    const { code, out } = await corespun(words)
    assert.equal(code, 0)
    assert.match(out, /^corespun fleet: /)
  }
})
