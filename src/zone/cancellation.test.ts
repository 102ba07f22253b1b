/**
 * What the signal of a cancelled task reports, what a broadcast does when its caller stops waiting, and that
 * a refused call keeps nothing: neither capacity nor the memory that it would have moved.
 */
import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { readdirSync } from 'node:fs'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { move } from '../transport/index.ts'
import { ZoneError, zone } from './index.ts'
import { inZone, makeZone, once, timedOut, until } from './api/zones.test.support.ts'

const CORESPUN = new URL('./index.js', import.meta.url).href
const FORKING = new URL('./executors.test.support.js', import.meta.url)

/** Waits for its own signal; then writes what it was aborted with where the caller can see it. */
async function listens(this: { readonly signal: AbortSignal }, seen: Uint16Array): Promise<void> {
  const { signal } = this
  Atomics.store(seen, 0, 1)
  await new Promise<void>((resolve) => {
    const keepAlive = setInterval(() => {}, 1000)
    const aborted = (): void => {
      clearInterval(keepAlive)
      resolve()
    }
    if (signal.aborted) aborted()
    else signal.addEventListener('abort', aborted)
  })
  const { name, code, message, stack, cause, ...own } = Object(signal.reason) as Error & { code?: unknown }
  const report = JSON.stringify({ name, code, message, own, text: String(signal.reason) })
  for (let index = 0; index < report.length; index++) seen[index + 2] = report.charCodeAt(index)
  Atomics.store(seen, 1, report.length)
}

/** Holds its worker, deaf to its signal, until the second cell is set. */
function waits(gate: Int32Array): void {
  Atomics.wait(gate, 1, 0)
}

function shared(): Uint16Array {
  return new Uint16Array(new SharedArrayBuffer(4096))
}

async function received(
  seen: Uint16Array,
): Promise<{ name?: string; code?: unknown; text: string; own: object }> {
  await until(() => Atomics.load(seen, 1) > 0)
  const length = Atomics.load(seen, 1)
  return JSON.parse(String.fromCharCode(...seen.subarray(2, 2 + length))) as never
}

test("after a timeout the reason of the task's signal is a TimeoutError", async () => {
  await inZone({ workers: 1, graceMs: 60_000 }, async (own) => {
    const seen = shared()
    const { facts } = await timedOut((timeoutMs) => own.execute(listens, [seen], { timeoutMs }))
    const { name, text } = await received(seen)
    assert.equal(name, 'TimeoutError')
    assert.match(text, new RegExp(`did not end within ${facts.timeoutMs} ms`))
  })
})

test("an aborted signal's reason is the reason that the task sees: class, code and fields", async () => {
  await inZone({ workers: 1, graceMs: 60_000 }, async (own) => {
    const reasons: readonly [unknown, object][] = [
      [
        Object.assign(new RangeError('enough'), { code: 'E_ENOUGH', left: 3 }),
        { name: 'RangeError', code: 'E_ENOUGH', own: { left: 3 } },
      ],
      ['just so', { text: 'just so' }],
      [undefined, { name: 'AbortError' }],
      [Symbol('no'), { name: 'TransportError', code: 'TRANSPORT_REFUSED' }],
    ]
    for (const [reason, expected] of reasons) {
      const seen = shared()
      const stop = new AbortController()
      const call = own.execute(listens, [seen], { signal: stop.signal })
      await until(() => Atomics.load(seen, 0) === 1)
      stop.abort(reason)
      await call.then(
        () => assert.fail('must fail'),
        (error: unknown) => assert.equal(error, stop.signal.reason),
      )
      const actual = await received(seen)
      assert.deepEqual({ ...actual, ...expected }, actual)
    }
  })
})

test('a closing zone aborts the signals of its tasks before it ends them', async () => {
  const own = makeZone({ workers: 2, graceMs: 10_000 })
  const seen = shared()
  const call = own.execute(listens, [seen])
  const stuck = own.run(() => {
    for (;;);
  })
  stuck.catch(() => {})
  await until(() => Atomics.load(seen, 0) === 1)
  // Their signals are aborted after half of it.
  await own.close({ timeoutMs: 2000 })
  await call
  assert.equal((await received(seen)).code, 'ZONE_CLOSED')
  await assert.rejects(stuck, { code: 'ZONE_CLOSED' })
})

test('a broadcast has a deadline; workers that are busy run it later all the same', async () => {
  await inZone({ workers: 2 }, async (own) => {
    const gate = new Int32Array(new SharedArrayBuffer(8))
    const busy = own.run((cells) => {
      Atomics.store(cells, 1, 1)
      Atomics.wait(cells, 0, 0)
    }, gate)
    await until(() => Atomics.load(gate, 1) === 1)
    const mark = (): void => void Object.assign(globalThis, { marked: true })
    await assert.rejects(own.broadcast(mark, [], { timeoutMs: 30 }), (error) => {
      assert.ok(error instanceof ZoneError)
      assert.equal(error.code, 'BROADCAST_TIMEOUT')
      assert.deepEqual(error.facts, { zone: own.id, timeoutMs: 30 })
      return true
    })
    Atomics.store(gate, 0, 1)
    Atomics.notify(gate, 0)
    await busy
    // A broadcast goes before tasks, on every worker.
    const marks = await Promise.all(
      Array.from({ length: 8 }, () => own.run(() => (globalThis as { marked?: boolean }).marked)),
    )
    assert.deepEqual(marks, Array(8).fill(true))
  })
})

test("a broadcast's signal ends the wait; one that is aborted already sends nothing", async () => {
  await inZone({ workers: 1 }, async (own) => {
    const reason = new Error('not now')
    const add = (): void => {
      const here = globalThis as { added?: number }
      here.added = (here.added ?? 0) + 1
    }
    await assert.rejects(own.broadcast(add, [], { signal: AbortSignal.abort(reason) }), reason)
    const stop = new AbortController()
    const sent = own.broadcast(add, [], { signal: stop.signal })
    stop.abort(reason)
    await assert.rejects(sent, reason)
    await own.broadcast(add, [], { signal: new AbortController().signal, timeoutMs: 10_000 })
    assert.equal(await own.run(() => (globalThis as { added?: number }).added), 2)
    await assert.rejects(own.broadcast(add, [], { timeoutMs: -1 }), { code: 'ZONE_ARGUMENT' })
  })
  const late = new Promise<void>(() => {})
  await assert.rejects(
    zone.node.broadcast(() => late, [], { timeoutMs: 5 }),
    { code: 'BROADCAST_TIMEOUT' },
  )
})

test('a call that is refused leaves moved memory where it was, and the next one takes it', async () => {
  await inZone({ workers: 1, tasksMax: 1, taskBytesMax: 4096, queueBytesMax: 4096 }, async (own) => {
    const gate = new Int32Array(new SharedArrayBuffer(8))
    const running = own.run((cells) => {
      Atomics.store(cells, 1, 1)
      Atomics.wait(cells, 0, 0)
    }, gate)
    await until(() => Atomics.load(gate, 1) === 1)
    const waiting = own.run(() => 1)
    const bytes = new Uint8Array([1, 2, 3])
    const other = new Uint8Array([4])
    const sum = (...all: Uint8Array[]): number => all.flatMap((each) => [...each]).reduce((a, b) => a + b, 0)
    for (let round = 0; round < 3; round++) {
      await assert.rejects(own.run(sum, move(bytes), move(other)), { code: 'ZONE_FULL' })
      assert.deepEqual([[...bytes], [...other]], [[1, 2, 3], [4]])
    }
    Atomics.store(gate, 0, 1)
    Atomics.notify(gate, 0)
    await Promise.all([running, waiting])
    await assert.rejects(
      own.run((...all: unknown[]) => all.length, bytes, 'x'.repeat(9999)),
      {
        code: 'TASK_TOO_LARGE',
      },
    )
    // Nor does the next call take it that has no arguments of its own.
    assert.equal((await own.execute(() => 1)).value, 1)
    assert.equal(bytes.length, 3)
    // Still given away: no copy stays behind.
    assert.equal(await own.run(sum, bytes, other), 10)
    assert.deepEqual([bytes.length, other.length], [0, 0])
  })
  const closed = makeZone({ workers: 1 })
  await closed.close()
  const kept = move(new Uint8Array([7]))
  await assert.rejects(
    closed.run((bytes) => bytes, kept),
    { code: 'ZONE_CLOSED' },
  )
  await assert.rejects(
    closed.broadcast(() => {}, [kept] as never),
    { code: 'ZONE_CLOSED' },
  )
  assert.deepEqual([...kept], [7])
})

for (const workers of [1, 2, 3]) {
  test(`both sides of a cancelled endless join end, with ${workers} workers`, () =>
    inZone({ executor: 'work-stealing', workers, graceMs: 30 }, async (own) => {
      await timedOut((timeoutMs) => own.execute(FORKING, 'joinsForEver', [], { timeoutMs: 5 * timeoutMs }))
      // Not even a replacement of the worker goes on with the other side.
      assert.equal(await own.run(() => 'next'), 'next')
      await until(() => own.stats().running === 0 && own.stats().workers === workers)
      assert.equal(own.stats().waiting, 0)
    }))
}

test('a cancelled task that does not return is ended although its caller thread has already ended', () =>
  inZone({ workers: 1, graceMs: 100 }, async (own) => {
    const source = `
      import(${JSON.stringify(CORESPUN)}).then(async ({ zone }) => {
        const loop = () => { for (;;); }
        const own = zone.get(${JSON.stringify(own.id)})
        for (let timeoutMs = 20, isStarted = false; !isStarted; timeoutMs *= 2)
          await own.execute(loop, [], { timeoutMs }).catch(({ facts }) => (isStarted = facts.started))
        process.exit(0)
      })`
    const caller = new Worker(source, { eval: true })
    await new Promise((resolve) => caller.once('exit', resolve))
    assert.equal(await own.run(() => 'freed'), 'freed')
    assert.equal(own.stats().died, 1)
  }))

for (const end of ['terminated', 'exits', 'throws'] as const) {
  test(`a thread that ${end} in the midst of its calls cancels what runs, what waits and nobody else's`, () =>
    inZone({ workers: 1, graceMs: 60_000 }, async (own) => {
      const [seen, gate] = [shared(), new Int32Array(new SharedArrayBuffer(8))]
      const source = `
        const { parentPort, workerData } = require('node:worker_threads')
        import(${JSON.stringify(CORESPUN)}).then(async ({ zone }) => {
          const own = zone.get(${JSON.stringify(own.id)})
          own.execute(${listens}, [workerData.seen], { timeoutMs: 3_600_000 }).catch(() => {})
          const counts = (gate) => Atomics.add(gate, 0, 1)
          for (let call = 0; call < 3; call++) own.run(counts, workerData.gate).catch(() => {})
          parentPort.once('message', (end) => {
            if (end === 'exits') process.exit(0)
            throw new Error('planned')
          })
          parentPort.postMessage('called')
        })`
      const caller = new Worker(source, { eval: true, workerData: { seen, gate } })
      const ended = new Promise((resolve) => caller.once('error', () => {}).once('exit', resolve))
      await new Promise((resolve) => caller.once('message', resolve))
      await until(() => Atomics.load(seen, 0) === 1 && own.stats().waiting === 3)
      const mine = own.run((cells) => Atomics.load(cells, 0), gate)
      if (end === 'terminated') await caller.terminate()
      else caller.postMessage(end)
      await ended
      assert.equal((await received(seen)).name, 'AbortError')
      assert.equal(await mine, 0, 'what had not begun did not run')
      assert.deepEqual([own.stats().running, own.stats().waiting, own.stats().died], [0, 0, 0])
    }))
}

test('a call that a task did not wait for runs on when its zone closes', async () => {
  await inZone({ workers: 1 }, async (other) => {
    const gate = new Int32Array(new SharedArrayBuffer(8))
    await inZone({ workers: 1 }, async (own) => {
      await own.execute(FORKING, 'forgets', [other.id, gate])
      await until(() => Atomics.load(gate, 0) === 1)
    })
    Atomics.store(gate, 1, 1)
    await until(() => Atomics.load(gate, 0) === 2)
    assert.equal(other.stats().died, 0)
  })
})

test('the worker that replaces an endless one has started before that one ends', () =>
  inZone({ workers: 1, graceMs: 600 }, async (own) => {
    const loop = (): never => {
      for (;;);
    }
    let deaths = 0
    await once(async () => {
      const ended = new Promise<number>((resolve) => {
        const listener = (message: unknown): void => {
          if (!(message as { worker: string }).worker.startsWith(`${own.id}/`)) return
          unsubscribe('corespun:worker:ended', listener)
          resolve(performance.timeOrigin + performance.now())
        }
        subscribe('corespun:worker:ended', listener)
      })
      await timedOut((timeoutMs) => own.execute(loop, [], { timeoutMs }))
      const startedAt = await own.run(() => performance.timeOrigin)
      const endedAt = await ended
      deaths++
      assert.deepEqual([own.stats().died, own.stats().workers], [deaths, 1])
      return startedAt < endedAt
    }, 'the replacement started before the end of the worker')
  }))

test('a thread that was started for nothing ends', () =>
  inZone({ workers: 1, graceMs: 400 }, async (own) => {
    const threads = (): number => readdirSync('/proc/self/task').length
    await own.run(() => {})
    await until(() => own.stats().running === 0)
    await once(async () => {
      const before = threads()
      const { died } = own.stats()
      const gate = new Int32Array(new SharedArrayBuffer(8))
      await timedOut((timeoutMs) => own.execute(waits, [gate], { timeoutMs }))
      await until(() => threads() > before || own.stats().died > died)
      Atomics.store(gate, 1, 1)
      Atomics.notify(gate, 1)
      await until(() => threads() === before && own.stats().workers === 1)
      return own.stats().died === died
    }, 'the task ended after a thread was started and before the end of its grace')
  }))

test('a zone that closes while a thread is started for it leaves none', async () => {
  const own = makeZone({ workers: 1, graceMs: 300, closeMs: 10 })
  const loop = (): never => {
    for (;;);
  }
  await own.run(() => {})
  const abandoned = assert.rejects(own.execute(loop, [], { timeoutMs: 20 }), { code: 'TASK_TIMEOUT' })
  await new Promise((resolve) => setTimeout(resolve, 80))
  await Promise.all([own.close(), abandoned])
})

test('a task that ends within graceMs keeps its worker, whatever it runs then', () =>
  inZone({ workers: 1, graceMs: 5000 }, async (own) => {
    const gate = new Int32Array(new SharedArrayBuffer(8))
    await timedOut((timeoutMs) => own.execute(waits, [gate], { timeoutMs }))
    Atomics.store(gate, 1, 1)
    Atomics.notify(gate, 1)
    await own.run((ms: number) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms), 5500)
    assert.equal(own.stats().died, 0)
  }))

test('ready waits for no busy worker, leaves no broadcast, and a task may ask its own zone', async () => {
  await inZone({ workers: 2, tasksMax: 4, broadcastsMax: 0 }, async (own) => {
    const gate = new Int32Array(new SharedArrayBuffer(4))
    const busy = own.run((cells) => void Atomics.wait(cells, 0, 0), gate)
    await until(() => own.stats().running === 1)
    await own.ready()
    await own.run(async () => {
      const { zone } = await import('./index.js')
      await zone.current.ready()
    })
    Atomics.store(gate, 0, 1)
    Atomics.notify(gate, 0)
    await busy
  })
  await inZone({ workers: 1, tasksMax: 1 }, async (own) => {
    const asking = own.run(async () => {
      const { zone } = await import('./index.js')
      while (zone.current.stats().waiting === 0) await new Promise((resolve) => setTimeout(resolve, 1))
      // Full: only this worker can make room, while this task waits for it.
      await zone.current.ready()
      return 'room'
    })
    await until(() => own.stats().running === 1)
    assert.deepEqual(await Promise.all([asking, own.run(() => 1)]), ['room', 1])
  })
})

test('a task may await a broadcast into its own zone; a broadcast is refused it', () =>
  inZone({ workers: 2 }, async (own) => {
    const broadcasts = async (): Promise<void> => {
      const { zone } = await import('./index.js')
      await zone.current.broadcast(() => {
        const here = globalThis as { count?: number }
        here.count = (here.count ?? 0) + 1
      })
    }
    await Promise.all([own.run(broadcasts), own.run(broadcasts), own.run(broadcasts)])
    assert.equal(await own.run(() => (globalThis as { count?: number }).count), 3)
    await assert.rejects(own.broadcast(broadcasts), {
      code: 'ZONE_DEADLOCK',
      message: /a call from its own broadcast would wait/,
    })
    await own.run(broadcasts)
  }))

test('memory that moves counts for queueBytesMax, and so do the broadcasts that are kept', () =>
  inZone({ workers: 1, queueBytesMax: 4096 }, async (own) => {
    const large = new Uint8Array(1 << 20)
    const length = (bytes: Uint8Array): number => bytes.length
    const refusal = { code: 'ZONE_BYTES_FULL', message: /1048\d\d\d more bytes/ }
    await assert.rejects(own.run(length, move(large)), refusal)
    await assert.rejects(own.broadcast(length, [large]), refusal)
    assert.equal(large.length, 1 << 20)
    assert.equal(await own.run(length, move(new Uint8Array(2048))), 2048)
    assert.equal(own.stats().waitingBytes, 0)
    const keep = (_text: string): void => {}
    await own.broadcast(keep, ['x'.repeat(3000)])
    await assert.rejects(own.broadcast(keep, ['x'.repeat(3000)]), { code: 'ZONE_BYTES_FULL' })
    assert.equal(await own.run((text: string) => text.length, 'x'.repeat(3000)), 3000)
  }))
