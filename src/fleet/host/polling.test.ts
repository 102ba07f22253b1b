/**
 * When a host's event loop polls instead of sleeping: for a moment after a call has begun, until it has
 * ended, and not where calls are long.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { Polling } from './polling.ts'

const QUIET_TURNS = 5

/** Until it polls no more: one that does has a turn in every turn of the loop. */
async function asleep(polling: Polling): Promise<void> {
  for (let quiet = 0, { turns } = polling; quiet < QUIET_TURNS; quiet += 1) {
    await turn()
    if (polling.turns !== turns) quiet = 0
    turns = polling.turns
  }
}

test('a call that goes on is polled for a moment, and then the loop sleeps', async () => {
  const polling = new Polling()
  polling.begun()
  await asleep(polling)
  const { turns } = polling
  assert.ok(turns > 0)
  await asleep(polling)
  assert.equal(polling.turns, turns)
})

test('calls that overlap have one row of turns, which ends with the last one', async () => {
  const polling = new Polling()
  polling.begun()
  await asleep(polling)
  const { turns } = polling
  for (let call = 0; call < 10; call += 1) polling.begun()
  polling.ended(polling.begun())
  await asleep(polling)
  assert.equal(polling.turns, turns + 1)
})

test('where calls are long one in 32 is polled for, and all are when they are short again', async () => {
  const polling = new Polling()
  const polled = async (calls: number): Promise<number> => {
    let count = 0
    for (let call = 0; call < calls; call += 1) {
      const { turns } = polling
      polling.begun()
      await asleep(polling)
      if (polling.turns > turns) count += 1
    }
    return count
  }
  assert.equal(await polled(4), 4)
  assert.equal(await polled(64), 2)
  // A call of no length, however slow the machine is.
  polling.ended(performance.now() + 1000)
  assert.equal(await polled(4), 4)
})
