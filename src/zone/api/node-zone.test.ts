/**
 * `zone.node`: the calling thread with the API of a zone.
 *
 * The same table of calls runs on it and on a zone of workers; what comes out is the same but for what the
 * module's text names: arguments are the very ones, and captured variables are allowed.
 */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { type Task, ZoneError, currentTask, zone } from '../index.ts'

const worker = zone.create('node-zone', { workers: 1 })
after(() => worker.close())

/** Both kinds of zones do the same with a call: the value, or the error's class, code and message. */
function both(name: string, call: (on: typeof worker) => Promise<unknown>): void {
  test(`both kinds of zones: ${name}`, async () => {
    const [there, here] = await Promise.all([outcome(call(worker)), outcome(call(zone.node as never))])
    assert.deepEqual(here, there)
  })
}

async function outcome(promise: Promise<unknown>): Promise<unknown> {
  try {
    return { value: await promise }
  } catch (error) {
    const { name, code, message } = error as ZoneError
    return {
      name,
      code,
      message: message.replaceAll(/node-zone|node/g, 'ZONE'),
    }
  }
}

const MATH = new URL('../../../test/zone/modules/math.mjs', import.meta.url)

both('run', (on) => on.run((a: number, b: number) => a + b, 1, 2))
both('run an asynchronous function', (on) => on.run(async (a: number) => a + 1, 1))
both('an error', (on) =>
  on.run(() => {
    throw new RangeError('no')
  }),
)
both('execute resolves to a Result', async (on) => (await on.execute((a: number) => [a], [1])).value)
both('execute an export', async (on) => (await on.execute(MATH, 'add', [2, 3])).value)
both('an export that is missing', (on) => on.execute(MATH, 'none'))
both('module', (on) => on.module<{ add(a: number, b: number): number }>(MATH).add(3, 4))
both('a module is not a promise', async (on) => typeof (await on.module<object>(MATH)))
both('a method of a module is the same function each time', async (on) => {
  const math = on.module<{ add(a: number, b: number): number }>(MATH)
  return math.add === math.add
})
both('a value that is not a function', (on) => on.run(5 as never))
both('wrong options', (on) => on.execute(() => 1, [], { timeoutMs: -1 }))
both('a deadline', async (on) => {
  // A worker that is still starting would be named as the cause.
  await on.run(() => 1)
  return on.execute(() => new Promise(() => {}), [], { timeoutMs: 300 })
})
both('an aborted signal', (on) =>
  on.execute(() => 1, [], { signal: AbortSignal.abort(new RangeError('why')) }),
)
both('a broadcast that throws', (on) =>
  on.broadcast(() => {
    throw new EvalError('cast')
  }),
)
both('a broadcast of code that does not parse', (on) => on.broadcast('let = ='))
both('ready', (on) => on.ready())

test('both kinds of zones: an option that a method does not have is refused, not ignored', async () => {
  for (const on of [worker, zone.node] as (typeof worker)[]) {
    const { signal } = new AbortController()
    const refused = (name: string): object => ({
      code: 'ZONE_ARGUMENT',
      message: new RegExp(`^zone\\.\\w+\\(\\): unknown option "${name}"; `),
    })
    await assert.rejects(on.ready({ timeoutMs: 1 } as never), refused('timeoutMs'))
    await assert.rejects(on.close({ signal } as never), refused('signal'))
    assert.throws(() => on.broadcastSync(() => {}, [], { signal } as never), refused('signal'))
    assert.equal(await on.run(() => 'open'), 'open')
  }
})

test('arguments are the very ones, variables may be captured, the call comes later', async () => {
  const argument = { here: true }
  let called = false
  const made = zone.node.run((given: object) => ((called = true), given), argument)
  assert.equal(called, false)
  assert.equal(await made, argument)
  assert.equal(called, true)
})

test('`this` and currentTask() are the task, also in calls that overlap', async () => {
  const seen = await Promise.all(
    [1, 2, 3].map(() =>
      zone.node.run(async function (this: Task) {
        await new Promise((resolve) => setImmediate(resolve))
        return currentTask() === this && this.zone === 'node'
      }),
    ),
  )
  assert.deepEqual(seen, [true, true, true])
  assert.equal(currentTask(), undefined)
})

test('cancelling a task aborts its signal', async () => {
  const controller = new AbortController()
  let received: unknown
  const call = zone.node.execute(
    function () {
      return new Promise((resolve) =>
        this.signal.addEventListener('abort', () => resolve((received = this.signal.reason))),
      )
    },
    [],
    { signal: controller.signal },
  )
  await new Promise((resolve) => setImmediate(resolve))
  controller.abort(new RangeError('stop'))
  await assert.rejects(call, { message: 'stop' })
  assert.equal((received as Error).message, 'stop')
})

test('it cannot be made again, counts what it runs, and closing changes nothing', async () => {
  assert.equal(zone.node.id, 'node')
  assert.throws(() => zone.create('node'), { code: 'ZONE_EXISTS' })
  const { ended, running } = zone.node.stats()
  const call = zone.node.run(() => zone.node.stats().running)
  assert.equal(await call, running + 1)
  const now = zone.node.stats()
  assert.deepEqual([now.ended - ended, now.running - running, now.workers], [1, 0, 1])
  await zone.node.close()
  zone.node.broadcastSync('globalThis.nodeZoneMark = 1')
  assert.equal((globalThis as { nodeZoneMark?: number }).nodeZoneMark, 1)
  assert.equal(await zone.node.run(() => 5), 5)
})

test('it measures what it runs and publishes its statistics', async () => {
  const messages: unknown[] = []
  const listen = (message: unknown): void => void messages.push(message)
  subscribe('corespun:zone:stats', listen)
  const before = zone.node.stats()
  await zone.node.run(() => new Promise((resolve) => setTimeout(resolve, 20)))
  await assert.rejects(zone.node.run(() => Promise.reject(new Error('x'))))
  const now = zone.node.stats()
  unsubscribe('corespun:zone:stats', listen)
  const { count, p50, max } = now.runUs
  assert.equal(count - before.runUs.count, 2)
  assert.ok(0 < p50 && p50 <= max && max >= 18_000 && max < 60e6)
  assert.ok(now.utilisation > 0 && now.utilisation <= 1)
  assert.deepEqual([now.byWorker.length, now.byWorker[0]?.runUs], [1, now.runUs])
  assert.deepEqual(
    messages,
    [before, now].map((stats) => ({ zone: 'node', stats })),
  )
})

test('a call that failed or ended leaves no timer', async () => {
  const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length
  const before = timers()
  await zone.node.execute(() => 1, [], { timeoutMs: 60_000 })
  await assert.rejects(
    zone.node.execute(() => Promise.reject(new Error('x')), [], {
      timeoutMs: 60_000,
    }),
  )
  await assert.rejects(
    zone.node.execute(
      () => {
        throw new Error('x')
      },
      [],
      { timeoutMs: 60_000 },
    ),
  )
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(timers(), before)
})

test('chunks that end at once leave timers and I/O their turn', async (t) => {
  let now = 0
  t.mock.method(performance, 'now', () => ++now)
  let turns = 0
  let isOver = false
  const turn = (): void => {
    turns++
    if (!isOver) setImmediate(turn)
  }
  setImmediate(turn)
  await zone.node.forEach(new Array(1000).fill(0), () => {}, { chunkMax: 1 })
  isOver = true
  assert.ok(turns > 50, `${turns} turns of the loop in ${now} ms of the clock`)
})

async function* endless(): AsyncGenerator<number> {
  for (let item = 0; ; item++) yield item
}

test('what settles at once is ended by its own timeout and signal', { timeout: 60_000 }, async () => {
  await assert.rejects(
    zone.node.forEach(endless(), () => {}, { timeoutMs: 20 }),
    { code: 'TASK_TIMEOUT' },
  )
  await assert.rejects(
    zone.node.forEach(endless(), () => {}, { signal: AbortSignal.timeout(20) }),
    { name: 'TimeoutError' },
  )
})
