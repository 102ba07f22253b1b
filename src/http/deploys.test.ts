/**
 * What a deployment needs of a server: readiness that turns before it stops, sockets that outlive a process,
 * and a next version that takes over without a connection refused.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { zone } from '../zone/index.ts'
import { onCores } from './cores.test.support.ts'
import { readiness, serve } from './index.ts'
import { converse } from './raw.test.support.ts'

const folder = mkdtempSync(join(tmpdir(), 'corespun-deploys-'))
test.after(() => rmSync(folder, { recursive: true }))

const GET = 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'
/** Long enough for requests of a busy machine. */
const DELAY_MS = 3000

async function get(url: string): Promise<string> {
  const response = await fetch(url, { headers: { connection: 'close' } })
  return `${response.status} ${await response.text()}`
}

onCores('readiness turns 503 when close is called, and requests go on', async (start) => {
  const server = await start({ routes: { '/': 'here', '/ready': readiness() } })
  assert.equal(await get(`${server.url}/ready`), '200 ready')
  const closed = server.close({ delayMs: DELAY_MS })
  assert.equal(await get(`${server.url}/ready`), '503 closing')
  assert.equal(await get(`${server.url}/`), '200 here')
  await closed
  await assert.rejects(get(server.url))
})

onCores('readiness is what its check returns', async (start) => {
  let state: () => boolean | Promise<boolean> = () => false
  const ready = readiness((request) => {
    assert.equal(request.method, 'GET')
    return state()
  })
  const server = await start({ routes: { '/ready': ready } })
  assert.equal(await get(`${server.url}/ready`), '503 not ready')
  state = () => Promise.resolve(false)
  assert.equal(await get(`${server.url}/ready`), '503 not ready')
  state = () => Promise.resolve(true)
  const response = await fetch(`${server.url}/ready`)
  assert.deepEqual([response.status, response.headers.get('cache-control')], [200, 'no-store'])
  state = () => Promise.reject(new Error('no database'))
  assert.match(await get(`${server.url}/ready`), /^500 /)
  assert.equal(await (await server.inject('/ready')).text().catch(String), 'Internal Server Error')
})

test('a check is a function', () => {
  assert.throws(() => readiness(true as never), { code: 'HTTP_ARGUMENT' })
})

test('every worker of a zone announces that the server closes', async () => {
  const own = zone.create('http deploys', { workers: 2 })
  const app = join(folder, 'app.mjs')
  const http = JSON.stringify(new URL('./index.js', import.meta.url).href)
  writeFileSync(
    app,
    `import { readiness } from ${http}
    export default { routes: { '/ready': readiness() } }`,
  )
  const server = await serve({ zone: own, app, port: 0, quiet: true })
  assert.equal(await get(`${server.url}/ready`), '200 ready')
  const closed = server.close({ delayMs: DELAY_MS })
  // The announcement is a message to the workers.
  while ((await get(`${server.url}/ready`)) !== '503 closing');
  await closed
  await assert.rejects(get(server.url))
  await own.close()
})

/** A process that serves on its descriptor 3, and starts its next version on it on demand. */
function program(core: string): string {
  const file = join(folder, `${core}.mjs`)
  const url = (path: string): string => JSON.stringify(new URL(path, import.meta.url).href)
  writeFileSync(
    file,
    `import { spawn } from 'node:child_process'
    import { once } from 'node:events'
    import { serve } from ${url('./index.js')}
    const fetch = () => new Response(String(process.pid))
    const server = await serve({ fd: 3, core: ${JSON.stringify(core)}, quiet: true, fetch })
    process.send({ url: server.url })
    process.once('disconnect', () => process.exit(0))
    let next
    process.on('message', async (word) => {
      if (word === 'start the next') {
        const stdio = ['ignore', 'inherit', 'inherit', 3, 'ipc']
        next = spawn(process.execPath, [process.argv[1]], { stdio })
        await once(next, 'message')
        process.send({ next: next.pid })
      } else if (word === 'close') {
        await server.close()
        process.send({ closed: server.stats().cut })
      } else {
        next.disconnect()
        await once(next, 'exit')
        process.disconnect()
      }
    })`,
  )
  return file
}

function startOn(listener: Server, file: string): ChildProcess {
  const { fd } = (listener as unknown as { _handle: { fd: number } })._handle
  return spawn(process.execPath, [file], {
    stdio: ['ignore', 'inherit', 'inherit', fd, 'ipc'],
    env: { ...process.env, NODE_V8_COVERAGE: '' },
  })
}

async function word(child: ChildProcess): Promise<Record<string, unknown>> {
  const [message] = (await once(child, 'message', { signal: AbortSignal.timeout(60_000) })) as [object]
  return message as Record<string, unknown>
}

const skip = process.platform === 'win32' && 'descriptors are not inherited by number'

test('the next version takes over an inherited socket, and no connection is refused', { skip }, async () => {
  const listener = createServer().listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const { port } = listener.address() as AddressInfo
  const child = startOn(listener, program('native'))
  assert.deepEqual(await word(child), { url: `http://127.0.0.1:${port}` })
  listener.close()
  await once(listener, 'close')
  const seen = new Map<string, number>()
  let isLoading = true
  const load = async (): Promise<void> => {
    while (isLoading) {
      const { responses } = await converse(port, [GET], { responses: 1 })
      assert.equal(responses[0]?.status, 200)
      seen.set(responses[0].body, (seen.get(responses[0].body) ?? 0) + 1)
    }
  }
  const loads = Promise.all(Array.from({ length: 8 }, load))
  child.send('start the next')
  const { next } = await word(child)
  child.send('close')
  assert.deepEqual(await word(child), { closed: 0 })
  // Only the next version is left.
  const before = seen.get(String(next)) ?? 0
  while ((seen.get(String(next)) ?? 0) < before + 100) await new Promise(setImmediate)
  isLoading = false
  await loads
  assert.deepEqual(new Set(seen.keys()), new Set([String(child.pid), String(next)]))
  child.send('end')
  assert.deepEqual(await once(child, 'exit'), [0, null])
})

test('node:http serves on an inherited socket, too', { skip }, async () => {
  const listener = createServer().listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const { port } = listener.address() as AddressInfo
  const child = startOn(listener, program('node'))
  assert.deepEqual(await word(child), { url: `http://127.0.0.1:${port}` })
  listener.close()
  await once(listener, 'close')
  assert.equal((await converse(port, [GET], { responses: 1 })).responses[0].body, String(child.pid))
  child.disconnect()
  assert.deepEqual(await once(child, 'exit'), [0, null])
})

onCores('what cannot be served on is refused', async (start) => {
  const routes = { '/': 'x' }
  for (const fd of [-1, 1.5, '3', 2_000_000])
    await assert.rejects(start({ routes, port: undefined as never, fd: fd as never }), {
      code: 'HTTP_ARGUMENT',
    })
  await assert.rejects(start({ routes, port: 80, fd: 3 }), { code: 'HTTP_ARGUMENT', message: /fd/ })
  await assert.rejects(start({ routes, port: undefined as never, fd: 999_999 }), {
    code: 'HTTP_LISTEN',
    message: /descriptor 999999/,
  })
})
