/**
 * Broadcasts: once on every worker, in order, also on those that start or replace others.
 *
 * lifecycle.test.ts has the deaths of workers.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { collected } from '../base/collected.test.support.ts'
import { type Task, type Zone, type ZoneError } from './index.ts'
import { type Marked, inZone, mark, marks, until } from './api/zones.test.support.ts'

/** Ask all workers at once: each answers when all are asked, so no worker answers twice. */
async function everyWorker<T>(own: Zone, fn: () => T): Promise<Awaited<T>[]> {
  const { workers } = own.settings
  const meeting = new Int32Array(new SharedArrayBuffer(4))
  const meet = (cell: Int32Array, count: number) => {
    Atomics.add(cell, 0, 1)
    while (Atomics.load(cell, 0) < count) Atomics.wait(cell, 0, Atomics.load(cell, 0), 1)
  }
  const met = Array.from({ length: workers }, () => own.run(meet, meeting, workers))
  const answers = Array.from({ length: workers }, () => own.run(fn))
  await Promise.all(met)
  return Promise.all(answers)
}

test('a broadcast runs once on every worker, also on those that are still starting', () =>
  inZone({ workers: 3 }, async (own) => {
    await Promise.all([own.broadcast(mark, ['a']), own.broadcast(mark, ['b'])])
    await own.broadcast(
      async (value: unknown) => {
        await new Promise((resolve) => setImmediate(resolve))
        ;((globalThis as Marked).marks ??= []).push(value)
      },
      ['c'],
    )
    const seen = new Map<string, unknown>()
    while (seen.size < 3) {
      const [name, all] = await own.run(function (this: Task) {
        return [this.worker, (globalThis as Marked).marks] as const
      })
      assert.deepEqual(all, ['a', 'b', 'c'])
      seen.set(name, all)
      await everyWorker(own, () => 0)
    }
  }))

test('broadcasts go before waiting tasks and wait for running ones', () =>
  inZone({ workers: 1 }, async (own) => {
    await own.ready()
    const gate = new Int32Array(new SharedArrayBuffer(8))
    const held = own.run((cell: Int32Array) => {
      Atomics.store(cell, 1, 1)
      Atomics.wait(cell, 0, 0)
      return (globalThis as Marked).marks
    }, gate)
    await until(() => gate[1] === 1)
    const waiting = own.run(marks)
    const cast = own.broadcast(mark, ['first'])
    Atomics.store(gate, 0, 1)
    Atomics.notify(gate, 0)
    assert.deepEqual(await Promise.all([held, waiting, cast]), [undefined, ['first'], undefined])
  }))

async function* numbers(count: number): AsyncGenerator<number> {
  for (let item = 0; item < count; item++) yield item
}

for (const executor of ['fixed', 'work-stealing'] as const) {
  const inBoth = (body: (own: Zone, other: Zone) => Promise<void>): Promise<void> =>
    inZone({ workers: 1, aheadMax: 4, executor }, (own) =>
      inZone({ workers: 1 }, (other) => body(own, other)),
    )

  test(`${executor}: a broadcast waits neither for a task in a call nor for one whose stream waits`, () =>
    inBoth(async (own, other) => {
      const rows = await own.run(numbers, 100)
      const gate = new Int32Array(new SharedArrayBuffer(4))
      const back = async (first: Zone, cell: Int32Array): Promise<boolean> => {
        while (Atomics.load(cell, 0) === 0) await new Promise((resolve) => setImmediate(resolve))
        return first.run(() => true)
      }
      const run = async (...[first, second, cell, fn]: [Zone, Zone, Int32Array, typeof back]) =>
        second.run(fn, first, cell)
      const isBack = own.run(run, own, other, gate, back)
      await until(() => other.stats().running === 1)
      // What comes back to its zone waits for this.
      const made = own.broadcast(() => {}, [], { timeoutMs: 60_000 })
      Atomics.store(gate, 0, 1)
      await made
      assert.equal(await isBack, true)
      assert.equal((await collected(rows)).length, 100)
    }))

  test(`${executor}: broadcastSync does not wait for a result that the blocked caller has to open`, () =>
    inBoth(async (own) => {
      assert.equal((await collected(await own.run(numbers, 100))).length, 100)
      const rows = own.run(numbers, 100)
      while (own.stats().running === 0);
      own.broadcastSync(() => {}, [], { timeoutMs: 60_000 })
      assert.equal((await collected(await rows)).length, 100)
    }))
}

test('code is a script: its declarations are global in the worker; require and import work in it', () =>
  inZone({ workers: 2 }, async (own) => {
    await own.broadcast(
      'let counter = 40; function next() { return ++counter }; const os = require("node:os")',
    )
    own.broadcastSync(
      'globalThis.loaded = import("./ground/settings.js").then((module) => typeof module.parseSettings)',
    )
    const answers = await everyWorker(own, async () => {
      const { next, os, loaded } = new Function('return { next, os, loaded }')() as never as {
        next(): number
        os: object
        loaded: Promise<string>
      }
      return [next(), 'cpus' in os, await loaded]
    })
    assert.ok(answers.flat().includes(41) && answers.every(([, ...rest]) => rest.join() === 'true,function'))
    await assert.rejects(own.broadcast('let x = ;'), {
      code: 'FUNCTION_CODE',
      message: /Unexpected token/,
    })
    assert.throws(() => own.broadcastSync('let x = ;'), {
      code: 'FUNCTION_CODE',
    })
  }))

test('a broadcast rejects with the first error, after all workers have run it', () =>
  inZone({ workers: 3 }, async (own) => {
    const turn = new Int32Array(new SharedArrayBuffer(8))
    const one = async (cell: Int32Array) => {
      const mine = Atomics.add(cell, 0, 1)
      if (mine === 1)
        throw Object.assign(new RangeError('the second one'), {
          code: 'E_ONE',
        })
      await new Promise((resolve) => setTimeout(resolve, 20))
      Atomics.add(cell, 1, 1)
    }
    await assert.rejects(own.broadcast(one, [turn]), {
      code: 'E_ONE',
      message: 'the second one',
    })
    assert.deepEqual([...turn], [3, 2])
    assert.throws(
      () =>
        own.broadcastSync(() => {
          throw new EvalError('sync')
        }),
      { name: 'EvalError', message: 'sync' },
    )
    await assert.rejects(
      own.broadcast(() => {
        throw Object.assign(new Error('kept'), { odd: Symbol('s') })
      }),
      { message: 'kept' },
    )
    assert.equal(await own.run(() => 1), 1)
    assert.equal(own.stats().died, 0)
  }))

test('broadcastSync right after create starts the workers itself; its deadline is kept', () =>
  inZone({ workers: 2 }, async (own) => {
    own.broadcastSync(mark, ['early'])
    assert.deepEqual(await everyWorker(own, marks), [['early'], ['early']])
    const gate = new Int32Array(new SharedArrayBuffer(4))
    const gated = async (cell: Int32Array): Promise<void> => {
      while (Atomics.load(cell, 0) === 0) await new Promise((resolve) => setTimeout(resolve, 1))
    }
    const late = {
      code: 'BROADCAST_TIMEOUT',
      facts: { zone: own.id, timeoutMs: 30 },
    }
    assert.throws(() => own.broadcastSync(gated, [gate], { timeoutMs: 30 }), late)
    Atomics.store(gate, 0, 1)
    assert.throws(() => own.broadcastSync(mark, [0], { timeoutMs: -1 }), {
      code: 'ZONE_ARGUMENT',
    })
    await own.ready()
  }))

test('broadcastSync in a worker of the zone is refused; into another zone it works', () =>
  inZone({ workers: 1 }, (own) =>
    inZone({ workers: 1 }, async (other) => {
      await own.ready()
      await other.ready()
      const [refused, done] = await own.run(
        async (id: string, otherId: string) => {
          const { zone } = await import('./index.js')
          let code: unknown
          try {
            zone.get(id).broadcastSync(() => {})
          } catch (error) {
            code = (error as ZoneError).code
          }
          zone.get(otherId).broadcastSync('globalThis.marks = ["from a worker"]')
          return [code, true]
        },
        own.id,
        other.id,
      )
      assert.deepEqual([refused, done], ['ZONE_DEADLOCK', true])
      assert.deepEqual(await other.run(marks), ['from a worker'])
    }),
  ))

test('replacements replay all broadcasts in order, code and functions, before their first task', () =>
  inZone({ workers: 2 }, async (own) => {
    await own.broadcast('globalThis.marks = ["code"]')
    for (let n = 0; n < 5; n++) await own.broadcast(mark, [n])
    const expected = ['code', 0, 1, 2, 3, 4]
    for (let round = 0; round < 3; round++) {
      await assert.rejects(
        own.run(() => process.exit(1)),
        { code: 'WORKER_DIED' },
      )
      assert.deepEqual(await everyWorker(own, marks), [expected, expected])
    }
  }))

test('a broadcast whose worker dies under it is run by the replacement, and then ends well', () =>
  inZone({ workers: 2 }, async (own) => {
    await own.ready()
    const cell = new Int32Array(new SharedArrayBuffer(4))
    await own.broadcast(
      (cell: Int32Array) => {
        if (Atomics.add(cell, 0, 1) === 0) process.exit(1)
        ;(globalThis as Marked).marks = ['ran']
      },
      [cell],
    )
    assert.equal(cell[0], 3)
    assert.deepEqual(await everyWorker(own, marks), [['ran'], ['ran']])
  }))
