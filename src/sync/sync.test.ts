/**
 * Locks, semaphores, channels and counters: rules in one thread, and under several.
 *
 * Between threads the proof is memory that only a lock keeps right, and messages that are counted.
 */
import assert from 'node:assert/strict'
import { AsyncResource } from 'node:async_hooks'
import { EventEmitter, once } from 'node:events'
import { after, test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { encode, decode } from '../transport/index.ts'
import { AtomicCounter, Channel, Lock, RwLock, Semaphore } from './index.ts'

let last = 0
const name = (): string => `sync test ${++last}`
const workers = new Set<Worker>()
after(() => Promise.all([...workers].map((worker) => worker.terminate())))

function start(what: string, id: string, rounds = 0, memory = new SharedArrayBuffer(64)): Worker {
  const workerData = { what, id, rounds, memory }
  const worker = new Worker(new URL('./worker.test.support.js', import.meta.url), { workerData })
  workers.add(worker)
  return worker
}

async function result(worker: Worker): Promise<unknown> {
  const [message] = (await once(worker, 'message')) as [{ result: unknown }]
  return message.result
}

const ALLOWED = { allowBlocking: true }

test('a lock lets one in at a time, whichever way it is asked', async () => {
  const [id, memory, rounds] = [name(), new SharedArrayBuffer(64), 2000]
  await Promise.all(['lock', 'lock', 'async'].map((what) => result(start(what, id, rounds, memory))))
  assert.equal(new Int32Array(memory)[0], 3 * rounds)
})

test('a read-write lock lets in readers together and writers alone', async () => {
  const [id, memory, rounds] = [name(), new SharedArrayBuffer(64), 500]
  await Promise.all([1, 2, 3].map(() => result(start('rw', id, rounds, memory))))
  const words = new Int32Array(memory)
  assert.deepEqual([words[0], words[3]], [3 * rounds, 0])
})

test('a semaphore lets in as many as it has permits', async () => {
  const [id, memory] = [name(), new SharedArrayBuffer(64)]
  await Promise.all([1, 2, 3].map(() => result(start('semaphore', id, 1000, memory))))
  assert.equal(new Int32Array(memory)[3], 0)
})

test('a counter counts what all threads add', async () => {
  const id = name()
  await Promise.all([1, 2].map(() => result(start('counter', id, 5000))))
  const counter = AtomicCounter.getOrCreate(id)
  assert.deepEqual(
    [counter.value, counter.add(-1), counter.compareAndSet(9999, 5), counter.set(7)],
    [10_000, 9999, true, 5],
  )
  assert.equal(counter.compareAndSet(6, 1), false)
  counter.set(Number.MAX_SAFE_INTEGER)
  assert.throws(() => counter.add(), { code: 'SYNC_COUNTER_RANGE' })
  assert.throws(() => counter.add(0.5), { code: 'SYNC_ARGUMENT' })
  assert.equal(counter.value, Number.MAX_SAFE_INTEGER)
})

test("every message of many producers reaches one of many consumers, each producer's in order", async () => {
  const [id, rounds] = [name(), 500]
  const consumers = [1, 2].map(() => result(start('consume', id)))
  const producers = [1, 2].map((number) => {
    const memory = new SharedArrayBuffer(64)
    new Int32Array(memory)[4] = number
    return result(start('produce', id, rounds, memory))
  })
  await Promise.all(producers)
  Channel.getOrCreate(id, { messagesMax: 4 }).close()
  const taken = (await Promise.all(consumers)) as [number, number][][]
  for (const list of taken) {
    for (const number of [1, 2]) {
      const own = list.filter(([from]) => from === number).map(([, round]) => round)
      assert.deepEqual(
        own,
        [...own].sort((a, b) => a - b),
      )
    }
  }
  const all = taken.flat().map(([from, round]) => from * rounds + round)
  assert.deepEqual(
    all.sort((a, b) => a - b),
    Array.from({ length: 2 * rounds }, (_, index) => rounds + index),
  )
})

test('a holder that dies releases, and the next one receives abandoned', async () => {
  const id = name()
  const lock = Lock.getOrCreate(id)
  const holder = start('hold', id)
  await once(holder, 'message')
  assert.equal(
    lock.tryGuard(() => 1),
    undefined,
  )
  const waiting = lock.guard((held) => held.abandoned)
  await holder.terminate()
  assert.equal(await waiting, true)
  assert.equal(await lock.guard((held) => held.abandoned), false)
})

test('a thread that dies while it blocks leaves the line', async () => {
  const id = name()
  const lock = Lock.getOrCreate(id)
  await lock.guard(async () => {
    const waiter = start('wait', id)
    await once(waiter, 'message')
    await waiter.terminate()
  })
  assert.deepEqual(
    lock.tryGuard((held) => held.abandoned),
    { value: false },
  )
})

test("taking one's own lock again is an error that names it", async () => {
  const id = name()
  const lock = Lock.getOrCreate(id)
  const expected = { code: 'SYNC_DEADLOCK', message: new RegExp(id) }
  await assert.rejects(
    lock.guard(() => lock.guard(() => {})),
    expected,
  )
  await assert.rejects(
    lock.guard(() => lock.guardSync(() => {}, ALLOWED)),
    expected,
  )
  assert.equal(await result(start('own', id)), 'SYNC_DEADLOCK')
  const two = new Semaphore({ permits: 2 })
  assert.equal(await two.guard(() => two.guard(() => 'both')), 'both')
  await assert.rejects(
    two.guard(() => two.guard(() => {}, { permits: 2 })),
    { code: 'SYNC_DEADLOCK' },
  )
  assert.equal(two.free, 2)
})

test('a read within a read is let in as long as no writer waits', async () => {
  const lock = new RwLock()
  const nested = (): Promise<string> => lock.read(() => lock.read(async () => 'in'))
  assert.equal(await nested(), 'in')
  assert.deepEqual(await Promise.all([nested(), lock.read(nested)]), ['in', 'in'])
  await assert.rejects(
    lock.read(() => lock.write(() => {})),
    { code: 'SYNC_DEADLOCK' },
  )
  await assert.rejects(
    lock.write(() => lock.read(() => {})),
    { code: 'SYNC_DEADLOCK' },
  )
  let written = false
  await lock.read(async () => {
    const writing = lock.write(() => (written = true))
    await assert.rejects(writing, { code: 'SYNC_DEADLOCK' }, 'a writer of the same code')
  })
  let begin = (): void => {}
  const begun = new Promise<void>((resolve) => (begin = resolve))
  const reading = lock.read(async () => {
    await begun
    await assert.rejects(nested(), { code: 'SYNC_DEADLOCK' }, 'a writer waits')
  })
  const writing = lock.write(() => (written = true))
  begin()
  await reading
  await writing
  assert.equal(written, true)
})

test("a listener that waits for its emitter's lock queues if it is bound to where it was added", async () => {
  const lock = new Lock()
  const emitter = new EventEmitter()
  const order: string[] = []
  let waiting: Promise<unknown> = Promise.resolve()
  const listen = (): void => {
    waiting = lock.guard(() => order.push('listener'))
  }
  emitter.on('own', listen)
  emitter.on('bound', AsyncResource.bind(listen))
  await lock.guard(async () => {
    emitter.emit('own')
    await assert.rejects(waiting, { code: 'SYNC_DEADLOCK' })
    emitter.emit('bound')
    order.push('holder')
  })
  await waiting
  assert.deepEqual(order, ['holder', 'listener'])
})

test('the main thread does not block unless it is allowed', () => {
  const lock = new Lock()
  assert.throws(() => lock.guardSync(() => {}), { code: 'SYNC_BLOCKING' })
  assert.equal(
    lock.guardSync(() => 5, ALLOWED),
    5,
  )
  assert.throws(() => new Channel({ messagesMax: 1 }).takeSync(), { code: 'SYNC_BLOCKING' })
  assert.throws(() => lock.guardSync(() => Promise.resolve(), ALLOWED), { code: 'SYNC_ASYNC_BODY' })
})

test('errors of the function pass, and release', async () => {
  const lock = new Lock()
  const fail = (): never => {
    throw new RangeError('mine')
  }
  assert.throws(() => lock.guardSync(fail, ALLOWED), RangeError)
  assert.throws(() => lock.tryGuard(fail), RangeError)
  await assert.rejects(
    lock.guard(async () => fail()),
    RangeError,
  )
  const kept = lock.tryGuard(() => new Promise((resolve) => setImmediate(resolve, 3)))
  assert.equal(
    lock.tryGuard(() => 4),
    undefined,
  )
  assert.equal(await kept?.value, 3)
  assert.deepEqual(
    lock.tryGuard(() => 4),
    { value: 4 },
  )
})

test('timeouts and signals end the wait and leave the line', async () => {
  const lock = Lock.create(name())
  const abort = new AbortController()
  await lock.guard(async () => {
    await outside(() =>
      assert.rejects(
        lock.guard(() => {}, { timeoutMs: 5 }),
        { code: 'SYNC_TIMEOUT' },
      ),
    )
    const waiting = outside(() => lock.guard(() => {}, { signal: abort.signal }))
    abort.abort(new Error('enough'))
    await assert.rejects(waiting, { message: 'enough' })
    await assert.rejects(
      outside(() => lock.guard(() => {}, { signal: abort.signal })),
      { message: 'enough' },
    )
  })
  assert.deepEqual(
    lock.tryGuard(() => 1),
    { value: 1 },
  )
  const channel = new Channel<number>({ messagesMax: 1 })
  await assert.rejects(channel.take({ timeoutMs: 3 }), { code: 'SYNC_TIMEOUT' })
  assert.throws(() => channel.takeSync({ timeoutMs: 3, ...ALLOWED }), { code: 'SYNC_TIMEOUT' })
  channel.putSync(1, ALLOWED)
  await assert.rejects(channel.put(2, { timeoutMs: 3 }), { code: 'SYNC_TIMEOUT' })
  assert.throws(() => channel.putSync(2, { timeoutMs: 3, ...ALLOWED }), { code: 'SYNC_TIMEOUT' })
  assert.deepEqual([channel.poll(), channel.poll(), channel.size], [1, undefined, 0])
})

/** Not within whatever is held here: what one's own code waits for is refused. */
function outside<T>(body: () => Promise<T>): Promise<T> {
  return root(() => body())
}
const { AsyncLocalStorage } = await import('node:async_hooks')
const root = AsyncLocalStorage.snapshot()

test('a channel waits, tries, closes', async () => {
  const channel = new Channel<unknown>({ messagesMax: 2 })
  assert.deepEqual([channel.offer(1), channel.offer({ a: [1] }), channel.offer(3)], [true, true, false])
  const third = channel.put('x'.repeat(300_000))
  assert.deepEqual([await channel.take(), channel.poll()], [1, { a: [1] }])
  await third
  assert.equal(channel.size, 1)
  const taking = [channel.take(), channel.take()]
  assert.equal(((await taking[0]) as string).length, 300_000)
  assert.equal(channel.offer(undefined), true)
  assert.equal(await taking[1], undefined)
  const ending = channel.take()
  channel.offer('taken')
  channel.offer('last')
  channel.close()
  assert.equal(await ending, 'taken')
  assert.throws(() => channel.offer(1), { code: 'SYNC_CLOSED' })
  await assert.rejects(channel.put(1), { code: 'SYNC_CLOSED' })
  const rest: unknown[] = []
  for await (const value of channel) rest.push(value)
  assert.deepEqual(rest, ['last'])
  await assert.rejects(channel.take(), { code: 'SYNC_CLOSED' })
})

test('handles travel and refer to the same object', async () => {
  const sent = {
    lock: new Lock(),
    rwLock: new RwLock(),
    semaphore: new Semaphore({ permits: 3 }),
    channel: new Channel({ messagesMax: 3 }),
    counter: new AtomicCounter(),
  }
  const arrived = decode(encode(sent, { mode: 'process' }), { mode: 'process' }) as typeof sent
  await sent.lock.guard(() =>
    assert.equal(
      arrived.lock.tryGuard(() => 1),
      undefined,
    ),
  )
  await sent.rwLock.write(() =>
    assert.equal(
      arrived.rwLock.tryRead(() => 1),
      undefined,
    ),
  )
  await sent.semaphore.guard(() => assert.equal(arrived.semaphore.free, 2))
  sent.channel.offer(5)
  assert.equal(arrived.channel.poll(), 5)
  sent.counter.add(2)
  assert.equal(arrived.counter.value, 2)
  const id = name()
  Channel.create(id, { messagesMax: 1 }).offer(sent.lock)
  assert.deepEqual(await result(start('passed', id)), { abandoned: false })
})

type Named = { readonly name: string }
const KINDS: readonly (readonly [
  noun: string,
  create: (name: string) => Named,
  get: (name: string) => Named,
  getOrCreate: (name: string) => Named,
])[] = [
  ['lock', (id) => Lock.create(id), (id) => Lock.get(id), (id) => Lock.getOrCreate(id)],
  ['read-write lock', (id) => RwLock.create(id), (id) => RwLock.get(id), (id) => RwLock.getOrCreate(id)],
  [
    'semaphore',
    (id) => Semaphore.create(id, { permits: 2 }),
    (id) => Semaphore.get(id),
    (id) => Semaphore.getOrCreate(id, { permits: 2 }),
  ],
  [
    'channel',
    (id) => Channel.create(id, { messagesMax: 2 }),
    (id) => Channel.get(id),
    (id) => Channel.getOrCreate(id, { messagesMax: 2 }),
  ],
  [
    'atomic counter',
    (id) => AtomicCounter.create(id),
    (id) => AtomicCounter.get(id),
    (id) => AtomicCounter.getOrCreate(id),
  ],
]

for (const [noun, create, get, getOrCreate] of KINDS) {
  test(`a named ${noun} is created once, found by its name, and unknown before`, () => {
    const id = name()
    assert.throws(() => get(id), {
      code: 'SYNC_UNKNOWN',
      message: new RegExp(`^no ${noun} is named "${id}"; `),
    })
    const created = create(id)
    assert.throws(() => create(id), {
      code: 'SYNC_EXISTS',
      message: `the ${noun} '${id}' already exists; getOrCreate() or get() returns it`,
    })
    assert.deepEqual([created.name, get(id).name, getOrCreate(id).name], [id, id, id])
    assert.equal(getOrCreate(`${id} other`).name, `${id} other`)
    for (const wrong of ['', 5, undefined, 'x'.repeat(257)] as never[])
      for (const call of [create, get, getOrCreate])
        assert.throws(() => call(wrong), {
          code: 'SYNC_ARGUMENT',
          message: /name must be a string of 1 to 256/,
        })
  })
}

test('an unknown name lists the existing ones of its kind', () => {
  const id = name()
  const semaphores = [1, 2].map((n) => Semaphore.create(`${id} ${n}`, { permits: 1 }))
  Lock.create(id)
  const known = (facts: { readonly known?: readonly string[] }): boolean =>
    facts.known?.includes(`${id} 1`) === true && facts.known.includes(`${id} 2`) && !facts.known.includes(id)
  try {
    assert.throws(
      () => Semaphore.get(id),
      (error: { code: string; facts: { known: string[] } }) =>
        error.code === 'SYNC_UNKNOWN' && (known(error.facts) || error.facts.known.length === 10),
    )
  } finally {
    semaphores.forEach((semaphore) => semaphore[Symbol.dispose]())
  }
})

test('a name has one capacity, and options are checked', () => {
  const id = name()
  Semaphore.create(id, { permits: 2 })
  assert.throws(() => Semaphore.getOrCreate(id, { permits: 3 }), {
    code: 'SYNC_ARGUMENT',
    message:
      'Semaphore.getOrCreate(): permits must be 2, ' + `as the semaphore "${id}" exists with it; received 3`,
  })
  const wrong: readonly (readonly [call: () => unknown, message: RegExp])[] = [
    [() => new Channel({ messagesMax: 0 }), /^new Channel\(\): messagesMax must be an integer from 1 to/],
    [() => new Channel({} as never), /^new Channel\(\) needs \{ messagesMax \}$/],
    [() => new Channel(undefined as never), /^new Channel\(\) needs \{ messagesMax \}$/],
    [() => new Semaphore(undefined as never), /^new Semaphore\(\) needs \{ permits \}$/],
    [() => new Semaphore(2 as never), /^new Semaphore\(\): options must be an object; received 2$/],
    [() => new Semaphore({ permit: 2 } as never), /unknown option "permit"; did you mean "permits"\?$/],
    [() => Semaphore.create(name(), { permits: 0.5 }), /^Semaphore\.create\(\): permits must be an integer/],
    [() => new Lock('a' as never), /^new Lock\(\) takes no argument: use Lock\.getOrCreate\(name\)/],
    [() => new AtomicCounter(5 as never), /^new AtomicCounter\(\) takes no argument: .*; received 5$/],
  ]
  for (const [call, message] of wrong) assert.throws(call, { code: 'SYNC_ARGUMENT', message })
})

test('a handle that arrives after its object was disposed of is refused by name', () => {
  const lock = Lock.create(name())
  const frame = encode(lock, { mode: 'process' })
  lock[Symbol.dispose]()
  assert.throws(
    () => decode(frame, { mode: 'process' }),
    (error: Error) => {
      const cause = (error.cause ?? error) as Error & { code: string }
      return (
        cause.code === 'SYNC_UNKNOWN' && cause.message.includes('was disposed of before this handle arrived')
      )
    },
  )
})

test('a guard refuses a generator function, of which it would run nothing', async () => {
  let ran = 0
  const body = function* (): Generator<undefined, void> {
    yield undefined
    ran += 1
  }
  const lock = new Lock()
  const refused = { code: 'SYNC_ARGUMENT', message: /in a fiber, run a generator as .*fork\(generator\)/ }
  await assert.rejects(lock.guard(body), refused)
  assert.throws(() => lock.guardSync(body, { allowBlocking: true }), refused)
  await assert.rejects(new Semaphore({ permits: 1 }).guard(body), refused)
  assert.equal(await lock.guard(() => ran), 0)
})
