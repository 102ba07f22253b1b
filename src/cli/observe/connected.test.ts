/**
 * What `metrics()` and `dashboard()` of a thread show of fleets that other threads and processes are
 * connected to, and that none of them keeps the response.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { after, test } from 'node:test'
import { until } from '../../base/wait.test.support.ts'
import { connect } from '../../fleet/index.ts'
import { createApp } from '../../http/index.ts'
import { metrics } from '../../metrics/index.ts'
import { dashboard } from '../../observe/index.ts'
import type { Snapshot } from '../../observe/internal.ts'
import { inZone } from '../../observe/observe.test.support.ts'
import type { Zone } from '../../zone/index.ts'

const [major, minor] = process.versions.node.split('.').map(Number)
const hasSqlite = major > 22 || (major === 22 && minor >= 13)
const folder = mkdtempSync(join(tmpdir(), 'connected-'))
after(() => rmSync(folder, { recursive: true }))

const app = createApp({ routes: { '/metrics': metrics(), '/dashboard': dashboard({ control: true }) } })
const get = async (path: string): Promise<string> => (await app.inject(path)).text()
const snapshot = async (): Promise<Snapshot> => JSON.parse(await get('/dashboard?snapshot')) as Snapshot
const moduleOf = (own: Zone) =>
  own.module<typeof import('./connected.test.support.ts')>(
    new URL('./connected.test.support.js', import.meta.url),
  )

/** How many dead jobs of the zone `mail` a scrape shows. */
async function deadNow(): Promise<number | undefined> {
  const found = /^corespun_jobs\{corespun_zone="mail",corespun_job_state="dead"\} (\d+)$/m
  const [, count] = found.exec(await get('/metrics')) ?? []
  return count === undefined ? undefined : Number(count)
}

async function retry(key: string): Promise<unknown> {
  const headers = { 'content-type': 'application/json', 'sec-fetch-site': 'same-origin' }
  const body = JSON.stringify({ action: 'retry', zone: 'mail', key })
  return (await app.inject('/dashboard', { method: 'POST', headers, body })).json()
}

test('fleets of workers are shown, each memory of its own, and a stuck worker keeps no response', () =>
  inZone({ workers: 1, graceMs: 0 }, (one) =>
    inZone({ workers: 1, graceMs: 0 }, async (other) => {
      await moduleOf(one).connected('memory:', 'one')
      await moduleOf(other).connected('memory:', 'two')
      await until(async () => (await deadNow()) === 2)
      await until(async () => (await snapshot()).fleet?.dead.length === 2)
      assert.deepEqual((await snapshot()).actions, ['retry'])
      assert.deepEqual(await retry('unknown'), { done: false })
      assert.deepEqual(await retry('two'), { done: true })
      await until(async () => (await deadNow()) === 2) // it has failed again
      const shared = new SharedArrayBuffer(8)
      const words = new Int32Array(shared)
      const task = moduleOf(one).blocked(shared)
      await until(() => words[1] === 1)
      await until(async () => (await deadNow()) === 1)
      const late = `fleets: ${one.id}/0 has not responded within 500 ms`
      await until(async () => (await snapshot()).fleet!.problems.includes(late))
      assert.deepEqual(await retry('two'), { done: true })
      const { error: silent } = (await retry('one')) as { readonly error: string }
      assert.match(silent, /has not responded within 500 ms$/)
      Atomics.store(words, 0, 1)
      Atomics.notify(words, 0)
      await task
      await until(async () => (await deadNow()) === 2)
      for (const own of [one, other]) await moduleOf(own).disconnected()
      await until(async () => (await deadNow()) === undefined)
      await until(async () => (await snapshot()).fleet === undefined)
      const { error } = (await retry('two')) as { readonly error: string }
      assert.match(error, /^this dashboard changes nothing/)
    }),
  ))

test('so are fleets of workers that are processes', { skip: process.platform === 'win32' }, () =>
  inZone({ workers: 1, isolation: 'process' }, async (own) => {
    await moduleOf(own).connected('memory:', 'far')
    await until(async () => (await deadNow()) === 1)
    await until(async () => (await snapshot()).fleet?.dead[0]?.key === 'far')
    assert.deepEqual(await retry('far'), { done: true })
    await own.reload()
    await until(async () => (await deadNow()) === undefined)
  }),
)

test('a file is looked at once, however it is written', { skip: !hasSqlite }, async () => {
  const file = join(folder, 'shared.db')
  await using fleet = await connect(`sqlite:${file}`)
  await fleet.jobs<{ send(): void }>('post').submit('a', 'send', [])
  await inZone({ workers: 1 }, async (own) => {
    await moduleOf(own).connected(`sqlite:${relative(process.cwd(), file)}`, 'b')
    const connections = async () => (await snapshot()).threads.reduce((sum, { fleets }) => sum + fleets, 0)
    await until(async () => (await connections()) === 2)
    await until(async () => (await deadNow()) === 1)
    assert.match(await get('/metrics'), /^corespun_jobs\{corespun_zone="post",.*"waiting"\} 1$/m)
    await moduleOf(own).disconnected()
  })
})
