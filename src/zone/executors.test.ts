/**
 * What the executors promise: forks and joins, growth and shrinking, capacity, the ready-made zones, and for
 * each of them what every zone promises: tasks settle once, broadcasts come first, workers that die are
 * replaced.
 */
import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { getPriority, release } from 'node:os'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { native } from '../native/index.ts'
import type { ExecutorName } from './ground/settings.ts'
import { leftOut } from '../base/part.test.support.ts'
import { type Task, type Zone, join, zone } from './index.ts'
import { inZone, makeZone, until } from './api/zones.test.support.ts'

const EXECUTORS: readonly ExecutorName[] = ['fixed', 'work-stealing', 'blocking', 'cached']
const GAUGE = new URL('./executors.test.support.js', import.meta.url)

for (const [index, executor] of EXECUTORS.entries()) {
  let rows = index
  /** A part has each of the tests, with every third executor. */
  const row = (name: string, body: () => Promise<void>): void =>
    void test(`${executor}: ${name}`, { skip: leftOut(rows++) }, body)

  row('a task calls its own zone, deeper than there are workers, and waits', () =>
    inZone({ executor, workers: 1 }, async (own) => {
      async function nested(this: Task, depth: number): Promise<string[]> {
        const { currentTask, zone } = await import('./index.js')
        const task = currentTask()
        const below = depth === 0 ? [] : await (zone.current as Zone).run(nested, depth - 1)
        // Each keeps its own task while others run in between.
        if (currentTask() !== task || task !== this) throw new Error('another task')
        return [`${depth}`, ...below]
      }
      assert.deepEqual(
        await own.run(nested, 20),
        Array.from({ length: 21 }, (_, index) => `${20 - index}`),
      )
    }),
  )

  row('many tasks fork many; all settle, errors too, and the counts agree', () =>
    inZone({ executor }, async (own) => {
      const before = own.stats()
      const sums = await own.map([1, 2, 3, 4, 5, 6, 7, 8], async (seed) => {
        const { zone } = await import('./index.js')
        const outcomes = await Promise.allSettled(
          Array.from({ length: 50 }, (_, index) =>
            (zone.current as Zone).run(
              (value: number) => {
                if (value % 10 === 0) throw new RangeError(`${value}`)
                return value
              },
              seed * 1000 + index,
            ),
          ),
        )
        return outcomes.reduce((sum, each) => sum + (each.status === 'fulfilled' ? 1 : 1000), 0)
      })
      assert.deepEqual(
        sums,
        Array.from({ length: 8 }, () => 45 + 5 * 1000),
      )
      const now = own.stats()
      assert.equal(now.failed - before.failed, 40)
      assert.equal(now.waiting + now.running + now.waitingBytes, 0)
    }),
  )

  row('a broadcast reaches workers of now and later; a dead worker is replaced', () =>
    inZone({ executor }, async (own) => {
      await own.broadcast('globalThis.mark = 1')
      assert.equal(await own.run(() => (globalThis as { mark?: number }).mark), 1)
      const dying = own.run(() => process.exit(3))
      await assert.rejects(dying, { code: 'WORKER_DIED' })
      const marks = await Promise.all(
        Array.from({ length: 8 }, () => own.run(() => (globalThis as { mark?: number }).mark)),
      )
      assert.deepEqual(
        marks,
        Array.from({ length: 8 }, () => 1),
      )
      assert.equal(own.stats().died, 1)
    }),
  )

  row('cancelled, withdrawn and timed-out tasks settle once, and others run', () =>
    inZone({ executor, workers: 1, graceMs: 50 }, async (own) => {
      await own.run(() => {})
      const loop = own.execute(() => for_ever(), [], { timeoutMs: 20 })
      function for_ever(): never {
        for (;;);
      }
      await assert.rejects(loop, { code: 'FUNCTION_CAPTURES' })
      const controller = new AbortController()
      const endless = own.execute(
        () => {
          for (;;);
        },
        [],
        { timeoutMs: 20 },
      )
      const queued = own.execute(() => 'never', [], {
        signal: controller.signal,
      })
      const after = own.run(() => 'ran')
      controller.abort(new Error('withdrawn'))
      await assert.rejects(queued, /withdrawn/)
      await assert.rejects(endless, { code: 'TASK_TIMEOUT' })
      assert.equal(await after, 'ran')
    }),
  )

  row('a closing zone finishes what its tasks fork', async () => {
    const own = makeZone({ executor })
    const forking = own.run(async () => {
      const { zone } = await import('./index.js')
      const me = zone.current as Zone
      let sum = 0
      for (let index = 0; index < 20; index++) sum += await me.run((value: number) => value, index)
      return sum
    })
    await own.close()
    assert.equal(await forking, 190)
    await assert.rejects(
      own.run(() => 0),
      { code: 'ZONE_CLOSED' },
    )
  })

  row('ready waits for capacity, in order, until a signal aborts or the zone closes', () =>
    inZone(
      {
        executor,
        workers: grows(executor) ? { min: 1, max: 1 } : 1,
        tasksMax: 2,
      },
      async (own) => {
        const gate = new Int32Array(new SharedArrayBuffer(4))
        const wait = (gate: Int32Array): unknown => Atomics.wait(gate, 0, 0)
        const first = own.run(wait, gate)
        await until(() => own.stats().running === 1)
        const waiting = [own.run(() => 1), own.run(() => 2)]
        await assert.rejects(
          own.run(() => 3),
          { code: 'ZONE_FULL' },
        )
        const order: number[] = []
        // Given up before those behind it, whose turn it must not take.
        const controller = new AbortController()
        const impatient = own.ready({ signal: controller.signal })
        const waits = [1, 2, 3].map((number) => own.ready().then(() => order.push(number)))
        controller.abort(new RangeError('not so long'))
        await assert.rejects(impatient, { message: 'not so long' })
        await assert.rejects(own.ready({ signal: AbortSignal.timeout(5) }), {
          name: 'TimeoutError',
        })
        assert.deepEqual(order, [])
        Atomics.store(gate, 0, 1)
        Atomics.notify(gate, 0)
        await Promise.all([first, ...waiting, ...waits])
        assert.deepEqual(order, [1, 2, 3])
        await own.ready()
      },
    ),
  )
}

test('capacity skips waiters that have stopped, and nothing of them is kept', () =>
  inZone({ workers: 1, tasksMax: 2 }, async (own) => {
    const gate = new Int32Array(new SharedArrayBuffer(4))
    const running = own.run((cell: Int32Array) => Atomics.wait(cell, 0, 0), gate)
    await until(() => own.stats().running === 1)
    const given = new AbortController()
    const withdrawn = own.execute(() => 1, [], { signal: given.signal })
    const waits = own.run(() => 2)
    const first = new AbortController()
    const [one, two] = [own.ready({ signal: first.signal }), own.ready()]
    first.abort(new Error('first'))
    await assert.rejects(one, { message: 'first' })
    given.abort(new Error('given'))
    await assert.rejects(withdrawn, { message: 'given' })
    // There is capacity for one task, and the worker is still blocked.
    await two
    assert.equal(own.stats().waiting, 1)
    await own.ready()
    const more = own.run(() => 3)
    setFlagsFromString('--expose-gc')
    const gc = runInNewContext('gc') as () => void
    gc()
    const before = process.memoryUsage().heapUsed
    for (let n = 0; n < 20_000; n++) {
      const controller = new AbortController()
      const asked = own.ready({ signal: controller.signal })
      controller.abort()
      await assert.rejects(asked)
    }
    gc()
    const keptBytes = process.memoryUsage().heapUsed - before
    Atomics.store(gate, 0, 1)
    Atomics.notify(gate, 0)
    await Promise.all([running, waits, more])
    // Some 30 MB when each stays.
    assert.ok(keptBytes < 10e6, `${keptBytes} bytes are kept`)
  }))

function grows(executor: ExecutorName): boolean {
  return executor === 'blocking' || executor === 'cached'
}

test('join returns both values, here or elsewhere, whatever the shape of the tree', () =>
  inZone({ executor: 'work-stealing' }, async (own) => {
    const trees = fc.letrec((tie) => ({
      tree: fc.oneof({ maxDepth: 6 }, fc.integer(), fc.tuple(tie('tree'), tie('tree'))),
    })).tree
    const property = fc.asyncProperty(trees, async (tree) => {
      const sum = (node: unknown): number =>
        typeof node === 'number' ? node : sum((node as unknown[])[0]) + sum((node as unknown[])[1])
      const { value } = await own.execute(GAUGE, 'joinedSum', [tree])
      assert.equal(value, sum(tree))
    })
    await fc.assert(property, { numRuns: 100 })
  }))

test('join spreads over the workers, and everything is run once', () =>
  inZone({ executor: 'work-stealing', workers: 2 }, async (own) => {
    await own.ready()
    const cells = new Int32Array(new SharedArrayBuffer(4 * 256))
    const workers = (await own.execute(GAUGE, 'marks', [cells, 0, 256])).value as string[]
    assert.deepEqual(
      [...cells],
      Array.from({ length: 256 }, () => 1),
    )
    assert.equal(workers.length, 2, 'a worker that was idle has helped')
    assert.ok(own.stats().stolen > 0)
    assert.equal(own.stats().waiting, 0)
  }))

test('join throws the first error once both sides have ended, and its functions see their task', () =>
  inZone({ executor: 'work-stealing' }, async (own) => {
    for (const where of ['first', 'second', 'both'] as const) {
      const expected = where === 'second' ? /second failed/ : /first failed/
      for (let turn = 0; turn < 20; turn++) {
        await assert.rejects(own.execute(GAUGE, 'failing', [where, turn % 2]), expected)
      }
    }
    assert.deepEqual((await own.execute(GAUGE, 'ownTask', [])).value, [true, true])
    await assert.rejects(own.execute(GAUGE, 'asynchronous', [0]), {
      code: 'JOIN_ASYNC',
    })
    await assert.rejects(own.execute(GAUGE, 'asynchronous', [1]), {
      code: 'JOIN_ASYNC',
    })
  }))

test('join without a work-stealing zone runs its sides in order; an invalid side is refused', async () => {
  assert.deepEqual(join([(x: number) => x + 1, 1], [(text: string) => text + text, 'a']), [2, 'aa'])
  assert.throws(() => join([5] as never, [() => 0]), {
    code: 'ZONE_ARGUMENT',
    message: /the first side/,
  })
  assert.throws(() => join([() => 0], null as never), {
    code: 'ZONE_ARGUMENT',
    message: /the second side/,
  })
  await inZone({ workers: 1 }, async (own) => {
    assert.equal((await own.execute(GAUGE, 'joinedSum', [[[1, 2], 3]])).value, 6)
  })
})

test('a second side that is given memory by move runs on it, whoever is idle, and nothing is kept', () =>
  inZone({ executor: 'work-stealing', workers: 2 }, async (own) => {
    const before = native.bufferCount()
    for (let turn = 0; turn < 20; turn++) {
      assert.deepEqual((await own.execute(GAUGE, 'movingSecond', [64 * 1024])).value, [65_536, 65_536])
    }
    await until(() => native.bufferCount() === before)
  }))

test('a worker that dies with a joined call in hand fails it, and the rest goes on', () =>
  inZone({ executor: 'work-stealing', workers: 2 }, async (own) => {
    await own.ready()
    for (let turn = 0; turn < 5; turn++) {
      await assert.rejects(own.execute(GAUGE, 'dyingHelper', [new SharedArrayBuffer(4)]), {
        code: 'WORKER_DIED',
      })
    }
    assert.equal((await own.execute(GAUGE, 'joinedSum', [[1, 2]])).value, 3)
  }))

test('blocking grows while its tasks block, up to workers.max, and shrinks when idle', () =>
  inZone({ executor: 'blocking', workers: { max: 4, idleMs: 60 } }, async (own) => {
    const gate = new Int32Array(new SharedArrayBuffer(8))
    const block = (gate: Int32Array): void => {
      Atomics.add(gate, 1, 1)
      Atomics.wait(gate, 0, 0)
    }
    const blocked = Array.from({ length: 9 }, () => own.run(block, gate))
    await until(() => Atomics.load(gate, 1) === 4)
    await new Promise((resolve) => setTimeout(resolve, 50))
    assert.deepEqual([own.stats().workers, own.stats().running, own.stats().waiting], [4, 4, 5])
    Atomics.store(gate, 0, 1)
    Atomics.notify(gate, 0)
    await Promise.all(blocked)
    await until(() => own.stats().workers === 1)
    assert.equal(await own.run(() => 5), 5)
  }))

test('cached starts with nobody, grows on demand and is empty again when idle, without a death', () =>
  inZone({ executor: 'cached', workers: { idleMs: 60 } }, async (own) => {
    assert.equal(own.stats().workers, 0)
    for (let turn = 0; turn < 2; turn++) {
      assert.equal(await own.run((value: number) => value, turn), turn)
      await until(() => own.stats().workers === 0)
    }
    assert.deepEqual([own.stats().died, own.stats().done], [0, 2])
  }))

test('the ready-made zones are the same for every thread, and there again after a close', async () => {
  for (const name of ['cpu', 'blocking', 'cached'] as const) {
    const own = zone[name]
    assert.equal(own, zone[name])
    assert.equal(own.id, `corespun.${name}`)
    assert.equal(own.settings.executor, name === 'cpu' ? 'work-stealing' : name)
    assert.equal(
      await own.run(async (name: 'cpu') => (await import('./index.js')).zone[name].id, name as 'cpu'),
      own.id,
    )
    await own.close()
    assert.equal(await zone[name].run(() => 1), 1)
    await zone[name].close()
  }
})

test("nice adds to the process's own value in workers; other threads keep theirs", async (context) => {
  if (process.platform !== 'linux') return context.skip('only Linux has a priority for each thread')
  const own = getPriority(0)
  const inWorker = (): number => process.getBuiltinModule('node:os').getPriority(0)
  await inZone({ workers: 1 }, async (fair) => assert.equal(await fair.run(inWorker), own))
  await inZone({ workers: 1, nice: 5 }, async (nice) => {
    assert.equal(await nice.run(inWorker), Math.min(19, own + 5))
    await nice.run(() => process.exit(1)).catch(() => {})
    assert.equal(await nice.run(inWorker), Math.min(19, own + 5))
  })
  assert.equal(getPriority(0), own)
})

test('zone.cpu has nice 3, the other ready-made zones 0', async (context) => {
  if (process.platform !== 'linux') return context.skip('only Linux has a priority for each thread')
  // Field 19 of proc(5); the second, the name, may contain spaces.
  const niceOf = (): number => {
    const stat = process.getBuiltinModule('node:fs').readFileSync('/proc/thread-self/stat', 'utf8')
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[16])
  }
  const own = niceOf()
  for (const [name, steps] of [
    ['cpu', 3],
    ['blocking', 0],
    ['cached', 0],
  ] as const) {
    assert.equal(zone[name].settings.nice, steps)
    assert.equal(await zone[name].run(niceOf), Math.min(19, own + steps), name)
    await zone[name].close()
  }
  assert.equal(niceOf(), own)
})

test('workers with nice run in longer slices, where the kernel has them', async (context) => {
  // Absent in kernels without scheduler statistics, and outside of Linux.
  const slice = (): number => {
    const { existsSync, readFileSync } = process.getBuiltinModule('node:fs')
    const path = '/proc/thread-self/sched'
    const found = existsSync(path) ? /^se\.slice\s*:\s*(\d+)/m.exec(readFileSync(path, 'utf8')) : null
    return found === null ? 0 : Number(found[1])
  }
  const [major = 0, minor = 0] = release().split('.').map(Number)
  if (slice() === 0 || major < 6 || (major === 6 && minor < 12)) return context.skip('no slices to be seen')
  await inZone({ workers: 1 }, async (fair) => assert.equal(await fair.run(slice), slice()))
  await inZone({ workers: 1, nice: 5 }, async (nice) => assert.ok((await nice.run(slice)) > slice()))
})

test('the end of a zone is published once, by one of several concurrent close calls', async () => {
  const zones: unknown[] = []
  const listener = (message: unknown): void => void zones.push((message as { zone: string }).zone)
  subscribe('corespun:zone:closed', listener)
  const own = makeZone({ workers: 1 })
  await own.ready()
  await Promise.all([own.close(), own.close(), own.close()])
  await own.close()
  unsubscribe('corespun:zone:closed', listener)
  assert.deepEqual(zones, [own.id])
})

test('zones and workers publish their events on diagnostics channels', async () => {
  const events: [string, unknown][] = []
  for (const name of [
    'zone:created',
    'zone:closed',
    'zone:stats',
    'worker:started',
    'worker:ready',
    'worker:ended',
  ]) {
    subscribe(`corespun:${name}`, (message) => events.push([name, message]))
  }
  await inZone({ workers: 1 }, async (own) => {
    await own.run(() => {})
    await until(() => events.some(([name]) => name === 'worker:ready'))
    own.stats()
  })
  await until(() => events.some(([name]) => name === 'worker:ended'))
  const [[, created], , [, ready], [, stats]] = events as [[string, { zone: string }], ...[string, never][]]
  assert.match(created.zone, /^test-/)
  assert.deepEqual(ready, { worker: `${created.zone}/0` })
  assert.equal((stats as { stats: { done: number } }).stats.done, 1)
  const names = events.map(([name]) => name)
  assert.deepEqual(names.slice(0, 4), ['zone:created', 'worker:started', 'worker:ready', 'zone:stats'])
  assert.deepEqual(names.slice(4).sort(), ['worker:ended', 'zone:closed'])
})
