/**
 * One port for several processes on the native core, which shares it by `SO_REUSEPORT` when all of them ask
 * for that; and where a server listens that is not asked to share anything.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import cluster, { type Worker } from 'node:cluster'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createConnection } from 'node:net'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { converse } from './raw.test.support.ts'
import { serve } from './serve.ts'

const folder = mkdtempSync(join(tmpdir(), 'corespun-sharing-'))
test.after(() => rmSync(folder, { recursive: true }))

const GET = 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'

/** Starts a node:cluster process that serves with `settings`; `word` is its port or an error code. */
async function start(settings: object): Promise<{ worker: Worker; word: unknown }> {
  const exec = join(folder, 'process.mjs')
  writeFileSync(
    exec,
    `import { serve } from ${JSON.stringify(new URL('./serve.js', import.meta.url).href)}
    const settings = JSON.parse(process.env.CORESPUN_TEST_SETTINGS)
    const fetch = () => new Response(String(process.pid))
    try {
      process.send((await serve({ quiet: true, ...settings, core: 'native', fetch })).port)
    } catch (error) {
      process.send(error.code ?? String(error))
    }`,
  )
  cluster.setupPrimary({ exec, execArgv: [] })
  const worker = cluster.fork({ CORESPUN_TEST_SETTINGS: JSON.stringify(settings), NODE_V8_COVERAGE: '' })
  const [word] = (await once(worker, 'message', { signal: AbortSignal.timeout(60_000) })) as [unknown]
  return { worker, word }
}

/** The same with a zone of two workers in the process, and on node:http. */
async function startOther(kind: 'zone' | 'node', port: number): Promise<{ worker: Worker; word: unknown }> {
  const exec = join(folder, `${kind}.mjs`)
  const url = (path: string): string => JSON.stringify(new URL(path, import.meta.url).href)
  const app = 'data:text/javascript,export const fetch = () => new Response(String(process.pid))'
  const settings =
    kind === 'zone'
      ? `zone: zone.create('web', { workers: 2 }), app: ${JSON.stringify(app)}`
      : `core: 'node', fetch: () => new Response(String(process.pid))`
  writeFileSync(
    exec,
    `import { zone } from ${url('../zone/index.js')}
    import { serve } from ${url('./serve.js')}
    const server = await serve({ quiet: true, port: ${port}, ${settings} })
    process.send(server.port)`,
  )
  cluster.setupPrimary({ exec, execArgv: [] })
  const worker = cluster.fork({ NODE_V8_COVERAGE: '' })
  const [word] = (await once(worker, 'message', { signal: AbortSignal.timeout(60_000) })) as [unknown]
  return { worker, word }
}

async function end(worker: Worker): Promise<void> {
  const exited = once(worker, 'exit')
  worker.process.kill('SIGKILL')
  await exited
}

test('processes of node:cluster share a port, and nobody else takes it', async () => {
  const first = await start({ port: 0 })
  const port = first.word as number
  assert.equal(typeof port, 'number', String(first.word))
  const second = await start({ port })
  assert.equal(second.word, port)
  const seen = new Set<string>()
  const late = Date.now() + 30_000
  while (seen.size < 2) {
    assert.ok(Date.now() < late, `${seen.size} of 2 processes respond`)
    seen.add((await converse(port, [GET], { responses: 1 })).responses[0].body)
  }
  const fetch = (): Response => new Response('here')
  await assert.rejects(serve({ port, core: 'native', fetch }), { code: 'HTTP_PORT_TAKEN' })
  const third = await start({ port, reusePort: false })
  assert.equal(third.word, 'HTTP_PORT_TAKEN')
  // The server that replaces both: the port responds all the time.
  const next = await serve({ quiet: true, port, core: 'native', reusePort: true, fetch })
  await Promise.all([first, second, third].map(({ worker }) => end(worker)))
  assert.equal((await converse(port, [GET], { responses: 1 })).responses[0].body, 'here')
  await next.close({ timeoutMs: 0 })
})

for (const kind of ['zone', 'node'] as const) {
  test(`processes of node:cluster share a port (${kind})`, async () => {
    const first = await startOther(kind, 0)
    const port = first.word as number
    // node:http asks the primary for the port, and all that ask for 0 get the same one.
    const second = await startOther(kind, kind === 'node' ? 0 : port)
    assert.equal(second.word, port)
    const seen = new Set<string>()
    while (seen.size < 2) seen.add((await converse(port, [GET], { responses: 1 })).responses[0].body)
    await Promise.all([first, second].map(({ worker }) => end(worker)))
  })
}

const CLIENTS = 8
const TAKEOVERS = 4
/** How many responses of each version are awaited. */
const RESPONSES = 200

/** Starts a process that serves with `reusePort` until it receives a message. */
async function version(port: number): Promise<{ child: ChildProcess; port: number }> {
  const path = join(folder, 'version.mjs')
  writeFileSync(
    path,
    `import { serve } from ${JSON.stringify(new URL('./serve.js', import.meta.url).href)}
    const routes = { '/': () => String(process.pid) }
    const port = Number(process.argv[2])
    const server = await serve({ quiet: true, port, reusePort: true, core: 'native', routes })
    process.once('message', async () => {
      await server.close()
      process.disconnect()
    })
    process.send(server.port)`,
  )
  const child = fork(path, [String(port)], { execArgv: [], env: { ...process.env, NODE_V8_COVERAGE: '' } })
  const [found] = (await once(child, 'message', { signal: AbortSignal.timeout(60_000) })) as [number]
  return { child, port: found }
}

/** The body of a response, or how the connection failed. */
function ask(port: number): Promise<string> {
  return new Promise((resolve) => {
    let text = ''
    const socket = createConnection(port, '127.0.0.1', () => socket.write(GET))
    socket.setEncoding('latin1').on('data', (part: string) => (text += part))
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
    socket.on('close', () => resolve(/\r\n\r\n(\d+)$/.exec(text)?.[1] ?? `cut: ${text}`))
  })
}

const skip = process.platform === 'linux' ? false : 'other systems do not distribute connections'

test('versions with reusePort follow each other on a port under load', { skip }, async () => {
  let { child, port } = await version(0)
  const seen = new Map<string, number>()
  const count = (word: string): number => seen.get(word) ?? 0
  let isOver = false
  const load = Promise.all(
    Array.from({ length: CLIENTS }, async () => {
      while (!isOver) {
        const word = await ask(port)
        seen.set(word, count(word) + 1)
      }
    }),
  )
  const pids = new Set([String(child.pid)])
  for (let takeover = 0; takeover < TAKEOVERS; takeover += 1) {
    const { child: next } = await version(port)
    pids.add(String(next.pid))
    const exited = once(child, 'exit')
    child.send('close')
    assert.deepEqual(await exited, [0, null])
    child = next
    while (count(String(child.pid)) < RESPONSES) await new Promise(setImmediate)
  }
  isOver = true
  await load
  const last = once(child, 'exit')
  child.send('close')
  await last
  // None is refused, reset or cut.
  assert.deepEqual(new Set(seen.keys()), pids, JSON.stringify([...seen]))
})

test('a port of a process that does not share it is taken also for those who do', async () => {
  const server = await serve({ quiet: true, port: 0, core: 'native', routes: { '/': 'x' } })
  const other = await start({ port: server.port, reusePort: true })
  assert.equal(other.word, 'HTTP_PORT_TAKEN')
  await end(other.worker)
  await server.close({ timeoutMs: 0 })
})

for (const core of ['native', 'node'] as const) {
  test(`this machine alone reaches a server that names no host (${core})`, async () => {
    const routes = { '/': 'x' }
    const server = await serve({ quiet: true, port: 0, core, routes })
    assert.equal(server.url, `http://127.0.0.1:${server.port}`)
    const addresses = Object.values(networkInterfaces()).flatMap((all) => all ?? [])
    const outside = addresses.find(({ internal, family }) => !internal && family === 'IPv4')
    if (outside !== undefined) {
      const socket = createConnection(server.port, outside.address)
      const [error] = (await once(socket, 'error')) as [NodeJS.ErrnoException]
      assert.equal(error.code, 'ECONNREFUSED')
    }
    await server.close({ timeoutMs: 0 })
    const open = await serve({ quiet: true, port: 0, host: '0.0.0.0', core, routes })
    assert.equal(open.url, `http://0.0.0.0:${open.port}`)
    assert.equal(await (await fetch(open.url)).text(), 'x')
    await open.close({ timeoutMs: 0 })
  })
}
