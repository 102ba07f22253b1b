/**
 * The order in which waiting calls begin: priorities, tenants, keys and workers by number.
 *
 * A worker is held up while calls are submitted, then notes the number of each task that it begins in shared
 * memory. The oracle plays the documented rules on plain lists.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type AnyZone, type OrderOptions, type Task, type ZoneError, zone } from './index.ts'
import type { Priority } from './call/order.ts'
import { hashOf } from './call/order.ts'
import { inZone, until } from './api/zones.test.support.ts'

const MATH = new URL('../../test/zone/modules/math.mjs', import.meta.url)
interface Math {
  add(a: number, b: number): number
}

/** How many calls of higher priorities go before one that waits. */
const PASSED_MAX = 16

/** Notes a task: the first word counts them. */
function note(log: Int32Array, id: number): void {
  log[Atomics.add(log, 0, 1) + 1] = id
}

/** Runs until `gate` is opened, which is noted when it begins. */
function hold(gate: Int32Array): void {
  Atomics.store(gate, 0, 1)
  Atomics.notify(gate, 0)
  Atomics.wait(gate, 1, 0)
}

function shared(words: number): Int32Array {
  return new Int32Array(new SharedArrayBuffer(4 * words))
}

/**
 * The tasks that begin, in order, of the calls that `submit` makes while the worker of `on` is held up; it is
 * until `count` of them wait.
 */
async function begunIn(
  on: AnyZone,
  count: number,
  submit: (noted: Int32Array) => readonly Promise<unknown>[],
  waiting = 0,
): Promise<number[]> {
  const [gate, log] = [shared(2), shared(count + 1)]
  const held = on.run(hold, gate)
  await until(() => Atomics.load(gate, 0) === 1, 'the worker is held up')
  const calls = submit(log)
  await until(() => on.stats().waiting >= waiting, 'the calls wait')
  Atomics.store(gate, 1, 1)
  Atomics.notify(gate, 1)
  await Promise.all([held, Promise.allSettled(calls)])
  return [...log.slice(1, 1 + (log[0] ?? 0))]
}

interface Call {
  readonly id: number
  readonly options: OrderOptions
  readonly isAborted: boolean
}

const RANKS: Record<Priority, number> = { high: 0, normal: 1, low: 2 }

/** What only one worker may run, or any: the calls that wait there, and what the rules remember. */
class Line {
  waiting: Call[] = []
  skipped = 0
  readonly passed = [0, 0, 0]
  readonly passedByHigh = [0, 0, 0]
  /** Of each priority the tenants in the order of their turns, and what is left of the first one's turn. */
  readonly turns: { tenant: string; left: number }[][] = [[], [], []]

  add(call: Call): void {
    const rank = rankOf(call)
    this.waiting.push(call)
    const turns = this.turns[rank] as { tenant: string; left: number }[]
    const tenant = tenantOf(call)
    // Calls without a tenant are always one of those that take turns, the first one to come.
    if (rank === 1 && turns.length === 0) turns.push({ tenant: '', left: 1 })
    if (!turns.some((turn) => turn.tenant === tenant)) turns.push({ tenant, left: call.options.weight ?? 1 })
  }

  of(rank: number, tenant?: string): Call[] {
    return this.waiting.filter(
      (call) => rankOf(call) === rank && (tenant === undefined || tenantOf(call) === tenant),
    )
  }

  /** The priority that is next, and the one that it counts as. */
  next(): { rank: number; as: number } | undefined {
    const has = [0, 1, 2].map((rank) => this.of(rank).length > 0)
    const as = has.indexOf(true)
    if (as < 0) return undefined
    let rank = as
    for (const lower of [1, 2]) {
      const passed = as === 0 ? this.passedByHigh[lower] : this.passed[lower]
      if (lower > as && has[lower] === true && (passed ?? 0) >= PASSED_MAX) rank = lower
    }
    return { rank, as }
  }

  take(rank: number): Call {
    this.skipped = 0
    for (let lower = rank + 1; lower < 3; lower++) {
      if (this.of(lower).length === 0) continue
      this.passed[lower]++
      if (rank === 0) this.passedByHigh[lower]++
    }
    this.passed[rank] = this.passedByHigh[rank] = 0
    const turns = this.turns[rank] as { tenant: string; left: number }[]
    while (this.of(rank, turns[0]?.tenant).length === 0) this.#rotate(rank)
    const turn = turns[0]
    const call = this.of(rank, turn.tenant)[0]
    this.waiting.splice(this.waiting.indexOf(call), 1)
    turn.left--
    if (this.of(rank, turn.tenant).length === 0 && !(rank === 1 && turn.tenant === '')) {
      turns.shift()
      if (turns[0] !== undefined) turns[0].left = this.#weight(rank, turns[0].tenant)
    } else if (turn.left === 0) this.#rotate(rank)
    return call
  }

  #rotate(rank: number): void {
    const turns = this.turns[rank] as { tenant: string; left: number }[]
    turns.push(turns.shift() as { tenant: string; left: number })
    turns[0].left = this.#weight(rank, turns[0].tenant)
  }

  #weight(rank: number, tenant: string): number {
    return tenant === '' ? 1 : (this.of(rank, tenant).at(-1)?.options.weight ?? 1)
  }
}

function rankOf({ options }: Call): number {
  return RANKS[options.priority ?? 'normal']
}

function tenantOf({ options }: Call): string {
  return options.tenant === undefined ? '' : String(options.tenant)
}

/** The order of calls that all wait before the first begins. */
function played(calls: readonly Call[]): number[] {
  const [any, own] = [new Line(), new Line()]
  for (const call of calls) (call.options.affinity === undefined ? any : own).add(call)
  for (const line of [any, own])
    for (const call of line.waiting.filter(({ isAborted }) => isAborted)) {
      line.waiting.splice(line.waiting.indexOf(call), 1)
      const turns = line.turns[rankOf(call)] as { tenant: string; left: number }[]
      const isPlain = rankOf(call) === 1 && tenantOf(call) === ''
      if (isPlain || line.of(rankOf(call), tenantOf(call)).length > 0) continue
      turns.splice(
        turns.findIndex(({ tenant }) => tenant === tenantOf(call)),
        1,
      )
    }
  const order: number[] = []
  for (;;) {
    const [one, other] = [any.next(), own.next()]
    if (one === undefined && other === undefined) return order
    const asOf = (line: Line, as: number): number => (line.skipped >= PASSED_MAX ? 0 : as + 1)
    let isOwn = one === undefined
    if (one !== undefined && other !== undefined) {
      const [rank, ownRank] = [asOf(any, one.as), asOf(own, other.as)]
      isOwn = ownRank < rank || (ownRank === rank && own.skipped > 0)
      ;(isOwn ? any : own).skipped++
    }
    order.push((isOwn ? own : any).take((isOwn ? other : one)!.rank).id)
  }
}

/** A tenant has one weight here, since which of several counts is not promised. */
const OPTIONS: fc.Arbitrary<OrderOptions> = fc.record(
  {
    priority: fc.constantFrom<Priority>('high', 'normal', 'low'),
    tenant: fc.constantFrom('a', 'b', 'c', 3),
    affinity: fc.constantFrom('x', 'y', 7),
  },
  { requiredKeys: [] },
)
const WEIGHTS: Readonly<Record<string, number>> = { a: 1, b: 2, c: 5, 3: 1 }
const CALLS = fc.array(fc.tuple(OPTIONS, fc.integer({ min: 0, max: 9 })), { maxLength: 120 }).map((all) =>
  all.map(([options, odds], id): Call => {
    const { tenant } = options
    const weight = tenant === undefined ? undefined : WEIGHTS[tenant]
    return { id, options: { ...options, weight }, isAborted: odds === 0 }
  }),
)

for (const executor of ['fixed', 'work-stealing'] as const) {
  test(`${executor}: waiting calls begin in the documented order, whatever is cancelled before`, () =>
    inZone({ executor, workers: 1 }, async (own) => {
      const property = fc.asyncProperty(CALLS, async (calls) => {
        const order = await begunIn(own, calls.length, (log) => {
          const aborts = new AbortController()
          const made = calls.map(({ id, options, isAborted }) => {
            const { signal } = aborts
            return own.execute(note, [log, id], isAborted ? { ...options, signal } : options)
          })
          aborts.abort(new RangeError('not any more'))
          return made
        })
        assert.deepEqual(order, played(calls))
        const { waiting, waitingBytes } = own.stats()
        assert.deepEqual({ waiting, waitingBytes }, { waiting: 0, waitingBytes: 0 })
      })
      await fc.assert(property, { numRuns: 60 })
    }))
}

test('a high call is next, however many low and normal ones wait', () =>
  inZone({ workers: 1 }, async (own) => {
    const count = 5000
    const order = await begunIn(own, 2 * count + 1, (log) => [
      ...Array.from({ length: count }, (_, id) => own.execute(note, [log, id], { priority: 'low' })),
      ...Array.from({ length: count }, (_, id) => own.run(note, log, count + id)),
      own.execute(note, [log, -1], { priority: 'high' }),
    ])
    assert.deepEqual(order.slice(0, 2), [-1, count])
    assert.equal(order.length, 2 * count + 1)
  }))

test('a low call begins under a stream of high ones that never ends', () =>
  inZone({ workers: 1 }, async (own) => {
    let [begun, isOver] = [0, false]
    const low = begunIn(own, 1, (log) => {
      const stream = async (): Promise<void> => {
        while (!isOver) {
          await own.execute(() => {}, [], { priority: 'high' })
          begun++
        }
      }
      const streams = Array.from({ length: 4 }, stream)
      const starving = own.execute(note, [log, 7], { priority: 'low' }).finally(() => (isOver = true))
      return [starving, ...streams]
    })
    assert.deepEqual(await low, [7])
    assert.ok(begun > 0)
  }))

test('a tenant with many waiting calls delays the one of another tenant by one', () =>
  inZone({ workers: 1 }, async (own) => {
    const big = own.with({ tenant: 'big' })
    const order = await begunIn(own, 5002, (log) => [
      ...Array.from({ length: 5000 }, (_, id) => big.run(note, log, id)),
      own.with({ tenant: 'small' }).run(note, log, -1),
      own.run(note, log, -2),
    ])
    assert.deepEqual(
      order
        .slice(0, 4)
        .toSorted((a, b) => a - b)
        .slice(0, 2),
      [-2, -1],
    )
  }))

test('a number and its text are the same tenant', () =>
  inZone({ workers: 1 }, async (own) => {
    const order = await begunIn(own, 5, (log) => [
      ...[0, 1].map((id) => own.execute(note, [log, id], { tenant: 7, priority: 'low' })),
      ...[2, 3].map((id) => own.execute(note, [log, id], { tenant: '7', priority: 'low' })),
      own.execute(note, [log, 4], { tenant: 8, priority: 'low' }),
    ])
    assert.deepEqual(order, [0, 4, 1, 2, 3])
  }))

/** Each kind of call, with an order: it begins before what waits. */
const KINDS: readonly (readonly [string, (on: AnyZone, log: Int32Array) => Promise<unknown>])[] = [
  ['run', (on, log) => on.run(note, log, 1)],
  ['execute', (on, log) => on.execute(note, [log, 1])],
  [
    'execute of a call site that is new',
    // oxlint-disable-next-line no-eval -- a function that no other call has used
    (on, log) =>
      on.execute((0, eval)('(log) => { log[Atomics.add(log, 0, 1) + 1] = 1 }') as never, [log] as never),
  ],
  [
    'arguments that are larger than the scratch',
    (on, log) =>
      on.run(
        (log: Int32Array, bytes: Uint8Array) => {
          if (bytes.length === 1_000_000) log[Atomics.add(log, 0, 1) + 1] = 1
        },
        log,
        new Uint8Array(1_000_000),
      ),
  ],
  ['a deadline', (on, log) => on.with({ timeoutMs: 60_000 }).run(note, log, 1)],
  [
    'forEach',
    (on, log) => on.forEach([log], (log: Int32Array) => void (log[Atomics.add(log, 0, 1) + 1] = 1)),
  ],
  ['map', (on, log) => on.map([log], (log: Int32Array) => void (log[Atomics.add(log, 0, 1) + 1] = 1))],
  [
    'an argument that is a stream',
    (on, log) =>
      on.run(
        async (items: AsyncIterable<number>, log: Int32Array) => {
          for await (const item of items) log[Atomics.add(log, 0, 1) + 1] = item
        },
        (function* () {
          yield 1
        })(),
        log,
      ),
  ],
  [
    'stream',
    (on, log) =>
      on
        .stream(
          async function* (logs: AsyncIterable<Int32Array>) {
            for await (const log of logs) yield (log[Atomics.add(log, 0, 1) + 1] = 1)
          },
          [log],
        )
        .next(),
  ],
]
for (const [name, call] of KINDS) {
  test(`the order of a view is that of its calls: ${name}`, () =>
    inZone({ workers: 1 }, async (own) => {
      const order = await begunIn(
        own,
        6,
        (log) => {
          const waiting = [2, 3].map((id) => own.run(note, log, id))
          return [
            ...waiting,
            call(own.with({ priority: 'low' }).with({ priority: 'high', tenant: 'x' }), log),
          ]
        },
        3,
      )
      assert.deepEqual(order, [1, 2, 3])
    }))
}

test('module, map and stream have an order of their own', () =>
  inZone({ workers: 1 }, async (own) => {
    assert.equal(await own.module<Math>(MATH, { priority: 'low', tenant: 1 }).add(1, 2), 3)
    assert.equal((await own.execute<Math>(MATH, 'add', [2, 2], { affinity: 'x' })).value, 4)
    assert.deepEqual(await own.map([1, 2], (n: number) => n + 1, { tenant: 'x', weight: 3 }), [2, 3])
    assert.equal(await own.reduce([1, 2], (a: number, b: number) => a + b, 0, { affinity: 5 }), 3)
    const stream = own.stream(
      function* () {
        yield 1
      },
      [],
      { priority: 'high' },
    )
    assert.deepEqual(await stream.next(), { value: 1, done: false })
    await stream.return()
    // What has no order ignores that of a view.
    await own.with({ priority: 'high' }).broadcast(() => {})
    own.with({ affinity: 'x' }).broadcastSync(() => {})
    assert.equal(await zone.node.with({ priority: 'low', affinity: 3 }).run(() => 5), 5)
    assert.equal((await zone.node.execute(() => 6, [], { tenant: 'x', weight: 2 })).value, 6)
  }))

test('a view with an order travels to a task, whose calls have it', () =>
  inZone({ workers: 1 }, async (own) => {
    await inZone({ workers: 1 }, async (other) => {
      const low = other.with({ priority: 'low', tenant: 3, weight: 2, affinity: 'x' })
      const value = await own.run(async (view: AnyZone) => view.run((n: number) => n + 1, 1), low)
      assert.equal(value, 2)
    })
    // To its own zone, while this task waits, from the one worker.
    const again = await own.run(
      async (view: AnyZone) => view.run(() => 'inner'),
      own.with({ priority: 'low', affinity: 'x', tenant: 'y' }),
    )
    assert.equal(again, 'inner')
    const itself = await own.run(async (view: AnyZone) => view.run(() => 'itself'), own.worker(0))
    assert.equal(itself, 'itself')
  }))

function workerOf(this: Task): string {
  return this.worker
}

for (const executor of ['fixed', 'work-stealing'] as const) {
  test(`${executor}: equal keys run on the same worker, and others are not held up`, () =>
    inZone({ executor, workers: 3 }, async (own) => {
      const seen = new Set<string>()
      for (let key = 0; key < 64; key++) {
        const view = own.with({ affinity: key })
        const workers = await Promise.all(Array.from({ length: 3 }, () => view.run(workerOf)))
        const [worker, ...others] = new Set(workers)
        assert.deepEqual(others, [])
        seen.add(worker)
        assert.equal((await own.execute(workerOf, [], { affinity: String(key) })).value, worker)
      }
      assert.equal(seen.size, 3, 'all workers have keys')
      const name = await own.with({ affinity: 'x' }).run(workerOf)
      const number = Number(name.split('/')[1])
      const order = await begunIn(own.worker(number), 60, (log) => [
        ...Array.from({ length: 50 }, (_, id) => own.execute(note, [log, id], { affinity: 'x' })),
        ...[0, 1, 2].map((n) => own.worker(n).run(note, log, -1 - n)),
      ])
      assert.equal(order.length, 53)
    }))
}

test('worker(n) runs calls on that worker alone', () =>
  inZone({ workers: 3 }, async (own) => {
    for (const number of [0, 1, 2]) {
      const one = own.worker(number)
      const name = `${own.id}/${number}`
      const names = await Promise.all(Array.from({ length: 20 }, () => one.run(workerOf)))
      assert.deepEqual([...new Set(names)], [name])
      assert.equal((await one.execute(workerOf)).value, name)
      assert.equal((await one.execute(workerOf, [], { affinity: 'another', tenant: 3 })).value, name)
      assert.equal(await one.module<Math>(MATH).add(1, number), 1 + number)
      assert.equal(await one.with({ priority: 'low', affinity: 'x' }).run(workerOf), name)
      const nested = await own.run(async (view: AnyZone) => {
        return view.run(function (this: Task) {
          return this.worker
        })
      }, one)
      assert.equal(nested, name)
      assert.equal(one.id, own.id)
    }
    for (const number of [-1, 3, 0.5, Number.NaN, '1' as never])
      assert.throws(() => own.worker(number), {
        code: 'ZONE_ARGUMENT',
        message: /^zone\.worker\(\): the number must be an integer from 0 to 2; received/,
      })
  }))

test('a worker by number and a key need workers that stay', async () => {
  const grows = zone.create('order-grows', { executor: 'cached', workers: { max: 2 } })
  const needs = {
    code: 'ZONE_ARGUMENT',
    message: /needs a zone whose number of workers does not change; it has 0 to 2; received/,
  }
  assert.throws(() => grows.worker(0), needs)
  await assert.rejects(
    grows.execute(() => 1, [], { affinity: 'x' }),
    needs,
  )
  assert.equal((await grows.execute(() => 1, [], { tenant: 'x', priority: 'high' })).value, 1)
  await grows.close()
  const stays = zone.create('order-stays', { executor: 'blocking', workers: { min: 2, max: 2 } })
  assert.equal(await stays.worker(1).run(workerOf), 'order-stays/1')
  await stays.close()
})

test('what waits for a worker that dies runs on its replacement', () =>
  inZone({ workers: 2 }, async (own) => {
    const one = own.worker(1)
    const [gate, key] = [shared(2), 'a key']
    const dying = one.run((gate: Int32Array) => {
      Atomics.store(gate, 0, 1)
      Atomics.wait(gate, 1, 0)
      process.exit(3)
    }, gate)
    await until(() => Atomics.load(gate, 0) === 1, 'it runs')
    const waiting = Array.from({ length: 30 }, () => one.run(workerOf))
    const keyed = Array.from({ length: 30 }, () => own.with({ affinity: key }).run(workerOf))
    const doomed = own.worker(1).with({ timeoutMs: 1 }).run(workerOf)
    await assert.rejects(doomed, { code: 'TASK_TIMEOUT' })
    const waits = own.stats().byWorker.find(({ worker }) => worker === `${own.id}/1`)?.waiting
    assert.ok(waits === 30 || waits === 60, `${waits}: with those of the key or without`)
    Atomics.store(gate, 1, 1)
    Atomics.notify(gate, 1)
    await assert.rejects(dying, { code: 'WORKER_DIED' })
    assert.deepEqual([...new Set(await Promise.all(waiting))], [`${own.id}/1`])
    assert.equal(new Set(await Promise.all(keyed)).size, 1)
  }))

test('a zone that closes runs what waits for one worker', async () => {
  const own = zone.create('order-closes', { workers: 2 })
  const calls = [0, 1].flatMap((number) => Array.from({ length: 50 }, () => own.worker(number).run(workerOf)))
  await own.close()
  assert.deepEqual([...new Set(await Promise.all(calls))].toSorted(), ['order-closes/0', 'order-closes/1'])
  await assert.rejects(own.worker(0).run(workerOf), { code: 'ZONE_CLOSED' })
})

/** Every call settles once, by its value or by the death of the worker that ran it, and nothing is left. */
test('workers that die in the midst lose what they run and nothing else', () =>
  inZone({ workers: 3, tasksPerWorkerMax: 1 }, async (own) => {
    const property = fc.asyncProperty(CALLS, async (calls) => {
      const ran = shared(calls.length)
      const outcomes = await Promise.allSettled(
        calls.map(({ id, options, isAborted: dies }) =>
          own.execute(
            (ran: Int32Array, id: number, dies: boolean) => {
              if (Atomics.add(ran, id, 1) === 0 && dies) process.exit(1)
              return id
            },
            [ran, id, dies],
            options,
          ),
        ),
      )
      const [values, reasons] = [new Set<number>(), new Set<number>()]
      for (const [id, outcome] of outcomes.entries()) {
        if (outcome.status === 'fulfilled') values.add(Number(outcome.value.value))
        else {
          assert.equal((outcome.reason as ZoneError).code, 'WORKER_DIED')
          reasons.add(id)
        }
      }
      assert.ok(
        [...ran].every((times) => times === 1),
        'each ran once',
      )
      const dying = calls.filter(({ isAborted }) => isAborted).map(({ id }) => id)
      assert.deepEqual([...reasons], dying)
      assert.equal(values.size + reasons.size, calls.length)
      assert.equal(own.stats().waiting, 0)
    })
    await fc.assert(property, { numRuns: 4 })
  }))

const skip = process.platform === 'win32' && 'no zones of processes'

test('ordered calls to workers that are processes are refused what only this process has', { skip }, () =>
  inZone({ workers: 2, isolation: 'process', tasksPerTenantMax: 1 }, async (own) => {
    const views = [
      own,
      own.with({ priority: 'high', tenant: 'x' }),
      own.with({ affinity: 'x' }),
      own.worker(1),
    ]
    for (const view of views) {
      await assert.rejects(
        view.run((words: Int32Array) => words[0], shared(1)),
        {
          code: 'TRANSPORT_REFUSED',
          message: /^args\[0\]\.buffer cannot be transported: a SharedArrayBuffer/,
        },
      )
      assert.equal(await view.run((text: string) => text.length, 'x'.repeat(400_000)), 400_000)
    }
    assert.equal(await own.worker(1).run(workerOf), `${own.id}/1`)
  }),
)

test('wrong options of an order are refused by name', () =>
  inZone({ workers: 1 }, async (own) => {
    const wrong: readonly (readonly [object, RegExp])[] = [
      [{ priority: 'urgent' }, /priority must be one of 'high', 'normal', 'low'; received "urgent"/],
      [{ tenant: {} }, /tenant must be a number, or a string of 1024 characters at most; received/],
      [{ tenant: Number.NaN }, /tenant must be/],
      [{ affinity: 'x'.repeat(1025) }, /affinity must be/],
      [{ tenant: 'x', weight: 0 }, /weight must be an integer from 1 to 1000; received 0/],
      [{ weight: 2 }, /weight needs a tenant, whose calls it counts; received 2/],
      [{ prioritty: 'low' }, /unknown option "prioritty"; did you mean "priority"\?/],
    ]
    for (const [options, message] of wrong) {
      const refused = { code: 'ZONE_ARGUMENT', message }
      await assert.rejects(
        own.execute(() => 1, [], options as never),
        refused,
      )
      assert.throws(() => own.with(options), refused)
      assert.throws(() => own.module(MATH, options), refused)
      await assert.rejects(
        own.map([1], (n: number) => n, options as never),
        refused,
      )
      await assert.rejects(own.stream(async function* () {}, [], options).next(), refused)
    }
    await assert.rejects(
      own.broadcast(() => {}, [], { priority: 'high' } as never),
      {
        code: 'ZONE_ARGUMENT',
      },
    )
  }))

test('a full zone refuses calls with an order as it refuses others', () =>
  inZone({ workers: 1, tasksMax: 3 }, async (own) => {
    const order = await begunIn(own, 8, (log) => {
      const views = [own, own.with({ priority: 'high' }), own.worker(0), own.with({ tenant: 'x' }), own]
      return views.map((on, id) => on.run(note, log, id))
    })
    assert.deepEqual(order, [1, 2, 0])
    await own.ready()
  }))

test('a tenant has its part of the queue, and others have theirs', () =>
  inZone({ workers: 1, tasksPerTenantMax: 2 }, async (own) => {
    const [big, same, small] = ['7', 7, 'small'].map((tenant) => own.with({ tenant, priority: 'low' }))
    const refused: Promise<void>[] = []
    const facts = { zone: own.id, tenant: 7, tasksPerTenantMax: 2 }
    const order = await begunIn(own, 8, (log) => {
      const calls = [big.run(note, log, 0), own.execute(note, [log, 1], { tenant: '7', priority: 'high' })]
      const words = 'x'.repeat(400_000)
      for (const call of [same.run(note, log, -1), same.run((text) => text.length, words)])
        refused.push(assert.rejects(call, { code: 'ZONE_TENANT_FULL', facts }))
      for (let id = 2; id < 6; id++) calls.push((id % 2 === 0 ? small : own).run(note, log, id))
      return calls
    })
    await Promise.all(refused)
    assert.deepEqual(order, [1, 3, 5, 0, 2, 4])
    assert.equal(await same.run((text) => text.length, 'x'.repeat(400_000)), 400_000)
  }))

test('map waits for its part of the queue, whoever of its tenant has it', () =>
  inZone({ workers: 1, tasksPerTenantMax: 1 }, async (own) => {
    const one = own.with({ tenant: 'one' })
    const items = Array.from({ length: 40 }, (_, n) => n)
    const double = (n: number): number => n * 2
    const doubled = items.map(double)
    assert.deepEqual(await one.map(items, double, { chunkMax: 1 }), doubled)
    let mapped: Promise<number[]> | undefined
    const order = await begunIn(own, 1, (log) => {
      const waiting = one.run(note, log, 0)
      mapped = one.map(items, double, { chunkMax: 1 })
      return [waiting]
    })
    assert.deepEqual([order, await mapped], [[0], doubled])
  }))

test('a tenant that fills its part while workers die loses what they run, and is accepted again', () =>
  inZone({ workers: 2, tasksPerTenantMax: 3 }, async (own) => {
    const codes = new Set<string>()
    for (let round = 0; round < 4; round++) {
      const calls = Array.from({ length: 12 }, (_, n) =>
        own
          .with({ tenant: n % 2, affinity: n })
          .run((dies: boolean) => void (dies && process.exit(1)), n === 5)
          .catch((error: ZoneError) => void codes.add(error.code)),
      )
      await Promise.all(calls)
      assert.equal(own.stats().waiting, 0)
    }
    // Nothing waits: each tenant has all of its part again.
    const calls = [0, 1, 2].map(() => own.with({ tenant: 1, affinity: 1 }).run(() => 1))
    assert.deepEqual(await Promise.all(calls), [1, 1, 1])
    for (const code of codes) assert.ok(['WORKER_DIED', 'ZONE_TENANT_FULL'].includes(code), code)
  }))

test('hashes of keys are spread, and differ with the secret of the process', () => {
  const [lows, all] = [new Set<number>(), new Set<string>()]
  for (let key = 0; key < 10_000; key++) {
    const [low, high] = hashOf(`user-${key}`, [1, 2])
    lows.add((low >>> 0) % 4096)
    all.add(`${low} ${high}`)
  }
  assert.equal(all.size, 10_000)
  assert.ok(lows.size > 3500, `${lows.size} of 4096`)
  for (const text of ['', 'a', 'ab', 'abc', 'a\0']) {
    assert.notDeepEqual(hashOf(text, [1, 2]), hashOf(text, [1, 3]))
    assert.deepEqual(hashOf(text, [1, 2]), hashOf(text, [1, 2]))
  }
  assert.notDeepEqual(hashOf('a', [0, 0]), hashOf('a\0', [0, 0]))
})
