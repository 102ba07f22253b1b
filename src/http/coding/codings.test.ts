/**
 * Which codings a client accepts: a table with the rules of RFC 9110, 12.4.2 and 12.5.3.
 *
 * Each row is a header and the codings that may be used, the best first.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { acceptedOf } from './codings.ts'

const OFFERED = ['br', 'zstd', 'gzip'] as const

const ROWS: readonly (readonly [header: string | null, ...codings: string[]])[] = [
  [null],
  [''],
  ['gzip', 'gzip'],
  ['gzip, deflate, br, zstd', 'br', 'zstd', 'gzip'],
  ['gzip;q=1, br;q=0.5', 'gzip', 'br'],
  ['gzip;q=0.8, zstd;q=0.9, br;q=0.8', 'zstd', 'br', 'gzip'],
  ['GZIP', 'gzip'],
  ['x-gzip', 'gzip'],
  ['*', 'br', 'zstd', 'gzip'],
  ['*;q=0'],
  ['*;q=0, gzip', 'gzip'],
  ['br;q=0, *', 'zstd', 'gzip'],
  ['gzip;q=0'],
  ['gzip;q=0.000'],
  ['gzip;q=0.001', 'gzip'],
  ['gzip; q=1.000', 'gzip'],
  ['gzip ; Q = 0.5', 'gzip'],
  ['identity'],
  ['identity, gzip', 'gzip'],
  ['identity, gzip;q=0.5'],
  ['identity;q=0.5, gzip;q=0.5', 'gzip'],
  ['identity;q=0, br', 'br'],
  ['identity;q=0.4, *;q=0.5', 'br', 'zstd', 'gzip'],
  ['deflate'],
  ['gzip;q=2'],
  ['gzip;q=0.1234'],
  ['gzip;q=-1'],
  ['gzip;q='],
  ['gzip;q=x, br', 'br'],
  ['gzip;level=1', 'gzip'],
  [',, gzip ,,', 'gzip'],
  ['gzipx, xgzip'],
]

for (const [header, ...codings] of ROWS) {
  test(`accept-encoding ${JSON.stringify(header)} allows ${codings.join(', ') || 'no coding'}`, () =>
    assert.deepEqual(acceptedOf(header, OFFERED), codings))
}
