/**
 * The cases of the Autobahn list, restated: frames in, frames out, on both cores, at once and byte by byte.
 *
 * The server echoes every message. Sections are those of RFC 6455 unless another one is named.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { constants, deflateRawSync } from 'node:zlib'
import {
  closing,
  type Clients,
  frame,
  LINES,
  onWires,
  type Opening,
  RawClient,
} from './client.test.support.ts'

/** Name, frames, and the words that come back; a close frame ends the case. */
type Case = readonly [name: string, frames: readonly Uint8Array[], words: readonly string[]]

const MESSAGE_BYTES_MAX = 70_000
const a = (length: number): string => 'a'.repeat(length)
const bytes = (length: number): Uint8Array => new Uint8Array(length).fill(7)
const hex = (length: number): string => '07'.repeat(length)

/** What a compressed message has as its payload (RFC 7692, 7.2.1). */
const deflated = (text: string | Uint8Array): Uint8Array =>
  deflateRawSync(text, { finishFlush: constants.Z_SYNC_FLUSH }).subarray(0, -4)
/** A text of which little can be left out. */
const varied = (length: number): string => {
  let seed = 1
  const next = (): number => (seed = (seed * 48_271) % 2_147_483_647)
  return Array.from({ length }, () => String.fromCharCode(33 + (next() % 94))).join('')
}
/** Frames of one message. */
const fragments = (first: number, payload: string | Uint8Array, size: number): Uint8Array[] => {
  const all = Buffer.from(payload as Uint8Array)
  const count = Math.max(1, Math.ceil(all.length / size))
  return Array.from({ length: count }, (_, at) => {
    const isLast = at === count - 1
    return frame((isLast ? 0x80 : 0) | (at === 0 ? first : 0), all.subarray(at * size, (at + 1) * size))
  })
}

const MESSAGES: readonly Case[] = [
  [
    '1.1 texts of every form of length',
    [0, 125, 126, 127, 128, 65_535, 65_536].map((n) => frame(0x81, a(n))),
    [0, 125, 126, 127, 128, 65_535, 65_536].map((n) => `text ${a(n)}`),
  ],
  [
    '1.2 bytes of every form of length',
    [0, 125, 126, 127, 65_535, 65_536].map((n) => frame(0x82, bytes(n))),
    [0, 125, 126, 127, 65_535, 65_536].map((n) => `bytes ${hex(n)}`),
  ],
  [
    '2.1 a pong has the payload of its ping',
    [frame(0x89), frame(0x89, 'x'), frame(0x89, a(125))],
    ['pong', 'pong x', `pong ${a(125)}`],
  ],
  ['2.7 pongs that nobody asked for', [frame(0x8a), frame(0x8a, 'x'), frame(0x89, 'y')], ['pong y']],
  ['2.5 a ping that is too long', [frame(0x89, a(126))], ['close 1002']],
  ['3 reserved bits of text', [frame(0x81, 'a'), frame(0xa1, 'b')], ['text a', 'close 1002']],
  ['3 reserved bits of a ping', [frame(0xd9)], ['close 1002']],
  ['3 a compressed message without agreement', [frame(0xc1, 'a')], ['close 1002']],
  ...[3, 4, 5, 6, 7, 11, 12, 13, 14, 15].map((opcode): Case => [
    `4 the reserved opcode ${opcode}`,
    [frame(0x80 | opcode, 'a')],
    ['close 1002'],
  ]),
  ['5.1 a ping in fragments', [frame(0x09, 'a'), frame(0x80, 'b')], ['close 1002']],
  ['5.3 text in fragments', [frame(1, 'ab'), frame(0, ''), frame(0x80, 'cd')], ['text abcd']],
  [
    '5.6 a ping between fragments',
    [frame(1, 'a'), frame(0x89, 'p'), frame(0x80, 'b')],
    ['pong p', 'text ab'],
  ],
  ['5.2 a pong in fragments', [frame(0x0a, 'a'), frame(0x80, 'b')], ['close 1002']],
  ['5.4 text in fragments, each in a write', [frame(1, 'ab'), frame(0x80, 'cd')], ['text abcd']],
  [
    '5.7 pings between empty fragments',
    [frame(1), frame(0x89, 'p'), frame(0), frame(0x89, 'q'), frame(0x80, 'b')],
    ['pong p', 'pong q', 'text b'],
  ],
  [
    '5.8 a pong and a long ping between fragments',
    [frame(1, 'a'), frame(0x8a, 'n'), frame(0x89, a(125)), frame(0x80, 'b')],
    [`pong ${a(125)}`, 'text ab'],
  ],
  ['5.9 nothing to continue', [frame(0x80, 'a')], ['close 1002']],
  ['5.10 the same behind a message', [frame(0x81, 'a'), frame(0x80, 'b')], ['text a', 'close 1002']],
  ['5.11 the same before a message', [frame(0x80, 'a'), frame(0x81, 'b')], ['close 1002']],
  ['5.12 an unfinished fragment of nothing', [frame(0, 'a'), frame(0x81, 'b')], ['close 1002']],
  ['5.13 two of them', [frame(0, 'a'), frame(0, 'b'), frame(0x80, 'c')], ['close 1002']],
  ['5.14 one behind a ping', [frame(0x89, 'p'), frame(0, 'a'), frame(0x80, 'b')], ['pong p', 'close 1002']],
  ['5.15 a second beginning', [frame(1, 'a'), frame(0x80, 'b'), frame(0, 'c')], ['text ab', 'close 1002']],
  ['5.16 the same before fragments', [frame(0), frame(1, 'a')], ['close 1002']],
  ['5.17 the last fragment of nothing', [frame(0x80), frame(1, 'a'), frame(0x80, 'b')], ['close 1002']],
  ['5.18 a message in a message', [frame(1, 'a'), frame(0x81, 'b')], ['close 1002']],
  ['5.18 the beginning of a message in a message', [frame(1, 'a'), frame(1, 'b')], ['close 1002']],
  ['5.18 bytes in a text', [frame(1, 'a'), frame(2, 'b')], ['close 1002']],
  [
    '5.19 text in five fragments with pings between them',
    [
      frame(1, '1'),
      frame(0, '2'),
      frame(0x89, 'p'),
      frame(0, '3'),
      frame(0, '4'),
      frame(0x89, 'q'),
      frame(0x80, '5'),
    ],
    ['pong p', 'pong q', 'text 12345'],
  ],
  [
    '5.20 bytes in five fragments with pings between them',
    [frame(2, '1'), frame(0x89), frame(0, '2'), frame(0, '3'), frame(0x89), frame(0, '4'), frame(0x80, '5')],
    ['pong', 'pong', 'bytes 3132333435'],
  ],
  ['6.1 empty text, in fragments too', [frame(0x81), frame(1), frame(0), frame(0x80)], ['text ', 'text ']],
  ['6.2 text of several bytes per character', [frame(0x81, 'Hellö 😀 κόσμε')], ['text Hellö 😀 κόσμε']],
  [
    '6.2 a character in two fragments',
    [frame(1, Buffer.from([0xf0, 0x9f])), frame(0x80, Buffer.from([0x98, 0x80]))],
    ['text 😀'],
  ],
  ['6.2 a byte order mark is kept', [frame(0x81, '\ufeffa')], ['text \ufeffa']],
  ...[
    [0x80],
    [0xc0, 0xaf],
    [0xe2, 0x82],
    [0xed, 0xa0, 0x80],
    [0xf4, 0x90, 0x80, 0x80],
    [0xf8, 0x88, 0x80, 0x80, 0x80],
    [0xff],
  ].map((broken): Case => [
    `6.3 text that is not UTF-8: ${Buffer.from(broken).toString('hex')}`,
    [frame(0x81, Buffer.from(broken))],
    ['close 1007'],
  ]),
  [
    '6.4 text that is not UTF-8 in a later fragment',
    [frame(1, 'a'), frame(0x80, Buffer.from([0xff]))],
    ['close 1007'],
  ],
  ['5.1 a frame without a mask', [Buffer.from([0x81, 1, 97])], ['close 1002']],
  [
    '9.1 a message of the most bytes',
    [frame(0x82, bytes(MESSAGE_BYTES_MAX))],
    [`bytes ${hex(MESSAGE_BYTES_MAX)}`],
  ],
  ['9.2 a message that is too long', [frame(0x82, bytes(MESSAGE_BYTES_MAX + 1))], ['close 1009']],
  [
    '9.3 fragments that are too long together',
    [frame(2, bytes(MESSAGE_BYTES_MAX)), frame(0x80, 'a')],
    ['close 1009'],
  ],
  [
    '9.9 a length that no message has',
    [Buffer.from([0x82, 0xff, 0, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0])],
    ['close 1009'],
  ],
  ['10.1 a message in frames of 1300 bytes', fragments(1, varied(65_536), 1300), [`text ${varied(65_536)}`]],
]

const CLOSES: readonly Case[] = [
  ['7.1 close without a code', [frame(0x88)], ['close']],
  ['7.3 close with a code', [frame(0x88, closing(1000))], ['close 1000']],
  [
    '7.1 nothing is read behind a close frame',
    [frame(0x88, closing(1000)), frame(0x81, 'a')],
    ['close 1000'],
  ],
  [
    '7.1 messages before a close frame',
    [frame(0x81, 'a'), frame(0x88, closing(1001))],
    ['text a', 'close 1001'],
  ],
  ['7.3 half a code', [frame(0x88, Buffer.from([3]))], ['close 1002']],
  ['7.5 a reason that is not UTF-8', [frame(0x88, Buffer.from([3, 0xe8, 0xff]))], ['close 1007']],
  ['7.3 a close frame that is too long', [frame(0x88, closing(1000, a(124)))], ['close 1002']],
  ...[1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999].map((code): Case => [
    `7.7 the code ${code}`,
    [frame(0x88, closing(code))],
    [`close ${code}`],
  ]),
  ...[0, 999, 1004, 1005, 1006, 1016, 1100, 2000, 2999, 5000, 65_535].map((code): Case => [
    `7.9 the code ${code}, which nobody may send`,
    [frame(0x88, closing(code))],
    ['close 1002'],
  ]),
]

/** Reasons are the cores' own, except where they are echoed. */
const coded = (word: string): string =>
  word.startsWith('close') ? word.split(' ').slice(0, 2).join(' ') : word

async function check(
  clients: Clients,
  port: number,
  [name, frames, words]: Case,
  splits: boolean,
  opening: Opening = {},
): Promise<void> {
  const client = await clients.open(port, opening)
  const all = Buffer.concat(frames)
  if (splits) for (const byte of all) client.send(Buffer.from([byte]))
  else client.send(all)
  const found = (await client.received(words.length)).map(coded)
  assert.deepEqual(found, words, `${name}${splits ? ', byte by byte' : ''}`)
  if (words.at(-1)?.startsWith('close')) {
    client.socket.end()
    await client.rest()
    client.socket.destroy()
  } else await client.close()
}

onWires('frames are accepted or refused as RFC 6455 demands', async (start, clients) => {
  const server = await start({
    routes: {
      '/': {
        websocket: {
          message: (socket, message) => void socket.send(message),
          messageBytesMax: MESSAGE_BYTES_MAX,
          queuedBytesMax: 1 << 24,
        },
      },
    },
  })
  for (const found of [...MESSAGES, ...CLOSES]) {
    await check(clients, server.port, found, false)
    const length = found[1].reduce((sum, one) => sum + one.length, 0)
    if (length < 400) await check(clients, server.port, found, true)
  }
  assert.equal(server.stats().errors, 0)
})

/** Lines of the request by name, with one of them replaced; '' leaves it out. */
function lines(replaced: Readonly<Record<string, string>>): string[] {
  const kept = LINES.map((line) => {
    const name = line.slice(0, line.indexOf(':')).toLowerCase()
    return replaced[name] ?? line
  })
  return kept.filter((line) => line !== '')
}

/** Name, lines of the request, status. */
const HANDSHAKES: readonly (readonly [string, readonly string[], number])[] = [
  ['4.2.1 the usual one', LINES, 101],
  [
    '4.2.1 other cases and further options',
    lines({ upgrade: 'UPGRADE: WebSocket', connection: 'connection: keep-alive, UPGRADE' }),
    101,
  ],
  ['4.2.1 no upgrade', lines({ upgrade: '', connection: '' }), 426],
  ['4.2.1 no connection', lines({ connection: '' }), 400],
  ['4.2.1 no key', lines({ 'sec-websocket-key': '' }), 400],
  ['4.2.1 a short key', lines({ 'sec-websocket-key': 'Sec-WebSocket-Key: YWJj' }), 400],
  [
    '4.2.1 a key of 17 bytes',
    lines({ 'sec-websocket-key': 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQE=' }),
    400,
  ],
  ['4.2.1 two keys', [...LINES, 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='], 400],
  ['4.4 version 8', lines({ 'sec-websocket-version': 'Sec-WebSocket-Version: 8' }), 426],
  ['4.2.1 no version', lines({ 'sec-websocket-version': '' }), 426],
  ['4.1 subprotocols that are not tokens', [...LINES, 'Sec-WebSocket-Protocol: a b'], 400],
  ['9.1 extensions that are malformed', [...LINES, 'Sec-WebSocket-Extensions: a b; ='], 400],
  ['9.1 unknown extensions', [...LINES, 'Sec-WebSocket-Extensions: x-unknown; a=b'], 101],
  ['10.2 the page of the same host', [...LINES, 'Origin: http://localhost'], 101],
  ['10.2 the page of another host', [...LINES, 'Origin: http://evil.example'], 403],
  ['10.2 a sandboxed page', [...LINES, 'Origin: null'], 403],
]

onWires('handshakes are granted or refused as RFC 6455 demands', async (start, clients) => {
  const server = await start({ routes: { '/': { websocket: { message: () => {} } } } })
  const isHttp1 = clients === RawClient
  for (const [name, given, status] of HANDSHAKES) {
    if (!isHttp1 && /key|connection|no upgrade/.test(name)) continue // HTTP/2 has other ones
    const client = await clients.ask(server.port, { lines: given })
    assert.equal(client.status, status, name)
    if (status === 426) assert.equal(client.header('upgrade'), isHttp1 ? 'websocket' : undefined, name)
    if (status === 101) await client.close()
    client.socket.destroy()
  }
  const { status, socket, ...version } = await clients.ask(server.port, {
    lines: lines({ 'sec-websocket-version': '' }),
  })
  assert.match(version.head, /sec-websocket-version: 13/i)
  assert.equal(status, 426)
  socket.destroy()
})

/** Offers of compression, and what is agreed on. */
const OFFERS: readonly (readonly [string, boolean])[] = [
  ['permessage-deflate', true],
  ['permessage-deflate; client_max_window_bits', true],
  ['permessage-deflate; client_max_window_bits=10; server_no_context_takeover', true],
  ['permessage-deflate; server_max_window_bits=15', true],
  ['x-webkit-deflate-frame, permessage-deflate', true],
  ['x-webkit-deflate-frame', false],
]

/** Sizes and forms of compressed messages; those of a client that agreed on compression. */
const COMPRESSED: readonly Case[] = [
  ...[0, 16, 64, 256, 1024, 4096, 16_384, 65_536].flatMap((length): Case[] => [
    [`12.1 a text of ${length} bytes`, [frame(0xc1, deflated(a(length)))], [`text ${a(length)}`]],
    [`12.2 ${length} various bytes`, [frame(0xc1, deflated(varied(length)))], [`text ${varied(length)}`]],
    [
      `13.1 ${length} bytes in fragments of 13`,
      fragments(0x41, deflated(varied(length)), 13),
      [`text ${varied(length)}`],
    ],
  ]),
  [
    '13.2 an empty first and an empty last fragment',
    [frame(0x41), frame(0, deflated('Hello')), frame(0x80)],
    ['text Hello'],
  ],
  [
    '13.3 a ping between compressed fragments',
    [
      frame(0x41, deflated('Hello').subarray(0, 3)),
      frame(0x89, 'p'),
      frame(0x80, deflated('Hello').subarray(3)),
    ],
    ['pong p', 'text Hello'],
  ],
  ['13.4 messages with and without', [frame(0x81, 'a'), frame(0xc1, deflated('b'))], ['text a', 'text b']],
  ['6.1 RSV1 on a continuation', [frame(0x41, deflated('a')), frame(0xc0, 'b')], ['close 1002']],
  ['6.1 RSV1 on a continuation of text', [frame(1, 'a'), frame(0xc0, 'b')], ['close 1002']],
  ['6.1 RSV1 on a ping', [frame(0xc9, 'a')], ['close 1002']],
  ['6.1 RSV1 on a pong', [frame(0xca, 'a')], ['close 1002']],
  ['6.1 RSV1 on a close frame', [frame(0xc8, closing(1000))], ['close 1002']],
  ['6.1 RSV2 beside it', [frame(0xe1, deflated('a'))], ['close 1002']],
  ['7.2 compressed text that is not UTF-8', [frame(0xc1, deflated(Uint8Array.of(0xff)))], ['close 1007']],
  ['9.2 too long when decoded', [frame(0xc1, deflated(a(MESSAGE_BYTES_MAX + 1)))], ['close 1009']],
]

onWires('compressed frames are accepted or refused as RFC 7692 demands', async (start, clients) => {
  const message = (socket: { send(text: string | Uint8Array): unknown }, text: string | Uint8Array): void =>
    void socket.send(text)
  // Responses are not compressed: no message is that long.
  const websocket = {
    message,
    messageBytesMax: MESSAGE_BYTES_MAX,
    queuedBytesMax: 1 << 24,
    compression: 1 << 20,
  }
  const server = await start({ routes: { '/': { websocket } } })
  const more = ['Sec-WebSocket-Extensions: permessage-deflate']
  for (const found of COMPRESSED) {
    await check(clients, server.port, found, false, { more })
    if (Buffer.concat(found[1]).length < 400) await check(clients, server.port, found, true, { more })
  }
  assert.equal(server.stats().errors, 0)
})

onWires('compression is agreed on without context takeover (RFC 7692)', async (start, clients) => {
  const compression = 16
  const server = await start({
    routes: { '/': { websocket: { message: (socket, text) => void socket.send(text), compression } } },
  })
  for (const [offer, isAgreed] of OFFERS) {
    const more = [`Sec-WebSocket-Extensions: ${offer}`]
    const client = await clients.open(server.port, { more })
    const agreed = client.header('sec-websocket-extensions')
    assert.equal(agreed !== undefined, isAgreed, offer)
    if (isAgreed) {
      assert.match(
        agreed!,
        /^permessage-deflate(?=.*server_no_context_takeover)(?=.*client_no_context_takeover)/,
      )
      const hello = Buffer.from('f248cdc9c90700', 'hex')
      client.send(frame(0xc1, hello), frame(0xc1, hello), frame(0x81, a(100)))
      const [one, two, three] = await client.received(3)
      assert.deepEqual([one, two], ['text Hello', 'text Hello'])
      assert.match(three, /^65 /, 'a long message is compressed')
    }
    await client.close()
  }
  const broken = await clients.open(server.port, { more: ['Sec-WebSocket-Extensions: permessage-deflate'] })
  broken.send(frame(0xc1, Buffer.from('ffffff', 'hex')))
  assert.deepEqual((await broken.received(1)).map(coded), ['close 1007'])
  broken.socket.destroy()
})

test('every case has a name of its own', () => {
  const names = [...MESSAGES, ...CLOSES, ...HANDSHAKES, ...COMPRESSED].map(([name]) => name)
  assert.equal(new Set(names).size, names.length)
})
