/**
 * The journal of a group from both of its ends: the worker's, which may stop anywhere, and the reader's.
 * Both are in one thread here; the words between them are the same.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Journal, JOURNAL_BYTES } from './journal.ts'

/** Two ends of the second journal of three. */
function ends(): { worker: Journal; reader: Journal } {
  const memory = new SharedArrayBuffer(3 * JOURNAL_BYTES)
  return { worker: new Journal(memory, 1), reader: new Journal(memory, 1) }
}

test('what has ended is read, in order, whatever the letters; what only began is known', () => {
  const { worker, reader } = ends()
  for (const line of ['"é😀"', '!{"item":2}', '3']) {
    assert.equal(worker.begin(), true)
    assert.equal(worker.end(line), true)
  }
  assert.equal(worker.begin(), true)
  const entries = { text: '"é😀"\n!{"item":2}\n3', begunCount: 4, endedCount: 3, failedCount: 1 }
  assert.deepEqual(reader.read(), entries)
  assert.deepEqual(reader.peek(), entries)
  reader.clear()
  assert.deepEqual(reader.read(), { text: '', begunCount: 0, endedCount: 0, failedCount: 0 })
})

test('a line that does not fit is refused whole, and what was there stays', () => {
  const { worker, reader } = ends()
  const line = 'x'.repeat(1000)
  let count = 0
  while (worker.begin() && worker.end(line)) count++
  assert.equal(count, Math.floor((JOURNAL_BYTES - 16 + 1) / 1001))
  const { text, begunCount, endedCount } = reader.read()
  assert.deepEqual([begunCount, endedCount, text.length], [count + 1, count, count * 1001 - 1])
  assert.equal(new Set(text.split('\n')).size, 1)
})

test('a line of exactly the capacity fits, in letters of three bytes too', () => {
  const { worker, reader } = ends()
  const line = '€'.repeat((JOURNAL_BYTES - 16) / 3)
  assert.equal(worker.begin() && worker.end(line), true)
  assert.equal(reader.read().text, line)
})

test('after closing no item begins, and closing is refused if one has begun meanwhile', () => {
  const { worker, reader } = ends()
  worker.begin()
  worker.end('1')
  worker.begin()
  assert.equal(reader.close(1), false)
  assert.equal(reader.close(2), true)
  assert.equal(worker.end('2'), true)
  assert.equal(worker.begin(), false)
  assert.deepEqual(reader.read(), { text: '1\n2', begunCount: 2, endedCount: 2, failedCount: 0 })
  reader.clear()
  assert.equal(worker.begin(), true)
})
