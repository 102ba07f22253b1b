/**
 * Threads killed in the middle of everything that locks and channels do, and objects without handles.
 *
 * The threads repeat one operation without end; each is killed at another moment, and what they used works.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { setTimeout as pause } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { share } from '../base/part.test.support.ts'
import { native } from '../native/index.ts'
import { move, register } from '../transport/index.ts'
import { AtomicCounter, Channel, Lock, RwLock, Semaphore } from './index.ts'

const workers = new Set<Worker>()
after(() => Promise.all([...workers].map((worker) => worker.terminate())))

/** Two threads that do `what` for ever, killed after some steps, several times over. */
async function kill(what: string, id: string): Promise<void> {
  for (let round = 0; round < share(5); round++) {
    const memory = new SharedArrayBuffer(64)
    const pair = [0, 1].map(() => {
      const workerData = { what: `endless ${what}`, id, rounds: 0, memory }
      const worker = new Worker(new URL('./worker.test.support.js', import.meta.url), { workerData })
      workers.add(worker)
      return worker
    })
    await Promise.all(pair.map((worker) => once(worker, 'message')))
    await pause(round * 2)
    await Promise.all(pair.map((worker) => worker.terminate()))
  }
}

const SOON = { timeoutMs: 60_000 }

test('killed in the middle of locks', async () => {
  await kill('lock', 'killed lock')
  const lock = Lock.getOrCreate('killed lock')
  await lock.guard(() => {}, SOON)
  assert.deepEqual(await lock.guard((held) => held.abandoned, SOON), false)
  lock[Symbol.dispose]()
})

test('killed in the middle of read-write locks', async () => {
  await kill('rw', 'killed rw')
  const lock = RwLock.getOrCreate('killed rw')
  await lock.write(() => {}, SOON)
  await lock.read(() => {}, SOON)
  lock[Symbol.dispose]()
})

test('killed in the middle of semaphores', async () => {
  await kill('semaphore', 'killed semaphore')
  const semaphore = Semaphore.getOrCreate('killed semaphore', { permits: 3 })
  assert.equal(semaphore.free, 3)
  await semaphore.guard(() => assert.equal(semaphore.free, 0), { permits: 3, ...SOON })
  semaphore[Symbol.dispose]()
})

test('killed in the middle of channels', async () => {
  await kill('channel', 'killed channel')
  const channel = Channel.getOrCreate<string>('killed channel', { messagesMax: 4 })
  while (channel.poll() !== undefined);
  for (const word of ['a', 'b', 'c', 'd']) assert.equal(channel.offer(word), true)
  assert.equal(channel.offer('e'), false)
  assert.equal(await channel.take(SOON), 'a')
  channel[Symbol.dispose]()
})

test('killed in the middle of guards that wait with the loop running', async () => {
  await kill('async', 'killed async')
  const [lock, semaphore] = [
    Lock.getOrCreate('killed async'),
    Semaphore.getOrCreate('killed async', { permits: 2 }),
  ]
  await lock.guard(() => {}, SOON)
  assert.deepEqual([semaphore.free, lock.tryGuard((held) => held.abandoned)], [2, { value: false }])
  lock[Symbol.dispose]()
  semaphore[Symbol.dispose]()
})

test('killed in the middle of puts and takes that wait, offers and counts', async () => {
  await kill('async channel', 'killed waits')
  const [channel, counter] = [
    Channel.getOrCreate<string>('killed waits', { messagesMax: 2 }),
    AtomicCounter.getOrCreate('killed waits'),
  ]
  while (channel.poll() !== undefined);
  assert.deepEqual(
    ['a', 'b', 'c'].map((word) => channel.offer(word)),
    [true, true, false],
  )
  assert.equal(await channel.take(SOON), 'a')
  counter.set(1)
  assert.equal(counter.add(), 2)
  channel[Symbol.dispose]()
  counter[Symbol.dispose]()
})

test('killed in the middle of what does not wait', async () => {
  await kill('tries', 'killed tries')
  const [lock, rw] = [Lock.getOrCreate('killed tries'), RwLock.getOrCreate('killed tries rw')]
  const semaphore = Semaphore.getOrCreate('killed tries semaphore', { permits: 3 })
  await Promise.all([lock.guard(() => {}, SOON), rw.write(() => {}, SOON)])
  assert.deepEqual(
    lock.tryGuard((held) => held.abandoned),
    { value: false },
  )
  assert.deepEqual(
    rw.tryWrite((held) => held.abandoned),
    { value: false },
  )
  assert.deepEqual(
    rw.tryRead(() => semaphore.free),
    { value: 3 },
  )
  for (const object of [lock, rw, semaphore]) object[Symbol.dispose]()
  await kill('counter', 'killed counter')
  const counter = AtomicCounter.getOrCreate('killed counter')
  counter.set(1)
  assert.deepEqual([counter.compareAndSet(1, 5), counter.add(), counter.value], [true, 6, 6])
  counter[Symbol.dispose]()
})

test('killed in the middle of reads and writes that wait with the loop running', async () => {
  await kill('async rw', 'killed async rw')
  const lock = RwLock.getOrCreate('killed async rw')
  await lock.write(() => {}, SOON)
  await Promise.all([lock.read(() => {}, SOON), lock.read(() => {}, SOON)])
  lock[Symbol.dispose]()
})

test('killed in the middle of iterating over a channel, and of disposing', async () => {
  await kill('iteration', 'killed iteration')
  const channel = Channel.getOrCreate<string>('killed iteration', { messagesMax: 2 })
  while (channel.poll() !== undefined);
  assert.deepEqual([channel.offer('a'), channel.offer('b'), channel.offer('c')], [true, true, false])
  channel.close()
  const left: string[] = []
  for await (const text of channel) left.push(text)
  assert.deepEqual(left, ['a', 'b'])
  channel[Symbol.dispose]()
  await kill('ends', 'killed ends')
  for (const name of [0, 1, 2].map((each) => `killed ends ${each}`)) {
    Channel.getOrCreate<number>(`${name} channel`, { messagesMax: 2 })[Symbol.dispose]()
    const again = Channel.getOrCreate<number>(`${name} channel`, { messagesMax: 2 })
    assert.equal(again.offer(1), true)
    again[Symbol.dispose]()
    const lock = Lock.getOrCreate(name)
    await lock.guard(() => {}, SOON)
    lock[Symbol.dispose]()
  }
})

test('disposing of an object frees its name, and its handles stay usable', async () => {
  const [first, same] = [Semaphore.create('disposed', { permits: 2 }), Semaphore.get('disposed')]
  await first[Symbol.asyncDispose]()
  const other = Semaphore.getOrCreate('disposed', { permits: 5 })
  assert.equal(other.permits, 5)
  assert.equal(await first.guard(() => same.free), 1)
  other[Symbol.dispose]()
  const channel = Channel.getOrCreate('disposed', { messagesMax: 1 })
  channel[Symbol.dispose]()
  assert.throws(() => channel.offer(1), { code: 'SYNC_CLOSED' })
  assert.equal(Channel.getOrCreate('disposed', { messagesMax: 1 }).offer(1), true)
})

test('a thread that dies with a lock that was disposed of still lets go of it', async () => {
  const memory = new SharedArrayBuffer(64)
  const lock = Lock.getOrCreate('disposed and held')
  const workerData = { what: 'hold', id: lock.name, rounds: 0, memory }
  const worker = new Worker(new URL('./worker.test.support.js', import.meta.url), { workerData })
  workers.add(worker)
  await once(worker, 'message')
  lock[Symbol.dispose]()
  const waiting = lock.guard((held) => held.abandoned, SOON)
  await worker.terminate()
  assert.equal(await waiting, true)
})

test('anonymous objects without handles are freed', async () => {
  const before = native.syncCount()
  for (let n = 0; n < 20_000; n++) new Lock().tryGuard(() => {})
  for (let n = 0; n < 1000; n++) {
    const objects = [
      new Channel({ messagesMax: 1 }),
      new Semaphore({ permits: 1 }),
      new AtomicCounter(),
      new RwLock(),
    ]
    assert.equal(objects.length, 4)
  }
  // The collector decides when; filling memory makes it decide.
  for (let round = 0; round < 200 && native.syncCount() > before + 12_000; round++) {
    Array.from({ length: 100_000 }, (_, index) => ({ index }))
    await pause(1)
  }
  assert.ok(native.syncCount() < before + 12_000, `${native.syncCount()} of 24000 are left`)
})

test('a lock that is held by tryGuard is refused to what it runs', async () => {
  const lock = new Lock()
  await assert.rejects(lock.tryGuard(() => lock.guard(() => 1))?.value ?? Promise.resolve(), {
    code: 'SYNC_DEADLOCK',
  })
  assert.deepEqual(await lock.tryGuard(async () => 'free again')?.value, 'free again')
  assert.equal(await lock.guard(() => 1, SOON), 1)
})

test('a channel without room leaves memory where it was, a closed one too', async () => {
  const channel = new Channel<unknown>({ messagesMax: 1 })
  const buffer = new ArrayBuffer(8)
  assert.equal(channel.offer(1), true)
  assert.equal(channel.offer({ buffer: move(buffer) }), false)
  assert.equal(buffer.byteLength, 8)
  assert.equal(channel.poll(), 1)
  assert.equal(channel.offer({ buffer: move(buffer) }), true)
  assert.equal(buffer.byteLength, 0)
  const waits = new ArrayBuffer(8)
  const put = channel.put({ buffer: move(waits) }, SOON)
  assert.equal(waits.byteLength, 0)
  assert.equal(((await channel.take()) as { buffer: ArrayBuffer }).buffer.byteLength, 8)
  await put
  channel.close()
  const late = new ArrayBuffer(8)
  assert.throws(() => channel.offer(move(late)), { code: 'SYNC_CLOSED' })
  assert.equal(late.byteLength, 8)
})

test('memory in a channel that nobody has any more is given back', async () => {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as () => void
  const megabyte = 1024 * 1024
  const used = (): number => process.memoryUsage().arrayBuffers
  const before = used()
  for (let n = 0; n < 64; n++) new Channel({ messagesMax: 1 }).offer(move(new ArrayBuffer(megabyte)))
  for (let round = 0; round < 200 && used() > before + 8 * megabyte; round++) {
    gc()
    await pause(5)
  }
  assert.ok(used() <= before + 8 * megabyte, `${used() - before} bytes are left`)
})

const asked = new Channel<unknown>({ messagesMax: 8 })

/** Its load hook takes from a channel. */
class Curious {
  readonly n: number
  constructor(n: number) {
    this.n = n
  }
}
register(Curious, {
  cid: 'sync.hostile.Curious',
  save: ({ n }) => n,
  load: (n) => (asked.poll(), new Curious(n)),
})

test('a message keeps its memory while a hook of its own takes another message', async () => {
  const channel = new Channel<unknown>({ messagesMax: 1 })
  for (const text of ['', 'x'.repeat(300_000)]) {
    const shared = new Int32Array(new SharedArrayBuffer(4))
    asked.offer(1)
    assert.equal(channel.offer({ n: new Curious(1), buffer: move(new ArrayBuffer(64)), shared, text }), true)
    const taken = channel.poll() as { n: Curious; buffer: ArrayBuffer; shared: Int32Array }
    shared[0] = 5
    assert.deepEqual([taken.n.n, taken.buffer.byteLength, taken.shared[0]], [1, 64, 5])
  }
})

test('blocking behind what the same thread has asked for is refused, not a hang', async () => {
  const workerData = { what: 'behind', id: 'behind', rounds: 0, memory: new SharedArrayBuffer(64) }
  const holder = new Worker(new URL('./worker.test.support.js', import.meta.url), {
    workerData: { ...workerData, what: 'hold' },
  })
  workers.add(holder)
  await once(holder, 'message')
  const lock = Lock.getOrCreate('behind')
  const waiting = lock.guard(() => 'mine', SOON)
  const blocking = { allowBlocking: true, ...SOON }
  assert.throws(() => lock.guardSync(() => {}, blocking), { code: 'SYNC_DEADLOCK' })
  assert.throws(() => lock.guardSync(() => {}, blocking), { code: 'SYNC_DEADLOCK' }, 'and again')
  await holder.terminate()
  assert.equal(await waiting, 'mine')
  assert.equal(
    lock.guardSync(() => 'free', blocking),
    'free',
  )
})
