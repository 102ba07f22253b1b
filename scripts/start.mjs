/**
 * `npm start`: set up, then show what Skein is for.
 *
 * What is shown is examples/service/start: a TypeScript function mapped over thousands of real files, once
 * with one worker and once with all cores. Arguments after `--` go to it.
 */
import { onSupportedNode } from './set-up/node-version.mjs'

onSupportedNode(async function () {
  const { inRoot, run, setUp } = await import('./set-up/index.mjs')
  await setUp()
  const show = inRoot('examples', 'service', 'start.mjs')
  const { code } = await run(process.execPath, [show, ...process.argv.slice(2)], { show: true })
  return code
})
