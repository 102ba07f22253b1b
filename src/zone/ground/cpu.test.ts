/**
 * CPU time by account, against a model: whatever runs beside it, each part of random programs has used what
 * its own steps and those of its tasks cost, each once.
 *
 * The clocks of all threads are those of the test, except in the last one.
 */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import fc from 'fast-check'
import { until } from '../../base/wait.test.support.ts'
import { inZone, makeZone } from '../api/zones.test.support.ts'
import { type CpuTime, currentTask, measureCpu, zone } from '../index.ts'
import {
  PAUSE_NAMES,
  type Step,
  type Work,
  burn,
  checkCost,
  functionsOn,
  useFakeClock,
  walk,
} from './cpu.test.support.ts'
import { type CpuAccount, CpuMeter } from './cpu.ts'

/** Windows has no zones of processes. */
const ISOLATION = process.platform === 'win32' ? 'thread' : 'process'
/** By depth, so that no task waits for its own zone. */
const LEVELS = [0, 1].map(() => [
  makeZone({ workers: 2, graceMs: 60_000 }),
  makeZone({ workers: 2, graceMs: 60_000, tasksPerWorkerMax: 8 }),
  makeZone({ workers: 1, graceMs: 60_000, tasksPerWorkerMax: 4, isolation: ISOLATION }),
])
const [[ONE, MANY, PROCESS]] = LEVELS
after(() => Promise.all(LEVELS.flat().map((each) => each.close())))
before(async () => {
  useFakeClock()
  await Promise.all(LEVELS.flat().map((each) => each.broadcast(startClock)))
})

async function startClock(): Promise<void> {
  ;(await import('./cpu.test.support.ts')).useFakeClock()
}

/** The clock of Windows is not finer than that. */
const TICK_MS = 16
const nsOf = ({ cpuMs }: CpuTime): number => Math.round(cpuMs * 1e6)

function programs(depth: number, size: number): fc.Arbitrary<readonly Step[]> {
  const inner = (): fc.Arbitrary<readonly Step[]> => programs(depth, size - 1)
  const steps: fc.Arbitrary<Step>[] = [
    fc.record({ burnNs: fc.integer({ min: 1, max: 1e6 }) }),
    fc.record({ pause: fc.constantFrom(...PAUSE_NAMES) }),
  ]
  if (size > 0) steps.push(fc.record({ measured: inner() }), fc.record({ both: fc.tuple(inner(), inner()) }))
  if (size > 0 && depth < LEVELS.length) {
    const [one, many, process] = LEVELS[depth].map(({ id }) => id)
    const work = (
      zone: fc.Arbitrary<string>,
      ways: readonly Work['how'][],
      depthIn: number,
    ): fc.Arbitrary<Step> => {
      const how = fc.constantFrom(...ways)
      return fc.record({
        call: fc.record({ zone, how, steps: programs(depthIn, size - 1), fails: fc.boolean() }),
      })
    }
    steps.push(work(fc.constantFrom(one, many), ['execute', 'map', 'stream'], depth + 1))
    // A process has no other zones, and no streams.
    steps.push(work(fc.constant(process), ['execute', 'map'], LEVELS.length))
  }
  return fc.array(fc.oneof(...steps), { maxLength: 4 })
}

test('each part of random programs has used what its steps and its tasks cost, each once', async () => {
  const many = fc.array(programs(0, 3), { minLength: 1, maxLength: 4 })
  const property = fc.asyncProperty(many, async (all) => {
    await Promise.all(
      all.map((steps) =>
        measureCpu(async (used) => {
          await walk(steps)
          checkCost('a program', used.cpuMs, steps)
        }),
      ),
    )
  })
  await fc.assert(property, { numRuns: 40 })
})

test('a task that is not measured has no time, and adds to none that runs beside it', async () => {
  for (const on of [ONE, MANY, PROCESS]) {
    const beside = Array.from({ length: 8 }, () => functionsOn(on).uncounted())
    await measureCpu(async (used) => {
      const steps: Step[] = [{ burnNs: 3 }, { pause: 'timer' }, { burnNs: 4 }]
      const call: Work = { zone: on.id, how: 'execute', steps, fails: false }
      await walk(Array.from({ length: 8 }, () => ({ call })))
      assert.equal(nsOf(used), 56)
    })
    for (const cpuMs of await Promise.all(beside)) assert.equal(cpuMs, undefined)
  }
  assert.equal(currentTask()?.cpuMs, undefined)
})

test('forks of join cost the same, stolen or not', () =>
  inZone({ workers: 2, executor: 'work-stealing' }, async (own) => {
    await own.broadcast(startClock)
    const both = async (): Promise<void> => {
      await measureCpu(async (used) => {
        assert.deepEqual(await functionsOn(own).joinedNs(9), [512, 512])
        assert.equal(nsOf(used), 512)
      })
    }
    await Promise.all([both(), both(), both()])
  }))

test('a call that is cancelled adds what its task has used when that has ended', async () => {
  for (const on of [ONE, MANY]) {
    const begun = new Int32Array(new SharedArrayBuffer(4))
    const controller = new AbortController()
    const used = await measureCpu(async (used) => {
      const called = functionsOn(on.with({ signal: controller.signal })).burnWhenAborted(begun)
      await until(() => Atomics.load(begun, 0) === 1)
      controller.abort()
      await assert.rejects(called, { name: 'AbortError' })
      return used
    })
    await until(() => nsOf(used) === 7)
  }
})

test('a task whose worker dies adds nothing, those before and after it do', () =>
  inZone({ workers: 1, tasksPerWorkerMax: 2 }, async (own) => {
    await own.broadcast(startClock)
    await measureCpu(async (used) => {
      const call: Work = { zone: own.id, how: 'execute', steps: [{ burnNs: 5 }], fails: false }
      for (let round = 1; round <= 3; round++) {
        await assert.rejects(functionsOn(own).burnAndDie(1000), { code: 'WORKER_DIED' })
        await walk([{ call }])
        assert.equal(nsOf(used), 5 * round)
      }
    })
  }))

test('results and errors of any size bring the time with them', async () => {
  const scratchBytes = 256 * 1024
  for (const on of [ONE, PROCESS])
    await measureCpu(async (used) => {
      let count = 0
      // Around the size from which a result has memory of its own.
      for (const length of [0, 1, 1000, scratchBytes * 2, ...near(scratchBytes - 64, 64)]) {
        assert.equal((await functionsOn(on).sized(length, false)).length, length)
        count++
      }
      for (const length of [1, scratchBytes * 2]) {
        await assert.rejects(functionsOn(on).sized(length, true), { message: 'x'.repeat(length) })
        count++
      }
      assert.equal(nsOf(used), 3 * count)
    })
})

function near(from: number, count: number): number[] {
  return Array.from({ length: count }, (_, index) => from + index)
}

test('a result that is a stream adds what it has used when it has ended', async () => {
  for (const on of [ONE, MANY]) {
    const used = await measureCpu(async (used) => {
      let count = 0
      for await (const _ of await functionsOn(on).counted(1000)) count++
      assert.equal(count, 1000)
      return used
    })
    await until(() => nsOf(used) === 1000)
  }
})

test('a task of the calling thread is a part of its caller', async () => {
  await Promise.all(
    [1, 10].map((ns) =>
      measureCpu(async (used) => {
        const ofTask = await zone.node.run(async () => {
          burn(ns)
          await null
          burn(ns)
          return currentTask()?.cpuMs ?? 0
        })
        assert.equal(nsOf({ cpuMs: ofTask }), 2 * ns)
        assert.equal(nsOf(used), 2 * ns)
      }),
    ),
  )
})

test('a task of the main thread adds to that of the worker that calls it', async () => {
  const call: Work = { zone: zone.main.id, how: 'execute', steps: [{ burnNs: 8 }], fails: false }
  for (const on of [ONE, MANY])
    await measureCpu(async (used) => {
      await walk([{ call: { zone: on.id, how: 'execute', steps: [{ burnNs: 1 }, { call }], fails: false } }])
      assert.equal(nsOf(used), 9)
    })
})

function sampling() {
  let ns = 0
  const meter = new CpuMeter()
  meter.clock = () => ns
  const open: CpuAccount[] = []
  const sample = (body: () => unknown): void =>
    meter.sample(
      (account) => {
        open.push(account)
        void body()
      },
      () => true,
    )
  return { meter, open, sample, add: (more: number): void => void (ns += more) }
}

test('a sample that ends where another one begins takes nothing from that', async () => {
  const { meter, open, sample, add } = sampling()
  sample(() => {})
  sample(async () => {
    add(3)
    meter.end(open[0])
    add(4)
    await null
    add(5)
  })
  await turn()
  meter.end(open[1])
  assert.deepEqual(
    open.map(({ ns }) => ns),
    [0, 12],
  )
})

test('samples that go on are followed for so many callbacks, and then none begins for a while', async (t) => {
  let nowMs = 1000
  t.mock.method(performance, 'now', () => nowMs)
  const { meter, open, sample, add } = sampling()
  const work = async (): Promise<void> => {
    add(3)
    await null
    add(4)
  }
  sample(() => {})
  sample(work)
  assert.ok(meter.maySample())
  for (let left = 100_000; open[0].isFollower && left > 0; left--) await null
  assert.deepEqual(
    open.map((each) => each.isFollower),
    [false, false],
  )
  assert.ok(!meter.maySample())
  nowMs += 3000
  assert.ok(meter.maySample())
  sample(work)
  await turn()
  for (const account of open) meter.end(account)
  assert.deepEqual(
    open.map((each) => each.ns),
    [0, 7, 7],
  )
})

test('by the clock of the system, a task has at most the time that it took, and its caller has it too', () =>
  inZone({ workers: 1 }, async (own) => {
    const [used, ofTask] = await measureCpu(async (used) => {
      const [cpuMs, ms] = await own.run(async () => {
        const { currentTask } = await import('../index.ts')
        const [task, begunMs] = [currentTask(), performance.now()]
        const before = task?.cpuMs ?? 0
        while ((task?.cpuMs ?? Infinity) < before + 5);
        return [(task?.cpuMs ?? 0) - before, performance.now() - begunMs]
      })
      assert.ok(cpuMs >= 5 && cpuMs <= ms + TICK_MS, `${cpuMs} ms of ${ms}`)
      return [used, cpuMs]
    })
    assert.ok(used.cpuMs >= ofTask)
  }))
