/**
 * The program and the configuration of docs/guide/deployment.md under pm2: two instances in cluster mode, a
 * reload under load, and a stop that drains.
 *
 * pm2 is installed below .set-up/ from a lock file of its own. Its daemon and all that it writes belong to a
 * temporary folder, and it ends with the test. Only the port is replaced in the program, and its route waits.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import http from 'node:http'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { inRoot, installCopy, MEMORY } from '../../scripts/set-up/index.mjs'

const TOOL = join(MEMORY, 'pm2')
const CLIENTS = 4
/** Responses before and after the reload. */
const RESPONSES = 200
/** Failed requests after which the test ends. */
const FAILURES_MAX = 20
const skip = process.platform === 'win32' && 'pm2 stops by no signal there'

const folder = mkdtempSync(join(tmpdir(), 'corespun-pm2-'))
const home = join(folder, 'home')
let port = 0

before(async () => {
  if (skip) return
  await installCopy('pm2', inRoot('test', 'http', 'pm2'), TOOL)
  port = await freePort()
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(inRoot(), join(folder, 'node_modules', 'corespun'))
  const guide = readFileSync(inRoot('docs', 'guide', 'deployment.md'), 'utf8')
  for (const name of ['ecosystem.config.cjs', 'app.mjs']) {
    const [, text] = new RegExp(`\`\`\`js\n(// ${name.replace('.', '\\.')}\n[^]*?)\`\`\``).exec(guide)
    writeFileSync(join(folder, name), replaced(text))
  }
})

after(async () => {
  if (!skip) await pm2('kill')
  rmSync(folder, { recursive: true, force: true })
})

function replaced(text) {
  const route = `() => new Promise((done) => setTimeout(done, 2, String(process.pid)))`
  const slow = `'/slow': () => new Promise((done) => setTimeout(done, 3000, String(process.pid)))`
  return text
    .replace('port: 8080', `host: '127.0.0.1', port: ${port}`)
    .replace(`'/': 'Hello'`, `'/': ${route}, ${slow}`)
}

async function freePort() {
  const free = createServer().listen(0, '127.0.0.1')
  await once(free, 'listening')
  const { port } = free.address()
  free.close()
  await once(free, 'close')
  return port
}

/** Runs the command. @returns {Promise<string>} What it prints. */
async function pm2(...words) {
  const env = {
    ...process.env,
    PM2_HOME: home,
    PM2_DISCRETE_MODE: 'true',
    PM2_DISABLE_VERSION_CHECK: 'true',
    HOME: folder,
  }
  const command = join(TOOL, 'node_modules', 'pm2', 'bin', 'pm2')
  // Not by a pipe: the daemon keeps what the command was started with.
  const path = join(folder, `${words[0]}.txt`)
  const out = openSync(path, 'w')
  const child = spawn(process.execPath, [command, ...words], {
    cwd: folder,
    env,
    stdio: ['ignore', out, out],
  })
  closeSync(out)
  const [code] = await once(child, 'exit')
  const printed = readFileSync(path, 'utf8')
  assert.equal(code, 0, printed)
  return printed
}

/** The processes that are online, by their ids. */
async function online() {
  const found = JSON.parse((await pm2('jlist')).split('\n').find((line) => line.startsWith('[')))
  return found.filter(({ pm2_env }) => pm2_env.status === 'online').map(({ pid }) => String(pid))
}

function get(agent, path = '/') {
  return new Promise((resolve, reject) => {
    http
      .get({ agent, port, path, host: '127.0.0.1' }, async (response) => {
        let text = ''
        try {
          for await (const piece of response) text += piece
          resolve(response.statusCode === 200 ? text : `${response.statusCode}`)
        } catch (error) {
          reject(error)
        }
      })
      .on('error', function failed(error) {
        // A kept connection was closed while the request was on its way: every client repeats that.
        if (this.reusedSocket && error.code === 'ECONNRESET') resolve(get(agent, path))
        else reject(error)
      })
  })
}

test(
  'pm2 starts two instances, reloads them under load, and stops them',
  { skip, timeout: 300_000 },
  async () => {
    await pm2('start', 'ecosystem.config.cjs')
    const old = await online()
    assert.equal(old.length, 2)
    const seen = new Map()
    const failures = []
    let responses = 0
    let isOver = false
    // Each request by a connection of its own, and by one that is kept: what a reload could cut.
    const clients = Array.from({ length: CLIENTS }, async (_, index) => {
      const agent = new http.Agent({ keepAlive: index % 2 === 0, maxSockets: 1 })
      while (!isOver && failures.length < FAILURES_MAX) {
        try {
          const pid = await get(agent)
          seen.set(pid, (seen.get(pid) ?? 0) + 1)
          responses++
        } catch (error) {
          failures.push(String(error.code))
        }
      }
      agent.destroy()
    })
    const reaches = async (count) => {
      while (responses < count && failures.length < FAILURES_MAX)
        await new Promise((resolve) => setTimeout(resolve, 5))
    }
    try {
      await reaches(RESPONSES)
      await pm2('reload', 'app')
      await reaches(responses + RESPONSES)
    } finally {
      isOver = true
      await Promise.all(clients)
    }
    // New ones that the kernel queues while their process stops are reset (tcp_migrate_req), at most one of
    // each client for each process; none is refused or cut.
    assert.deepEqual(
      failures.filter((code) => code !== 'ECONNRESET'),
      [],
    )
    assert.ok(failures.length <= CLIENTS * old.length, failures.join())
    const fresh = await online()
    assert.equal(fresh.length, 2)
    assert.deepEqual(
      fresh.filter((pid) => old.includes(pid)),
      [],
    )
    assert.ok(fresh.every((pid) => seen.has(pid)) && old.some((pid) => seen.has(pid)), [...seen].join())
    assert.equal(seen.size, 4)
  },
)

test(
  'pm2 stop ends the instances by SIGINT, when their requests have ended',
  { skip, timeout: 300_000 },
  async () => {
    const agent = new http.Agent()
    const slow = Array.from({ length: 4 }, () => get(agent, '/slow'))
    await pm2('stop', 'app')
    for (const pid of await Promise.all(slow)) assert.match(pid, /^\d+$/)
    assert.deepEqual(await online(), [])
    await assert.rejects(get(agent), { code: 'ECONNREFUSED' })
    assert.match(readFileSync(join(home, 'pm2.log'), 'utf8'), /exited with code \[0\] via signal \[SIGINT\]/)
  },
)
