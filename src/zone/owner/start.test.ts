/**
 * What is due when a worker is ready: memory is returned once all of its zone are, and not before.
 *
 * How much that is, is a row of the bench (`start`, each worker).
 */
import assert from 'node:assert/strict'
import test, { mock } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { until } from '../../base/wait.test.support.ts'
import { native } from '../../native/index.ts'
import { zone } from '../index.ts'
import { becameReady } from './start.ts'

let [nowNs, takesNs] = [0n, 0n]
mock.method(process.hrtime, 'bigint', () => nowNs)
const trimmed = mock.method(native, 'memoryTrim', () => {
  nowNs += takesNs
})

test('memory is returned when the last worker of a zone is ready, after the turn', async () => {
  const [first, second] = [{ ready: true }, { ready: false }]
  becameReady('zone/0', [first, second])
  await turn()
  assert.equal(trimmed.mock.callCount(), 0)
  second.ready = true
  becameReady('zone/1', [first, second])
  assert.equal(trimmed.mock.callCount(), 0, 'tasks that wait come first')
  await turn()
  assert.equal(trimmed.mock.callCount(), 1)
})

test('the owner of a zone returns memory when its workers have started', async () => {
  const before = trimmed.mock.callCount()
  const pair = zone.create('trimmed', { workers: 2 })
  assert.equal(await pair.run((a: number, b: number) => a * b, 6, 7), 42)
  await until(() => trimmed.mock.callCount() > before)
  await pair.close()
})

test('memory is not returned again where that takes long', async () => {
  const before = trimmed.mock.callCount()
  takesNs = 6_000_000n
  for (let turns = 0; turns < 3; turns++) {
    becameReady('zone/0', [{ ready: true }])
    await turn()
  }
  assert.equal(trimmed.mock.callCount(), before + 1)
})
