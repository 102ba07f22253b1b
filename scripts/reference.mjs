/**
 * `npm run reference`: writes the API reference as HTML pages to reference/.
 *
 * The test step `reference` does the same and fails on a warning.
 */
import { onSupportedNode } from './set-up/node-version.mjs'

onSupportedNode(async function () {
  const { setUp } = await import('./set-up/index.mjs')
  await setUp()
  const { writeReference } = await import('./reference/main.mjs')
  return writeReference()
})
