/**
 * Serves the app, and checks that its workers share what one of them has made.
 * Server-sent events are three pieces at least, since each is sent when it is made.
 */
import assert from 'node:assert/strict'
import { served } from '../served.mjs'

await served(import.meta.dirname, 'dist/app.js', async ({ ask, askAll }) => {
  const before = await askAll('/')
  assert.equal((await ask('/revalidate', 'POST')).body, 'dropped')
  assert.notEqual(await askAll('/'), before)
  const { headers, pieces } = await ask('/events')
  assert.equal(headers['content-type'], 'text/event-stream')
  assert.ok(pieces.length >= 3, `${pieces.length} pieces`)
})
