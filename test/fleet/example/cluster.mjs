/**
 * The state of the servers, as a connection of its own sees it: which one leads, and whether all keep up.
 *
 * A cluster that lacks one of three servers works; killing a second one before the first has what it missed
 * would be another experiment.
 */
import { jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { setTimeout } from 'node:timers/promises'

const PAUSE_MS = 200
/** A server that was cut off is left for another one. */
const PING_MS = 2000
/** What keeps the items of the jobs, and what keeps their results. */
const STREAMS = ['corespun_queue_jobs_invoices', 'KV_corespun_jobs_invoices']

export class Cluster {
  #connection
  #manager
  #servers
  #turn = 0

  constructor(connection, manager, servers) {
    this.#connection = connection
    this.#manager = manager
    this.#servers = servers
  }

  /** Resolves when its servers have a leader. @param {string} urls @param {{name: string}[]} servers */
  static async open(urls, servers) {
    const all = urls.split(',')
    const connection = await connect({ servers: all, maxReconnectAttempts: -1, pingInterval: PING_MS })
    const manager = await certainly(() => jetstreamManager(connection))
    await certainly(() => manager.getAccountInfo())
    return new Cluster(connection, manager, servers)
  }

  /** The server that leads one of the streams, in turn. */
  async leader() {
    const stream = STREAMS[this.#turn++ % STREAMS.length]
    const name = await this.#leaderOf(stream)
    return this.#servers.find((server) => server.name === name)
  }

  /** Whether a server leads a stream, by the servers that this connection reaches. @param {string} name */
  async leads(name) {
    return (await Promise.all(STREAMS.map((stream) => this.#leaderOf(stream)))).includes(name)
  }

  #leaderOf(stream) {
    return certainly(async () => {
      const { cluster } = await this.#manager.streams.info(stream)
      if (cluster?.leader === undefined) throw new Error(`${stream} has no leader`)
      return cluster.leader
    })
  }

  /** Resolves when each stream has a leader, and all of its servers what it has. */
  async whole() {
    for (const stream of STREAMS)
      await certainly(async () => {
        const { cluster } = await this.#manager.streams.info(stream)
        const isWhole =
          cluster?.leader !== undefined &&
          cluster.replicas?.length === this.#servers.length - 1 &&
          cluster.replicas.every(({ current, offline }) => current && !offline)
        if (!isWhole) throw new Error(`${stream} is not whole`)
      })
  }

  close() {
    return this.#connection.close()
  }
}

/** A server without a leader refuses for some seconds. */
async function certainly(work) {
  for (;;) {
    try {
      return await work()
    } catch {
      await setTimeout(PAUSE_MS)
    }
  }
}
