/**
 * Targets over both versions of HTTP: what one refuses, the other refuses. Generated, with the seed in a
 * failure.
 *
 * Paths are written as literals, and again by the dynamic table, where a fragment would be hidden best.
 */
import assert from 'node:assert/strict'
import { until } from '../../base/wait.test.support.ts'
import { onServer } from '../cores.test.support.ts'
import { converse } from '../raw.test.support.ts'
import { END_HEADERS, END_STREAM, type Frame, frame, POST, RawClient, Type } from './client.test.support.ts'

const PARTS = ['/', 'a', '#', '?', '%23', '..', '<', 'b=1', '~']
const SEEDS = Number(process.env.CORESPUN_SEEDS ?? 60)

function targetOf(seed: number): string {
  let state = (seed * 0x9e37_79b1) >>> 0
  const roll = (most: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return (state >>> 8) % most
  }
  return `/${Array.from({ length: roll(6) }, () => PARTS[roll(PARTS.length)]).join('')}`
}

const HEAD = END_HEADERS | END_STREAM

onServer('a target is accepted over HTTP/2 if it is over HTTP/1.1', async (start) => {
  const { port } = await start({ routes: { '/*': () => 'fine' } })
  const client = await RawClient.connect(port)
  const isFine = async (stream: number, path: Uint8Array): Promise<boolean> => {
    const block = Buffer.concat([Buffer.of(0x82), path, Buffer.from([0x86, 0x01, 0x01, 0x61])])
    client.socket.write(frame(Type.headers, HEAD, stream, block))
    const isEnd = (one: Frame): boolean =>
      one.stream === stream && (one.type === Type.headers || one.type === Type.reset)
    await until(() => client.frames.some(isEnd))
    const end = client.frames.find(isEnd)!
    // Its status comes first; the code of a date may have the byte of any.
    return end.type === Type.headers && end.payload[0] === 0x88
  }
  let refused = 0
  for (let seed = 1; seed <= SEEDS; seed += 1) {
    const target = targetOf(seed)
    const head = `GET ${target} HTTP/1.1\r\nHost: a\r\n\r\n`
    const { responses } = await converse(port, [head], { responses: 1 })
    const expected = responses[0]?.status === 200
    refused += Number(!expected)
    const literal = Buffer.concat([Buffer.of(0x44, target.length), Buffer.from(target)])
    assert.equal(await isFine(4 * seed - 3, literal), expected, `seed ${seed}: ${target}`)
    assert.equal(
      await isFine(4 * seed - 1, Buffer.of(0xbe)),
      expected,
      `seed ${seed}, by its number: ${target}`,
    )
  }
  assert.ok(refused > 0 && refused < SEEDS)
  client.socket.destroy()
})

onServer('a path with a fragment in the code of Huffman is refused', async (start) => {
  const { port } = await start({ routes: { '/*': () => 'fine' } })
  const client = await RawClient.connect(port)
  // "/#" in 6 and 12 bits, and padding.
  const block = Buffer.from([0x82, 0x04, 0x83, 0x63, 0xfe, 0xbf, 0x86, 0x01, 0x01, 0x61])
  client.socket.write(frame(Type.headers, HEAD, 1, block))
  await until(() => client.frames.some(({ type }) => type === Type.headers))
  assert.equal(client.frames.find(({ type }) => type === Type.headers)?.payload[0], 0x8c)
  client.socket.destroy()
})

onServer('pseudo-header fields in trailers reset the stream', async (start) => {
  const { port } = await start({ routes: { '/': { POST: (asked) => asked.text() } } })
  for (const trailers of [[0x84], [0x04, 0x01, 0x61], [0x00, 0x84, 0xb9, 0x58, 0xd3, 0x3f, 0x00]]) {
    const client = await RawClient.connect(port)
    client.socket.write(frame(Type.headers, END_HEADERS, 1, POST))
    client.socket.write(frame(Type.data, 0, 1, Buffer.from('text')))
    client.socket.write(frame(Type.headers, HEAD, 1, Buffer.from(trailers)))
    await until(() => client.frames.some(({ type }) => type === Type.reset || type === Type.goAway))
    assert.equal(client.frames.find(({ type }) => type === Type.reset)?.payload.readUInt32BE(0), 1)
    client.socket.destroy()
  }
})
