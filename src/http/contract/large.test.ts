/**
 * Large bodies are parsed and checked in a zone, small ones here; the responses are the same.
 *
 * What the worker returns has the number of its thread.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { threadId } from 'node:worker_threads'
import { zone } from '../../zone/index.ts'
import { createApp, jsonReader, type Problem, route } from '../index.ts'
import { Order } from './large.test.support.ts'

test('bodies from bytesMin on are read by the zone', async () => {
  const readers = zone.create('contract readers', { workers: 1 })
  try {
    const work = readers.module<typeof import('./large.test.support.ts')>(
      new URL('./large.test.support.js', import.meta.url),
    )
    const create = route(
      { body: Order, large: { bytesMin: 2000, read: (bytes) => work.readOrder(bytes) } },
      ({ body }) => ({ items: body.items.length, thread: (body as { thread?: number }).thread ?? threadId }),
    )
    const app = createApp({ routes: { '/': { POST: create } } })
    const send = async (body: string): Promise<{ status: number; value: unknown }> => {
      const headers = { 'content-type': 'application/json' }
      const response = await app.inject('/', { method: 'POST', body, headers })
      return { status: response.status, value: await response.json() }
    }
    const order = (items: number, id: unknown = 1): string =>
      JSON.stringify({ items: Array.from({ length: items }, () => ({ id, note: 'fifteen chars..' })) })
    assert.deepEqual(await send(order(2)), { status: 200, value: { items: 2, thread: threadId } })
    const large = await send(order(200))
    assert.equal(large.status, 200)
    assert.notEqual((large.value as { thread: number }).thread, threadId)
    const wrong = await send(order(200, 'one'))
    const { errors, leftOut } = wrong.value as Problem
    assert.deepEqual([wrong.status, errors.length, leftOut], [422, 100, 100])
    assert.deepEqual(errors[1].path, ['items', 1, 'id'])
    const malformed = await send(order(200).slice(0, -1))
    assert.equal(malformed.status, 400)
    assert.match((malformed.value as Problem).errors[0].message, /^not JSON: /)
  } finally {
    await readers.close()
  }
})

test('a reader states what is wrong as plain data', async () => {
  const read = jsonReader(Order)
  assert.deepEqual(await read(Buffer.from('{"items":[]}')), { value: { items: [] } })
  const nothing = await read(new Uint8Array(0))
  assert.ok('issues' in nothing && nothing.issues.length === 1 && nothing.leftOut === 0)
  assert.deepEqual(Object.keys(nothing.issues[0]).sort(), ['message', 'path'])
})
