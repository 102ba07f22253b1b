/**
 * `npm run example:fleet`: a cluster of three servers of NATS, three hosts, a gateway and a producer on this
 * machine; servers and hosts are killed under load, and what came of each job is counted.
 *
 *   npm run example:fleet -- [--jobs 300] [--kills 2]
 */
import { onSupportedNode } from './set-up/node-version.mjs'

onSupportedNode(async function () {
  const { setUp } = await import('./set-up/index.mjs')
  await setUp()
  const { showFleet } = await import('./example/main.mjs')
  return showFleet(process.argv.slice(2))
})
