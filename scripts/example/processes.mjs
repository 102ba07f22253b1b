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
import { inRoot } from '../set-up/index.mjs'

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
    this.#child?.kill(signal)
    await this.ended
  }
}

/**
 * A cluster that is up.
 * @param {string} program @param {string} folder
 * @returns {Promise<{servers: Started[], urls: string}>}
 */
export async function startCluster(program, folder) {
  for (let left = 5; ; left -= 1) {
    const ports = await freePorts(6)
    const routes = ports.slice(3).map((port) => `nats://127.0.0.1:${port}`)
    const servers = [0, 1, 2].map((at) => {
      const store = join(folder, `server-${at}-${left}`)
      mkdirSync(store)
      const own = ['-n', `server-${at}`, '-a', '127.0.0.1', '-p', String(ports[at]), '-js', '-sd', store]
      const cluster = ['--cluster_name', 'example', '--cluster', routes[at], '--routes', routes.join(',')]
      return new Started(`server-${at}`, [program, ...own, ...cluster], /Server is ready/)
    })
    try {
      await Promise.all(servers.map((server) => server.start()))
      return { servers, urls: `nats://${ports.slice(0, 3).map((port) => `127.0.0.1:${port}`)}` }
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

/** A host of the example's module. @param {number} at @param {NodeJS.ProcessEnv} env */
export function hostOf(at, env) {
  const words = ['host', inRoot('examples', 'fleet', 'work.ts'), '--name', 'invoices', '--workers', '1']
  const limits = ['--jobs', '8', '--lease', '2s', '--replicas', '3']
  const command = [process.execPath, inRoot('lib', 'cli', 'main.js'), ...words, ...limits]
  return new Started(`host-${at}`, command, /^hosting invoices/, env)
}

/** A program of the example. @param {string} name @param {RegExp} isReady @param {NodeJS.ProcessEnv} env */
export function programOf(name, isReady, env) {
  const url = new URL(`../../examples/fleet/${name}.ts`, import.meta.url).href
  const program = `import 'corespun/typescript'; await import(${JSON.stringify(url)})`
  return new Started(name, [process.execPath, '--input-type=module', '-e', program], isReady, env)
}
