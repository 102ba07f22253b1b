/**
 * `npm start`: set up, then serve examples/service on all cores; words after `--` go to `corespun serve`.
 *
 * With `--compare` first (`npm run compare`) it shows examples/service/start instead: a TypeScript function
 * mapped over thousands of real files, once with one worker and once with all cores.
 */
import { onSupportedNode } from './set-up/node-version.mjs'

onSupportedNode(async function () {
  const { inRoot, run, setUp } = await import('./set-up/index.mjs')
  await setUp()
  const words = process.argv.slice(2)
  if (words[0] !== '--compare') {
    const { serveExample } = await import('./start/main.mjs')
    return serveExample(words)
  }
  const show = inRoot('examples', 'service', 'start.mjs')
  const { code } = await run(process.execPath, [show, ...words.slice(1)], { show: true })
  return code
})
