/**
 * `npm run example:fleet`: a cluster of three servers of NATS, three hosts, a gateway and a producer on this
 * machine. Under load servers and hosts are killed or cut off from each other, disks are filled, clocks are
 * wrong; what came of each job is counted.
 *
 *   npm run example:fleet -- [--jobs 300] [--fault kill | partition | disk | skew] [--kills 2]
 *     [--every 5s]
 *
 * `--kills`: how often the fault happens, at equal shares of the jobs. With `--every` it happens by time,
 * while there are jobs, and `--kills` is the most. Partitions and full disks need Linux, and root or a user
 * who may have namespaces.
 */
import { onSupportedNode } from '../../../scripts/set-up/node-version.mjs'

onSupportedNode(async function () {
  const { setUp } = await import('../../../scripts/set-up/index.mjs')
  await setUp()
  const { showFleet } = await import('./main.mjs')
  return showFleet(process.argv.slice(2))
})
