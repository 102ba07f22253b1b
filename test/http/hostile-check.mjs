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
import { MANY } from './attacks/many.mjs'
import { percentile, Victim } from './attacks/victim.mjs'

const MIB = 1024 * 1024
/** What a quiet p99 counts as at least, ms; without it no time is judged. */
const QUIET_MS = Number(process.env.CORESPUN_HTTP_QUIET_MS ?? Infinity)
/** Most a p99 may be beside hostile clients, times the quiet one. */
const TIMES_MAX = 10
/** Requests whose p99 is taken. */
export const SAMPLES = 200

/** What a normal client had to wait, ms, as the one of 99 %: not much longer than when all is quiet. */
export function assertServed(p99, quiet99) {
  const bound = TIMES_MAX * Math.max(quiet99, QUIET_MS)
  assert.ok(p99 < bound, `p99 ${p99.toFixed(1)} ms, at most ${bound.toFixed(1)}`)
}

/**
 * A test of the native core: an attack, and from before it begins until it is over a normal client is
 * served and memory is bounded; afterwards no connection, descriptor or memory is left.
 * @param {import('./attacks/victim.mjs').Attack} attack
 * @param {object} [tls] The server's, which then serves https.
 */
export function check({ name, limits, run }, tls) {
  test(tls === undefined ? name : `TLS: ${name}`, async (t) => {
    const victim = await Victim.start({ limits, tls })
    let sockets = []
    try {
      const before99 = percentile(await victim.latencies(SAMPLES), 99)
      const before = await victim.stats()
      let isOver = false
      const [latencies, rss] = await Promise.all([
        victim.latencies(SAMPLES, () => isOver),
        victim.greatestRss(() => isOver),
        run(victim)
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
