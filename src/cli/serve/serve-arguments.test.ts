/**
 * The words of `corespun serve` for TLS, as a table.
 *
 * What is understood, and which sentence refuses the rest.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HELP } from '../arguments.ts'
import { readServeArguments } from './serve-arguments.ts'

function tlsOf(...words: string[]): unknown {
  const options = readServeArguments(['app.ts', ...words], undefined, '.')
  assert.ok(options !== HELP)
  return options.tls
}

test('a certificate has a key, or is made for development', () => {
  assert.equal(tlsOf(), undefined)
  assert.deepEqual(tlsOf('--cert', 'a.pem', '--key', 'b.pem'), { cert: 'a.pem', key: 'b.pem' })
  assert.equal(tlsOf('--dev-tls'), 'development')
})

test('half of a pair is refused', () => {
  const rows: [string[], RegExp][] = [
    [['--cert', 'a.pem'], /--cert needs --key/],
    [['--cert', 'a.pem', '--key', ''], /--cert needs --key/],
    [['--key', 'a.pem'], /--key needs --cert/],
    [['--cert', '', '--key', 'a.pem'], /--key needs --cert/],
    [['--dev-tls', '--cert', 'a.pem'], /leave out --cert and --key/],
  ]
  for (const [words, message] of rows)
    assert.throws(() => tlsOf(...words), { code: 'CLI_USAGE', message }, words.join(' '))
})
