/**
 * Queues and PubSubs against an oracle of arrays, with interruptions; and what no schedule may break.
 *
 * Nothing is lost, nothing is received twice, the order holds, and no capacity is passed.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  type Dequeue,
  PubSub,
  Queue,
  all,
  dump,
  exitOf,
  fork,
  never,
  race,
  scoped,
  sleep,
  timeout,
  yieldNow,
} from '../index.ts'
import { type Actor, type Outcome, crowds, play, scripts } from './actors.test.support.ts'

type Does = 'put' | 'take' | 'close'
type Overflow = 'bounded' | 'sliding' | 'dropping' | 'unbounded'

const CAPACITY = 2
const overflows = fc.constantFrom<Overflow>('bounded', 'sliding', 'dropping', 'unbounded')
const does = fc.oneof(
  { weight: 8, arbitrary: fc.constant<Does>('put') },
  { weight: 8, arbitrary: fc.constant<Does>('take') },
  { weight: 1, arbitrary: fc.constant<Does>('close') },
)

function queueOf(overflow: Overflow): Queue<number> {
  return overflow === 'unbounded' ? Queue.unbounded() : Queue[overflow](CAPACITY)
}

/** The slow way: all events in order, three arrays. */
function oracle(actors: readonly Actor<Does>[], overflow: Overflow): Outcome[] {
  const outcomes: Outcome[] = []
  const values: number[] = []
  let [putters, takers]: [number[], number[]] = [[], []]
  let isClosed = false
  const hasRoom = (): boolean => overflow === 'unbounded' || values.length < CAPACITY
  const settle = (ms: number): void => {
    const end = (index: number, kind: Outcome['kind'], value: unknown): void => {
      outcomes[index] = { kind, value, ms }
    }
    for (;;) {
      if (putters.length > 0 && isClosed) end(putters.shift() as number, 'failure', 'FIBER_CLOSED')
      else if (putters.length > 0 && (hasRoom() || overflow !== 'bounded')) {
        const index = putters.shift() as number
        if (!hasRoom() && overflow === 'sliding') values.shift()
        const isAdded = hasRoom()
        if (isAdded) values.push(index)
        end(index, 'success', isAdded)
      } else if (takers.length > 0 && values.length > 0)
        end(takers.shift() as number, 'success', values.shift())
      else if (takers.length > 0 && isClosed) end(takers.shift() as number, 'failure', 'FIBER_CLOSED')
      else return
    }
  }
  const events = actors.flatMap(({ atMs, cutMs }, index) => [
    { ms: atMs, index, isCut: false },
    { ms: cutMs, index, isCut: true },
  ])
  for (const { ms, index, isCut } of events.sort((one, two) => one.ms - two.ms)) {
    if (outcomes[index] !== undefined) continue
    if (isCut) {
      ;[putters, takers] = [putters, takers].map((line) => line.filter((other) => other !== index))
      outcomes[index] = { kind: 'interruption', value: undefined, ms }
    } else if (actors[index].does === 'put') putters.push(index)
    else if (actors[index].does === 'take') takers.push(index)
    else {
      isClosed = true
      outcomes[index] = { kind: 'success', value: undefined, ms }
    }
    settle(ms)
  }
  return outcomes
}

test('puts, takes and closes do what the oracle does, whoever is interrupted', async () => {
  await fc.assert(
    fc.asyncProperty(scripts(does, 16), overflows, fc.nat(), async (drawn, overflow, seed) => {
      // At the end all who wait still are let go.
      const actors = [...drawn, { does: 'close' as const, atMs: 100.5, cutMs: Infinity }]
      const queue = queueOf(overflow)
      const outcomes = await play(seed, actors, (one, index) => {
        if (one === 'close') return () => queue.close()
        return one === 'put' ? queue.put(index) : queue.take()
      })
      assert.deepEqual(outcomes, oracle(actors, overflow))
    }),
    { numRuns: 400 },
  )
})

test('nothing is lost or received twice, and the order holds, under any interruption', async () => {
  await fc.assert(
    fc.asyncProperty(
      crowds(
        does.filter((one) => one !== 'close'),
        24,
      ),
      fc.nat(),
      async (actors, seed) => {
        const queue = Queue.bounded<number>(CAPACITY)
        const added: number[] = []
        const taken: number[] = []
        const outcomes = await play(
          seed,
          [...actors, { does: 'close' as Does, atMs: 10, cutMs: Infinity }],
          (one, index) => {
            if (one === 'close') return () => queue.close()
            return function* () {
              assert.ok(queue.size <= CAPACITY)
              if (one === 'take') taken.push(yield* queue.take())
              else {
                added.push(index)
                yield* queue.put(index)
              }
            }
          },
          () => () => taken.push(...queue.takeUpTo()),
        )
        assert.equal(new Set(taken).size, taken.length)
        assert.deepEqual(
          taken,
          added.filter((index) => taken.includes(index)),
        )
        for (const [index, { kind }] of outcomes.entries())
          if (actors[index]?.does === 'put' && kind === 'success') assert.ok(taken.includes(index))
      },
    ),
    { numRuns: 400 },
  )
})

test('a race, a timeout and an interrupt leave no taker in the line', async () => {
  const [one, two] = [Queue.unbounded<number>(), Queue.unbounded<number>()]
  one.offer(1)
  const kinds = await fork(function* () {
    assert.equal(yield* race([one.take(), two.take()]), 1)
    const late = yield* exitOf(timeout(1, two.take()))
    const cut = fork(all([two.take(), two.take()]))
    yield* yieldNow()
    return [late.kind, (yield* cut.interrupt()).kind]
  }).join()
  assert.deepEqual(kinds, ['failure', 'interruption'])
  // What begins outside of a fiber is taken over by the one that waits for it.
  await fork(all([two.take(), two.take()])).interrupt()
  assert.equal((await fork(exitOf(timeout(1, two.take()))).join()).kind, 'failure')
  two.offer(2)
  assert.equal(two.poll(), 2)
  assert.equal(two.poll(), undefined)
})

test('a granted value stays when its taker is interrupted before it goes on', async () => {
  const queue = Queue.bounded<string>(1)
  const taker = fork(queue.take())
  queue.offer('value')
  assert.deepEqual([queue.size, queue.poll()], [1, undefined])
  await taker.interrupt()
  assert.equal(queue.poll(), 'value')
})

test('an offer is refused where it would pass those who wait', async () => {
  const queue = Queue.bounded<number>(1)
  queue.offer(1)
  const put = queue.put(2)
  assert.equal(queue.offer(3), false)
  assert.deepEqual([queue.poll(), queue.poll(), queue.poll()], [1, 2, undefined])
  await put
})

test('a closed queue refuses, can be emptied, and ends its loop', async () => {
  const queue = Queue.bounded<number>(2)
  queue.offer(1)
  queue.offer(2)
  const late = assert.rejects(queue.put(3), { code: 'FIBER_CLOSED' })
  queue.close()
  await late
  await assert.rejects(queue.put(4), { code: 'FIBER_CLOSED' })
  assert.equal(queue.offer(5), false)
  const values: number[] = []
  for await (const value of queue) values.push(value)
  assert.deepEqual(values, [1, 2])
  await assert.rejects(queue.take(), { code: 'FIBER_CLOSED' })
})

test('a queue of a hundred thousand is emptied in its order', () => {
  const queue = Queue.unbounded<number>()
  let next = 0
  for (let n = 0; n < 100_000; n += 1) {
    queue.offer(n)
    if (n % 3 === 0) assert.equal(queue.poll(), next++)
  }
  assert.deepEqual(queue.takeUpTo(2), [next++, next++])
  while (queue.size > 0) assert.equal(queue.poll(), next++)
  assert.equal(next, 100_000)
})

test('every subscriber receives what is published while it is subscribed, in one order', async () => {
  const kinds = fc.record({ subscribes: fc.boolean(), count: fc.integer({ min: 1, max: 4 }) })
  await fc.assert(
    fc.asyncProperty(crowds(kinds), overflows, fc.nat(), async (actors, overflow, seed) => {
      const hub = overflow === 'unbounded' ? PubSub.unbounded<string>() : PubSub[overflow]<string>(CAPACITY)
      const published: string[] = []
      const received: string[][] = []
      await play(seed, actors, ({ subscribes, count }, index) => {
        if (!subscribes)
          return function* () {
            for (let n = 0; n < count; n += 1)
              if (yield* hub.publish(`${index}.${n}`)) published.push(`${index}.${n}`)
          }
        return function* () {
          const own: string[] = (received[index] = [])
          const subscription = hub.subscribe()
          for (let n = 0; n < count; n += 1) {
            const value = yield* race([subscription.take(), sleep(5)])
            assert.ok(subscription.size <= CAPACITY || overflow === 'unbounded')
            if (typeof value === 'string') own.push(value)
          }
        }
      })
      assert.equal(hub.size, 0)
      const orders = received.filter((own) => own !== undefined)
      // Two subscribers see the same values in the same order.
      for (const one of orders)
        for (const two of orders) {
          const shared = one.filter((value) => two.includes(value))
          assert.deepEqual(
            shared,
            two.filter((value) => one.includes(value)),
          )
        }
      for (const own of orders) {
        assert.equal(new Set(own).size, own.length)
        for (const publisher of actors.keys()) {
          const ofOne = own
            .filter((value) => value.startsWith(`${publisher}.`))
            .map((value) => +value.split('.')[1])
          assert.deepEqual(ofOne, [...ofOne].sort())
        }
      }
    }),
    { numRuns: 200 },
  )
})

test('a bounded PubSub waits for the slowest, until that one is closed or its fiber ends', async () => {
  const hub = PubSub.bounded<number>(1)
  const slow = fork(
    scoped(function* () {
      hub.subscribe()
      yield* never()
    }),
  )
  const fast = hub.subscribe()
  assert.equal(await hub.publish(1), true)
  assert.equal(hub.offer(2), false)
  const second = fork(hub.publish(2))
  assert.equal(fast.poll(), 1)
  assert.equal(second.status, 'waiting')
  await slow.interrupt()
  assert.equal(await second.join(), true)
  assert.equal(await fast.take(), 2)
  hub.close()
  await assert.rejects(fast.take(), { code: 'FIBER_CLOSED' })
  await assert.rejects(hub.publish(3), { code: 'FIBER_CLOSED' })
  assert.throws(() => hub.subscribe(), { code: 'FIBER_CLOSED' })
  assert.deepEqual(dump(), [])
})

test('a thousand signals on one wait each leave no listener', async () => {
  const queue = Queue.unbounded<number>()
  const { signal } = new AbortController()
  for (let n = 0; n < 1000; n += 1) {
    const taken: PromiseLike<number> = queue.take({ signal })
    queue.offer(n)
    assert.equal(await taken, n)
  }
  const dequeue: Dequeue<number> = queue
  assert.equal(dequeue.size, 0)
})

for (const [name, make] of Object.entries({
  'a capacity of 0': () => Queue.bounded(0),
  'no capacity': () => (PubSub.sliding as () => unknown)(),
  'a capacity that is not whole': () => Queue.dropping(1.5),
}))
  test(`${name} is refused`, () => assert.throws(make, { code: 'FIBER_ARGUMENT' }))
