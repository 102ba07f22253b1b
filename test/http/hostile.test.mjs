/**
 * Hostile clients: whatever they do, other clients are served, memory is bounded, and nothing is left behind.
 *
 * In the short form there are hundreds of them; CORESPUN_HTTP_HOSTILE=10000 makes it as many (check:long).
 *
 * Served means that a response arrives, however late; the times are printed. On a machine of its own
 * (check:long sets CORESPUN_HTTP_QUIET_MS; of two cores the server has one and all clients the other) the
 * p99 of a normal client is checked, too: it stays below ten times its value in the same run without
 * hostile clients, before or after them. One turn of another process on the core exceeds ten times a
 * quiet p99, so the bound is CORESPUN_HTTP_QUIET_MS at least.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../dist/base/wait.test.support.js'
import { Client, closedBy, narrowClients, pause, percentile, readAll, Victim } from './hostile.mjs'

const MANY = Number(process.env.CORESPUN_HTTP_HOSTILE ?? 300)
const HEAD = 'GET / HTTP/1.1\r\nHost: x\r\n'
const GET = `${HEAD}\r\n`
const MIB = 1024 * 1024

/** What a quiet p99 counts as at least, ms; without it no time is judged. */
const QUIET_MS = Number(process.env.CORESPUN_HTTP_QUIET_MS ?? Infinity)
/** How long the server may take to do what it must. */
const PATIENCE_MS = 60_000
/** Most a p99 may be beside hostile clients, times the quiet one. */
const TIMES_MAX = 10
/** Requests whose p99 is taken. */
const SAMPLES = 200

/** What a normal client had to wait, ms, as the one of 99 %: not much longer than when all is quiet. */
function assertServed(p99, quiet99) {
  const bound = TIMES_MAX * Math.max(quiet99, QUIET_MS)
  assert.ok(p99 < bound, `p99 ${p99.toFixed(1)} ms, at most ${bound.toFixed(1)}`)
}

/**
 * A test of the native core: `attack`, and from before it begins until it is over a normal client is
 * served and memory is bounded; afterwards no connection, descriptor or memory is left.
 */
function check(name, limits, attack) {
  test(name, async (t) => {
    const victim = await Victim.start({ limits })
    let sockets = []
    try {
      const before99 = percentile(await victim.latencies(SAMPLES), 99)
      const before = await victim.stats()
      let isOver = false
      const [latencies, rss] = await Promise.all([
        victim.latencies(SAMPLES, () => isOver),
        victim.greatestRss(() => isOver),
        attack(victim)
          .then((found) => (sockets = found ?? []))
          .finally(() => (isOver = true)),
      ])
      const p99 = percentile(latencies, 99)
      const moreMib = Math.round((rss - before.rss) / MIB)
      assert.ok(moreMib < 64 + MANY / 16, `${moreMib} MiB more`)
      for (const socket of sockets) socket.destroy()
      const left = await victim.until(({ connections }) => connections === 0)
      assert.equal(left.connections, 0)
      assert.ok(
        left.descriptors <= before.descriptors + 2,
        `${left.descriptors} descriptors, before ${before.descriptors}`,
      )
      assert.ok(
        left.heapUsed - before.heapUsed < 16 * MIB,
        `${((left.heapUsed - before.heapUsed) / MIB).toFixed(1)} MiB of heap more`,
      )
      assert.equal(left.errors, 0)
      const quiet = Math.max(before99, percentile(await victim.latencies(SAMPLES), 99))
      t.diagnostic(
        `p99 ${p99.toFixed(1)} ms, quiet ${quiet.toFixed(1)} ms, ` +
          `rss ${Math.round(rss / MIB)} MiB, ${moreMib} more`,
      )
      assertServed(p99, quiet)
    } finally {
      for (const socket of sockets) socket.destroy()
      assert.equal(await victim.stop(), 0)
    }
  })
}

/** Until no more is sent than the normal client takes: what others do not take has filled every buffer. */
async function settled(victim) {
  let before = { bytesOut: -Infinity, requests: 0 }
  await victim.until((stats) => {
    const isStill =
      stats.bytesOut - before.bytesOut <= (stats.requests - before.requests + 1) * RESPONSE_BYTES_MAX
    before = stats
    return isStill
  })
}

/** Upper bound of a response to the normal client. */
const RESPONSE_BYTES_MAX = 512

check('connections that send nothing', { idleMs: 600, headersMs: 600 }, async (victim) => {
  const sockets = await victim.connectMany(MANY)
  assert.ok(await closedBy(sockets[0], PATIENCE_MS), 'closed after its time')
  return sockets
})

check('heads that come a byte at a time', { headersMs: 500 }, async (victim) => {
  const sockets = await victim.connectMany(MANY)
  const drip = setInterval(() => {
    for (const socket of sockets) if (socket.writable) socket.write('X')
  }, 50)
  for (const socket of sockets) socket.write(HEAD)
  const closed = await Promise.all(sockets.slice(0, 20).map((socket) => closedBy(socket, PATIENCE_MS)))
  clearInterval(drip)
  assert.ok(closed.every(Boolean), 'all closed after headersMs, whatever dripped in')
  return sockets
})

check('bodies that stop', { bodyMs: 400 }, async (victim) => {
  const sockets = await victim.connectMany(MANY)
  for (const socket of sockets)
    socket.write('POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf')
  const closed = await Promise.all(sockets.slice(0, 20).map((socket) => closedBy(socket, PATIENCE_MS)))
  assert.ok(closed.every(Boolean), 'all closed after bodyMs')
  return sockets
})

check('readers that do not read', { bodyMs: 60_000 }, async (victim) => {
  // Half of them are owed a megabyte each; V8's own young space, which grows meanwhile, is as much again.
  const sockets = await victim.connectMany(Math.min(MANY, 30))
  for (const [at, socket] of sockets.entries()) {
    socket.pause().write(`GET ${at % 2 ? '/endless' : '/large'} HTTP/1.1\r\nHost: x\r\n\r\n`)
  }
  await settled(victim)
  return sockets
})

check('tiny windows', { bodyMs: 4000 }, async (victim) => {
  // While they read, however little, they keep their connections; then they do not, and lose them.
  const count = Math.min(MANY, 50)
  const narrow = await narrowClients(victim.port, { count, path: '/endless', readMs: 2500, napMs: 10 })
  try {
    const [bytes, closed] = await narrow.read
    assert.equal(closed, 0, 'closed while they read')
    assert.ok(bytes > count * 200, `${bytes} bytes read`)
    const { connections } = await victim.until(({ connections }) => connections < count / 2)
    assert.ok(connections < count / 2, `${connections} connections of clients that read nothing`)
  } finally {
    narrow.stop()
  }
})

check('tiny windows, read for longer than bodyMs', { bodyMs: 4000 }, async (victim) => {
  // 1,400 bytes a second: nothing to the buffer of the server's kernel.
  const count = Math.min(MANY, 50)
  const narrow = await narrowClients(victim.port, { count, path: '/endless', readMs: 9000, napMs: 11 })
  try {
    const [bytes, closed] = await narrow.read
    assert.equal(closed, 0, 'closed while they read')
    const { connections } = await victim.stats()
    assert.ok(connections >= count, `${connections} connections, ${bytes} bytes read`)
    const left = await victim.until(({ connections }) => connections < count / 2)
    assert.ok(left.connections < count / 2, `${left.connections} connections of clients that read nothing`)
  } finally {
    narrow.stop()
  }
})

check('clients that reset in each phase', {}, async (victim) => {
  const phases = [
    '',
    'GET / HT',
    HEAD,
    GET,
    'GET /never HTTP/1.1\r\nHost: x\r\n\r\n',
    'GET /endless HTTP/1.1\r\nHost: x\r\n\r\n',
    'GET /large HTTP/1.1\r\nHost: x\r\n\r\n',
    'POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf',
    'POST /pipe HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab',
    GET.repeat(50),
  ]
  for (const phase of phases) {
    const sockets = await victim.connectMany(Math.ceil(MANY / phases.length))
    for (const socket of sockets) socket.pause().write(phase)
    await pause(20)
    for (const socket of sockets) socket.resetAndDestroy()
  }
})

check('half-closed sockets', {}, async (victim) => {
  const sockets = await victim.connectMany(MANY)
  /** What they send before their end, and the complete body of the response, if any. */
  const ends = [
    [''],
    ['GET / HT'],
    [GET, 'hello'],
    ['GET /never HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['GET /slow HTTP/1.1\r\nHost: x\r\n\r\n', 'slow'],
    ['GET /short HTTP/1.1\r\nHost: x\r\n\r\n', `${'5\r\npiece\r\n'.repeat(10)}0\r\n\r\n`],
  ]
  for (const [at, socket] of sockets.entries()) socket.end(ends[at % ends.length][0])
  const found = await Promise.all(sockets.slice(0, 24).map((socket) => readAll(socket, PATIENCE_MS)))
  assert.ok(!found.includes(undefined), 'closed when their client had ended')
  for (const [at, text] of found.entries()) {
    const [, whole] = ends[at % ends.length]
    const body = text.slice(text.indexOf('\r\n\r\n') + 4)
    if (whole !== undefined) assert.equal(body, whole, 'a late response, or one in pieces, is complete')
  }
  return sockets
})

check('floods of headers', {}, async (victim) => {
  const sockets = await victim.connectMany(Math.min(MANY, 100))
  const flood = `${HEAD}${'X-Flood: yes, very much so\r\n'.repeat(5000)}`
  for (const socket of sockets) socket.write(flood)
  const closed = await Promise.all(sockets.map((socket) => closedBy(socket, PATIENCE_MS)))
  assert.ok(closed.every(Boolean), 'refused')
  return sockets
})

check('chunk extensions without end', { lingerMs: 3000 }, async (victim) => {
  const sockets = await victim.connectMany(Math.min(MANY, 50))
  const part = ';a=b'.repeat(4000)
  for (const socket of sockets) {
    socket.write(`POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1${part}`)
    const more = () => socket.writable && socket.write(part, more)
    more()
  }
  const closed = await Promise.all(sockets.map((socket) => closedBy(socket, PATIENCE_MS)))
  assert.ok(closed.every(Boolean), 'refused')
  return sockets
})

check('small chunks with extensions, one after the other', { lingerMs: 3000 }, async (victim) => {
  const sockets = await victim.connectMany(Math.min(MANY, 20))
  const part = '1;a\r\nx\r\n'.repeat(2000)
  for (const socket of sockets) {
    socket.write('POST /ignore HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n')
    const more = () => socket.writable && socket.write(part, more)
    more()
  }
  const closed = await Promise.all(sockets.map((socket) => closedBy(socket, PATIENCE_MS)))
  assert.ok(closed.every(Boolean), 'an endless unwanted body closes its connection')
  return sockets
})

check('uploads without end', { bodyBytesMax: 2 ** 40 }, async (victim) => {
  // More than the server reads is there at any time: no read of it ever has to wait for the kernel.
  const sockets = await victim.connectMany(4)
  const part = Buffer.alloc(MIB)
  for (const socket of sockets) {
    socket.write(`POST /count HTTP/1.1\r\nHost: x\r\nContent-Length: ${2 ** 40}\r\n\r\n`)
    const more = () => socket.writable && socket.write(part, more)
    more()
  }
  await pause(200)
  return sockets
})

check('pipelines without end', { pipelineMax: 16 }, async (victim) => {
  const sockets = await victim.connectMany(8)
  for (const socket of sockets) {
    socket.resume()
    const more = () => socket.writable && socket.write(GET.repeat(200), more)
    more()
  }
  await pause(200)
  return sockets
})

check('pipelines whose responses are not read', {}, async (victim) => {
  // Each may hold a response of 1 MB and what the limits allow; without a limit it would be 100 MB each.
  // Half of them wait behind a first response that never arrives.
  const sockets = await victim.connectMany(Math.min(MANY, 20))
  for (const [at, socket] of sockets.entries()) {
    const first = at % 2 ? 'GET /never HTTP/1.1\r\nHost: x\r\n\r\n' : ''
    socket.pause().write(first + 'GET /large HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(100))
  }
  await settled(victim)
  return sockets
})

/** A client that came before the flood is served while its sockets are held. */
async function isServed(client, quiet99) {
  assertServed(percentile(await client.latencies(SAMPLES), 99), quiet99)
}

test('more connections than connectionsMax are closed, the others served', async () => {
  const victim = await Victim.start({ limits: { connectionsMax: 50 } })
  const client = new Client(victim.port)
  const quiet99 = percentile(await client.latencies(SAMPLES), 99)
  const sockets = await victim.connectMany(80)
  await isServed(client, quiet99)
  client.close()
  const { connections } = await victim.stats()
  assert.ok(connections <= 50, `${connections} connections`)
  const isGone = (socket) => socket.destroyed || socket.readableEnded
  for (const socket of sockets) socket.resume()
  await until(() => sockets.filter(isGone).length >= 30, '30 of 80 connections closed')
  for (const socket of sockets) socket.destroy()
  await victim.until(({ connections }) => connections === 0)
  await victim.latencies(5)
  assert.equal(await victim.stop(), 0)
})

test('descriptors run out, and come back', async () => {
  const victim = await Victim.start({ filesMax: 100 })
  const client = new Client(victim.port)
  const quiet99 = percentile(await client.latencies(SAMPLES), 99)
  const sockets = await victim.connectMany(150)
  await isServed(client, quiet99)
  client.close()
  for (const socket of sockets) socket.destroy()
  await victim.until(({ connections }) => connections === 0)
  // Who knocks while the last of the dead are still being taken out of the queue may be turned away.
  await victim.untilServed()
  await victim.latencies(20)
  assert.equal(await victim.stop(), 0)
})
