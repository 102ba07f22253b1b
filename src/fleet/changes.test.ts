/**
 * What a reader of changes has when it is slow, leaves, or fails.
 *
 * Where changes come from is tested with jobs and stores.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compute } from '../base/wait.test.support.ts'
import { FleetChanges } from './changes.ts'
import { FleetError } from './errors.ts'

interface Item {
  readonly key: string
  readonly count: number
}
const item = (key: string, count: number) => (): Item => ({ key, count })

test('a reader of changes has the last of each key, and an error when it is too far behind', async () => {
  const changes = new FleetChanges<Item>('z')
  let ends = 0
  changes.begun(() => ends++)
  changes.push('a', item('a', 1))
  changes.push('b', item('b', 0))
  changes.push('a', item('a', 2))
  const read = [await changes.next(), await changes.next()].map(({ value }) => [value?.key, value?.count])
  assert.deepEqual(read, [
    ['b', 0],
    ['a', 2],
  ])
  for (let key = 0; key <= 65_536; key++) changes.push(`${key}`, item('', 0))
  changes.push('late', item('late', 0))
  await assert.rejects(changes.next(), { code: 'CHANGES_BEHIND' })
  assert.deepEqual(await changes.next(), { value: undefined, done: true })
  assert.equal(ends, 1)
  const keys: string[] = []
  const looped = new FleetChanges<Item>('z')
  for (const key of ['a', 'b']) looped.push(key, item(key, 0))
  for await (const { key } of looped) if (keys.push(key) === 2) break
  assert.deepEqual(keys, ['a', 'b'])
  const failed = new FleetChanges<Item>('z')
  const failing = failed.next()
  failed.fail(new FleetError('FLEET_CLOSED', { reason: 'test' }))
  failed.fail(new FleetError('FLEET_CLOSED', { reason: 'test' }))
  failed.begun(() => ends++) // one that begins behind its end
  assert.equal(ends, 2)
  await assert.rejects(failing, { code: 'FLEET_CLOSED' })
  assert.equal((await failed.next()).done, true)
  const waiting = new FleetChanges<Item>('z')
  const next = waiting.next()
  await waiting.return()
  assert.equal((await next).done, true)
})

test('a reader of changes that computes leaves its event loop turns, and keeps their order', async () => {
  const changes = new FleetChanges<Item>('z')
  let count = 0
  let isOver = false
  setTimeout(() => (isOver = true), 10)
  for (const key of ['a', 'b', 'c']) changes.push(key, item(key, count++))
  let last = -1
  while (!isOver) {
    const { value } = await changes.next()
    assert.equal(value?.count, last + 1)
    last = value?.count ?? 0
    assert.ok(count < 10_000, 'read on')
    compute(0.1)
    changes.push(`${count}`, item(`${count}`, count++))
  }
  await changes.return()
})
