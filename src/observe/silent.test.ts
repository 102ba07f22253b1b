/**
 * A thread that was stuck before anybody looked: it has no figures, and is named.
 *
 * In a file of its own, since the first look of a process begins to count.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../base/wait.test.support.ts'
import type { Snapshot } from './internal.ts'
import { answerOf, inZone, observed } from './observe.test.support.ts'

const blocked = (shared: SharedArrayBuffer): void => {
  const words = new Int32Array(shared)
  Atomics.store(words, 1, 1)
  Atomics.wait(words, 0, 0)
}

test('the first look waits for threads that count, and names a worker that was stuck before it', () =>
  observed({ name: 'silent' }, ({ path }) =>
    inZone({ workers: 2 }, async (own) => {
      const shared = new SharedArrayBuffer(8)
      const words = new Int32Array(shared)
      const task = own.run(blocked, shared)
      await until(() => words[1] === 1)
      const look = async (): Promise<Snapshot> => (await answerOf(path, 'snapshot')).result as Snapshot
      const { problems, running, threads } = await look()
      assert.ok(threads.some(({ thread }) => thread === 'main'))
      const [{ worker }] = running
      assert.ok(problems.includes(`${worker} has not responded: its own figures are missing`), `${problems}`)
      Atomics.store(words, 0, 1)
      Atomics.notify(words, 0)
      await task
      await until(async () => (await look()).problems.length === 0)
    }),
  ))
