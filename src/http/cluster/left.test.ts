/**
 * Workers that others replace, and that end without a report: the server counts and stops as if they had
 * reported it.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { WAIT_MS_MAX, until } from '../../base/wait.test.support.ts'
import { store } from '../../store/index.ts'
import { zone } from '../../zone/index.ts'
import { serve } from '../serve.ts'
import { Board } from './board.ts'

const APP = new URL('./left-app.test.support.js', import.meta.url)

for (const [what, path] of [
  ['is reloaded, and ends while it finishes its requests', 'close'],
  ['has an error that nobody catches, and ends before it is released', '/stray'],
] as const)
  test(`a server closes whose worker ${what}`, { timeout: 2 * WAIT_MS_MAX }, async () => {
    const ends = store.getOrCreate<number>('ends of workers')
    await using own = zone.create('left', { workers: 1 })
    const ended: string[] = []
    own.onError((error) => void ended.push((error as Error).message))
    const server = await serve({ zone: own, app: APP, port: 0, core: 'native', quiet: true })
    const served = async (at: string): Promise<string> => (await fetch(server.url + at)).text()
    assert.equal(await served('/'), 'serves')
    if (path === 'close') {
      ends.set(path, 1)
      await own.reload()
      await until(() => ends.get(path) === undefined)
    } else {
      assert.equal(await served(path), 'stray')
      await until(() => ended.length > 0)
    }
    await until(() =>
      served('/').then(
        (text) => text === 'serves',
        () => false,
      ),
    )
    // It takes timeoutMs, and rejects, where a worker is waited for that does not exist.
    await server.close({ timeoutMs: WAIT_MS_MAX })
    const { connections, workers } = await server.stats()
    assert.deepEqual([connections, workers], [0, 0])
    ends.close()
  })

test('a worker finishes its requests though its owner was busy for longer than closeMs', async () => {
  const ends = store.getOrCreate<number>('ends of workers')
  ends.clear()
  const closeMs = 12_345
  await using own = zone.create('busy', { workers: 1, closeMs })
  const server = await serve({ zone: own, app: APP, port: 0, core: 'native', quiet: true })
  const held = fetch(`${server.url}/held`).then((response) => response.text())
  await until(async () => (await server.stats()).requests === 1)
  const { setTimeout: original } = globalThis
  // The timer of the reload is due once the worker has left, and before what it has sent is read.
  const early = (body: () => void, ms: number): unknown => {
    if (ms !== closeMs) return original(body, ms)
    setImmediate(() => {
      const dueMs = performance.now() + 2
      while (ends.get('has left') === undefined || performance.now() < dueMs);
    })
    return original(body, 1)
  }
  globalThis.setTimeout = early as typeof setTimeout
  try {
    await own.reload()
  } finally {
    globalThis.setTimeout = original
  }
  ends.set('goes on', 1)
  assert.equal(await held, 'held')
  await server.close({ timeoutMs: WAIT_MS_MAX })
  ends.close()
})

test('a row belongs to the thread that has claimed it last', () => {
  const board = new Board()
  const first = board.claim(7)!
  const second = board.claim(8)!
  assert.notEqual(first.row, second.row)
  assert.deepEqual(board.left().length, 2)
  board.setServing(first.row, false)
  const third = board.claim(9)!
  assert.equal(third.row, first.row)
  const { word, value } = first.mark
  Atomics.compareExchange(word, 0, value, 0)
  assert.ok(board.left().includes(third.row), 'it is not freed by the end of the thread before')
  for (let claimed = 2; claimed < 64; claimed++) assert.ok(board.claim(claimed) !== undefined)
  assert.equal(board.claim(100), undefined)
})
