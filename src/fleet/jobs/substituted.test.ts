/**
 * What a replacement must not take from the job that it has added.
 *
 * What it promises on any engine is in substituted.test.support.ts.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { connect } from '../connect.ts'
import type { Queue } from '../engine/engine.ts'
import { Large } from './large.ts'
import { FRESH, lettersName, queueName, recordsName, writeRecord } from './record.ts'
import { substituted } from './substituted.ts'

test('the letter of a job that dies as soon as it was added stays', async () => {
  await using fleet = await connect('memory:')
  const { engine } = fleet
  const queue = await engine.queue(queueName('z'))
  const records = await engine.keyValue(recordsName('z'), { ttlMs: 0 })
  const letters = await engine.keyValue(lettersName('z'), { ttlMs: 0 })
  const [before, next] = [new Uint8Array([1]), new Uint8Array([2])]
  const dying: Pick<Queue, 'find' | 'add'> = {
    find: (id) => queue.find(id),
    async add(...item) {
      const isAdded = await queue.add(...item)
      await letters.put('k', next)
      return isAdded
    },
  }
  await records.put('k', writeRecord({ ...FRESH, status: 'dead' }))
  await letters.put('k', before)
  const certainly = <Value>(work: () => Promise<Value>): Promise<Value> => work()
  const large = new Large({ engine, zone: 'z', valueBytesMax: 1024, certainly })
  const room = { queue: dying as Queue, records, letters }
  assert.equal(await substituted(room, large, ['k', new Uint8Array(), 1]), true)
  assert.deepEqual((await letters.get('k'))?.bytes, next)
})
