/**
 * A network of the fleet's own: each server and host in a namespace, with a link to others that can be cut.
 *
 * There are two bridges. On one are the routes between servers; on the other are servers, hosts and this
 * process. A link that is cut drops what is sent, as a switch that has failed: no side receives an error.
 * All of it is in the namespaces of apart.mjs and ends with them.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { must } from '../../../scripts/set-up/index.mjs'

/** Addresses for tests of networks (RFC 2544); none leads out of the namespaces. */
const BRIDGES = { routes: '198.18.0', clients: '198.18.1' }
const CLIENT_PORT = 4222
const ROUTE_PORT = 6222

const ip = (...words) => must(`ip ${words.join(' ')}`, 'ip', words)

export class Network {
  #folder

  /** @param {string} folder For the names of namespaces; apart. */
  constructor(folder) {
    this.#folder = join(folder, 'networks')
  }

  async open() {
    mkdirSync(this.#folder)
    for (const [bridge, prefix] of Object.entries(BRIDGES)) {
      await ip('link', 'add', bridge, 'type', 'bridge')
      await ip('link', 'set', bridge, 'up')
      await ip('addr', 'add', `${prefix}.1/24`, 'dev', bridge)
    }
  }

  /** The location of a server. @param {number} at */
  async server(at) {
    const number = 10 + at
    const enter = await this.#namespace(`server-${at}`, number, ['routes', 'clients'])
    const client = `${BRIDGES.clients}.${number}:${CLIENT_PORT}`
    return { enter, client, route: `${BRIDGES.routes}.${number}:${ROUTE_PORT}` }
  }

  /** The location of a host. @param {number} at @returns {Promise<string[]>} Words that enter it. */
  host(at) {
    return this.#namespace(`host-${at}`, 20 + at, ['clients'])
  }

  async #namespace(name, number, bridges) {
    const path = join(this.#folder, name)
    writeFileSync(path, '')
    await must('unshare', 'unshare', [`--net=${path}`, 'true'])
    const enter = ['nsenter', `--net=${path}`]
    const inside = (...words) => must(`ip in ${name}`, enter[0], [enter[1], 'ip', ...words])
    await inside('link', 'set', 'lo', 'up')
    for (const bridge of bridges) {
      const link = linkOf(name, bridge)
      await ip('link', 'add', link, 'type', 'veth', 'peer', 'name', bridge, 'netns', path)
      await ip('link', 'set', link, 'master', bridge, 'up')
      await inside('addr', 'add', `${BRIDGES[bridge]}.${number}/24`, 'dev', bridge)
      await inside('link', 'set', bridge, 'up')
    }
    return enter
  }

  /** @param {string} name Of a server or host. @param {('routes' | 'clients')[]} bridges */
  async cut(name, bridges) {
    for (const bridge of bridges) await ip('link', 'set', linkOf(name, bridge), 'nomaster')
  }

  /** Join what was cut. @param {string} name @param {('routes' | 'clients')[]} bridges */
  async heal(name, bridges) {
    for (const bridge of bridges) await ip('link', 'set', linkOf(name, bridge), 'master', bridge)
  }
}

const linkOf = (name, bridge) => `${bridge[0]}-${name}`
