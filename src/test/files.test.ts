/**
 * Files of stores of a run: what a death of their task loses, and what it does not.
 *
 * That stores keep this promise on disks is in test/stress.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { atomicallySync, store as stores } from '../store/index.ts'
import { check } from './index.ts'

test('what was flushed survives, and of the rest the first changes', async () => {
  const found = new Set<number>()
  await check({ seeds: 100 }, async ({ store, spawn, step, sleep }) => {
    let flushed = 0
    const writer = spawn(async () => {
      const counts = store<number>({ file: 'counts.db' })
      for (let count = 1; count <= 20; count++) {
        counts.set(`n${count}`, count)
        counts.increment('all')
        if (count % 5 === 0) {
          await counts.flush()
          flushed = count
        }
        await step()
      }
    }, 'writer')
    await sleep(1)
    for (let count = 0; count < 12; count++) await step()
    writer.kill()
    const counts = store<number>({ file: 'counts.db' })
    const all = counts.get('all') ?? 0
    assert.ok(all >= flushed, `${all} of ${flushed}`)
    // A change is there with all before it.
    for (let count = 1; count <= all; count++) assert.equal(counts.get(`n${count}`), count)
    assert.ok(!counts.has(`n${all + 2}`))
    found.add(all - flushed)
    counts.close()
  })
  assert.ok(found.size > 2, [...found].join())
})

test('entries of a file keep their times to live, which pass while it is closed', () =>
  check({ seeds: 20, stall: 0 }, async ({ store, sleep, spawn }) => {
    const task = spawn(async () => {
      const first = store<number>({ file: 'a.db', ttlMs: 60_000 })
      first.set('default', 1)
      first.set('short', 1, { ttlMs: 1000 })
      await sleep(400)
      first.update('short', () => 2)
      await first.flush()
      await new Promise(() => {})
    })
    await sleep(500)
    task.kill()
    const second = store<number>({ file: 'a.db' })
    second.set('always', 1)
    assert.equal(second.get('short'), 2)
    second.close()
    await sleep(499)
    const third = store<number>({ file: 'a.db' })
    assert.equal(third.get('short'), 2)
    await sleep(2)
    assert.deepEqual([third.get('short'), third.get('default')], [undefined, 1])
    third.close()
    await sleep(60_000)
    assert.deepEqual([...store<number>({ file: 'a.db' }).entries()], [['always', 1]])
  }))

test('a file has one store, and what a store that was closed has written', () =>
  check({ seeds: 20 }, async ({ store }) => {
    const first = store<string>({ file: 'a.db', entriesMax: 10 })
    for (let count = 0; count < 300; count++) first.update('key', () => `value ${count}`)
    first.compareAndSet('key', 'value 299', 'last')
    first.set('other', 'x')
    first.delete('other')
    assert.throws(() => store({ file: 'a.db' }), { code: 'STORE_FILE_IN_USE' })
    first.close()
    first.close()
    const second = store<string>({ file: 'a.db' })
    assert.deepEqual([...second.entries()], [['key', 'last']])
    second.clear()
    await second.flush()
    second[Symbol.dispose]()
    assert.equal(store({ file: 'a.db' }).size, 0)
  }))

test('stores that code of a run creates by name end with it, and so do their files', async () => {
  const counts = () => stores.getOrCreate<number>('counts', { file: '/nowhere/counts.db', entriesMax: 10 })
  await check({ seeds: 20 }, async ({ spawn }) => {
    assert.equal(counts().size, 0)
    const writer = spawn(async () => {
      atomicallySync((tx) => tx.set(counts(), 'a', 1))
      await counts().flush()
      counts().close()
    })
    await writer.join()
    assert.equal(counts().get('a'), 1)
    stores.create('other').set('a', 1)
  })
  assert.throws(() => stores.get('counts'), { code: 'STORE_UNKNOWN' })
  assert.throws(() => stores.get('other'), { code: 'STORE_UNKNOWN' })
})

test('a store from before a run keeps its file, and is opened in runs by the same call', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'corespun-check-'))
  const file = join(folder, 'before.db')
  const open = (limits = {}) => stores.getOrCreate<number>('before', { file, ...limits })
  open()
  let runs = 0
  await check({ seeds: 2 }, () => {
    runs = open().increment('runs')
    assert.throws(() => open({ entriesMax: 7 }), { code: 'STORE_ARGUMENT' })
  })
  assert.ok(runs > 1)
  open().close()
  assert.equal(open().get('runs'), runs)
  open().close()
  rmSync(folder, { recursive: true })
})

test('a store that code of a dead task opens is closed', async () => {
  for (const options of [{}, { file: 'a.db' }])
    await check({ seeds: 3 }, async ({ sleep, spawn }) => {
      const open = () => stores.getOrCreate<number>('of a dead task', options)
      let settle = (): void => {}
      const settled = new Promise<void>((resolve) => (settle = resolve))
      const killed = spawn(async () => (await settled, open().set('a', 1)))
      await sleep(1)
      killed.kill()
      settle()
      await sleep(1)
      assert.equal(open().size, 0)
    })
  assert.throws(() => stores.get('of a dead task'), { code: 'STORE_UNKNOWN' })
})

test('a file that has more than a store may have remains as it is', () =>
  check({ seeds: 2 }, () => {
    const open = (limits = {}) => stores.create<number>('full', { file: 'a.db', eviction: 'none', ...limits })
    const made = open()
    for (const key of ['a', 'b', 'c']) made.set(key, 1)
    made.close()
    assert.throws(() => open({ entriesMax: 2 }), { code: 'STORE_FULL' })
    assert.equal(open().size, 3)
  }))

test('keys of a store have one order, in whichever process', () =>
  check({ seeds: 1 }, ({ store }) => {
    const keys = Array.from({ length: 20 }, (_, index) => `key ${10 + index}`)
    const made = store<number>()
    for (const key of keys.toReversed()) made.set(key, 1)
    assert.deepEqual([...made.keys()], keys)
    assert.deepEqual(
      [...made].map(([key]) => key),
      keys,
    )
  }))

test('a transaction that was not flushed may be in the file of who dies', async () => {
  const found = new Set<number>()
  await check({ seeds: 30 }, async ({ spawn, step, store }) => {
    const writer = spawn(async () => {
      const made = store<number>({ file: 'a.db' })
      atomicallySync((tx) => tx.set(made, 'a', 1))
      await new Promise(() => {})
    })
    await step()
    await step()
    writer.kill()
    found.add(store<number>({ file: 'a.db' }).size)
  })
  assert.deepEqual([...found].sort(), [0, 1])
})

/** What a run sees of a store that evicts and expires: printed by a process with hashes of its own. */
const SEEN = `
import { check } from ${JSON.stringify(new URL('./index.js', import.meta.url).href)}
const seen = []
await check({ seeds: 3 }, async ({ random, sleep, store }) => {
  const values = store({ entriesMax: 4096 })
  for (let n = 0; n < 9000; n++) values.set('key ' + Math.floor(random() * 6000), n)
  seen.push([...values.keys()].join())
  const brief = store({ ttlMs: 50 })
  const watcher = brief.watch({ prefix: 'k' })
  for (let n = 0; n < 40; n++) brief.set('k' + n, n)
  await sleep(100)
  seen.push(brief.size)
  for (let n = 0; n < 80; n++) seen.push(JSON.stringify((await watcher.next()).value))
  await watcher.return()
})
console.log(seen.join('\\n'))
`

test('what stores evict and expire is the same in each process', () => {
  const args = [...process.execArgv, '--input-type=module', '--eval', SEEN]
  const [first, second] = [1, 2].map(() => spawnSync(process.execPath, args, { encoding: 'utf8' }))
  assert.ok(first.stdout.length > 4096, first.stderr)
  assert.equal(second.stdout, first.stdout)
})
