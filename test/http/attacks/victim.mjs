/**
 * What hostile clients are made of: a server in a process of its own, raw sockets, and a normal client beside
 * them whose latency is watched.
 */
import { execFileSync, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import https from 'node:https'
import net from 'node:net'
import { tmpdir } from 'node:os'
import { fileURLToPath } from 'node:url'

const SERVER = fileURLToPath(new URL('./server.mjs', import.meta.url))

/**
 * What hostile clients do to a server with these limits. `run` returns the sockets to be closed behind it.
 * @typedef {{ name: string, limits: object, run: (victim: Victim) => Promise<net.Socket[] | void> }} Attack
 */

/** A running server. */
export class Victim {
  #child
  /** The reply to the last message: replies have no id, so one message is sent at a time. */
  #asked = Promise.resolve()
  /** Rejects when the server has exited. */
  #exited
  /** What was opened to it: an attack that fails leaves its sockets to `stop`. */
  #sockets = new Set()

  constructor(child, port, isSecure) {
    this.#child = child
    this.port = port
    this.isSecure = isSecure
    this.#exited = once(child, 'exit').then(() => Promise.reject(new Error('the server has exited')))
    this.#exited.catch(() => {})
  }

  /**
   * Start one.
   * @param {{limits?: object, tls?: object, filesMax?: number, collects?: boolean}} settings `collects`:
   *   whether it collects garbage before it reports its memory.
   */
  static async start({ limits = {}, tls, filesMax, collects = true }) {
    const args = [JSON.stringify({ limits, tls, collects })]
    const execArgv = ['--expose-gc']
    // Resident memory is to be what is held, not what malloc keeps for later.
    const env = { ...process.env, MALLOC_MMAP_THRESHOLD_: '32768', MALLOC_TRIM_THRESHOLD_: '131072' }
    const options = {
      execArgv,
      env,
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    }
    const child =
      filesMax === undefined
        ? fork(SERVER, args, options)
        : fork(SERVER, args, {
            ...options,
            execPath: limitedNode(filesMax),
          })
    const [{ port }] = await once(child, 'message')
    if (filesMax !== undefined) rmSync(limitedNode(filesMax))
    return new Victim(child, port, tls !== undefined)
  }

  get pid() {
    return this.#child.pid
  }

  /** What it counts, its memory and descriptors. */
  stats() {
    const ask = async () => {
      const reply = once(this.#child, 'message')
      if (this.#child.connected) this.#child.send('stats')
      return (await Promise.race([reply, this.#exited]))[0]
    }
    this.#asked = this.#asked.then(ask, ask)
    return this.#asked
  }

  /** The greatest resident memory seen from now on until `isOver()`, at least once. */
  async greatestRss(isOver) {
    let most = 0
    do {
      most = Math.max(most, (await this.stats()).rss)
      if (!isOver()) await pause(100)
    } while (!isOver())
    return Math.max(most, (await this.stats()).rss)
  }

  /** Ends it in good order; its exit code. */
  async stop() {
    for (const socket of this.#sockets) socket.destroy()
    const exited = once(this.#child, 'exit')
    this.#child.send('stop')
    const late = setTimeout(() => this.#child.kill('SIGKILL'), 60_000)
    const [code] = await exited
    clearTimeout(late)
    return code
  }

  /** Open a socket. It must not matter to it what becomes of it. */
  async connect() {
    const socket = net.connect({
      port: this.port,
      host: '127.0.0.1',
      allowHalfOpen: true,
    })
    socket.on('error', () => {})
    this.#sockets.add(socket)
    socket.on('close', () => this.#sockets.delete(socket))
    await new Promise((resolve) => socket.on('connect', resolve).on('close', resolve))
    return socket
  }

  /** Open many, some at a time. */
  async connectMany(count) {
    const sockets = []
    for (let at = 0; at < count; at += 200) {
      const some = Array.from({ length: Math.min(200, count - at) }, () => this.connect())
      sockets.push(...(await Promise.all(some)))
    }
    return sockets
  }

  /** Latencies in ms of `count` requests of a normal client, and of more until `isOver()`; sorted. */
  async latencies(count, isOver = () => true) {
    const client = new Client(this.port, this.isSecure)
    try {
      return await client.latencies(count, isOver)
    } finally {
      client.close()
    }
  }

  /** Waits until a normal client is served. */
  async untilServed(patienceMs = 60_000) {
    const late = Date.now() + patienceMs
    for (;;) {
      try {
        await this.latencies(1)
        return
      } catch (error) {
        if (Date.now() > late) throw error
        await pause(50)
      }
    }
  }

  /** Waits until `holds(stats)`; the stats, or what they were when patience ended. */
  async until(holds, patienceMs = 60_000) {
    const late = Date.now() + patienceMs
    for (;;) {
      const stats = await this.stats()
      if (holds(stats) || Date.now() > late) return stats
      await pause(50)
    }
  }
}

/** A normal client, whose connection is kept from one request to the next. */
export class Client {
  #agent
  #port
  #get

  constructor(port, isSecure = false) {
    const { Agent, get } = isSecure ? https : http
    this.#agent = new Agent({ keepAlive: true, maxSockets: 4, rejectUnauthorized: false })
    this.#port = port
    this.#get = get
  }

  /** Latencies in ms of `count` requests, and of more until `isOver()`; sorted. */
  async latencies(count, isOver = () => true) {
    const found = []
    while (found.length < count || !isOver()) {
      const from = performance.now()
      await this.#ask()
      found.push(performance.now() - from)
    }
    return found.sort((a, b) => a - b)
  }

  close() {
    this.#agent.destroy()
  }

  #ask() {
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(new Error('a normal client waited for 60 s')), 60_000)
      const done = (error) => {
        clearTimeout(late)
        if (error) reject(error)
        else resolve()
      }
      const options = { port: this.#port, host: '127.0.0.1', path: '/', agent: this.#agent }
      this.#get(options, (response) => {
        response.resume().on('end', () => done())
      }).on('error', done)
    })
  }
}

/** A program that starts this Node with few descriptors. */
function limitedNode(filesMax) {
  const path = `${tmpdir()}/node-with-${filesMax}-files-${process.pid}`
  writeFileSync(path, `#!/bin/sh\nulimit -n ${filesMax}\nexec '${process.execPath}' "$@"\n`)
  chmodSync(path, 0o755)
  return path
}

/**
 * Clients whose kernels take as little as can be, in a process of their own: see narrow.c.
 * @returns `read`: bytes read and connections closed, when they have read for `readMs`; `stop()` ends them.
 */
export async function narrowClients(port, { count, path, readMs, napMs }) {
  const folder = mkdtempSync(`${tmpdir()}/narrow-`)
  try {
    const source = fileURLToPath(new URL('./narrow.c', import.meta.url))
    execFileSync('cc', ['-O1', '-Wall', '-Werror', '-o', `${folder}/narrow`, source])
    const args = [port, count, path, readMs, napMs].map(String)
    const child = spawn(`${folder}/narrow`, args, { stdio: ['pipe', 'pipe', 'inherit'] })
    await once(child, 'spawn')
    const read = once(child.stdout, 'data').then(([text]) => String(text).trim().split(' ').map(Number))
    return { read, stop: () => child.stdin.end() }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Writes `part` again and again, as fast as it is taken. */
export function keepWriting(socket, part) {
  const more = () => socket.writable && socket.write(part, more)
  more()
}

/** Whether the server has closed a socket, at the latest after `patienceMs`. */
export async function closedBy(socket, patienceMs) {
  if (socket.destroyed || socket.readableEnded) return true
  socket.resume()
  return new Promise((resolve) => {
    const late = setTimeout(() => resolve(false), patienceMs)
    const closed = () => {
      clearTimeout(late)
      resolve(true)
    }
    socket.on('end', closed).on('close', closed)
  })
}

/** All that the server sends until it closes; undefined when it has not after `patienceMs`. */
export async function readAll(socket, patienceMs) {
  const pieces = []
  socket.on('data', (piece) => pieces.push(piece))
  return (await closedBy(socket, patienceMs)) ? Buffer.concat(pieces).toString('latin1') : undefined
}

/** @param {number} ms */
export function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

/** The p-th percentile of sorted numbers. */
export function percentile(sorted, p) {
  return sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * p) / 100))]
}
