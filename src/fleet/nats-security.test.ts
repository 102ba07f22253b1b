/**
 * Connections that prove who they are: TLS on both sides, nkeys, JWTs, and what servers refuse.
 *
 * Certificates, keys and JWTs are made here; servers are real ones, on loopback.
 */
import assert from 'node:assert/strict'
import { createPrivateKey } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { nkeys } from '@nats-io/transport-node'
// oxlint-disable-next-line no-restricted-imports -- no door has it: certificates of tests are made alike
import { makeCertificate } from '../http/tls/make.ts'
import { connect } from './connect.ts'
import { SKIP, startServer } from './engine/nats/server.test.support.ts'
import { FleetError } from './errors.ts'
import type { ConnectOptions } from './settings.ts'

const folder = mkdtempSync(join(tmpdir(), 'fleet-security-'))
after(() => rmSync(folder, { recursive: true }))

function file(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

const AUTHORITY = { name: 'authority', ...makeCertificate({ name: 'authority', isAuthority: true }) }
const certified = (name: string, hosts: readonly string[]) =>
  makeCertificate({ name, hosts, issuer: AUTHORITY })
const CLIENT = certified('client', ['client'])
const [ca, cert, key] = [AUTHORITY.cert, CLIENT.cert, CLIENT.key]

/** The configuration of a server with a certificate for these hosts. */
function tlsOf(hosts: readonly string[], more: string): string {
  const server = certified('server', hosts)
  const files = { cert_file: server.cert, key_file: server.key, ca_file: ca }
  const lines = Object.entries(files).map(([name, pem]) => `${name}: "${file(`${hosts[0]}.${name}`, pem)}"`)
  return `tls { ${lines.join(', ')}, ${more} }\n`
}

/** Connect, and have a round trip. */
async function reaches(url: string, options: ConnectOptions): Promise<void> {
  await using far = await connect(url, options)
  await assert.rejects(far.zone('nobody').run('x' as never, [] as never), { code: 'ZONE_NOWHERE' })
}

const refuses = (url: string, options: ConnectOptions, code: string, sentence: RegExp): Promise<void> =>
  assert.rejects(connect(url, options), (error) => {
    assert.ok(error instanceof FleetError, String(error))
    assert.equal(error.code, code, error.message)
    assert.match(error.message, sentence)
    // Waiting does not change it.
    if (code === 'FLEET_CONNECT') assert.equal(Object(error.facts).isAway, false)
    return true
  })

const tlsAddress = (url: string): string => url.replace('nats:', 'tls:')

test('nats: TLS with an authority of its own, and a certificate on both sides', { skip: SKIP }, async () => {
  await using server = await startServer(-1, undefined, () => tlsOf(['127.0.0.1'], 'verify: true'))
  const url = tlsAddress(server.url)
  const paths = { ca: file('ca.pem', ca), cert: file('c.pem', cert), key: pathToFileURL(file('c.key', key)) }
  await reaches(url, { tls: { ca, cert, key } })
  await reaches(url, { tls: paths })
  await reaches(url, { tls: { ca: [Buffer.from(ca), CLIENT.cert], cert: cert + ca, key } })
  await reaches(server.url, { tls: { ca, cert, key } }) // the server demands it, whatever the scheme
  const named = new RegExp(`cannot connect to ${url}: `)
  await refuses(url, {}, 'FLEET_CONNECT', named)
  await refuses(url, { tls: { cert, key } }, 'FLEET_CONNECT', /verify.*pass the authority .* as tls\.ca/)
  const uncertified = /TimeoutError.*verifies its clients needs tls\.cert and tls\.key/
  await refuses(url, { tls: { ca }, connectMs: 500 }, 'FLEET_CONNECT', uncertified)
  const strange = makeCertificate({ name: 'strange' })
  await refuses(url, { tls: { ca, ...strange }, connectMs: 500 }, 'FLEET_CONNECT', /check address, cred/)
})

test('nats: a certificate for another name, TLS before anything else, and none', { skip: SKIP }, async () => {
  await using other = await startServer(-1, undefined, () => tlsOf(['other.example'], ''))
  await refuses(
    tlsAddress(other.url),
    { tls: { ca } },
    'FLEET_CONNECT',
    /use an address that its certificate/,
  )
  const local = other.url.replace('127.0.0.1', 'localhost')
  for (const url of [local, `${other.url},${local}`])
    await refuses(tlsAddress(url), { tls: { ca } }, 'FLEET_CONNECT', /use an address that its certificate/)
  await using first = await startServer(-1, undefined, () => tlsOf(['127.0.0.1'], 'handshake_first: true'))
  await reaches(tlsAddress(first.url), { tls: { ca, handshakeFirst: true } })
  await using plain = await startServer(-1, undefined, () => '')
  await refuses(tlsAddress(plain.url), {}, 'FLEET_CONNECT', /server does not support 'tls'/)
})

test('nats: an nkey, a user, a token, and those that the server does not have', { skip: SKIP }, async () => {
  const user = nkeys.createUser()
  const seed = Buffer.from(user.getSeed()).toString()
  const users = `{ nkey: ${user.getPublicKey()} }, { user: u, password: "p w" }`
  await using server = await startServer(-1, undefined, () => `authorization { users: [ ${users} ] }`)
  const { url } = server
  for (const nkey of [seed, Buffer.from(seed), file('nkey', `# of the caller\n${seed}\n`)])
    await reaches(url, { nkey })
  await reaches(url, { user: 'u', password: 'p w' })
  const named = new RegExp(`refuses connecting to ${url}: .*Authorization Violation; check credentials, nkey`)
  const others = [{}, { user: 'u', password: 'x' }, { token: 't' }]
  const nkey = Buffer.from(nkeys.createUser().getSeed()).toString()
  for (const options of [...others, { nkey }]) await refuses(url, options, 'FLEET_DENIED', named)
  await using other = await startServer(-1, undefined, () => 'authorization { token: "t" }')
  await reaches(other.url, { token: 't' })
})

/** A JWT as NATS has them, signed by `by`. */
function jwt(by: nkeys.KeyPair, sub: string, name: string, nats: object): string {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const claims = { jti: name, iat: Math.floor(Date.now() / 1000), iss: by.getPublicKey(), name, sub, nats }
  const signed = `${part({ typ: 'JWT', alg: 'ed25519-nkey' })}.${part(claims)}`
  return `${signed}.${Buffer.from(by.sign(Buffer.from(signed))).toString('base64url')}`
}

test('nats: the JWT of an account, in a .creds file', { skip: SKIP }, async () => {
  const [operator, account, user] = [nkeys.createOperator(), nkeys.createAccount(), nkeys.createUser()]
  const [accountId, userId] = [account.getPublicKey(), user.getPublicKey()]
  const unlimited = { subs: -1, data: -1, payload: -1 }
  const limits = { ...unlimited, conn: -1, leaf: -1, imports: -1, exports: -1, wildcards: true }
  const operatorJwt = jwt(operator, operator.getPublicKey(), 'O', { type: 'operator', version: 2 })
  const accountJwt = jwt(operator, accountId, 'A', { type: 'account', version: 2, limits })
  const preload = `resolver: MEMORY, resolver_preload: { ${accountId}: ${accountJwt} }`
  await using server = await startServer(-1, undefined, () => `operator: ${operatorJwt}\n${preload}`)
  const seed = Buffer.from(user.getSeed()).toString()
  const claims = { type: 'user', version: 2, ...unlimited }
  const creds = (by: nkeys.KeyPair): string =>
    `-----BEGIN NATS USER JWT-----\n${jwt(by, userId, 'U', claims)}\n------END NATS USER JWT------\n\n` +
    `-----BEGIN USER NKEY SEED-----\n${seed}\n------END USER NKEY SEED------\n`
  const credentials = file('user.creds', creds(account))
  for (const one of [credentials, pathToFileURL(credentials), creds(account)])
    await reaches(server.url, { credentials: one })
  const others = { credentials: creds(nkeys.createAccount()) }
  await refuses(server.url, others, 'FLEET_DENIED', /refuses connecting to nats:.*Authorization Violation/)
})

test('what a connection is given is checked before a server is asked', async () => {
  const seed = Buffer.from(nkeys.createUser().getSeed()).toString()
  const missing = join(folder, 'missing')
  const at = '127.0.0.1:1'
  const unusable: [ConnectOptions, RegExp][] = [
    [
      { tls: { ca: missing } },
      /cannot use tls\.ca \(.*missing\): no such file.*; it must be certificates in/,
    ],
    [{ tls: { ca: file('empty', 'no PEM') } }, /tls\.ca \(.*empty\): it contains no certificate/],
    [{ tls: { ca: ca.replace(/\n.{40}/, '\nAAAA') } }, /cannot use tls\.ca: error:/],
    [{ tls: { cert } }, /cannot use tls\.key: tls\.cert needs it/],
    [{ tls: { key } }, /cannot use tls\.cert: tls\.key needs it/],
    [{ tls: { cert: file('no.pem', 'x'), key } }, /cannot use tls\.cert \(.*no\.pem\): .*no start line/],
    [{ tls: { cert, key: AUTHORITY.key } }, /cannot use tls\.key: .*mismatch; it must be the private key of/],
    [{ credentials: missing }, /cannot use credentials \(.*missing\): no such file.*; it must be a \.creds/],
    [{ nkey: missing }, /cannot use nkey \(.*missing\)/],
    [{ nkey: pathToFileURL(file('none', 'x')) }, /cannot use nkey \(.*none\): it contains no seed of a user/],
    [
      { nkey: seed.slice(0, 50) },
      /cannot use nkey: it is not a seed of a user; it must be the seed of a user \(/,
    ],
    [{ nkey: Buffer.from('x') }, /cannot use nkey: it is not a seed/],
  ]
  for (const [options, sentence] of unusable)
    await refuses(`nats://${at}`, options, 'FLEET_CREDENTIALS', sentence)
  const wrong: [ConnectOptions, RegExp][] = [
    [{ tls: { cert, key, passphrase: '' } }, /tls\.passphrase must be a string/],
    [{ tls: { caFile: missing } as never }, /unknown option "tls\.caFile"/],
    [{ tls: 'x' as never }, /tls must be an object/],
    [{ credentials: 7 as never }, /credentials must be the path .*\.creds file/],
    [{ nkey: seed, credentials: missing }, /nkey must be left out with credentials/],
  ]
  for (const [options, sentence] of wrong)
    for (const address of [`nats://${at}`, 'memory:'])
      await refuses(address, options, 'FLEET_ARGUMENT', sentence)
})

test('an encrypted key is used with its passphrase', { skip: SKIP }, async () => {
  await using server = await startServer(-1, undefined, () => tlsOf(['127.0.0.1'], 'verify: true'))
  const secret = { type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'secret' } as const
  const encrypted = createPrivateKey(key).export(secret).toString()
  await reaches(tlsAddress(server.url), { tls: { ca, cert, key: encrypted, passphrase: 'secret' } })
  const without = { tls: { ca, cert, key: encrypted } }
  await refuses(tlsAddress(server.url), without, 'FLEET_CREDENTIALS', /cannot use tls\.key: /)
})
