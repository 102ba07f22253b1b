/**
 * What an operation fails with that has no connection: nobody listens, and the time is simulated.
 *
 * No server is needed.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { test } from 'node:test'
import pg from 'pg'
import { connect } from '../../connect.ts'
import type { FleetError } from '../../errors.ts'
import type { Clock } from '../engine.ts'
import { connectError } from './failures.ts'
import { Link, OPERATION_MS } from './link.ts'

test('postgres: an operation whose server is away for too long may be repeated', async () => {
  let nowMs = 0
  const clock: Clock = {
    nowMs: () => nowMs,
    after(ms, run) {
      const timer = setImmediate(() => {
        nowMs += ms
        run()
      })
      return () => clearImmediate(timer)
    },
  }
  const configs = ['/nowhere', '/else'].map((host) => ({ host, user: 'shop', database: 'shop' }))
  const link = new Link(pg, { configs, connectMs: 5000, clock, channel: 'hints', onHint: () => {} })
  const message = /^connecting to \/nowhere, \/else, database shop was not/
  const problem = { code: 'FLEET_TIMEOUT', message }
  await assert.rejects(link.query('SELECT 1'), problem)
  assert.ok(nowMs > OPERATION_MS / 2, `${nowMs}`)
  await assert.rejects(
    link.transaction('nothing', async () => {}),
    problem,
  )
  await link.close()
})

for (const [title, ends] of [
  ['is silent', false],
  ['ends each connection', true],
] as const)
  test(`postgres: a server that ${title} may be there later`, async () => {
    const server = createServer((socket) => {
      socket.on('error', () => {}).resume()
      if (ends) socket.end()
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const { port } = server.address() as AddressInfo
    await assert.rejects(connect(`postgres://u@127.0.0.1:${port}/d`, { connectMs: 100 }), (error) => {
      const { code, facts } = error as FleetError
      assert.deepEqual([code, (facts as { isAway?: unknown }).isAway], ['FLEET_CONNECT', true])
      return true
    })
    await new Promise((resolve) => server.close(resolve))
  })

test('postgres: a server that is killed while a connection is opened may be there later', () => {
  const crash = Object.assign(new Error('terminating connection'), { code: '57P02' })
  const ended = new Error('Client has encountered a connection error and is not queryable')
  for (const cause of [crash, ended])
    assert.equal((connectError('s', cause).facts as { isAway?: unknown }).isAway, true)
})
