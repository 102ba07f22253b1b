/**
 * The processes of the example: servers, hosts, gateway, producer. Each is killed and started again by its
 * own handle.
 *
 * A port is free when it is asked for; one that somebody else takes before the server does is asked for anew.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { inRoot } from '../../../scripts/set-up/index.mjs'

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP']

/**
 * Do some work and clean up behind it, when a signal ends this process too.
 * @template T @param {() => Promise<T>} work @param {() => void} clean @returns {Promise<T>}
 */
export async function withCleanUp(work, clean) {
  const end = () => {
    for (const signal of SIGNALS) process.off(signal, stop)
    clean()
  }
  const stop = (signal) => {
    end()
    process.kill(process.pid, signal)
  }
  for (const signal of SIGNALS) process.on(signal, stop)
  try {
    return await work()
  } finally {
    end()
  }
}

/** A process that can be started again as it was. */
class Started {
  #command
  #env
  #isReady
  #child

  /**
   * @param {string} name What is printed of it.
   * @param {string[]} command
   * @param {RegExp} isReady A line by which it can be used.
   * @param {NodeJS.ProcessEnv} [env]
   */
  constructor(name, command, isReady, env = {}) {
    this.name = name
    this.#command = command
    this.#isReady = isReady
    this.#env = { ...process.env, ...env }
  }

  /** Resolves with the line by which it is ready. */
  async start() {
    const [program, ...words] = this.#command
    const child = spawn(program, words, { env: this.#env, stdio: ['ignore', 'pipe', 'pipe'] })
    this.#child = child
    this.ended = once(child, 'close')
    const last = []
    return new Promise((resolve, reject) => {
      for (const output of [child.stdout, child.stderr])
        createInterface({ input: output }).on('line', (line) => {
          last.push(line)
          if (last.length > 10) last.shift()
          if (this.#isReady.test(line)) resolve(line)
          this.onLine?.(line)
        })
      child.once('error', reject)
      void this.ended.then(() => reject(new Error(`${this.name} ended:\n${last.join('\n')}`)))
    })
  }

  /** @param {NodeJS.Signals} signal */
  async end(signal) {
    this.kill(signal)
    await this.ended
  }

  /** As `end`, and does not wait. @param {NodeJS.Signals} signal */
  kill(signal) {
    this.#child?.kill(signal)
  }

  get isRunning() {
    return this.#child?.exitCode === null && this.#child.signalCode === null
  }
}

/** @typedef {{enter: string[], client: string, route: string}} Location `enter`: words before a command. */

/**
 * A cluster that is up.
 * @param {string} program @param {string} folder
 * @param {object} where
 * @param {{server(at: number): Promise<Location>}} [where.network] Default: loopback.
 * @param {(path: string) => Promise<unknown>} [where.store] Called with each new folder of a server.
 * @returns {Promise<{servers: Started[], urls: string}>}
 */
export async function startCluster(program, folder, { network, store = async () => {} }) {
  for (let left = network === undefined ? 5 : 1; ; left -= 1) {
    const locations = []
    const ports = await freePorts(6)
    for (const at of [0, 1, 2])
      locations.push(
        (await network?.server(at)) ?? {
          enter: [],
          client: `127.0.0.1:${ports[at]}`,
          route: `127.0.0.1:${ports[at + 3]}`,
        },
      )
    const routes = locations.map(({ route }) => `nats://${route}`)
    const servers = locations.map(({ enter, client, route }, at) => {
      const path = join(folder, `server-${at}-${left}`)
      const [address, port] = client.split(':')
      const own = ['-n', `server-${at}`, '-a', address, '-p', port, '-js', '-sd', path]
      const cluster = [
        '--cluster_name',
        'example',
        '--cluster',
        `nats://${route}`,
        '--routes',
        routes.join(','),
      ]
      const command = [...enter, program, ...own, ...cluster]
      return Object.assign(new Started(`server-${at}`, command, /Server is ready/), { store: path })
    })
    for (const server of servers) {
      mkdirSync(server.store)
      await store(server.store)
    }
    try {
      await Promise.all(servers.map((server) => server.start()))
      return { servers, urls: locations.map(({ client }) => `nats://${client}`).join(',') }
    } catch (error) {
      await Promise.all(servers.map((server) => server.end('SIGKILL')))
      if (left === 1) throw error
    }
  }
}

async function freePorts(count) {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'))
  await Promise.all(servers.map((server) => once(server, 'listening')))
  const ports = servers.map((server) => server.address().port)
  await Promise.all(servers.map((server) => once(server.close(), 'close')))
  return ports
}

/**
 * A host of the example's module, or of another one with the same name.
 * @param {number} at @param {NodeJS.ProcessEnv} env
 * @param {{module?: string, enter?: string[], lease?: string}} [how]
 */
export function hostOf(at, env, { module, enter = [], lease = '2s' } = {}) {
  const words = [
    'host',
    module ?? inRoot('examples', 'fleet', 'work.ts'),
    '--name',
    'invoices',
    '--workers',
    '1',
  ]
  const limits = ['--jobs', '8', '--lease', lease, '--replicas', '3']
  const command = [...enter, process.execPath, inRoot('lib', 'cli', 'main.js'), ...words, ...limits]
  return new Started(`host-${at}`, command, /^hosting invoices/, env)
}

/** A program of the example. @param {string} name @param {RegExp} isReady @param {NodeJS.ProcessEnv} env */
export function programOf(name, isReady, env) {
  const url = new URL(`../../../examples/fleet/${name}.ts`, import.meta.url).href
  const program = `import 'corespun/typescript'; await import(${JSON.stringify(url)})`
  return new Started(name, [process.execPath, '--input-type=module', '-e', program], isReady, env)
}
