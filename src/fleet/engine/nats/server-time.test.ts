/**
 * The server's clock as this thread has it, when machines are suspended and clocks are set: by seeds, in time
 * that the test has.
 *
 * CORESPUN_SEED runs the seed that a failure names, CORESPUN_SEEDS=1000 plays 1,000 instead of 60.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import type { Clock, End } from '../engine.ts'
import { generator, seeds } from '../../../base/index.ts'
import { ServerTime } from './server-time.ts'

const MINUTE_MS = 60_000

/** Three clocks that run apart, and timers of the first. */
class Clocks implements Clock {
  serverMs = 1e12
  dateMs = 2e12
  isServerThere = true
  #ownMs = 0
  readonly #timers = new Set<{ readonly atMs: number; readonly run: () => void }>()

  nowMs(): number {
    return this.#ownMs
  }

  after(ms: number, run: () => void): End {
    const timer = { atMs: this.#ownMs + ms, run }
    this.#timers.add(timer)
    return () => void this.#timers.delete(timer)
  }

  get timers(): number {
    return this.#timers.size
  }

  readonly read = async (): Promise<number> => {
    if (!this.isServerThere) throw new Error('away')
    return this.serverMs
  }

  /** Time passes everywhere. */
  async pass(ms: number): Promise<void> {
    this.suspend(ms)
    this.#ownMs += ms
    for (const timer of [...this.#timers])
      if (timer.atMs <= this.#ownMs && this.#timers.delete(timer)) timer.run()
    await turn()
  }

  /** The machine is suspended. */
  suspend(ms: number): void {
    this.serverMs += ms
    this.dateMs += ms
  }
}

async function opened(): Promise<{ readonly clocks: Clocks; readonly time: ServerTime }> {
  const clocks = new Clocks()
  const time = new ServerTime(clocks, clocks.read, () => clocks.dateMs)
  await time.begin()
  return { clocks, time }
}

test('after a suspension the next look finds the time of the server', async () => {
  const { clocks, time } = await opened()
  clocks.suspend(3 * 60 * MINUTE_MS)
  time.nowMs()
  await turn()
  assert.equal(time.nowMs(), clocks.serverMs)
  time.end()
  assert.equal(clocks.timers, 0)
})

test('after a reconnection it is that of the new server', async () => {
  const { clocks, time } = await opened()
  clocks.serverMs -= 5000
  time.refresh()
  await turn()
  assert.equal(time.nowMs(), clocks.serverMs)
  time.end()
})

test('whatever clocks do, a minute after it the time is that of the server', async () => {
  for (const seed of seeds(60)) {
    const random = generator(seed)
    const { clocks, time } = await opened()
    for (let step = 0; step < 40; step++) {
      clocks.isServerThere = random() < 0.8
      if (random() < 0.2) clocks.serverMs += (random() - 0.5) * 1e6
      if (random() < 0.2) clocks.dateMs += (random() - 0.5) * 1e6
      if (random() < 0.2) clocks.suspend(random() * 1e7)
      await clocks.pass(random() * MINUTE_MS)
      if (random() < 0.5) time.nowMs()
      await turn()
    }
    clocks.isServerThere = true
    await clocks.pass(MINUTE_MS)
    assert.ok(Math.abs(time.nowMs() - clocks.serverMs) < 1e-3, `CORESPUN_SEED=${seed}`)
    time.end()
    await clocks.pass(MINUTE_MS)
    assert.equal(clocks.timers, 0, `CORESPUN_SEED=${seed}`)
  }
})
