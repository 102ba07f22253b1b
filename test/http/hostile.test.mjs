/**
 * Hostile clients that speak HTTP, or break it. The demands on the server are in hostile-check.mjs.
 *
 * Those of a server with TLS are in hostile-tls.test.mjs.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../dist/base/wait.test.support.js'
import { attacks } from './attacks/http.mjs'
import { Client, percentile, Victim } from './attacks/victim.mjs'
import { assertServed, check, SAMPLES } from './hostile-check.mjs'

for (const attack of attacks) check(attack)

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
  // Node opens the modules of dist beside each other, some hundred of them.
  const victim = await Victim.start({ filesMax: 200 })
  const client = new Client(victim.port)
  const quiet99 = percentile(await client.latencies(SAMPLES), 99)
  const sockets = await victim.connectMany(250)
  await isServed(client, quiet99)
  client.close()
  for (const socket of sockets) socket.destroy()
  await victim.until(({ connections }) => connections === 0)
  // Who knocks while the last of the dead are still being taken out of the queue may be turned away.
  await victim.untilServed()
  await victim.latencies(20)
  assert.equal(await victim.stop(), 0)
})
