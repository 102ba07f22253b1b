/**
 * What hostile clients do to a server with TLS: handshakes that do not end, garbage, renegotiation, vanished
 * peers.
 *
 * As those in http.mjs; what they are sent to must have a certificate.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import tls from 'node:tls'
import { MANY, PATIENCE_MS, settled } from './many.mjs'
import { closedBy, pause } from './victim.mjs'

/** A quarter of these may be in a handshake. */
const CONNECTIONS = { connectionsMax: 8 * Math.max(MANY, 100) }
/** The head of a record with a client's hello, and of that hello. */
const HELLO = Buffer.from('1603010200010001fc0303', 'hex')

/** A handshake over a socket; ends when it is complete. */
async function secured(socket, more = {}) {
  const secure = tls.connect({ socket, rejectUnauthorized: false, ...more })
  secure.on('error', () => {})
  await Promise.race([once(secure, 'secureConnect'), once(secure, 'close')])
  assert.equal(secure.destroyed, false, 'a handshake is completed beside the others')
  return secure
}

async function securedMany(victim, count, more) {
  const all = []
  for (let at = 0; at < count; at += 50) {
    const sockets = await victim.connectMany(Math.min(50, count - at))
    all.push(...(await Promise.all(sockets.map((socket) => secured(socket, more)))))
  }
  return all
}

async function allClosed(sockets, why) {
  const closed = await Promise.all(sockets.slice(0, 50).map((socket) => closedBy(socket, PATIENCE_MS)))
  assert.ok(closed.every(Boolean), why)
}

/** @type {import('./victim.mjs').Attack[]} */
export const attacks = [
  {
    name: 'connections that never begin a handshake',
    limits: { ...CONNECTIONS, headersMs: 5000 },
    async run(victim) {
      const sockets = await victim.connectMany(MANY)
      await allClosed(sockets, 'closed after headersMs')
      return sockets
    },
  },

  {
    name: 'hellos that come a byte at a time',
    limits: { ...CONNECTIONS, headersMs: 5000 },
    async run(victim) {
      const sockets = await victim.connectMany(MANY)
      for (const socket of sockets) socket.write(HELLO)
      const drip = setInterval(() => {
        for (const socket of sockets) if (socket.writable) socket.write('\0')
      }, 50)
      try {
        await allClosed(sockets, 'closed after headersMs, whatever drips in')
      } finally {
        clearInterval(drip)
      }
      return sockets
    },
  },

  {
    name: 'garbage',
    limits: { ...CONNECTIONS },
    async run(victim) {
      const kinds = [
        Buffer.alloc(4000, 0xff),
        Buffer.concat([HELLO, Buffer.alloc(505, 1)]),
        Buffer.from('160301ffff', 'hex'), // longer than a record may be
        Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n'),
        Buffer.from('150301000202ff', 'hex'), // an alert, before anything
        Buffer.from('1703030005aabbccddee', 'hex'), // data, before keys
      ]
      const sockets = await victim.connectMany(MANY)
      for (const [at, socket] of sockets.entries()) socket.write(kinds[at % kinds.length])
      await allClosed(sockets, 'refused')
      return sockets
    },
  },

  {
    name: 'clients that reset in each phase of a handshake',
    limits: { ...CONNECTIONS },
    async run(victim) {
      const phases = ['', HELLO.subarray(0, 3), HELLO, Buffer.concat([HELLO, Buffer.alloc(505, 1)])]
      for (const phase of phases) {
        const sockets = await victim.connectMany(Math.ceil(MANY / phases.length))
        for (const socket of sockets) socket.write(phase)
        await pause(20)
        for (const socket of sockets) socket.resetAndDestroy()
      }
      const complete = await victim.connectMany(20)
      await Promise.all(complete.map((socket) => secured(socket)))
      for (const socket of complete) socket.resetAndDestroy()
    },
  },

  {
    name: 'renegotiation',
    limits: { ...CONNECTIONS },
    async run(victim) {
      const sockets = await securedMany(victim, Math.min(MANY, 50), { maxVersion: 'TLSv1.2' })
      const outcomes = sockets.map((socket) => {
        const renegotiated = new Promise((resolve) =>
          socket.renegotiate({ rejectUnauthorized: false }, resolve),
        )
        return Promise.race([renegotiated.then(() => false), closedBy(socket, PATIENCE_MS)])
      })
      assert.ok((await Promise.all(outcomes)).every(Boolean), 'no handshake follows the first')
      return sockets
    },
  },

  {
    name: 'peers that have vanished after the handshake',
    limits: { ...CONNECTIONS, idleMs: 5000 },
    async run(victim) {
      const [silent, halfOpen] = [await securedMany(victim, 50), await victim.connectMany(50)]
      await Promise.all(halfOpen.map((socket) => secured(socket)))
      for (const socket of halfOpen) socket.end() // without the alert that announces an end
      await allClosed([...silent, ...halfOpen], 'closed after idleMs, or with their end')
      return [...silent, ...halfOpen]
    },
  },

  {
    name: 'readers that do not read',
    limits: { ...CONNECTIONS, bodyMs: 60_000 },
    async run(victim) {
      const sockets = await securedMany(victim, 30)
      for (const [at, socket] of sockets.entries())
        socket.pause().write(`GET ${at % 2 ? '/endless' : '/large'} HTTP/1.1\r\nHost: x\r\n\r\n`)
      await settled(victim)
      return sockets
    },
  },
]
