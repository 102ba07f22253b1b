/**
 * `corespun serve` as a service manager runs it: on a socket that it was started with, and with a stop that
 * load balancers see before it happens; and the program of docs/guide/deployment.md that starts its
 * successor.
 *
 * systemd's part is that of systemd-socket-activate, where it is installed.
 */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { inRoot } from '../../scripts/set-up/index.mjs'
import { corespun, program, start, until } from './corespun.mjs'

const folder = mkdtempSync(join(tmpdir(), 'corespun-cli-deploys-'))
after(() => rmSync(folder, { recursive: true }))

const app = join(folder, 'app.mjs')
writeFileSync(
  app,
  `import { threadId } from 'node:worker_threads'
  import { readiness } from ${JSON.stringify(import.meta.resolve('corespun/http'))}
  export const routes = { '/': () => String(threadId), '/ready': readiness() }`,
)

const skip = process.platform === 'win32' && 'descriptors are not inherited by number'

async function get(url) {
  const response = await fetch(url, { headers: { connection: 'close' } })
  return `${response.status} ${await response.text()}`
}

test(
  'all workers serve on an inherited socket, and its stop is announced',
  { skip, timeout: 120_000 },
  async () => {
    const listener = createServer().listen(0, '127.0.0.1')
    await once(listener, 'listening')
    const { port } = listener.address()
    const words = ['serve', app, '--fd', '3', '--workers', '2', '--close-delay', '3s']
    const started = start(words, { stdio: ['ignore', 'pipe', 'pipe', listener._handle.fd] })
    await until(started.child.stdout, () => started.out.includes('\n'))
    listener.close()
    await once(listener, 'close')
    const url = `http://127.0.0.1:${port}`
    assert.ok(started.out.includes(`serving ${url} with 2 workers`), started.out)
    const threads = new Set()
    while (threads.size < 2) threads.add(await get(url))
    assert.equal(await get(`${url}/ready`), '200 ready')
    started.child.kill('SIGTERM')
    while ((await get(`${url}/ready`)) !== '503 closing');
    const { code, err } = await started.ended
    assert.deepEqual([code, err], [0, ''])
  },
)

const ACTIVATE = 'systemd-socket-activate'
const isThere = spawnSync(ACTIVATE, ['--version']).status === 0
/** How often it is started: another program may take the port that was free a moment before. */
const STARTS_MAX = 5

/** Listens for the command, which it becomes when the first client connects. */
async function activated(words) {
  for (let tries = 1; ; tries += 1) {
    const free = createServer().listen(0, '127.0.0.1')
    await once(free, 'listening')
    const { port } = free.address()
    free.close()
    await once(free, 'close')
    const command = ['-l', `127.0.0.1:${port}`, process.execPath, program, ...words]
    const child = spawn(ACTIVATE, command, { stdio: ['ignore', 'pipe', 'pipe'] })
    const found = { child, port, out: '', err: '', ended: once(child, 'close') }
    child.stdout.on('data', (text) => (found.out += text))
    child.stderr.on('data', (text) => (found.err += text))
    try {
      await until(child.stderr, () => found.err.includes('Listening on'))
      return found
    } catch (error) {
      assert.ok(tries < STARTS_MAX, `${error}: ${found.err}`)
    }
  }
}

test(
  'a connection to the socket of systemd starts the server, which serves it',
  { skip: isThere ? false : `${ACTIVATE} is not installed`, timeout: 120_000 },
  async () => {
    const { child, port, ended, ...read } = await activated(['serve', app, '--fd', '3', '--workers', '1'])
    assert.match(await get(`http://127.0.0.1:${port}`), /^200 \d+$/)
    child.kill('SIGTERM')
    assert.deepEqual(await ended, [0, null], read.err)
  },
)

/** The program of the guide; what it responds is its process instead of its version. */
function programOfTheGuide() {
  const guide = readFileSync(inRoot('docs', 'guide', 'deployment.md'), 'utf8')
  const [, text] = /```js\n(import \{ spawn[^]*?)```/.exec(guide)
  assert.ok(text.includes("'corespun/http'") && text.includes('process.env.VERSION'), text)
  return text
    .replace("'corespun/http'", JSON.stringify(import.meta.resolve('corespun/http')))
    .replace('process.env.VERSION', 'process.pid')
}

/** How many responses of the successor are awaited. */
const RESPONSES = 50

test('the program of the guide starts its successor under load', { skip, timeout: 120_000 }, async () => {
  const path = join(folder, 'successor.mjs')
  writeFileSync(path, programOfTheGuide())
  const listener = createServer().listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const url = `http://127.0.0.1:${listener.address().port}`
  const stdio = ['ignore', 'inherit', 'inherit', listener._handle.fd, 'ipc']
  const child = spawn(process.execPath, [path], { stdio })
  const exited = once(child, 'exit')
  await once(child, 'message')
  child.disconnect()
  listener.close()
  await once(listener, 'close')
  const own = `200 version ${child.pid}`
  const seen = new Map()
  let isOver = false
  const clients = Array.from({ length: 8 }, async () => {
    while (!isOver) {
      const text = await get(url) // refused, cut: the test fails
      seen.set(text, (seen.get(text) ?? 0) + 1)
      const [next] = [...seen.keys()].filter((found) => found !== own)
      if (text === own && seen.get(own) === RESPONSES) child.kill('SIGUSR2')
      isOver = child.exitCode !== null && seen.get(next) >= RESPONSES
    }
  })
  try {
    await Promise.all(clients)
    assert.deepEqual(await exited, [0, null])
    assert.equal(seen.size, 2, [...seen.keys()].join())
  } finally {
    isOver = true
    await Promise.allSettled(clients)
    child.kill('SIGKILL')
    for (const text of seen.keys()) if (text !== own) process.kill(Number(text.split(' ')[2]), 'SIGTERM')
  }
  await assert.rejects(async () => {
    for (;;) await get(url) // until its last process has ended
  })
})

for (const [words, message] of [
  [['--fd', 'x'], '--fd takes a whole number from 0 to 1048575, not "x"'],
  [['--fd', '3', '--port', '80'], '--fd cannot be combined with --port'],
  [['--fd', '3', '--watch'], '--fd cannot be combined with --watch'],
  [['--close-delay', 'soon'], '--close-delay'],
]) {
  test(`refused: ${words.join(' ')}`, async () => {
    const { code, err } = await corespun(['serve', app, ...words])
    assert.equal(code, 2)
    assert.ok(err.includes(message), err)
  })
}

test('a descriptor that is not a socket is refused', { skip, timeout: 60_000 }, async () => {
  const { code, err } = await corespun(['serve', app, '--fd', '1'])
  assert.equal(code, 2)
  assert.match(err, /descriptor 1/)
})
