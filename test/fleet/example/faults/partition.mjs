/**
 * A partition: a host is cut off from all servers, the leader from the other servers, the leader from all.
 *
 * A leader that clients still reach is the worse case: whoever is connected to it has a server that confirms
 * nothing. A host is cut off until a job that it runs has begun elsewhere, so that both end it.
 */
import { setTimeout } from 'node:timers/promises'
import { inRoot } from '../../../../scripts/set-up/index.mjs'
import { Cluster } from '../cluster.mjs'
import { Network } from '../network.mjs'

/** Longer than an election, a lease of the hosts, and the time until a leader without a majority resigns. */
const CUT_MS = 15_000
const CUTS = [
  // The first, since it needs jobs that are running.
  { what: 'hosts', from: 'all servers', bridges: ['clients'] },
  { what: 'servers', from: 'the other servers', bridges: ['routes'] },
  { what: 'servers', from: 'all', bridges: ['routes', 'clients'] },
]

export const partition = {
  verb: 'cut off',
  times: 3,
  jobs: 600,
  isApart: true,
  how: { module: inRoot('test', 'fleet', 'example', 'slow.mjs') },

  async network(folder) {
    const network = new Network(folder)
    await network.open()
    return network
  },

  async strike(time, { cluster, servers, hosts, network, runs, urls }, report) {
    const { what, from, bridges } = CUTS[time % CUTS.length]
    const { name } = what === 'servers' ? await cluster.leader() : hosts[time % hosts.length]
    const before = runs.twice()
    await network.cut(name, bridges)
    report(`cut ${name} off from ${from}`)
    if (what === 'servers') await deposed(name, { servers, urls })
    else await runs.again(before)
    await network.heal(name, bridges)
    report(`joined ${name} again`)
    await cluster.whole()
    return what
  },
}

/** The others have another leader. A cut that does not cut is an error. */
async function deposed(name, { servers, urls }) {
  await setTimeout(CUT_MS)
  const isOther = (_, at) => servers[at].name !== name
  const others = await Cluster.open(urls.split(',').filter(isOther).join(','), servers)
  try {
    if (await others.leads(name)) throw new Error(`${name} leads still, and was cut off`)
  } finally {
    await others.close()
  }
}
