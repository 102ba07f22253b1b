/**
 * Certificates and keys as programs pass them: what is read, what is refused, and how it is named.
 *
 * What a core does with them is in tls.test.ts.
 */
import assert from 'node:assert/strict'
import { X509Certificate, generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { until } from '../../base/wait.test.support.ts'
import { onCores } from '../cores.test.support.ts'
import { AUTHORITY, certified, connect, request, SERVER } from '../tls/client.test.support.ts'
import { credentialsFor, filesOf, readTls } from './credentials.ts'
import { makeCertificate } from '../tls/make.ts'
import { parseTls, type TlsOptions, withoutBytes } from './tls-options.ts'
import { TlsFiles } from '../tls/watch.ts'

const folder = mkdtempSync(join(tmpdir(), 'corespun-tls-'))
after(() => rmSync(folder, { recursive: true }))

function file(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(`${path}.new`, text)
  renameSync(`${path}.new`, path)
  return path
}

const read = (options: unknown) => readTls(parseTls(options, 'serve()'))

test('a certificate that is made is read by Node, and its authority verifies it', () => {
  const hosts = ['a.example', '127.0.0.1', '::1', '2001:db8::7', '::ffff:0:1']
  const made = new X509Certificate(certified('name', hosts).cert)
  assert.equal(made.checkHost('a.example'), 'a.example')
  for (const address of hosts.slice(1)) assert.equal(made.checkIP(address), address)
  assert.equal(made.checkHost('b.example'), undefined)
  const authority = new X509Certificate(AUTHORITY.cert)
  assert.equal(made.verify(authority.publicKey), true)
  assert.equal(made.checkIssued(authority), true)
  assert.deepEqual([authority.ca, made.ca], [true, false])
  const to = new Date('2051-02-03T04:05:06Z')
  const late = makeCertificate({ name: 'x'.repeat(200), from: new Date('2000-01-02T03:04:05Z'), to })
  const { validFrom, validTo } = new X509Certificate(late.cert)
  assert.deepEqual([validFrom, validTo], ['Jan  2 03:04:05 2000 GMT', 'Feb  3 04:05:06 2051 GMT'])
})

test('certificates and keys are text, bytes, paths and URLs', () => {
  const cert = file('read.crt', SERVER.cert)
  const key = file('read.key', SERVER.key)
  const forms: TlsOptions[] = [
    SERVER,
    { cert: Buffer.from(SERVER.cert), key: new Uint8Array(Buffer.from(SERVER.key)) },
    { cert, key },
    { cert: pathToFileURL(cert), key: pathToFileURL(key) },
    { certificates: [{ cert: SERVER.cert + AUTHORITY.cert, key }] },
    withoutBytes({ cert: Buffer.from(SERVER.cert), key: pathToFileURL(key), certificates: [SERVER] }),
  ]
  for (const options of forms) assert.deepEqual(read(options).certificates[0].names, ['localhost'])
  assert.equal(read(forms[4]).certificates[0].chain.length, 2)
  assert.deepEqual(filesOf(parseTls({ ...forms[3], ca: [cert, AUTHORITY.cert] }, '')), [cert, key])
})

test('an encrypted key needs its passphrase', () => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const secret = { type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'secret' } as const
  const encrypted = privateKey.export(secret).toString()
  const refused = (passphrase: string | undefined, sentence: RegExp) =>
    assert.throws(
      () => read({ cert: SERVER.cert, key: encrypted, ...(passphrase === undefined ? {} : { passphrase }) }),
      {
        code: 'HTTP_TLS_KEY',
        message: sentence,
      },
    )
  refused(undefined, /tls\.key is not a usable private key: it is encrypted with a passphrase/)
  refused('wrong', /encrypted with another passphrase/)
  refused('secret', /not the key of the certificate tls\.cert \(CN=localhost\)/)
})

test('what cannot be used is named with its option and file', () => {
  const past = makeCertificate({ name: 'past', from: new Date(0), to: new Date(1e12) })
  const future = makeCertificate({
    name: 'f',
    from: new Date(Date.now() + 1e9),
    to: new Date(Date.now() + 2e9),
  })
  const block = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'
  const missing = join(folder, 'missing.pem')
  const rows: [TlsOptions, string, string][] = [
    [{ ...SERVER, cert: missing }, 'HTTP_TLS_UNREADABLE', `tls.cert (${missing})`],
    [{ ...SERVER, key: folder }, 'HTTP_TLS_UNREADABLE', `tls.key (${folder})`],
    [{ ...SERVER, cert: Buffer.from('no PEM') }, 'HTTP_TLS_CERTIFICATE', 'tls.cert'],
    [{ ...SERVER, cert: block }, 'HTTP_TLS_CERTIFICATE', 'tls.cert'],
    [{ ...SERVER, ca: block }, 'HTTP_TLS_CERTIFICATE', 'tls.ca'],
    [{ ...SERVER, key: SERVER.cert }, 'HTTP_TLS_KEY', 'tls.key'],
    [{ ...SERVER, key: AUTHORITY.key }, 'HTTP_TLS_KEY', 'tls.key'],
    [past, 'HTTP_TLS_EXPIRED', 'tls.cert'],
    [{ certificates: [SERVER, future] }, 'HTTP_TLS_EXPIRED', 'tls.certificates[1].cert'],
  ]
  for (const [options, code, where] of rows) {
    assert.throws(
      () => read(options),
      (error: { code: string; facts: { where: string } }) => {
        assert.deepEqual([error.code, error.facts.where], [code, where])
        return true
      },
    )
  }
})

test('options of the wrong form are refused before a file is read', () => {
  const rows: [unknown, RegExp][] = [
    [{}, /tls needs `cert` and `key`, or `certificates`/],
    [{ cert: 'x' }, /tls\.key must be PEM/],
    [{ key: 'x' }, /tls\.cert must be PEM/],
    [{ cert: 7, key: 'x' }, /tls\.cert must be PEM/],
    [{ ...SERVER, certificates: [] }, /tls\.certificates must be an array/],
    [{ ...SERVER, certificates: [{ cert: 'x' }] }, /tls\.certificates\[0\]\.key must be PEM/],
    [{ ...SERVER, clients: 'request' }, /tls\.clients needs `ca`/],
    [{ ...SERVER, alpn: ['h3'] }, /tls\.alpn must be/],
    [{ ...SERVER, minVersion: 'TLSv1' }, /tls\.minVersion must be/],
    [{ ...SERVER, crt: 'x' }, /did you mean "cert"/],
  ]
  for (const [options, message] of rows)
    assert.throws(() => parseTls(options, 'serve()'), { code: 'HTTP_ARGUMENT', message })
})

test('a wildcard is for one label', () => {
  const { certificates } = read({
    certificates: [SERVER, certified('w', ['*.a.example']), certified('a.example')],
  })
  const found = (name: string) => certificates.indexOf(credentialsFor(certificates, name)!)
  const names = ['localhost', 'b.a.example', 'c.b.a.example', 'a.example', 'example', 'x']
  assert.deepEqual(names.map(found), [0, 1, -1, 2, -1, -1])
})

onCores('files that change are read again, and unusable ones change nothing', async (start) => {
  const cert = file('served.crt', SERVER.cert)
  const key = file('served.key', SERVER.key)
  const server = await start({ tls: { cert, key }, routes: { '/': 'Hello' } })
  const names = async (): Promise<string> => (await request(server.port)).names!
  assert.equal(await names(), 'DNS:localhost')
  const kept = await connect(server.port)
  const renewed = certified('renewed', ['localhost', 'renewed.example'])
  file('served.crt', renewed.cert)
  file('served.key', renewed.key)
  await until(async () => (await names()).includes('renewed.example'))
  kept.destroy()
  const warned = new Promise<Error>((resolve) => process.once('warning', resolve))
  file('served.crt', 'nothing')
  assert.match(
    (await warned).message,
    /the certificates stay as they are: tls\.cert \(.*served\.crt\) is not/,
  )
  assert.match(await names(), /renewed\.example/)
})

test('a folder that cannot be watched is a warning', async () => {
  const warned = new Promise<Error>((resolve) => process.once('warning', resolve))
  const files = new TlsFiles([join(folder, 'none', 'a.pem')], () => {})
  assert.match((await warned).message, /the certificates stay as they are: ENOENT/)
  files.close()
})
