/**
 * `corespun serve` as a service manager runs it: on a socket that it was started with, and with a stop that
 * load balancers see before it happens.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { corespun, start, until } from './corespun.mjs'

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

test('a descriptor that is no socket is refused', { skip, timeout: 60_000 }, async () => {
  const { code, err } = await corespun(['serve', app, '--fd', '1'])
  assert.equal(code, 2)
  assert.match(err, /descriptor 1/)
})
