/**
 * Shared values under several real threads: versions replace each other atomically, readers keep theirs, and
 * threads that are killed leave nothing behind.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { until } from '../../base/wait.test.support.ts'
import { native } from '../../native/index.ts'
import { store } from '../index.ts'
import type { SharedList } from './share.ts'
import { type Report, type Row, rowsOf, type Work, wrongIn } from './worker.test.support.ts'

const ROWS = 50
const workers = new Set<Worker>()
after(() => Promise.all([...workers].map((worker) => worker.terminate())))

function start(workerData: Work): Worker {
  const worker = new Worker(new URL('./worker.test.support.js', import.meta.url), { workerData })
  workers.add(worker)
  worker.once('exit', () => workers.delete(worker))
  return worker
}

/** The number of threads that have read a version. */
const readers = (flags: SharedArrayBuffer): number => Atomics.load(new Int32Array(flags), 1)

function stop(flags: SharedArrayBuffer): void {
  Atomics.store(new Int32Array(flags), 0, 1)
}

test('each reader sees whole versions, in order, and keeps the old ones', async () => {
  using lists = store.create<SharedList<Row>>('share versions')
  const flags = new SharedArrayBuffer(8)
  lists.set('list', store.share(rowsOf(0, ROWS)))
  const first = lists.view('list') as SharedList<Row>
  const reports = [0, 1].map(async (keeps) => {
    const [report] = (await once(start({ id: 'share versions', flags, keeps: keeps * 4 }), 'message')) as [
      Report,
    ]
    return report
  })
  await until(() => readers(flags) === 2)
  for (let version = 1; version <= 100; version++) {
    lists.set('list', store.share(rowsOf(version, ROWS)))
    const seen = lists.view('list') as SharedList<Row>
    assert.equal(wrongIn(seen, version), undefined)
    assert.equal(lists.view('list'), seen)
  }
  assert.equal(wrongIn(first, 0), undefined)
  stop(flags)
  for (const { reads, newest, wrong } of await Promise.all(reports)) {
    assert.equal(wrong, undefined)
    assert.ok(reads > 0 && newest >= 0 && newest <= 100, `${reads} reads, version ${newest}`)
  }
})

test('threads that are killed while they read let go', async () => {
  // Threads of the test before may still end, and each keeps what it has read last.
  await until(() => workers.size === 0)
  const before = native.bufferCount()
  const lists = store.create<SharedList<Row>>('share kills')
  for (let round = 0; round < 3; round++) {
    const flags = new SharedArrayBuffer(8)
    lists.set('list', store.share(rowsOf(round, ROWS)))
    const killed = [0, 1].map((keeps) => start({ id: 'share kills', flags, keeps }))
    await until(() => readers(flags) === 2)
    lists.set('list', store.share(rowsOf(round + 10, ROWS)))
    await Promise.all(killed.map((worker) => worker.terminate()))
    assert.equal(wrongIn(lists.view('list') as SharedList<Row>, round + 10), undefined)
  }
  lists.close()
  await until(() => native.bufferCount() <= before)
})

test('a watcher reports a new version', async () => {
  using lists = store.create<SharedList<Row>>('share watch')
  const watcher = lists.watch('list')
  lists.set('list', store.share(rowsOf(1, 2)))
  assert.deepEqual(await watcher.next(), { done: false, value: { type: 'set', key: 'list' } })
  assert.equal(lists.view('list')?.at(1)?.name, 'row 1 of 1')
  await watcher.return()
})
