/**
 * Durable jobs in hosts that are processes, with a server of NATS: a SIGKILL of the host, and of the server.
 *
 * Needs CORESPUN_NATS_SERVER, which `npm test -- fleet` sets.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { connect } from 'corespun/fleet'
import { program as CORESPUN } from '../cli/corespun.mjs'
import { SKIP, startServer } from '../../dist/fleet/engine/nats/server.test.support.js'

const folder = mkdtempSync(join(tmpdir(), 'jobs-'))
after(() => rmSync(folder, { recursive: true }))

const path = join(folder, 'work.ts')
writeFileSync(
  path,
  `
import { appendFileSync, existsSync } from 'node:fs'
export const double = (n: number): number => n * 2
export const sizeOf = (text: string): number => text.length
export async function until(begun: string, file: string): Promise<number> {
  appendFileSync(begun, process.pid + ' ')
  while (!existsSync(file)) await new Promise((resolve) => setTimeout(resolve, 5))
  return process.pid
}
`,
)

/** A host as a process; resolves when it takes jobs. */
async function startHost(t, url) {
  const args = [CORESPUN, 'host', path, '--name', 'work', '--nats', url, '--workers', '1']
  const child = spawn(process.execPath, [...args, '--jobs', '2', '--lease', '1s'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(child, 'close').then(([code]) => code)
  t.after(async () => {
    child.kill('SIGKILL')
    await ended
  })
  await Promise.race([
    once(createInterface({ input: child.stdout }), 'line'),
    ended.then((code) => assert.fail(`the host ended with ${code}`)),
  ])
  return { child, ended }
}

const skip = SKIP

test('a job whose host is killed runs on another one, and has one result', { skip }, async (t) => {
  const server = await startServer()
  t.after(() => server[Symbol.asyncDispose]())
  const far = await connect(server.url)
  t.after(() => far.close())
  const jobs = far.jobs('work')
  const [begun, file] = [join(folder, 'begun'), join(folder, 'file')]
  const first = await startHost(t, server.url)
  const changes = await jobs.watch()
  await jobs.submit('a', 'until', [begun, file])
  for await (const { status } of changes) if (status === 'running') break
  // It is recorded as running when it was passed to a worker, which may still be loading the module.
  while (!existsSync(begun)) await setTimeout(5)
  first.child.kill('SIGKILL')
  await first.ended
  const second = await startHost(t, server.url)
  writeFileSync(file, '')
  assert.equal(await jobs.result('a'), second.child.pid)
  assert.equal((await jobs.get('a')).hostsLost, 1)
  assert.deepEqual(
    readFileSync(begun, 'utf8').trim().split(' ').map(Number),
    [first, second].map(({ child }) => child.pid),
  )
  assert.equal(await jobs.submit('a', 'until', [begun, file]), false)
  second.child.kill('SIGTERM')
  assert.equal(await second.ended, 0)
})

test('jobs and results survive a kill of the server, and a running job goes on', { skip }, async (t) => {
  const first = await startServer()
  const port = Number(new URL(first.url).port)
  const far = await connect(first.url)
  t.after(() => far.close())
  const jobs = far.jobs('work')
  const [begun, file] = [join(folder, 'begun 2'), join(folder, 'file 2')]
  await jobs.submit('waits', 'double', [4], { delayMs: 1000 })
  const host = await startHost(t, first.url)
  const changes = await jobs.watch()
  await jobs.submit('runs', 'until', [begun, file])
  for await (const { key, status } of changes) if (key === 'runs' && status === 'running') break
  await first.kill()
  writeFileSync(file, '')
  const second = await startServer(port, first.folder)
  t.after(() => second[Symbol.asyncDispose]())
  assert.equal(await jobs.result('runs'), host.child.pid)
  assert.equal(await jobs.result('waits'), 8)
  host.child.kill('SIGTERM')
  assert.equal(await host.ended, 0)
})

test('a store that is full is refused as such, and its jobs run when there is room', { skip }, async (t) => {
  const limited = (store) => `jetstream { store_dir: ${JSON.stringify(store)}, max_file_store: 2M }`
  const first = await startServer(-1, undefined, limited)
  const port = Number(new URL(first.url).port)
  const far = await connect(first.url)
  t.after(() => far.close())
  const jobs = far.jobs('work')
  const large = 'x'.repeat(200_000)
  let count = 0
  const fill = async () => {
    for (; ; count += 1) await jobs.submit(`large ${count}`, 'sizeOf', [large])
  }
  await assert.rejects(fill(), ({ code, message }) => {
    assert.equal(code, 'FLEET_ENGINE')
    assert.match(message, /store is full; raise max_file_store/)
    return true
  })
  assert.ok(count > 0 && (await jobs.count()) === count)
  // Results need room as well.
  const host = await startHost(t, first.url)
  await assert.rejects(jobs.result('large 0', { timeoutMs: 500 }), { code: 'JOB_TIMEOUT' })
  await first.kill()
  const second = await startServer(port, first.folder)
  t.after(() => second[Symbol.asyncDispose]())
  for (let at = 0; at < count; at += 1) assert.equal(await jobs.result(`large ${at}`), large.length)
  assert.equal(await jobs.submit('next', 'sizeOf', [large]), true)
  assert.equal(await jobs.result('next'), large.length)
  host.child.kill('SIGTERM')
  assert.equal(await host.ended, 0)
})
