/**
 * The server's clock as this thread has it, when machines are suspended and clocks are set: by seeds, in the
 * time of the run (corespun/test).
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CLOCK } from '../engine.ts'
import { type World, check } from '../../../test/played.test.support.ts'
import { ServerTime } from './server-time.ts'

const MINUTE_MS = 60_000

/** Two clocks that run apart from that of the run, which has the timers. */
class Clocks {
  serverAheadMs = 1e12
  dateAheadMs = 2e12
  isServerThere = true
  readCount = 0

  readonly read = async (): Promise<number> => {
    this.readCount++
    if (!this.isServerThere) throw new Error('away')
    return CLOCK.nowMs() + this.serverAheadMs
  }

  /** The machine is suspended. */
  suspend(ms: number): void {
    this.serverAheadMs += ms
    this.dateAheadMs += ms
  }
}

const played = (seeds: number, work: (clocks: Clocks, time: ServerTime, world: World) => Promise<void>) =>
  check({ seeds, stall: 0, leaks: true }, async (world) => {
    const clocks = new Clocks()
    const time = new ServerTime(CLOCK, clocks.read, () => CLOCK.nowMs() + clocks.dateAheadMs)
    await time.begin()
    await work(clocks, time, world)
    assert.ok(Math.abs(time.nowMs() - CLOCK.nowMs() - clocks.serverAheadMs) < 1e-3)
    time.end()
    const { readCount } = clocks
    await world.sleep(2 * MINUTE_MS)
    assert.equal(clocks.readCount, readCount)
  })

test('after a suspension the next look finds the time of the server', () =>
  played(1, async (clocks, time, { step }) => {
    clocks.suspend(3 * 60 * MINUTE_MS)
    time.nowMs()
    await step()
  }))

test('after a reconnection it is that of the new server', () =>
  played(1, async (clocks, time, { step }) => {
    clocks.serverAheadMs -= 5000
    time.refresh()
    await step()
  }))

test('whatever clocks do, a minute after it the time is that of the server', () =>
  played(60, async (clocks, time, { random, sleep }) => {
    for (let step = 0; step < 40; step++) {
      clocks.isServerThere = random() < 0.8
      if (random() < 0.2) clocks.serverAheadMs += (random() - 0.5) * 1e6
      if (random() < 0.2) clocks.dateAheadMs += (random() - 0.5) * 1e6
      if (random() < 0.2) clocks.suspend(random() * 1e7)
      await sleep(random() * MINUTE_MS)
      if (random() < 0.5) time.nowMs()
    }
    clocks.isServerThere = true
    await sleep(MINUTE_MS + 1)
  }))
