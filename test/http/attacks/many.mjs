/**
 * How many hostile clients there are, how long they wait, and when they have filled every buffer.
 *
 * CORESPUN_HTTP_HOSTILE sets their number.
 */

/** Hostile clients of an attack, more or less. */
export const MANY = Number(process.env.CORESPUN_HTTP_HOSTILE ?? 300)
/** How long the server may take to do what it must, ms. */
export const PATIENCE_MS = 60_000
/** Upper bound of a response to the normal client. */
const RESPONSE_BYTES_MAX = 512

/** Until no more is sent than the normal client takes: what others do not take has filled every buffer. */
export async function settled(victim) {
  let before = { bytesOut: -Infinity, requests: 0 }
  await victim.until((stats) => {
    const isStill =
      stats.bytesOut - before.bytesOut <= (stats.requests - before.requests + 1) * RESPONSE_BYTES_MAX
    before = stats
    return isStill
  })
}
