/**
 * When a host's event loop polls instead of sleeping: after short calls, for a moment, and no more after
 * long ones.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { Polling } from './polling.ts'

/** A polling whose turns are counted. */
function counted(isRunning: boolean): { readonly polling: Polling; turns(): number } {
  let turns = 0
  const polling = new Polling(() => {
    turns += 1
    return isRunning ? 1 : 0
  })
  return { polling, turns: () => turns }
}

test('a call that goes on is polled for a moment, and then the loop sleeps', async () => {
  const { polling, turns } = counted(true)
  polling.begun()
  await pause(20)
  const count = turns()
  assert.ok(count > 0)
  await pause(20)
  assert.equal(turns(), count)
})

test('what has ended is polled for no longer, and calls that overlap have one row of turns', async () => {
  const { polling, turns } = counted(false)
  for (let call = 0; call < 10; call += 1) polling.begun()
  await pause(20)
  assert.equal(turns(), 1)
})

test('after long calls there is no polling, until calls are short again', async () => {
  const { polling, turns } = counted(false)
  for (let call = 0; call < 10; call += 1) polling.ended(performance.now() - 1000)
  polling.begun()
  await pause(20)
  assert.equal(turns(), 0)
  for (let call = 0; call < 100; call += 1) polling.ended(performance.now())
  polling.begun()
  await pause(20)
  assert.equal(turns(), 1)
})
