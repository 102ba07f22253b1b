/**
 * `corespun serve` with certificates.
 *
 * Files, one made for development, and files that cannot be used.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import https from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { corespun, start, until } from './corespun.mjs'

const folder = mkdtempSync(join(tmpdir(), 'corespun-serve-tls-'))
after(() => rmSync(folder, { recursive: true }))
const app = join(folder, 'app.mjs')
writeFileSync(app, 'export const routes = { "/": ({ url }) => url }')

const env = { XDG_CACHE_HOME: folder }
const kept = () => readFileSync(join(folder, 'corespun', 'dev-tls.pem'), 'utf8')

async function serves(words) {
  const started = start(['serve', app, '--workers', '1', '--port', '0', ...words], { env })
  started.child.stdin.end()
  await until(started.child.stdout, () => started.out.includes('\n'))
  const [url] = /https:\S+/.exec(started.out)
  const [response] = await once(https.get(url, { ca: kept(), agent: false }), 'response')
  let body = ''
  for await (const piece of response) body += piece
  assert.equal(body, `${url}/`)
  started.child.kill('SIGTERM')
  await started.ended
}

test('--dev-tls serves https with a certificate of its own', { timeout: 60_000 }, () => serves(['--dev-tls']))

test('--cert and --key serve https with those files', { timeout: 60_000 }, async () => {
  const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  const text = kept()
  const at = text.indexOf('-----BEGIN PRIVATE')
  writeFileSync(cert, text.slice(0, at))
  writeFileSync(key, text.slice(at))
  await serves(['--cert', cert, '--key', key])
})

test('files that cannot be used are named in one line', { timeout: 60_000 }, async () => {
  const missing = join(folder, 'missing.pem')
  const { code, err } = await corespun(['serve', app, '--cert', missing, '--key', missing])
  assert.equal(code, 2)
  assert.match(err, /cannot read tls\.cert \(.*missing\.pem\)/)
  assert.equal(err.trim().split('\n').length, 1, err)
})
