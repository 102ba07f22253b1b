/**
 * Which answers to a direct read are believed: that of the stream itself, and none of a mirror, which lags,
 * nor that there is no message, which does not name who has sent it.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Msg } from '@nats-io/transport-node'
import type { Requests } from './requests.ts'
import { Streams } from './stored.ts'

for (const [from, expected, asked] of [
  ['A', 'direct', 1],
  ['MIRROR', 'leader', 2],
  [undefined, 'leader', 2],
] as const)
  test(`a direct read that ${from ?? 'nobody'} names is answered by the ${expected}`, async () => {
    let count = 0
    const named = new Map([
      ['Nats-Stream', from ?? ''],
      ['Nats-Sequence', '1'],
      ['Nats-Time-Stamp', '2026-01-01T00:00:00Z'],
    ])
    const request = (subject: string): Promise<Msg> => {
      count++
      const data = Buffer.from('direct').subarray(0, from === undefined ? 0 : undefined)
      const message = { subject: 's', seq: 2, time: '2026-01-01T00:00:00Z', data: btoa('leader') }
      const reply = subject.startsWith('$JS.API.DIRECT')
        ? {
            data,
            headers: {
              code: from === undefined ? 404 : 0,
              get: (key: string) => named.get(key),
              has: () => false,
            },
          }
        : { json: () => ({ message }) }
      return Promise.resolve(reply as unknown as Msg)
    }
    const streams = new Streams({ request } as unknown as Requests, () => assert.fail())
    await streams.readAlone('A', 's')
    count = 0
    const found = await streams.last('A', 's')
    assert.deepEqual([Buffer.from(found!.bytes).toString(), count], [expected, asked])
  })
