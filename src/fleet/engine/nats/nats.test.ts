/**
 * The engine on NATS does what every engine must do, at a server of its own.
 *
 * Skipped without a server: see server.test.support.ts.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { FleetError } from '../../errors.ts'
import { conformance } from '../conformance.test.support.ts'
import { natsEngine } from './nats.ts'
import { SKIP, startServer } from './server.test.support.ts'

const settingsFor = (url: string) => ({
  servers: [url],
  name: 'test',
  connectMs: 5000,
  replicas: 1,
  tls: undefined,
  credentials: undefined,
  user: undefined,
  password: undefined,
  token: undefined,
})

if (SKIP === false) {
  const server = startServer()
  after(async () => (await server)[Symbol.asyncDispose]())
  conformance('nats', async () => ({
    connect: async () => natsEngine(settingsFor((await server).url)),
    close: async () => {},
  }))
}

test('nats: a server that is not there is an error that names it', { skip: SKIP }, async () => {
  await assert.rejects(natsEngine(settingsFor('127.0.0.1:1')), (error) => {
    assert.ok(error instanceof FleetError)
    assert.equal(error.code, 'FLEET_CONNECT')
    assert.match(error.message, /127\.0\.0\.1:1/)
    return true
  })
})
