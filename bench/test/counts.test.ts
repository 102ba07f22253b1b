/**
 * How a trace is read, and that an operation costs what counts.json has of it.
 *
 * The last test is skipped, with the reason, where nothing can be counted.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MAJOR, count, differences, readSnapshot, whyNotCounted } from '../counts/main.ts'
import { readTrace } from '../counts/trace.ts'
import { PACKAGE_FOLDER } from '../harness/paths.ts'

test('calls of threads that are not off are counted once for each operation, without waits of timers', () => {
  const operation = [
    '10 access("/corespun-counts/op", F_OK) = -1 ENOENT (No such file or directory)',
    '10 access("/corespun-counts/off", F_OK) = -1 ENOENT (No such file or directory)',
    '10 read(3, "x", 10) = 1',
    '11 futex(0x1, FUTEX_WAIT_PRIVATE, 2, NULL <unfinished ...>',
    '12 futex(0x1, FUTEX_WAKE_PRIVATE, 1) = 1',
    '11 <... futex resumed>) = 0',
    '12 read(4,  <unfinished ...>',
    '12 <... read resumed>"abc", 10) = 3',
    '12 read(4, 0x7f, 10) = -1 EAGAIN (Resource temporarily unavailable)',
    '11 epoll_pwait(16,  <unfinished ...>',
    '11 <... epoll_pwait resumed>[], 1024, 116, NULL, 8) = 0',
    '11 epoll_pwait(16, [], 1024, 0, NULL, 8) = 0',
    '11 epoll_wait(21, [], 256, 7) = 0',
    '11 epoll_wait(21, [{events=EPOLLIN, data={u32=0, u64=0}}], 256, 0) = 1',
    '10 access("/corespun-counts/on", F_OK) = -1 ENOENT (No such file or directory)',
    '10 write(5, "12", 2) = 2',
    '+++ exited with 0 +++',
  ]
  const once = [...operation, '11 fsync(3) = 0']
  assert.deepEqual(
    readTrace(['10 write(5, "before", 6) = 6', ...operation, ...operation, ...once, ...operation]),
    {
      bytes: 5,
      epoll_pwait: 1,
      epoll_wait: 1,
      'futex wait': 1,
      'futex wake': 1,
      read: 2,
      write: 1,
    },
  )
})

test('what differs is named; the heap may by a tenth', () => {
  const one = { calls: { read: 1 }, crossings: { submit: 1 }, heapBytes: 100 }
  assert.deepEqual(differences({ a: one }, { a: { ...one, heapBytes: 110 } }), [])
  assert.deepEqual(differences({ a: one }, { a: { calls: { read: 2 }, crossings: {}, heapBytes: 89 } }), [
    'a: read: 1 before, 2 now',
    'a: crossing submit: 1 before, 0 now',
    'a: heap bytes: 100 before, 89 now',
  ])
  assert.equal(differences({ a: one }, {}).length, 3)
})

const node =
  process.env[`CORESPUN_BENCH_NODE_${MAJOR}`] ??
  `${PACKAGE_FOLDER}/.set-up/nodes/node_modules/node-${MAJOR}/bin/node`

test('an operation costs what counts.json has of it', { skip: whyNotCounted(node) ?? false }, () => {
  assert.deepEqual(
    differences(
      readSnapshot(),
      count(node, () => {}),
    ),
    [],
    `if that is meant: npm run bench -- counts --node ${MAJOR}`,
  )
})
