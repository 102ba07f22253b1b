/**
 * Bodies of requests and responses on zones: parsed while they arrive, sent while they are made, bounded.
 *
 * The client shows each step: it sends the next piece when the response to the last one has come.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import { after } from 'node:test'
import { settled, until } from '../base/wait.test.support.ts'
import { zone } from '../zone/index.ts'
import { onCores } from './cores.test.support.ts'

const own = zone.create('http-bodies', { workers: 1 })
after(() => own.close())

const PIECE_BYTES = 64 * 1024
const UPLOAD_BYTES = 64 * 1024 * 1024
/** What sockets and windows hold of a body that nobody reads, with much to spare. */
const HELD_BYTES_MAX = 24 * 1024 * 1024

async function* lines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of chunks) {
    const parts = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = parts.pop() ?? ''
    for (const line of parts) yield `${line.toUpperCase()};`
  }
}

/** Counts the bytes; takes the first chunk, and the others when the cell is set. */
async function count(chunks: AsyncIterable<Uint8Array>, cells: Int32Array): Promise<{ bytes: number }> {
  let bytes = 0
  for await (const chunk of chunks) {
    bytes += chunk.length
    while (Atomics.load(cells, 0) === 0) await new Promise((resolve) => setTimeout(resolve, 5))
  }
  return { bytes }
}

/** Yields until it is left, which sets the second cell. */
async function* endless(chunks: AsyncIterable<Uint8Array>, cells: Int32Array): AsyncGenerator<string> {
  try {
    for (;;) {
      yield 'x'.repeat(1000)
      Atomics.add(cells, 0, 1)
    }
  } finally {
    for await (const _ of chunks) break
    Atomics.store(cells, 1, 1)
  }
}

function cell(): Int32Array {
  return new Int32Array(new SharedArrayBuffer(8))
}

function open(port: number, path: string): http.ClientRequest {
  return http.request({ port, path, method: 'POST', agent: false })
}

const NO_BODY = (): ReadableStream<Uint8Array> => new Blob().stream()

onCores(
  'an upload is parsed on a zone while it arrives, and its response is sent meanwhile',
  async (start) => {
    const server = await start({
      routes: {
        '/stream': { POST: ({ body }) => own.stream(lines, body ?? []) },
        '/run': { POST: async ({ body }) => own.run(lines, body ?? NO_BODY()) },
      },
    })
    for (const path of ['/stream', '/run']) {
      const request = open(server.port, path)
      let text = ''
      request.write('a\n')
      const [response] = (await settled(once(request, 'response'), 'the head')) as [http.IncomingMessage]
      response.setEncoding('utf8').on('data', (part: string) => (text += part))
      for (const [sent, received] of [
        ['b', 'A;'],
        ['c\nd', 'A;BC;'],
        ['\n', 'A;BC;D;'],
      ] as const) {
        request.write(sent)
        await until(() => text === received, `${path}: ${received}`)
      }
      const ended = once(response, 'end')
      request.end()
      await settled(ended, 'the end of the response')
      assert.equal(response.statusCode, 200)
    }
    // A stream has ended a moment before its task.
    await until(() => own.stats().running === 0)
  },
)

onCores(
  'a client waits for a function that does not read, and 64 MB need no memory of their size',
  async (start) => {
    const cells = cell()
    const server = await start({
      limits: { bodyBytesMax: 2 * UPLOAD_BYTES },
      routes: { '/': { POST: async ({ body }) => own.run(count, body ?? NO_BODY(), cells) } },
    })
    const request = open(server.port, '/')
    const response = once(request, 'response') as Promise<[http.IncomingMessage]>
    let sent = 0
    let isReady = true
    request.on('drain', () => (isReady = true))
    const push = (): void => {
      while (isReady && sent < UPLOAD_BYTES) {
        isReady = request.write(Buffer.alloc(PIECE_BYTES, 'x'))
        sent += PIECE_BYTES
      }
    }
    let last = -1
    let same = 0
    await until(() => {
      push()
      same = sent === last ? same + 1 : 0
      last = sent
      return sent > 0 && same > 50
    }, 'the client is held up')
    assert.ok(sent < HELD_BYTES_MAX, `${sent} bytes were sent`)
    Atomics.store(cells, 0, 1)
    await until(() => {
      push()
      return sent >= UPLOAD_BYTES
    }, 'all is sent')
    request.end()
    const [message] = await settled(response, 'the response')
    assert.equal(message.statusCode, 200)
    let text = ''
    for await (const part of message.setEncoding('utf8')) text += part as string
    assert.deepEqual(JSON.parse(text), { bytes: sent })
  },
)

onCores('a client that disconnects ends the function and its response', async (start) => {
  for (const way of ['stream', 'run'] as const) {
    const cells = cell()
    const there = async function* (
      chunks: AsyncIterable<Uint8Array | Int32Array>,
      counted: Int32Array,
    ): AsyncGenerator<string> {
      try {
        for await (const chunk of chunks) {
          Atomics.add(counted, 0, chunk.length)
          yield 'got some;'
        }
      } finally {
        Atomics.store(counted, 1, 1)
      }
    }
    async function* withCells(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array | Int32Array> {
      yield cells
      yield* body
    }
    const streamed = async function* (
      items: AsyncIterableIterator<Uint8Array | Int32Array>,
    ): AsyncGenerator<string> {
      const counted = (await items.next()).value as Int32Array
      try {
        for await (const chunk of items) {
          Atomics.add(counted, 0, chunk.length)
          yield 'got some;'
        }
      } finally {
        Atomics.store(counted, 1, 1)
      }
    }
    const server = await start({
      routes: {
        '/': {
          POST: async ({ body }) =>
            way === 'run'
              ? own.run(there, body ?? NO_BODY(), cells)
              : own.stream(streamed, withCells(body ?? NO_BODY())),
        },
      },
    })
    const request = open(server.port, '/')
    request.on('error', () => {})
    request.write('abc')
    await until(() => Atomics.load(cells, 0) === 3, `${way}: the first bytes`)
    request.destroy()
    await until(() => cells[1] === 1, `${way}: the end of the function`)
    await until(() => own.stats().running === 0)
  }
})

onCores('a client that does not read holds up the function, and one that leaves ends it', async (start) => {
  const cells = cell()
  const server = await start({
    routes: { '/': { POST: async ({ body }) => own.run(endless, body ?? NO_BODY(), cells) } },
  })
  const request = open(server.port, '/')
  request.on('error', () => {})
  request.end('abc')
  const [response] = (await settled(once(request, 'response'), 'the head')) as [http.IncomingMessage]
  response.on('error', () => {})
  let last = -1
  let same = 0
  await until(() => {
    const now = Atomics.load(cells, 0)
    same = now === last ? same + 1 : 0
    last = now
    return now > 0 && same > 50
  }, 'the function is held up')
  assert.ok(last * 1000 < HELD_BYTES_MAX, `${last} items were made`)
  request.destroy()
  await until(() => cells[1] === 1, 'the end of the function')
  await until(() => own.stats().running === 0)
})
