/**
 * Stores, locks and sessions over NATS, at a server of its own, and sessions while it is away.
 *
 * The tests themselves are in state/state.test.support.ts; without a server they are skipped.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { appWith, codeOf, look, sessionTests, visit } from '../http/sessions.test.support.ts'
import { type Fleet, connect } from './connect.ts'
import { newName } from './engine/conformance.test.support.ts'
import { SKIP, startServer } from './engine/nats/server.test.support.ts'
import { stateTests } from './state/state.test.support.ts'

if (SKIP !== false) test('nats: stores, locks and sessions', { skip: SKIP })
else {
  const server = startServer()
  let far: Promise<Fleet> | undefined
  after(async () => {
    await (await far)?.close()
    await (await server)[Symbol.asyncDispose]()
  })
  stateTests('nats', async () => connect((await server).url))
  sessionTests('nats', async () => {
    far ??= connect((await server).url)
    return (await far).store(newName(), { ttlMs: 86_400_000 })
  })
}

test('nats: while a server is away sessions are 503, and afterwards as before', { skip: SKIP }, async () => {
  const first = await startServer()
  await using far = await connect(first.url)
  const ask = appWith(far.store('sessions', { ttlMs: 86_400_000 }))
  const jar = { cookie: '' }
  await ask(jar, visit)
  await first.kill()
  const [status, body, set] = await ask(jar, visit)
  assert.deepEqual([status, codeOf(body), set], [503, 'SESSIONS_UNAVAILABLE', []])
  await using _ = await startServer(Number(new URL(first.url).port), first.folder)
  let asked = await ask(jar, look)
  while (asked[0] === 503) asked = await ask(jar, look)
  assert.deepEqual(asked.slice(0, 2), [200, { visits: 1 }])
})
