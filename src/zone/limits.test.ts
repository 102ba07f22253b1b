/**
 * What ends a call before its function does: limits of the queue, deadlines, signals, withdrawals.
 *
 * A "gate" is a cell of shared memory that holds a worker until the test opens it, so every state is reached
 * by waiting for it and nothing sleeps. `settles` counts how often a promise settles: always once.
 */
import { getEventListeners } from 'node:events'
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { share } from '../base/part.test.support.ts'
import { native } from '../native/index.ts'
import { ZoneError, zone } from './index.ts'
import { inZone, timedOut, until } from './api/zones.test.support.ts'

const MANY = share(100_000)

/** Set the second cell to report its start, then block its worker until the gate opens. */
function hold(gate: Int32Array): string {
  Atomics.store(gate, 1, 1)
  Atomics.notify(gate, 1)
  Atomics.wait(gate, 0, 0)
  return 'held'
}

function makeGate(): Int32Array {
  return new Int32Array(new SharedArrayBuffer(8))
}

function open(gate: Int32Array): void {
  Atomics.store(gate, 0, 1)
  Atomics.notify(gate, 0)
}

/** Wait until `hold` has begun. */
function begun(gate: Int32Array): Promise<void> {
  return until(() => Atomics.load(gate, 1) === 1)
}

test('a full zone refuses with ZONE_FULL, keeps what it has, and accepts again when it has capacity', () =>
  inZone({ workers: 1, tasksMax: 3 }, async (own) => {
    const gate = makeGate()
    const first = own.run(hold, gate)
    await begun(gate)
    const waiting = [1, 2, 3].map((n) => own.run((n: number) => n, n))
    assert.equal(own.stats().waiting, 3)
    const facts = { zone: own.id, tasksMax: 3 }
    for (let again = 0; again < 3; again++) {
      await assert.rejects(
        own.run(() => 4),
        { code: 'ZONE_FULL', facts, message: /3 tasks wait \(tasksMax\)/ },
      )
      await assert.rejects(
        own.execute(() => 4),
        { code: 'ZONE_FULL' },
      )
    }
    assert.equal(own.stats().waiting, 3)
    open(gate)
    assert.deepEqual(await Promise.all([first, ...waiting]), ['held', 1, 2, 3])
    assert.equal(await own.run(() => 5), 5)
  }))

test('a zone full of bytes refuses with ZONE_BYTES_FULL; small tasks still fit', () =>
  inZone({ workers: 1, queueBytesMax: 10_000 }, async (own) => {
    const gate = makeGate()
    const first = own.run(hold, gate)
    await begun(gate)
    const size = (bytes: Uint8Array) => bytes.length
    const kept = own.run(size, new Uint8Array(9_000))
    await assert.rejects(own.run(size, new Uint8Array(2_000)), (error: ZoneError<'ZONE_BYTES_FULL'>) => {
      assert.equal(error.code, 'ZONE_BYTES_FULL')
      assert.equal(error.facts.queueBytesMax, 10_000)
      assert.ok(error.facts.taskBytes > 2_000 && error.facts.taskBytes < 2_100)
      return true
    })
    assert.equal(own.stats().waiting, 1)
    const small = own.run(size, new Uint8Array(100))
    open(gate)
    assert.deepEqual(await Promise.all([first, kept, small]), ['held', 9_000, 100])
    assert.equal(own.stats().waitingBytes, 0)
  }))

test('one task larger than taskBytesMax is refused, below and above the scratch', () =>
  inZone({ workers: 1, taskBytesMax: 300_000 }, async (own) => {
    const size = (bytes: Uint8Array) => bytes.length
    assert.equal(await own.run(size, new Uint8Array(299_000)), 299_000)
    for (const bytes of [301_000, 5_000_000]) {
      const refusal = {
        code: 'TASK_TOO_LARGE',
        message: /accepts 300000 per task; .* raise queueBytesMax$/,
      }
      await assert.rejects(own.run(size, new Uint8Array(bytes)), refusal)
      await assert.rejects(own.execute(size, [new Uint8Array(bytes)], { timeoutMs: 1000 }), refusal)
      await assert.rejects(own.broadcast(size, [new Uint8Array(bytes)]), refusal)
      assert.throws(() => own.broadcastSync(size, [new Uint8Array(bytes)]), refusal)
    }
    assert.equal(await own.run(size, new Uint8Array(5)), 5)
  }))

test('taskBytesMax 0 still lets calls without arguments through', () =>
  inZone({ workers: 1, taskBytesMax: 0 }, async (own) => {
    assert.equal(await own.run(() => 1), 1)
    await assert.rejects(
      own.run((x: number) => x, 1),
      { code: 'TASK_TOO_LARGE' },
    )
  }))

test('broadcastsMax bounds what is kept for replay', () =>
  inZone({ workers: 1, broadcastsMax: 2 }, async (own) => {
    await own.broadcast(() => {})
    await own.broadcast(() => {})
    const refusal = {
      code: 'ZONE_BROADCASTS_FULL',
      facts: { zone: own.id, broadcastsMax: 2 },
    }
    await assert.rejects(
      own.broadcast(() => {}),
      refusal,
    )
    assert.throws(() => own.broadcastSync(() => {}), refusal)
  }))

test('a queued task whose deadline passes is withdrawn and never runs', () =>
  inZone({ workers: 1 }, async (own) => {
    const [gate, ran] = [makeGate(), new Int32Array(new SharedArrayBuffer(4))]
    const first = own.run(hold, gate)
    await begun(gate)
    const late = own.execute((cell: Int32Array) => Atomics.add(cell, 0, 1), [ran], { timeoutMs: 5 })
    await assert.rejects(late, (error: ZoneError<'TASK_TIMEOUT'>) => {
      assert.deepEqual({ ...error.facts }, { zone: own.id, timeoutMs: 5, started: false })
      assert.match(error.message, /did not start within 5 ms/)
      return error instanceof ZoneError && error.code === 'TASK_TIMEOUT'
    })
    assert.equal(own.stats().waiting, 0)
    open(gate)
    await first
    assert.equal(await own.run((cell: Int32Array) => Atomics.load(cell, 0), ran), 0)
  }))

test('a timeout aborts this.signal of a running task, which keeps its worker if it ends', () =>
  inZone({ workers: 1, graceMs: 60_000 }, async (own) => {
    const seen = new Int32Array(new SharedArrayBuffer(4))
    const { message, facts } = await timedOut((timeoutMs) =>
      own.execute(
        function (cell: Int32Array) {
          return new Promise<string>((resolve) => {
            this.signal.addEventListener('abort', () => {
              Atomics.store(cell, 0, this.signal.reason.name === 'TimeoutError' ? 1 : 2)
              resolve('stopped')
            })
          })
        },
        [seen],
        { timeoutMs },
      ),
    )
    assert.match(message, new RegExp(`did not end within ${facts.timeoutMs} ms`))
    await until(() => own.stats().running === 0)
    assert.equal(seen[0], 1)
    assert.equal(own.stats().died, 0)
    assert.equal(await own.run(() => 1), 1)
  }))

test('an abort cancels a call before it is sent, while it waits and while it runs', () =>
  inZone({ workers: 1, graceMs: 60_000 }, async (own) => {
    const why = new RangeError('enough')
    const ended = own.stats().ended
    await assert.rejects(
      own.execute(() => 1, [], { signal: AbortSignal.abort(why) }),
      (error) => error === why,
    )
    assert.equal(own.stats().ended, ended)
    const gate = makeGate()
    const first = own.run(hold, gate)
    await begun(gate)
    const queued = new AbortController()
    const withdrawn = own.execute(() => 1, [], { signal: queued.signal })
    assert.equal(own.stats().waiting, 1)
    queued.abort(why)
    await assert.rejects(withdrawn, (error) => error === why)
    assert.equal(own.stats().waiting, 0)
    open(gate)
    await first
    const running = new AbortController()
    const cell = makeGate()
    const cancelled = own.execute(
      async (cell: Int32Array) => {
        const { currentTask } = await import('./index.js')
        const signal = currentTask()?.signal
        Atomics.store(cell, 1, 1)
        Atomics.notify(cell, 1)
        await new Promise((resolve) => signal?.addEventListener('abort', resolve))
        Atomics.store(cell, 0, 7)
      },
      [cell],
      { signal: running.signal },
    )
    await begun(cell)
    running.abort()
    await assert.rejects(cancelled, { name: 'AbortError' })
    await until(() => own.stats().running === 0)
    assert.equal(cell[0], 7)
    assert.equal(own.stats().died, 0)
  }))

test('a signal aborted while the arguments are being written ends the call', () =>
  inZone({ workers: 1 }, async (own) => {
    const controller = new AbortController()
    const args = {
      get now() {
        controller.abort(new RangeError('meanwhile'))
        return 1
      },
    }
    const call = own.execute((value: object) => new Promise(() => value), [args], {
      signal: controller.signal,
    })
    await assert.rejects(call, { message: 'meanwhile' })
  }))

test('a task that goes on after graceMs loses its worker, which is replaced; no other task is lost', () =>
  inZone({ workers: 1, graceMs: 20 }, async (own) => {
    let after: Promise<string> | undefined
    await timedOut((timeoutMs) => {
      const endless = own.execute(
        () => {
          for (;;);
        },
        [],
        { timeoutMs },
      )
      after = own.run(() => 'after')
      return endless
    })
    assert.equal(await after, 'after')
    await until(() => own.stats().died === 1 && own.stats().workers === 1)
  }))

test('a deadline of 0 ms ends what cannot end at once', () =>
  inZone({ workers: 1, graceMs: 0 }, async (own) => {
    await assert.rejects(
      own.execute(() => new Promise(() => {}), [], { timeoutMs: 0 }),
      { code: 'TASK_TIMEOUT' },
    )
    assert.equal(await own.run(() => 1), 1)
  }))

test('a call that ends in time leaves no timer and no listener', () =>
  inZone({ workers: 1 }, async (own) => {
    const { signal } = new AbortController()
    const { getEventListeners } = await import('node:events')
    const timers = process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length
    for (let index = 0; index < 50; index++) await own.execute(() => 1, [], { timeoutMs: 60_000, signal })
    await assert.rejects(
      own.execute(() => Promise.reject(new Error('x')), [], {
        timeoutMs: 60_000,
        signal,
      }),
    )
    await assert.rejects(
      own.execute(() => 1, [Symbol('s')] as never, {
        timeoutMs: 60_000,
        signal,
      }),
    )
    assert.equal(getEventListeners(signal, 'abort').length, 0)
    assert.equal(process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length, timers)
  }))

test('tasksPerWorkerMax lets asynchronous tasks of one worker overlap, and no more than that', () =>
  inZone({ workers: 1, tasksPerWorkerMax: 4 }, async (own) => {
    const peaks = await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        own.run(async function (n: number) {
          const { currentTask } = await import('./index.js')
          const counts = globalThis as { now?: number; peak?: number }
          counts.now = (counts.now ?? 0) + 1
          counts.peak = Math.max(counts.peak ?? 0, counts.now)
          for (let turn = 0; turn < 1 + (n % 3); turn++) await new Promise((resolve) => setImmediate(resolve))
          counts.now--
          return [n, counts.peak, currentTask() === this] as const
        }, n),
      ),
    )
    assert.deepEqual(
      peaks.map(([n]) => n),
      Array.from({ length: 20 }, (_, n) => n),
    )
    assert.equal(Math.max(...peaks.map(([, peak]) => peak)), 4)
    assert.ok(peaks.every(([, , own]) => own))
  }))

test('overlapping tasks are aborted one by one', () =>
  inZone({ workers: 1, tasksPerWorkerMax: 8, graceMs: 60_000 }, async (own) => {
    const cells = new Int32Array(new SharedArrayBuffer(32))
    const controllers = Array.from({ length: 8 }, () => new AbortController())
    const calls = controllers.map(({ signal }, n) =>
      own.execute(
        function (cells: Int32Array, n: number) {
          return new Promise<void>((resolve) => {
            this.signal.addEventListener('abort', () => {
              Atomics.add(cells, n, 1)
              resolve()
            })
          })
        },
        [cells, n],
        { signal },
      ),
    )
    await until(() => own.stats().running === 8)
    for (const n of [3, 0, 7, 5, 1, 2, 6, 4]) {
      controllers[n]?.abort()
      await assert.rejects(calls[n], {
        name: 'AbortError',
      })
      await until(() => cells[n] === 1)
    }
    assert.deepEqual([...cells], Array(8).fill(1))
    assert.equal(own.stats().died, 0)
  }))

/** A settled promise's way and how often it settled. */
function settles<T>(promise: Promise<T>): {
  readonly end: Promise<string>
  count: number
} {
  const seen = { count: 0, end: Promise.resolve('') }
  const count = (how: string) => (value: unknown) => {
    seen.count++
    const { code, name } = (value ?? {}) as { code?: string; name?: string }
    return `${how} ${code ?? name ?? ''}`.trim()
  }
  seen.end = promise.then(count('done'), count('failed'))
  return seen
}

test('aborts that race with completion: each call settles once, as done or as aborted', () =>
  inZone({ workers: 2, graceMs: 60_000 }, async (own) => {
    let [done, aborted] = [0, 0]
    for (let round = 0; round < 40; round++) {
      const calls = Array.from({ length: 50 }, (_, n) => {
        const controller = new AbortController()
        const call = settles(own.execute((n: number) => n, [n], { signal: controller.signal }))
        return { controller, call }
      })
      if (round % 2 === 0) await new Promise((resolve) => setImmediate(resolve))
      for (const [n, { controller }] of calls.entries()) {
        if (n % 3 === 0) queueMicrotask(() => controller.abort())
        else controller.abort()
      }
      for (const { call } of calls) {
        const how = await call.end
        if (how === 'done') done++
        else if (how === 'failed 20' || how === 'failed AbortError') aborted++
        else assert.fail(how)
        assert.equal(call.count, 1)
      }
    }
    assert.equal(done + aborted, 2000)
    await until(() => own.stats().running === 0 && own.stats().waiting === 0)
    assert.equal(native.bufferCount(), 0)
    assert.equal(await own.run(() => 'still right'), 'still right')
    assert.equal(own.stats().died, 0)
  }))

test('results of cancelled calls that arrive late are dropped', () =>
  inZone({ workers: 1, graceMs: 60_000 }, async (own) => {
    const gate = makeGate()
    const controller = new AbortController()
    const held = own.execute(hold, [gate], { signal: controller.signal })
    await begun(gate)
    controller.abort()
    await assert.rejects(held, { name: 'AbortError' })
    const next = Array.from({ length: 300 }, (_, n) => own.run((n: number) => n, n))
    open(gate)
    assert.deepEqual(
      await Promise.all(next),
      Array.from({ length: 300 }, (_, n) => n),
    )
    assert.equal(own.stats().died, 0)
  }))

test(`${MANY} calls that run into their deadlines are all withdrawn, and the zone is as before`, () =>
  inZone({ workers: 1 }, async (own) => {
    const gate = makeGate()
    const first = own.run(hold, gate)
    await begun(gate)
    const codes = new Map<string, number>()
    const calls = Array.from({ length: MANY }, (_, n) =>
      own
        .execute((n: number) => n, [n], { timeoutMs: 1 + (n % 50) })
        .catch((error: ZoneError) => {
          codes.set(error.code, (codes.get(error.code) ?? 0) + 1)
        }),
    )
    await Promise.all(calls)
    assert.deepEqual([...codes], [['TASK_TIMEOUT', MANY]])
    assert.deepEqual([own.stats().waiting, own.stats().waitingBytes], [0, 0])
    open(gate)
    assert.equal(await first, 'held')
    assert.equal(await own.run(() => 1), 1)
    assert.equal(own.stats().ended, 2)
  }))

test('fifty calls share a signal without a warning; each ends with its reason', async () => {
  const warnings: string[] = []
  const warned = (warning: Error): void => void warnings.push(warning.name)
  process.on('warning', warned)
  const own = zone.create('limits-shared-signal', { workers: 1 })
  const { signal, abort } = ((controller) => ({
    signal: controller.signal,
    abort: () => controller.abort(new RangeError('all of them')),
  }))(new AbortController())
  const quick = Array.from({ length: 50 }, () => own.execute(() => 1, [], { signal }))
  await Promise.all(quick)
  assert.equal(getEventListeners(signal, 'abort').length, 0)
  const slow = Array.from({ length: 50 }, () => own.execute(() => new Promise(() => {}), [], { signal }))
  assert.equal(getEventListeners(signal, 'abort').length, 1)
  abort()
  const ends = await Promise.allSettled(slow)
  assert.deepEqual(
    ends.map((end) => (end as PromiseRejectedResult).reason),
    ends.map(() => signal.reason),
  )
  assert.equal(getEventListeners(signal, 'abort').length, 0)
  await own.close({ timeoutMs: 0 })
  process.off('warning', warned)
  assert.deepEqual(warnings, [])
})

test('code that outlives its task belongs to none; an unknown option is named', async () => {
  const own = zone.create('limits-task-ends', { workers: 1 })
  await own.run(
    (index: string) => {
      const load = process.getBuiltinModule('node:module').createRequire(index)
      const { currentTask } = load(index) as typeof import('./index.ts')
      const seen = globalThis as { after?: Promise<string>; isWaiting?: boolean }
      seen.after = new Promise((resolve) => {
        const timer = setInterval(() => {
          if (!seen.isWaiting) return
          clearInterval(timer)
          resolve(typeof currentTask())
        }, 1)
      })
    },
    fileURLToPath(new URL('./index.js', import.meta.url)),
  )
  assert.equal(
    await own.run(() => {
      const seen = globalThis as { after?: Promise<string>; isWaiting?: boolean }
      seen.isWaiting = true
      return seen.after
    }),
    'object',
    'the task that waits',
  )
  await own.run(
    (index: string) => {
      const load = process.getBuiltinModule('node:module').createRequire(index)
      const { currentTask } = load(index) as typeof import('./index.ts')
      setTimeout(() => Object.assign(globalThis, { later: typeof currentTask() }), 0)
    },
    fileURLToPath(new URL('./index.js', import.meta.url)),
  )
  const later = async (): Promise<unknown> => own.run(() => (globalThis as { later?: string }).later)
  await until(async () => (await later()) !== undefined)
  assert.equal(await later(), 'undefined')
  await assert.rejects(
    own.execute(() => 1, [], { timeout: 5 } as never),
    { code: 'ZONE_ARGUMENT', message: /: unknown option "timeout"; did you mean "timeoutMs"/ },
  )
  await assert.rejects(own.close(null as never), { code: 'ZONE_ARGUMENT' })
  await own.close()
})

test('calls that follow each other at once leave turns to process.nextTick, timers and the loop', () =>
  inZone({ workers: 1 }, async (busy) => {
    let [ticksOwed, ticksOwedMax, timers, turns] = [0, 0, 0, 0]
    const timer = setInterval(() => timers++, 1)
    const turn = (): void => {
      turns++
      immediate = setImmediate(turn)
    }
    let immediate = setImmediate(turn)
    const identity = (value: number): number => value
    for (let call = 0; call < 5000 || timers < 3; call++) {
      ticksOwed++
      process.nextTick(() => ticksOwed--)
      assert.equal(await busy.run(identity, call), call)
      ticksOwedMax = Math.max(ticksOwedMax, ticksOwed)
    }
    clearInterval(timer)
    clearImmediate(immediate)
    assert.ok(ticksOwedMax <= 20, `${ticksOwedMax} calls without a turn of process.nextTick`)
    assert.ok(turns >= 3, `${turns} turns of the loop`)
  }))
