/**
 * Serves the app, and checks that its workers share what one of them has made or dropped.
 * The export of the output is `listener`, named by `#listener`.
 */
import assert from 'node:assert/strict'
import { served } from '../served.mjs'

await served(import.meta.dirname, '.output/server/index.mjs#listener', async ({ ask, askAll }) => {
  const before = await askAll('/')
  assert.match(before, /version/)
  assert.equal((await ask('/revalidate', 'POST')).body, 'dropped')
  assert.notEqual(await askAll('/'), before)
  const { pieces } = await ask('/stream')
  assert.deepEqual(pieces, ['early', 'late'])
})
