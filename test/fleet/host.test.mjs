/**
 * `corespun host` as processes, with a server of NATS: calls, a rollout, a drain, a SIGKILL, a server that
 * restarts.
 *
 * Needs CORESPUN_NATS_SERVER, which `npm test -- fleet` sets.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { nkeys } from '@nats-io/transport-node'
import { connect, versionOf } from 'corespun/fleet'
import { SKIP, startServer } from '../../dist/fleet/engine/nats/server.test.support.js'
import { makeCertificate } from '../../dist/http/tls/make.js'

const CORESPUN = fileURLToPath(new URL('../../lib/cli/main.js', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'host-'))
after(() => rmSync(folder, { recursive: true }))

const path = join(folder, 'score.ts')
const SOURCE = `
export const score = (text: string): number => text.length
export const pid = (): number => process.pid
export const forever = (): Promise<never> => new Promise(() => setInterval(() => {}, 1000))
export const slow = async (file: string): Promise<string> => {
  const { existsSync } = await import('node:fs')
  while (!existsSync(file)) await new Promise((resolve) => setTimeout(resolve, 5))
  return 'done'
}
`
writeFileSync(path, SOURCE)

/** A host as a process; resolves when it can be called. */
async function startHost(url, module = path, ...more) {
  const args = [CORESPUN, 'host', module, '--name', 'score', '--nats', url, '--workers', '3', ...more]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'close').then(([code]) => code)
  const [line] = await Promise.race([
    once(createInterface({ input: child.stdout }), 'line'),
    ended.then((code) => assert.fail(`the host ended with ${code}`)),
  ])
  assert.match(line, /^hosting score [\da-f]{16} with 3 workers on (nats|tls):/)
  return { child, ended }
}

const skip = SKIP

test('calls run in another process, and a SIGTERM lets them finish', { skip }, async (t) => {
  const server = await startServer()
  t.after(() => server[Symbol.asyncDispose]())
  const { child, ended } = await startHost(server.url)
  const far = await connect(server.url)
  t.after(() => far.close())
  const score = far.zone('score', { module: path })
  assert.equal(await score.run('score', ['four']), 4)
  assert.equal(await score.run('pid', []), child.pid)
  const flag = join(folder, 'flag')
  const slow = score.run('slow', [flag])
  // It runs when a later call has returned.
  await score.run('score', ['x']).catch(() => {})
  child.kill('SIGTERM')
  writeFileSync(flag, '')
  assert.equal(await slow, 'done')
  assert.equal(await ended, 0)
  await assert.rejects(score.run('score', ['x']), { code: 'ZONE_NOWHERE' })
})

test(
  'a host that is killed under a call is HOST_LOST, and the next call goes to another one',
  { skip },
  async (t) => {
    const server = await startServer()
    t.after(() => server[Symbol.asyncDispose]())
    const hosts = [await startHost(server.url), await startHost(server.url)]
    const far = await connect(server.url)
    t.after(() => far.close())
    const score = far.zone('score')
    const pid = await score.run('pid', [])
    const waiting = Array.from({ length: 4 }, () => score.run('forever', []).catch((error) => error))
    const victim = hosts.find(({ child }) => child.pid === pid)
    // The others go to whichever is less busy: both run some by now.
    victim.child.kill('SIGKILL')
    await victim.ended
    const lost = await Promise.race(waiting)
    assert.equal(lost.code, 'HOST_LOST', String(lost))
    const [other] = hosts.filter((host) => host !== victim)
    assert.equal(await score.run('pid', [], { timeoutMs: 60_000 }), other.child.pid)
    other.child.kill('SIGKILL')
    assert.deepEqual(new Set((await Promise.all(waiting)).map(({ code }) => code)), new Set(['HOST_LOST']))
    await other.ended
  },
)

test('old and new versions run side by side, and an unknown one fails at once', { skip }, async (t) => {
  const server = await startServer()
  t.after(() => server[Symbol.asyncDispose]())
  const next = join(folder, 'next.ts')
  writeFileSync(next, SOURCE.replace('text.length', '-text.length'))
  const hosts = [await startHost(server.url), await startHost(server.url, next)]
  const far = await connect(server.url)
  t.after(() => far.close())
  const [before, behind] = [path, next].map((module) => far.zone('score', { module }))
  assert.deepEqual([await before.run('score', ['ab']), await behind.run('score', ['ab'])], [2, -2])
  const never = far.zone('score', { version: 'never' })
  await assert.rejects(never.run('score', ['ab']), ({ code, facts }) => {
    assert.equal(code, 'ZONE_NOWHERE')
    assert.deepEqual([...facts.versions].sort(), [versionOf(path), versionOf(next)].sort())
    return true
  })
  for (const { child, ended } of hosts) {
    child.kill('SIGTERM')
    assert.equal(await ended, 0)
  }
})

test('a host and a caller go on when their server comes back', { skip }, async (t) => {
  const first = await startServer()
  const port = Number(new URL(first.url).port)
  const { child, ended } = await startHost(first.url)
  const far = await connect(first.url)
  t.after(() => far.close())
  const score = far.zone('score')
  assert.equal(await score.run('score', ['ab']), 2)
  await first.kill()
  const second = await startServer(port, first.folder)
  t.after(() => second[Symbol.asyncDispose]())
  assert.equal(second.url, first.url)
  // Either side may be connected first.
  let value
  while (value !== 3) {
    value = await score.run('score', ['abc'], { timeoutMs: 1000 }).catch(() => new Promise(setImmediate))
  }
  child.kill('SIGTERM')
  assert.equal(await ended, 0)
})

test('a host with a certificate and an nkey is called by such a caller', { skip }, async (t) => {
  const file = (name, text) => {
    writeFileSync(join(folder, name), text)
    return join(folder, name)
  }
  const authority = { name: 'authority', ...makeCertificate({ name: 'authority', isAuthority: true }) }
  const certified = (name, hosts) => makeCertificate({ name, hosts, issuer: authority })
  const [own, client] = [certified('server', ['127.0.0.1']), certified('client', ['client'])]
  const ca = file('ca.pem', authority.cert)
  const files = [file('server.pem', own.cert), file('server.key', own.key)]
  const user = nkeys.createUser()
  const config = `
    tls { cert_file: "${files[0]}", key_file: "${files[1]}", ca_file: "${ca}", verify: true }
    authorization { users: [{ nkey: ${user.getPublicKey()} }] }`
  const server = await startServer(-1, undefined, () => config)
  t.after(() => server[Symbol.asyncDispose]())
  const url = server.url.replace('nats:', 'tls:')
  const [cert, key] = [file('client.pem', client.cert), file('client.key', client.key)]
  const nkey = file('client.nkey', Buffer.from(user.getSeed()).toString())
  const words = ['--ca', ca, '--cert', cert, '--key', key, '--nkey', nkey]
  const { child, ended } = await startHost(url, path, ...words)
  const far = await connect(url, { tls: { ca, cert, key }, nkey })
  t.after(() => far.close())
  assert.equal(await far.zone('score').run('score', ['four']), 4)
  child.kill('SIGTERM')
  assert.equal(await ended, 0)
})

const later = [
  [[path, '--nats', 'nats://x', '--ca', join(folder, 'no.pem')], /cannot use tls\.ca \(.*no\.pem\): no such/],
  [[join(folder, 'missing.ts'), '--nats', 'nats://x'], /missing\.ts/],
]

test('the command names what is wrong', async () => {
  const run = async (...words) => {
    const env = { ...process.env, CORESPUN_NATS: '' }
    delete env.CORESPUN_NATS
    const child = spawn(process.execPath, [CORESPUN, 'host', ...words], {
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const chunks = []
    child.stderr.on('data', (chunk) => chunks.push(chunk))
    const [code] = await once(child, 'close')
    return [code, Buffer.concat(chunks).toString()]
  }
  for (const [words, expected] of [
    [[], /name the module to host/],
    [[path], /--nats nats:/],
    [[path, 'other', '--nats', 'nats://x'], /one module; unexpected "other"/],
    [[path, '--nats', 'http://x'], /not "http:\/\/x"/],
    [[path, '--nats', 'nats://x', '--name', 'a b'], /not "a b"/],
    [[path, '--nats', 'nats://x', '--replicas', '6'], /--replicas .*6/],
    [[path, '--nats', 'nats://x', '--nkey', ''], /--nkey needs a value/],
    [[path, '--nats', 'nats://x', '--creds', 'a', '--nkey', 'b'], /--creds and --nkey exclude each other/],
    [[path, '--nats', 'nats://x', '--cert', 'a'], /--cert needs --key/],
    [[path, '--nats', 'nats://x', '--key', 'a'], /--key needs --cert/],
    // Without a server nothing else of the command runs, and coverage would count it.
    ...(skip === false ? later : []),
  ]) {
    const [code, text] = await run(...words)
    assert.equal(code, 2, text)
    assert.match(text, expected)
  }
})

test('a host waits for a server that is not there yet, and a signal ends the wait', { skip }, async (t) => {
  const first = await startServer()
  await first.kill()
  const waiting = () => {
    const args = [CORESPUN, 'host', path, '--name', 'score', '--nats', first.url, '--workers', '1']
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] })
    const ended = once(child, 'close').then(([code]) => code)
    t.after(() => child.kill('SIGKILL'))
    return { child, ended, line: once(createInterface({ input: child.stderr }), 'line') }
  }
  const [stopped, patient] = [waiting(), waiting()]
  for (const { line } of [stopped, patient]) {
    assert.match((await line)[0], /^corespun: cannot connect to nats:.* refused; .*; waiting for it$/)
  }
  stopped.child.kill('SIGTERM')
  assert.equal(await stopped.ended, 0)
  const hosting = once(createInterface({ input: patient.child.stdout }), 'line')
  const second = await startServer(Number(new URL(first.url).port), first.folder)
  t.after(() => second[Symbol.asyncDispose]())
  assert.match((await hosting)[0], /^hosting score /)
  patient.child.kill('SIGTERM')
  assert.equal(await patient.ended, 0)
})

test('a host does not wait for a server that refuses its credentials', { skip }, async (t) => {
  const server = await startServer(-1, undefined, () => 'authorization { user: a, password: b }')
  t.after(() => server[Symbol.asyncDispose]())
  const url = server.url.replace('//', '//a:wrong@')
  const child = spawn(process.execPath, [CORESPUN, 'host', path, '--nats', url], { stdio: 'ignore' })
  assert.deepEqual(await once(child, 'close'), [2, null])
})
