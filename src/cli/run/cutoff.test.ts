/**
 * The cutoff alone, where its numbers wrap, and with threads that start items while it closes: the items that
 * started are 1 to n, without a gap.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { share } from '../../base/part.test.support.ts'
import { until } from '../../base/wait.test.support.ts'
import { Cutoff, CUTOFF_BYTES } from './cutoff.ts'

function cutoffAfter(lastItem: number): Cutoff {
  const cutoff = new Cutoff(new SharedArrayBuffer(CUTOFF_BYTES))
  // Numbers are compared modulo 2^30 and may be at most 2^29 apart, so a far one is reached in steps.
  for (let item = 1; item < lastItem; item += 2 ** 28) cutoff.mayStart(item)
  cutoff.mayStart(lastItem)
  return cutoff
}

test('every item starts while the cutoff is open, late ones too', () => {
  const cutoff = cutoffAfter(5)
  for (const item of [6, 9, 7, 8, 5]) assert.equal(cutoff.mayStart(item), true)
})

for (const last of [1, 5, 2 ** 30 - 1, 2 ** 30, 2 ** 31 + 7, 3 * 2 ** 30]) {
  test(`closed after item ${last}: earlier items start, later ones do not`, () => {
    const cutoff = cutoffAfter(last)
    cutoff.close()
    cutoff.close()
    for (const behind of [0, 1, 1000]) if (last > behind) assert.equal(cutoff.mayStart(last - behind), true)
    for (const ahead of [1, 2, 16_384]) assert.equal(cutoff.mayStart(last + ahead), false)
  })
}

test('closed before the first item: nothing starts', () => {
  const cutoff = new Cutoff(new SharedArrayBuffer(CUTOFF_BYTES))
  cutoff.close()
  assert.equal(cutoff.mayStart(1), false)
})

test('with real threads: the items that started are 1 to n, without a gap', { timeout: 60_000 }, async () => {
  const url = new URL('./cutoff.js', import.meta.url).href
  const source = `
    import { parentPort, workerData } from 'node:worker_threads'
    import { Cutoff } from ${JSON.stringify(url)}
    const { memory, counter } = workerData
    const cutoff = new Cutoff(memory)
    const passed = []
    // The queue of a zone: items are taken in order, and what happens then takes its time.
    for (;;) {
      const item = Atomics.add(new Int32Array(counter), 0, 1) + 1
      for (let spin = item % 7; spin > 0; spin--) Atomics.load(new Int32Array(counter), 0)
      if (!cutoff.mayStart(item)) break
      passed.push(item)
    }
    parentPort.postMessage(passed)`
  for (let round = 0; round < share(20); round++) {
    const memory = new SharedArrayBuffer(CUTOFF_BYTES)
    const counter = new SharedArrayBuffer(4)
    const workers = [0, 1, 2].map(() => {
      const code = new URL(`data:text/javascript,${encodeURIComponent(source)}`)
      return new Worker(code, { workerData: { memory, counter } })
    })
    const results = workers.map((worker) => new Promise<number[]>((done) => worker.once('message', done)))
    const ended = workers.map((worker) => new Promise((done) => worker.once('exit', done)))
    const done = new Int32Array(counter)
    await until(() => Atomics.load(done, 0) >= 100 * (round + 1), 'the items before the cut')
    new Cutoff(memory).close()
    const passed = (await Promise.all(results)).flat().sort((one, other) => one - other)
    assert.deepEqual(
      passed,
      passed.map((_, index) => index + 1),
    )
    await Promise.all(ended)
  }
})
