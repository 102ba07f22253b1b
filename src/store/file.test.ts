/**
 * Stores with a file: what survives, what an acknowledgement means, which files are refused.
 *
 * Each test has a folder of its own. Kills and full disks are in test/stress.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { Worker } from 'node:worker_threads'
import * as fc from 'fast-check'
import { native } from '../native/index.ts'
import { move, register } from '../transport/index.ts'
import { store, type Store, type StoreOptions } from './index.ts'

const folder = mkdtempSync(join(tmpdir(), 'corespun-store-'))
after(() => rmSync(folder, { recursive: true }))

let last = 0
function path(): string {
  return join(folder, `${++last}.db`)
}

function open<Value = unknown>(file: string, options?: StoreOptions): Store<Value> {
  return store.create<Value>(`file ${++last}`, { ...options, file })
}

class Point {
  readonly x: number
  readonly y: number
  constructor(x: number, y: number) {
    this.x = x
    this.y = y
  }
}
register(Point, { cid: 'file.test.Point' })

test('values of every kind survive the store, and are read as from memory', async () => {
  const file = path()
  const values: Record<string, unknown> = {
    number: -0.5,
    text: 'žluťoučký \u{1F600}',
    list: [1, , { deep: [null, undefined, 10n] }],
    objects: Array.from({ length: 3 }, (_, id) => ({ id, name: `n${id}`, tags: ['a', 'b'] })),
    map: new Map<unknown, unknown>([[new Date(5), new Set(['x'])]]),
    point: new Point(1, 2),
    bytes: new Uint8Array([1, 2, 3]),
    long: 'x'.repeat(400_000),
    moved: move(new Uint8Array([7])),
    error: new RangeError('no', { cause: 1 }),
  }
  const first = open(file)
  for (const [key, value] of Object.entries(values)) first.set(key, value)
  first.set('ключ', 'a wide key')
  await first.flush()
  for (const [key, value] of Object.entries(values)) assert.deepEqual(first.get(key), value, key)
  first.close()
  const second = open(file)
  for (const [key, value] of Object.entries(values)) assert.deepEqual(second.get(key), value, key)
  assert.deepEqual([second.get('ключ'), second.size], ['a wide key', Object.keys(values).length + 1])
  assert.ok(second.view('objects') === second.view('objects'))
  second.close()
})

test('what belongs to the process is refused with its path, and nothing is written', () => {
  const used = open(path())
  const other = store.create('other')
  for (const value of [() => 1, new SharedArrayBuffer(8), other]) {
    const isRefused = (error: { code: string; message: string }): boolean =>
      error.code.startsWith('TRANSPORT_') && error.message.includes('value.part')
    assert.throws(() => used.set('key', { part: value }), isRefused)
    assert.throws(() => used.update('key', () => ({ part: value })), isRefused)
  }
  assert.equal(used.size, 0)
  used.close()
  other.close()
})

/** A step on a store and on a Map; those that occur twice are twice as likely. */
const steps = fc.array(
  fc.record({
    what: fc.constantFrom('set', 'set', 'set', 'delete', 'increment', 'swap', 'clear', 'flush', 'reopen'),
    key: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
    value: fc.nat(99),
  }),
  { maxLength: 25 },
)

test('random steps with closing and opening in between agree with a Map', async () => {
  const property = fc.asyncProperty(steps, async (all) => {
    const file = path()
    let used = open<number>(file)
    const model = new Map<string, number>()
    for (const step of [...all, { what: 'reopen', key: '', value: 0 }]) {
      if (step.what === 'set') {
        used.set(step.key, step.value)
        model.set(step.key, step.value)
      } else if (step.what === 'delete') assert.equal(used.delete(step.key), model.delete(step.key))
      else if (step.what === 'increment') {
        model.set(step.key, (model.get(step.key) ?? 0) + step.value)
        assert.equal(used.increment(step.key, step.value), model.get(step.key))
      } else if (step.what === 'swap') {
        assert.ok(used.compareAndSet(step.key, model.get(step.key), step.value))
        model.set(step.key, step.value)
      } else if (step.what === 'clear') {
        used.clear()
        model.clear()
      } else if (step.what === 'flush') await used.flush()
      else {
        used.close()
        used = open<number>(file)
        assert.deepEqual([...used].sort(), [...model].sort())
      }
    }
    used.close()
  })
  await fc.assert(property, { numRuns: 12 })
})

test('an entry expires by the time of day, also while no process has the file', async () => {
  const file = path()
  const first = open<number>(file, { ttlMs: 1000 })
  first.set('short', 1)
  first.set('long', 2, { ttlMs: 100_000 })
  await first.flush()
  first.close()
  native.storeAdvance(2000)
  const second = open<number>(file)
  assert.deepEqual([...second], [['long', 2]])
  second.close()
})

test('what a store evicts leaves its file', async () => {
  const file = path()
  const small = open<number>(file, { entriesMax: 10 })
  for (let n = 0; n < 100; n++) small.set(`n${n}`, n)
  await small.flush()
  const kept = [...small.keys()].sort()
  small.close()
  const whole = open<number>(file)
  assert.deepEqual([...whole.keys()].sort(), kept)
  whole.close()
})

test('a watcher sees what is written, and not what is loaded', async () => {
  const file = path()
  const first = open<number>(file)
  first.set('loaded', 1)
  first.close()
  const second = open<number>(file)
  const watcher = second.watch({ prefix: '' })
  second.set('written', 2)
  assert.deepEqual(await watcher.next(), { done: false, value: { type: 'set', key: 'written' } })
  second.close()
})

test('flush resolves without a file, again and for many at once; a closed store rejects it', async () => {
  const memory = store.create(`file ${++last}`)
  await memory.flush()
  memory.close()
  const used = open<number>(path())
  await used.flush()
  await Promise.all(
    Array.from({ length: 50 }, async (_, n) => {
      used.set(`n${n}`, n)
      await used.flush()
    }),
  )
  const waits = used.flush()
  used.close()
  await waits
  used.close()
  await assert.rejects(used.flush(), { code: 'STORE_CLOSED' })
})

test('await using flushes and closes', async () => {
  const file = path()
  const used = open<number>(file)
  used.set('a', 1)
  await used[Symbol.asyncDispose]()
  await used[Symbol.asyncDispose]()
  const again = open<number>(file)
  assert.equal(again.get('a'), 1)
  again.close()
})

test('writes are refused while too many bytes wait for the file', async () => {
  const file = path()
  const used = open<number>(file, { unflushedBytesMax: 1000 })
  const facts = { id: used.id, file, bytesMax: 1000 }
  const writes = (): void => {
    for (let n = 0; ; n++) used.set(`n${n}`, n)
  }
  assert.throws(writes, { code: 'STORE_FILE_BEHIND', facts })
  await used.flush()
  used.set('later', 1)
  used.close()
})

test('a file that cannot be used is refused by a code that names it, and the name stays free', async () => {
  const file = path()
  writeFileSync(file, 'a text that is no store')
  const refused = (at: string, code: string, options?: StoreOptions): void => {
    const named = (error: { code: string; message: string }): boolean => {
      assert.deepEqual([error.code, error.message.includes(at)], [code, true], error.message)
      return true
    }
    for (let tries = 0; tries < 2; tries++)
      assert.throws(() => store.getOrCreate('refused', { ...options, file: at }), named)
  }
  refused(file, 'STORE_FILE_FOREIGN')
  assert.equal(readFileSync(file, 'latin1'), 'a text that is no store')
  refused(folder, 'STORE_FILE_FOREIGN')
  refused(join(folder, 'missing', 'x.db'), 'STORE_FILE_FOLDER_MISSING')
  refused(join(folder, 'x'.repeat(300)), 'STORE_FILE_FAILED')
  const at = path()
  const used = open<string>(at)
  for (let n = 0; n < 20; n++) used.set(`n${n}`, 'a text')
  await used.flush()
  used.close()
  const full = { entriesMax: 5, eviction: 'none' } as const
  assert.throws(() => open(at, full), { code: 'STORE_FULL' })
  assert.throws(() => open(at, { valueBytesMax: 5 }), { code: 'STORE_VALUE_TOO_LARGE', message: /"n\d+"/ })
  const [first, damaged] = [open(at), path()]
  assert.throws(() => open(at), { code: 'STORE_FILE_IN_USE' })
  first.close()
  const bytes = readFileSync(at)
  for (let index = bytes.indexOf('a text'); index >= 0; index = bytes.indexOf('a text', index + 1))
    bytes[index] = 0x41
  writeFileSync(damaged, bytes)
  refused(damaged, 'STORE_FILE_CORRUPT')
})

const isRoot = process.getuid?.() === 0
test('a file without permission', { skip: isRoot || process.platform === 'win32' }, () => {
  const closed = join(folder, 'closed')
  mkdirSync(closed)
  chmodSync(closed, 0o500)
  assert.throws(() => open(join(closed, 'x.db')), { code: 'STORE_FILE_DENIED' })
})

test('the options of a store with a file are compared, with its path from any folder', () => {
  const file = path()
  const used = store.create('compared', { file })
  assert.equal(store.getOrCreate('compared', { file: join(folder, '.', `${last}.db`) }), used)
  assert.throws(() => store.getOrCreate('compared', { file: path() }), { code: 'STORE_ARGUMENT' })
  assert.throws(() => store.create('x', { file: '' }), { code: 'STORE_ARGUMENT' })
  used.close()
})

const THREAD = `
  import { parentPort, workerData } from 'node:worker_threads'
  const { store } = await import(workerData.url)
  const used = store.getOrCreate('shared file', { file: workerData.file })
  for (let n = 0; n < 100; n++) used.increment('sum')
  await used.flush()
  parentPort.postMessage(used.get('sum'))
`

test('threads that open one store at once share it', async () => {
  const file = path()
  const workerData = { url: new URL('./index.js', import.meta.url).href, file }
  const source = new URL(`data:text/javascript,${encodeURIComponent(THREAD)}`)
  const workers = Array.from({ length: 4 }, () => new Worker(source, { workerData }))
  await Promise.all(workers.map((worker) => once(worker, 'exit')))
  const used = store.get<number>('shared file')
  assert.equal(used.get('sum'), 400)
  used.close()
  const again = open<number>(file)
  assert.equal(again.get('sum'), 400)
  again.close()
})

const HOLDER = `
  const { store } = await import(process.argv[1])
  const used = store.create('held', { file: process.argv[2] })
  used.set('key', 'from another process')
  await used.flush()
  console.log('open')
  setInterval(() => {}, 1000)
`

test('another process has the file until it ends', async () => {
  const file = path()
  const url = new URL('./index.js', import.meta.url).href
  const child = spawn(process.execPath, ['--input-type=module', '-e', HOLDER, url, file])
  await once(child.stdout, 'data')
  assert.throws(() => open(file), { code: 'STORE_FILE_IN_USE' })
  child.kill('SIGKILL')
  await once(child, 'close')
  const used = open(file)
  assert.equal(used.get('key'), 'from another process')
  used.close()
})

const isUnix = { skip: process.platform === 'win32' }

test('a file that was deleted acknowledges nothing, and its path is free', isUnix, async () => {
  const file = path()
  const used = open(file)
  rmSync(file)
  used.set('key', 1)
  await assert.rejects(used.flush(), { code: 'STORE_FILE_REMOVED' })
  const next = open(file)
  next.set('key', used.get('key'))
  await next.flush()
  assert.throws(() => used.close(), { code: 'STORE_FILE_REMOVED' })
  next.close()
  const again = open(file)
  assert.equal(again.get('key'), 1)
  again.close()
})

test('the error of a path that no file can have does not refer to a flush', () => {
  for (const name of ['a'.repeat(300), 'zero\0byte'])
    assert.throws(
      () => open(join(folder, name)),
      (error: Error) => !error.message.includes('next flush()'),
    )
})
