/**
 * `zone.main`: the main thread as a zone, called from workers.
 *
 * This file is the main thread's program, and what it keeps on its global object exists there alone: a task
 * that finds it runs here.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { cellIsSet, settled, until } from '../base/wait.test.support.ts'
import { inZone } from './api/zones.test.support.ts'
import { type AnyZone, type Zone, ZoneError, currentTask, zone } from './index.ts'

/** What exists in the main thread alone. */
interface Main {
  mainState?: {
    /** Ids of the calls that have begun, in their order; and of those whose signal was aborted. */
    begun: number[]
    aborted: number[]
    ended: number
  }
}

const state = { begun: [] as number[], aborted: [] as number[], ended: 0 }
;(globalThis as Main).mainState = state

function emptied(): typeof state {
  return Object.assign(state, { begun: [], aborted: [], ended: 0 })
}

/** Sent to workers: a task there calls the main thread. */
async function doubled(id: number): Promise<number> {
  const { zone } = await import('./index.js')
  return zone.main.run((n: number) => {
    const { mainState } = globalThis as Main
    mainState?.begun.push(n)
    return mainState === undefined ? -1 : n * 2
  }, id)
}

/** Sent to workers: a call of the main thread that ends when it is cancelled. */
async function untilAborted(given: number): Promise<void> {
  const { zone } = await import('./index.js')
  await zone.main.run(function (this: { readonly signal: AbortSignal }, id: number) {
    const { mainState } = globalThis as Main
    mainState?.begun.push(id)
    return new Promise<void>((resolve) =>
      this.signal.addEventListener('abort', () => {
        mainState?.aborted.push(id)
        resolve()
      }),
    )
  }, given)
}

test('functions run in the main thread, and their results and errors arrive', async () => {
  emptied()
  await inZone({ workers: 2 }, async (own) => {
    assert.deepEqual(await own.map([1, 2, 3, 4], doubled), [2, 4, 6, 8])
    assert.deepEqual(state.begun.sort(), [1, 2, 3, 4])
    const failed = own.run(async () => {
      const { zone } = await import('./index.js')
      return zone.main.run(() => {
        throw Object.assign(new RangeError('out of the pool'), { code: 'E_POOL' })
      })
    })
    await assert.rejects(failed, { name: 'RangeError', message: 'out of the pool', code: 'E_POOL' })
    const seen = await own.run(async () => {
      const { zone } = await import('./index.js')
      const list = [1, 2]
      const { value } = await zone.main.execute((given: number[]) => given.push(3), [list])
      const odd = await zone.main.map([1, 2, 3], (n: number) => 'mainState' in globalThis && n % 2 === 1)
      const streamed: unknown[] = []
      for await (const n of zone.main.stream((all: AsyncIterable<number>) => all, [7, 8])) streamed.push(n)
      return [list.length, value, odd, streamed, zone.main.id, zone.main === zone.get('corespun.main')]
    })
    assert.deepEqual(seen, [2, 3, [true, false, true], [7, 8], 'corespun.main', true])
  })
})

test("an export is the main thread's own: its module is the one that the program has loaded", async () => {
  const pools = await import('./main.test.support.ts')
  pools.state.opened = 7
  await inZone({ workers: 1 }, async (own) => {
    const url = new URL('main.test.support.js', import.meta.url).href
    const seen = await own.run(async (file: string) => {
      const { zone } = await import('./index.js')
      const { value } = await zone.main.execute<typeof import('./main.test.support.ts')>(file, 'opened', [])
      const calls = zone.main.module<typeof import('./main.test.support.ts')>(file)
      return [value, await calls.opened(), await calls.closing(3)]
    }, url)
    assert.deepEqual(seen, [7, 7, 4])
    assert.equal(pools.state.opened, 4)
  })
})

test('a task states where it runs, and the main thread belongs to no zone meanwhile', async () => {
  await inZone({ workers: 1 }, async (own) => {
    const seen = await own.run(async () => {
      const { zone } = await import('./index.js')
      return zone.main.run(async function (this: { readonly zone: string; readonly worker: string }) {
        const { currentTask, zone } = await import('./index.js')
        return [this.zone, this.worker, currentTask()?.zone, zone.current.id]
      })
    })
    assert.deepEqual(seen, ['corespun.main', 'corespun.main/0', 'corespun.main', 'node'])
    assert.equal(currentTask(), undefined)
    assert.equal(zone.current, zone.node)
  })
})

test('in the main thread itself functions are called on the spot, without copies', async () => {
  const given = { count: 1 }
  assert.equal(await zone.main.run((same) => same, given), given)
  assert.equal(zone.main.id, 'corespun.main')
  assert.equal(zone.get('corespun.main'), zone.main)
  assert.notEqual(zone.main, zone.node)
  await zone.main.close()
  assert.equal(await zone.main.with({ timeoutMs: 60_000 }).run(() => given), given)
})

test('as an argument and as a result it is the main thread, in each thread', async () => {
  emptied()
  await inZone({ workers: 1 }, async (own) => {
    const runs = (main: AnyZone): Promise<boolean> => main.run(() => 'mainState' in globalThis)
    assert.equal(await own.run(runs, zone.main), true)
    assert.equal(await own.run(runs, zone.main.with({ timeoutMs: 60_000 })), true)
    const back = await own.run(async () => (await import('./index.js')).zone.main)
    assert.equal(back, zone.main)
  })
})

test('its name is taken; it is neither closed nor reloaded', async () => {
  for (const make of [zone.create, zone.getOrCreate])
    assert.throws(() => make('corespun.main'), {
      code: 'ZONE_EXISTS',
      message: /main thread, which zone.main/,
    })
  await inZone({ workers: 1 }, async (own) => {
    const codes = await own.run(async () => {
      const { zone } = await import('./index.js')
      const main = zone.main as unknown as { reload(): Promise<void> }
      await zone.main.close()
      const reloaded = await main.reload().catch((error: { code: string }) => error.code)
      return [await zone.main.run(() => 'open'), reloaded]
    })
    assert.deepEqual(codes, ['open', 'ZONE_DEADLOCK'])
  })
})

test('while the main thread is blocked tasks wait, and timeouts pass at the caller', async () => {
  emptied()
  await inZone({ workers: 1 }, async (own) => {
    await own.run(doubled, 0)
    const cells = new Int32Array(new SharedArrayBuffer(12))
    const late = own.run(async (shared: Int32Array) => {
      const { zone } = await import('./index.js')
      Atomics.store(shared, 0, 1)
      Atomics.wait(shared, 2, 0)
      const waiting = zone.main.run(() => 'ran later')
      const code = await zone.main
        .with({ timeoutMs: 5 })
        .run(() => void (globalThis as Main).mainState?.begun.push(-1))
        .catch((error: ZoneError) => [error.code, (error.facts as { started: boolean }).started])
      Atomics.store(shared, 1, 1)
      Atomics.notify(shared, 1)
      return [code, await waiting]
    }, cells)
    await cellIsSet(cells, 0)
    // From here until the caller has had its timeout no turn of this thread's event loop begins.
    Atomics.store(cells, 2, 1)
    Atomics.notify(cells, 2)
    assert.notEqual(Atomics.wait(cells, 1, 0, 60_000), 'timed-out')
    assert.deepEqual(await settled(late, 'the call that waited'), [['TASK_TIMEOUT', false], 'ran later'])
    assert.deepEqual(state.begun, [0])
  })
})

test('aborting the signal of a call rejects it at once, and aborts the signal of its task', async () => {
  emptied()
  await inZone({ workers: 1 }, async (own) => {
    const stop = new AbortController()
    const call = own.run(async (signal: AbortSignal) => {
      const { zone } = await import('./index.js')
      return zone.main.with({ signal }).run(function (this: { readonly signal: AbortSignal }) {
        const { mainState } = globalThis as Main
        mainState?.begun.push(1)
        // It goes on, and nothing ends the main thread for that.
        return new Promise(() => this.signal.addEventListener('abort', () => mainState?.aborted.push(1)))
      })
    }, stop.signal)
    await until(() => state.begun.length === 1)
    stop.abort(new RangeError('no longer needed'))
    await assert.rejects(call, { name: 'RangeError', message: 'no longer needed' })
    await until(() => state.aborted.length === 1)
    assert.equal(await own.run(doubled, 4), 8)
  })
})

test('when a caller dies its tasks are aborted, and those of others go on', async () => {
  emptied()
  const exits = (own: Zone): Promise<void> => own.run(() => process.exit(3))
  await inZone({ workers: 1 }, (own) =>
    inZone({ workers: 1 }, async (other) => {
      const calls = [own.run(untilAborted, 1), other.run(untilAborted, 2)]
      await until(() => state.begun.length === 2)
      const ends = calls.map((call) => assert.rejects(call, { code: 'WORKER_DIED' }))
      await assert.rejects(exits(own), { code: 'WORKER_DIED' })
      await until(() => state.aborted.length === 1)
      assert.equal(await other.run(doubled, 5), 10)
      assert.deepEqual(state.aborted, [1])
      await assert.rejects(exits(other), { code: 'WORKER_DIED' })
      await Promise.all(ends)
      await until(() => state.aborted.length === 2)
      assert.equal(await own.run(doubled, 6), 12)
    }),
  )
})

test('a full queue refuses, and takes tasks again when there is capacity', async () => {
  emptied()
  await inZone({ workers: 1 }, async (own) => {
    await own.run(doubled, 0)
    const cells = new Int32Array(new SharedArrayBuffer(8))
    const filling = own.run(async (shared: Int32Array) => {
      const { zone } = await import('./index.js')
      Atomics.store(shared, 0, 1)
      // The main thread is blocked from now on, or is soon.
      const calls: Promise<number>[] = []
      let refused: unknown
      const note = (error: unknown): number => {
        refused = error
        return 0
      }
      while (refused === undefined) {
        for (let n = 0; n < 5000; n++) calls.push(zone.main.run(() => 1).catch(note))
        await undefined
      }
      Atomics.store(shared, 1, 1)
      Atomics.notify(shared, 1)
      const { code, facts } = refused as ZoneError
      await zone.main.ready()
      const ended = await Promise.all(calls)
      return { code, facts, ended: ended.length, again: await zone.main.run(() => 'again') }
    }, cells)
    await cellIsSet(cells, 0)
    assert.notEqual(Atomics.wait(cells, 1, 0, 80_000), 'timed-out')
    const { code, facts, ended, again } = await settled(filling, 'the calls that filled the queue')
    assert.deepEqual(
      [code, facts, again],
      ['ZONE_FULL', { zone: 'corespun.main', tasksMax: 65_536 }, 'again'],
    )
    assert.ok(ended >= 65_536)
  })
})

test('calls that lead back to a busy worker through the main thread do not wait for each other', async () => {
  await inZone({ workers: 1, waitingPerWorkerMax: 1, callDepthMax: 64 }, async (own) => {
    type Nested = (id: string, left: number, nested: Nested) => Promise<number>
    const nested: Nested = async (id, left, again) => {
      if (left === 0) return 0
      const { zone } = await import('./index.js')
      return zone.main.run(
        async (name: string, rest: number, next: Nested) => {
          const { zone } = await import('./index.js')
          return 1 + (await zone.get(name).run(next, name, rest - 1, next))
        },
        id,
        left,
        again,
      )
    }
    assert.equal(await settled(own.run(nested, own.id, 20, nested), 'calls nested 20 deep'), 20)
    await assert.rejects(own.run(nested, own.id, 60, nested), { code: 'ZONE_CALL_TOO_DEEP' })
  })
})

test("the main thread's own calls, zones and broadcasts go on beside the tasks", async () => {
  await inZone({ workers: 2 }, async (own) => {
    const busy = own.map(
      Array.from({ length: 200 }, (_, n) => n),
      doubled,
      { chunkMax: 1 },
    )
    await inZone({ workers: 1 }, async (other) => {
      other.broadcastSync(() => void ((globalThis as { marked?: number }).marked = 5))
      assert.equal(await other.run(() => (globalThis as { marked?: number }).marked), 5)
      assert.deepEqual(await other.map([1, 2, 3], (n) => n + 1), [2, 3, 4])
    })
    assert.deepEqual(
      await busy,
      Array.from({ length: 200 }, (_, n) => n * 2),
    )
  })
})

test('random calls from workers that die: each runs at most once and settles once, as its own', async () => {
  const step = fc.record({
    ms: fc.nat(3),
    dies: fc.integer({ min: 0, max: 9 }),
    count: fc.integer({ min: 1, max: 20 }),
  })
  let ids = 0
  await inZone({ workers: 2 }, async (own) => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), async (steps) => {
        emptied()
        const first = ids
        const outcomes = await Promise.all(
          steps.map(({ ms, dies, count }) => {
            const from = ids
            ids += count
            return own
              .run(callsOf, from, count, ms, dies === 0)
              .then((values) =>
                assert.deepEqual(
                  values,
                  Array.from({ length: count }, (_, n) => (from + n) * 3),
                ),
              )
              .catch((error: unknown) => {
                // Its worker has died, by this task or one that ran beside its calls.
                if (!(error instanceof ZoneError) || error.code !== 'WORKER_DIED') throw error
              })
          }),
        )
        assert.equal(outcomes.length, steps.length)
        await until(() => state.ended === state.begun.length, 'all tasks that began in the main thread end')
        assert.equal(new Set(state.begun).size, state.begun.length)
        assert.ok(state.begun.every((id) => id >= first && id < ids))
      }),
      { numRuns: 10 },
    )
  })
})

/** Sent to workers: calls of the main thread, in the midst of which the worker may end. */
async function callsOf(from: number, count: number, ms: number, dies: boolean): Promise<number[]> {
  const { zone } = await import('./index.js')
  const calls = Array.from({ length: count }, (_, n) =>
    zone.main.run(
      async (id: number, pauseMs: number) => {
        const { mainState } = globalThis as Main
        mainState?.begun.push(id)
        if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs))
        if (mainState !== undefined) mainState.ended++
        return id * 3
      },
      from + n,
      ms,
    ),
  )
  if (dies) {
    await calls[0]
    process.exit(1)
  }
  return Promise.all(calls)
}
