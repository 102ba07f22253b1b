/**
 * Serves the folder that the build has made, and checks that its workers share pages and their revalidation.
 * The folder is what is deployed; files for browsers are copied into it, as Next.js documents.
 */
import assert from 'node:assert/strict'
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { served } from '../served.mjs'

const folder = join(import.meta.dirname, '.next/standalone')
cpSync(join(import.meta.dirname, '.next/static'), join(folder, '.next/static'), { recursive: true })

await served(folder, 'serve.mjs', async ({ ask, askAll }) => {
  const before = await askAll('/')
  assert.match(before, /version/)
  await ask('/revalidate', 'POST')
  assert.notEqual(await askAll('/'), before)
  const { pieces } = await ask('/stream')
  assert.match(pieces[0], /early/)
  assert.doesNotMatch(pieces[0], /<p>late/)
  assert.match(pieces.join(''), /<p>late/)
  const [script] = /\/_next\/static\/[^"]+\.js/.exec(before)
  assert.match((await ask(script)).headers['cache-control'], /immutable/)
})
