/**
 * What the tests of zones share: a zone for the length of a test, and waiting for a condition.
 *
 * Not a test itself.
 */
import assert from 'node:assert/strict'
import { type Zone, type ZoneSettings, zone } from './index.ts'

const PATIENCE_MS = 20_000
let made = 0

/** A zone under a name that no other test of the file has. */
export function makeZone(settings: ZoneSettings): Zone {
  return zone.create(`test-${++made}`, settings)
}

/** Run `body` with a zone of its own, whose workers have started, and close that. */
export async function inZone(settings: ZoneSettings, body: (own: Zone) => Promise<void>): Promise<void> {
  const own = makeZone(settings)
  try {
    await own.ready()
    await body(own)
  } finally {
    await own.close()
  }
}

/** Wait for a condition that this thread's loop brings about. */
export async function until(what: () => boolean): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS
  while (!what()) {
    assert.ok(performance.now() < deadline, `never came true: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
}
