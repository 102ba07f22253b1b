/**
 * When a host's event loop polls instead of sleeping: for a moment after a call has begun, until it has
 * ended, and not where calls are long.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { Polling } from './polling.ts'

test('a call that goes on is polled for a moment, and then the loop sleeps', async () => {
  const polling = new Polling()
  polling.begun()
  await pause(20)
  const { turns } = polling
  assert.ok(turns > 0)
  await pause(20)
  assert.equal(polling.turns, turns)
})

test('calls that overlap have one row of turns, which ends with the last one', async () => {
  const polling = new Polling()
  polling.begun()
  await pause(20)
  const { turns } = polling
  for (let call = 0; call < 10; call += 1) polling.begun()
  polling.ended(polling.begun())
  await pause(20)
  assert.equal(polling.turns, turns + 1)
})

test('where calls are long one in 32 is polled for, and all are when they are short again', async () => {
  const polling = new Polling()
  const polled = async (calls: number): Promise<number> => {
    let count = 0
    for (let call = 0; call < calls; call += 1) {
      const { turns } = polling
      polling.begun()
      await pause(5)
      if (polling.turns > turns) count += 1
    }
    return count
  }
  assert.equal(await polled(4), 4)
  assert.equal(await polled(64), 2)
  polling.ended(performance.now())
  assert.equal(await polled(4), 4)
})
