/**
 * The sentences of a fleet's errors, each with its remedy; and what is left of an error that cannot travel
 * as it is.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decode } from '../transport/index.ts'
import { FleetError, type FleetCodes } from './errors.ts'
import { errorFrame } from './worker/task.ts'

const zone = 'scores'
const reason = 'no route'
const cases: { [Code in keyof FleetCodes]?: [FleetCodes[Code], RegExp][] } = {
  FLEET_PEER_MISSING: [
    [{ name: '@nats-io/kv', use: 'nats://', reason }, /nats:.* needs the package @nats-io\/kv.*npm install/],
    [{ name: 'croner', use: 'cron', reason }, /cron needs the package croner.*npm install croner/],
  ],
  FLEET_CONNECT: [
    [
      { servers: 'nats://a', reason, remedy: 'check it', isAway: false },
      /cannot connect to nats:\/\/a: no route; check it$/,
    ],
  ],
  FLEET_CREDENTIALS: [
    [
      { option: 'tls.ca', path: '/a', reason, expected: 'PEM' },
      /cannot use tls\.ca \(\/a\): no route; it must/,
    ],
    [
      { option: 'nkey', path: undefined, reason, expected: 'a seed' },
      /cannot use nkey: no route; it must be/,
    ],
  ],
  FLEET_MESSAGES: [
    [{ use: 'fleet.zone()', engine: 'sqlite:' }, /zone\(\) needs messages .* connect to nats:/],
  ],
  FLEET_NODE: [
    [{ use: 'sqlite:', needs: '22.13', found: '20.1' }, /sqlite: needs Node 22\.13 .*this is 20\.1; update/],
  ],
  FLEET_FILE_FOLDER_MISSING: [[{ file: '/a/b', what: reason }, /folder of \/a\/b does not exist; create it/]],
  FLEET_FILE_DENIED: [
    [{ file: '/a', what: reason }, /\/a cannot be written: no route; check the permissions/],
  ],
  FLEET_FILE_FOREIGN: [
    [{ file: '/a', what: reason }, /\/a is not a database of SQLite: no route; pass another/],
  ],
  FLEET_FILE_CORRUPT: [[{ file: '/a', what: reason }, /\/a is damaged: no route; .* backup/]],
  FLEET_FILE_VERSION: [[{ file: '/a', what: '9' }, /version 9 of the tables, newer .*update corespun/]],
  FLEET_FILE_REMOTE: [
    [{ file: '/a', what: 'NFS' }, /another machine \(NFS\).* put it on a disk of this one/],
  ],
  FLEET_DISK_FULL: [[{ file: '/a', what: reason }, /no space is left for \/a: no route; .*free space/]],
  FLEET_DENIED: [[{ operation: 'a write', reason }, /refuses a write: no route; check credentials, nkey/]],
  FLEET_CLOSED: [[{ reason }, /is closed: no route; close a fleet after/]],
  FLEET_TIMEOUT: [[{ operation: 'a write', timeoutMs: 5 }, /a write was not confirmed within 5 ms.*repeat/]],
  FLEET_ENGINE: [[{ operation: 'a write', reason }, /refused a write: no route/]],
  FLEET_CONFLICT: [
    [{ key: 'k', revision: 0 }, /"k" exists already; read it/],
    [{ key: 'k', revision: 3 }, /"k" has changed since revision 3; read it again/],
  ],
  FLEET_MISMATCH: [
    [
      { of: 's', option: 'replicas', asked: 3, found: 1 },
      /s exists with replicas 1, and replicas 3 is asked/,
    ],
  ],
  FLEET_TOO_LARGE: [
    [{ bytes: 9, valueBytesMax: 8 }, /9 bytes; 8 are accepted.*raise valueBytesMax/],
    [{ bytes: 9, valueBytesMax: 8, limit: 'max_payload' }, /8 are accepted \(max_payload\); .*of the server/],
    [{ bytes: 9, valueBytesMax: 8, limit: 'progress' }, /8 are accepted \(progress\); report less/],
  ],
  ZONE_NOWHERE: [
    [{ zone, version: undefined, versions: [] }, /no host has the zone "scores"; start one: corespun host/],
    [{ zone, version: 'b', versions: ['a'] }, /no host has version b.*hosts have a: deploy/],
  ],
  EXPORT_MISSING: [
    [{ zone, name: 'x', exported: ['score'] }, /no function "x"; its module exports score/],
    [{ zone, name: 'x', exported: [] }, /exports none/],
  ],
  HOST_LOST: [[{ zone, host: 'h', reason }, /host h of the zone "scores" was lost.*call again only if/]],
  CALLER_LOST: [
    [{ zone, silentMs: 5000 }, /caller of a function of the zone "scores".*5000 ms.*nobody waits/],
  ],
  HOST_CREDIT: [[{ zone, host: 'h', partsMax: 3 }, /host h.*"scores".*more than the 3 parts.*check which/]],
  JOB_DEAD: [
    [
      { zone, key: 'k', failures: 2, hostsLost: 1 },
      /"k".*"scores".*attempts failed: 2, hosts lost: 1.*jobs\.again/,
    ],
  ],
  JOB_CANCELLED: [[{ zone, key: 'k' }, /"k".*was cancelled; jobs\.forget/]],
  JOB_UNKNOWN: [[{ zone, key: 'k' }, /has no job "k": it was never submitted/]],
  JOB_TIMEOUT: [
    [{ zone, key: 'k', timeoutMs: 5 }, /"k".*within 5 ms; it goes on/],
    [{ zone, key: 'k', timeoutMs: 5, reason: 'no host' }, /within 5 ms: no host; it waits: correct that/],
  ],
  CHANGES_BEHIND: [[{ of: 'the store "s"', keysMax: 9 }, /of the store "s" is behind by 9 keys/]],
  LOCK_TIMEOUT: [[{ lock: 'l', timeoutMs: 5 }, /"l" was not free within 5 ms; wait longer/]],
  LOCK_LOST: [[{ lock: 'l', token: 7 }, /"l" with token 7 was over.*refuse writes with a token below/]],
}

for (const [code, rows] of Object.entries(cases)) {
  test(`the sentence of ${code}`, () => {
    for (const [facts, sentence] of rows) {
      const error = new FleetError(code as 'FLEET_CLOSED', facts as FleetCodes['FLEET_CLOSED'])
      assert.equal(error.code, code)
      assert.match(error.message, sentence)
    }
  })
}

test('of an error that cannot travel, what can does', () => {
  const whole = Object.assign(new RangeError('too far'), { at: 3 })
  const far = decode(errorFrame(whole)) as typeof whole
  assert.ok(far instanceof RangeError)
  assert.deepEqual([far.message, far.at], ['too far', 3])
  const local = Object.assign(new TypeError('no socket'), { at: 3, socket: () => Symbol('local') })
  const without = decode(errorFrame(local)) as typeof local
  assert.ok(without instanceof Error)
  assert.deepEqual([without.message, 'socket' in without], ['no socket', false])
  const hostile = new Proxy(new Error('x'), {
    get: () => {
      throw new Error('not readable')
    },
  })
  assert.match((decode(errorFrame(hostile)) as Error).message, /properties throw when they are read/)
  assert.ok(decode(errorFrame(undefined)) === undefined)
})
