/** `npm run reference`: the API reference as HTML in reference/, see reference/main.mjs. */
import { onSupportedNode } from './set-up/node-version.mjs'

onSupportedNode(async function () {
  const { setUp } = await import('./set-up/index.mjs')
  await setUp()
  const { writeReference } = await import('./reference/main.mjs')
  return writeReference()
})
