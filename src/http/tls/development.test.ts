/**
 * The certificate of `corespun serve --dev-tls`: made once, kept, made anew before its end.
 *
 * Each test has a cache folder of its own; the user's is not touched.
 */
import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { developmentTls } from './development.ts'
import { readTls } from '../message/credentials.ts'
import { parseTls } from '../message/tls-options.ts'

const folder = mkdtempSync(join(tmpdir(), 'corespun-dev-tls-'))
after(() => rmSync(folder, { recursive: true }))

test('a certificate for localhost is made once and kept for its owner alone', () => {
  const made = developmentTls(join(folder, 'cache'))
  const { names } = readTls(parseTls(made, 'serve()')).certificates[0]
  assert.deepEqual(names, ['localhost', '*.localhost'])
  assert.deepEqual(developmentTls(join(folder, 'cache')), made)
  const path = join(folder, 'cache', 'dev-tls.pem')
  assert.equal(readFileSync(path, 'utf8'), made.cert + made.key)
  if (process.platform !== 'win32') assert.equal(statSync(path).mode & 0o77, 0)
})

test('one that ends within a day, or cannot be read, is replaced', () => {
  const cache = join(folder, 'cache')
  const before = developmentTls(cache)
  const end = Date.parse(new X509Certificate(before.cert).validTo)
  const later = developmentTls(cache, end)
  assert.notEqual(later.cert, before.cert)
  writeFileSync(join(cache, 'dev-tls.pem'), 'nothing')
  assert.notEqual(developmentTls(cache).cert, later.cert)
})

test('without a folder that can be written, each is new', () => {
  writeFileSync(join(folder, 'file'), '')
  const one = developmentTls(join(folder, 'file'))
  assert.notEqual(developmentTls(join(folder, 'file')).cert, one.cert)
})
