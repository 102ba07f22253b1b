/**
 * What a host waits for, and what ends it at once; here `open` fails by a list, and in test/fleet a
 * process waits for a server.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FleetError } from '../../fleet/index.ts'
import { untilThere } from './waiting.ts'

const connecting = (isAway: boolean): FleetError =>
  new FleetError('FLEET_CONNECT', { servers: 'nats://a', reason: 'refused', remedy: 'check it', isAway })
const unconfirmed = new FleetError('FLEET_TIMEOUT', { operation: 'opening the queue', timeoutMs: 5000 })
const denied = new FleetError('FLEET_DENIED', { operation: 'connecting', reason: 'Authorization Violation' })
const never = new Promise<never>(() => {})

/** What it ends with when `open` fails with these, one behind the other, and what was written meanwhile. */
async function check(errors: readonly Error[], stop: Promise<unknown> = never) {
  const lines: string[] = []
  const left = [...errors]
  const open = async (): Promise<string> => {
    const error = left.shift()
    if (error !== undefined) throw error
    return 'open'
  }
  const ended = await untilThere(open, stop, (why) => lines.push(why)).catch((error: unknown) => error)
  return { ended, lines }
}

test('a server that is not there, and one that does not confirm, are waited for with one line', async () => {
  const { ended, lines } = await check([connecting(true), unconfirmed])
  assert.deepEqual([ended, lines], ['open', ['cannot connect to nats://a: refused; check it']])
})

for (const error of [connecting(false), denied, new TypeError('a bug')])
  test(`it is not waited for: ${error.message}`, async () => {
    assert.deepEqual(await check([error]), { ended: error, lines: [] })
    const { ended, lines } = await check([connecting(true), error])
    assert.deepEqual([ended, lines.length], [error, 1])
  })

test('a stop ends the wait, and what is being opened is left', { timeout: 60_000 }, async () => {
  let stop!: () => void
  const stopped = new Promise<void>((resolve) => (stop = resolve))
  const lines: string[] = []
  const waiting = untilThere(
    () => Promise.reject(connecting(true)),
    stopped,
    (why) => {
      lines.push(why)
      stop()
    },
  )
  assert.equal(await waiting, undefined)
  assert.equal(lines.length, 1)
  assert.equal(await untilThere(() => never, stopped, assert.fail), undefined)
})
