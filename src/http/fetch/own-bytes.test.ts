/**
 * Bytes that a program has passed on are its own again: what it writes to them later is not sent.
 *
 * With a Buffer and with a Uint8Array each, as `slice()` copies the bytes of the second alone.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { collected } from '../../base/collected.test.support.ts'
import { createApp, Response } from '../index.ts'

const KINDS = {
  Buffer: () => Buffer.from('abc'),
  Uint8Array: () => new Uint8Array(Buffer.from('abc')),
  DataView: () => new DataView(new Uint8Array(Buffer.from('abc')).buffer),
}

for (const [kind, make] of Object.entries(KINDS)) {
  test(`a response has a copy of its ${kind}, also as a stream and as a clone`, async () => {
    const bytes = make()
    const response = new Response(bytes)
    const clone = response.clone()
    const streamed = new Response(bytes)
    const { body } = streamed
    new Uint8Array(bytes.buffer, bytes.byteOffset, 3).fill(0x58)
    assert.equal(await response.text(), 'abc')
    assert.equal(await clone.text(), 'abc')
    assert.equal(Buffer.concat(await collected(body!)).toString(), 'abc')
  })
}

test('what is read of a response is the own copy of each reader', async () => {
  const response = new Response(Buffer.from('abc'))
  const clone = response.clone()
  const first = await response.bytes()
  first.fill(0x58)
  assert.equal(await clone.text(), 'abc')
})

test('a route has a copy of its bytes', async () => {
  for (const make of [KINDS.Buffer, KINDS.Uint8Array]) {
    const bytes = make()
    const app = createApp({ routes: { '/': bytes as never } })
    bytes.fill(0x58)
    assert.equal(await (await app.inject('/')).text(), 'abc')
  }
})
