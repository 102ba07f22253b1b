/**
 * One port for several processes on the native core, which shares it by `SO_REUSEPORT` when all of them ask
 * for that; and where a server listens that is not asked to share anything.
 */
import assert from 'node:assert/strict'
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
  const next = await serve({ quiet: true, port, core: 'native', reusePort: true, fetch, globals: false })
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

test('a port of a process that does not share it is taken also for those who do', async () => {
  const server = await serve({ quiet: true, port: 0, core: 'native', routes: { '/': 'x' }, globals: false })
  const other = await start({ port: server.port, reusePort: true })
  assert.equal(other.word, 'HTTP_PORT_TAKEN')
  await end(other.worker)
  await server.close({ timeoutMs: 0 })
})

for (const core of ['native', 'node'] as const) {
  test(`this machine alone reaches a server that names no host (${core})`, async () => {
    const routes = { '/': 'x' }
    const server = await serve({ quiet: true, port: 0, core, routes, globals: false })
    assert.equal(server.url, `http://127.0.0.1:${server.port}`)
    const addresses = Object.values(networkInterfaces()).flatMap((all) => all ?? [])
    const outside = addresses.find(({ internal, family }) => !internal && family === 'IPv4')
    if (outside !== undefined) {
      const socket = createConnection(server.port, outside.address)
      const [error] = (await once(socket, 'error')) as [NodeJS.ErrnoException]
      assert.equal(error.code, 'ECONNREFUSED')
    }
    await server.close({ timeoutMs: 0 })
    const open = await serve({ quiet: true, port: 0, host: '0.0.0.0', core, routes, globals: false })
    assert.equal(open.url, `http://0.0.0.0:${open.port}`)
    assert.equal(await (await fetch(open.url)).text(), 'x')
    await open.close({ timeoutMs: 0 })
  })
}
