/**
 * A thread of the tests of locks and channels: runs the operation in its workerData.
 *
 * What it changes under a lock it changes without atomics: only the lock keeps that right.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { AtomicCounter, Channel, Lock, RwLock, Semaphore } from './index.ts'

interface Work {
  readonly what: string
  readonly id: string
  readonly rounds: number
  readonly memory: SharedArrayBuffer
}

const { what, id, rounds, memory } = workerData as Work
const words = new Int32Array(memory)

/** Read and write without atomics: only a lock keeps this right. */
function addSlowly(): void {
  const before = words[0]
  for (let spin = 0; spin < 50; spin++) words[1] = spin
  words[0] = before + 1
}

/** At most `most` inside at once. */
function inside(most: number, by: number): void {
  const now = Atomics.add(words, 2, by) + by
  if (now > most) Atomics.add(words, 3, 1)
  for (let spin = 0; spin < 30; spin++) Atomics.load(words, 1)
  Atomics.sub(words, 2, by)
}

/** Uses an object that another thread may have closed. */
function unlessClosed(use: () => unknown): void {
  try {
    use()
  } catch (error) {
    if ((error as { code?: string }).code !== 'SYNC_CLOSED') throw error
  }
}

function endless(body: (step: number) => void): never {
  parentPort?.postMessage('started')
  for (let step = 0; ; step++) body(step)
}

const jobs: Record<string, () => unknown> = {
  lock: () => {
    const lock = Lock.getOrCreate(id)
    for (let round = 0; round < rounds; round++) lock.guardSync(addSlowly)
  },
  async: async () => {
    const lock = Lock.getOrCreate(id)
    for (let round = 0; round < rounds; round++) await lock.guard(addSlowly)
  },
  rw: () => {
    const lock = RwLock.getOrCreate(id)
    for (let round = 0; round < rounds; round++) {
      lock.readSync(() => inside(999, 1))
      lock.writeSync(() => inside(1000, 1000))
      lock.writeSync(addSlowly)
    }
  },
  semaphore: () => {
    const semaphore = Semaphore.getOrCreate(id, { permits: 2 })
    for (let round = 0; round < rounds; round++) semaphore.guardSync(() => inside(2, 1))
  },
  counter: () => {
    const counter = AtomicCounter.getOrCreate(id)
    for (let round = 0; round < rounds; round++) counter.add()
  },
  produce: () => {
    const channel = Channel.getOrCreate<[number, number]>(id, { messagesMax: 4 })
    for (let round = 0; round < rounds; round++) channel.putSync([words[4], round])
  },
  consume: async () => {
    const taken: [number, number][] = []
    for await (const message of Channel.getOrCreate<[number, number]>(id, { messagesMax: 4 }))
      taken.push(message)
    return taken
  },
  hold: () => {
    Lock.getOrCreate(id).guardSync(() => {
      parentPort?.postMessage('holding')
      for (;;) Atomics.wait(words, 5, 0, 1000)
    })
  },
  wait: () => {
    parentPort?.postMessage('waiting')
    Lock.getOrCreate(id).guardSync(() => {})
  },
  own: () => {
    const lock = Lock.getOrCreate(id)
    try {
      return lock.guardSync(() => lock.guardSync(() => 'twice'))
    } catch (error) {
      return (error as { code: string }).code
    }
  },
  'endless lock': () => {
    const lock = Lock.getOrCreate(id)
    endless(() => lock.guardSync(addSlowly))
  },
  'endless rw': () => {
    const lock = RwLock.getOrCreate(id)
    endless(() => (lock.readSync(addSlowly), lock.writeSync(addSlowly)))
  },
  'endless semaphore': () => {
    const semaphore = Semaphore.getOrCreate(id, { permits: 3 })
    endless((step) => semaphore.guardSync(addSlowly, { permits: 1 + (step % 3) }))
  },
  'endless channel': () => {
    const channel = Channel.getOrCreate<string>(id, { messagesMax: 4 })
    endless((step) => {
      channel.putSync('x'.repeat(step % 2000))
      if (step % 3 > 0) channel.poll()
      else channel.takeSync()
    })
  },
  'endless tries': () => {
    const [lock, rw, semaphore] = [
      Lock.getOrCreate(id),
      RwLock.getOrCreate(`${id} rw`),
      Semaphore.getOrCreate(`${id} semaphore`, { permits: 3 }),
    ]
    endless((step) => {
      lock.tryGuard(addSlowly)
      if (step % 2 === 0) rw.tryRead(addSlowly)
      else rw.tryWrite(addSlowly)
      semaphore.tryGuard(addSlowly, { permits: 1 + (step % 3) })
    })
  },
  'endless counter': () => {
    const counter = AtomicCounter.getOrCreate(id)
    endless((step) => {
      counter.add(2)
      if (step % 100 === 0) counter.set(0)
      counter.compareAndSet(counter.value, 2)
    })
  },
  'endless async rw': async () => {
    const lock = RwLock.getOrCreate(id)
    parentPort?.postMessage('started')
    for (;;)
      await Promise.all([lock.read(addSlowly), lock.write(async () => addSlowly()), lock.read(addSlowly)])
  },
  'endless iteration': async () => {
    const channel = Channel.getOrCreate<string>(id, { messagesMax: 2 })
    parentPort?.postMessage('started')
    const putting = (async () => {
      for (let step = 0; ; step++) await channel.put('x'.repeat(step % 2000))
    })()
    // More than its bound may lie there for a while: messages that returned from killed takers.
    for await (const text of channel) if (text.length + channel.size > 3000) throw new Error('not ours')
    await putting
  },
  'endless ends': () => {
    endless((step) => {
      const channel = Channel.getOrCreate<number>(`${id} channel ${step % 3}`, { messagesMax: 2 })
      unlessClosed(() => channel.offer(step))
      if (step % 2 === 0) channel.close()
      channel[Symbol.dispose]()
      const lock = Lock.getOrCreate(`${id} ${step % 3}`)
      unlessClosed(() => lock.guardSync(addSlowly))
      lock[Symbol.dispose]()
    })
  },
  'endless async': async () => {
    const [lock, semaphore] = [Lock.getOrCreate(id), Semaphore.getOrCreate(id, { permits: 2 })]
    parentPort?.postMessage('started')
    for (let step = 0; ; step++) {
      await Promise.all([lock.guard(addSlowly), lock.guard(addSlowly), semaphore.guard(async () => {})])
      lock.tryGuard(addSlowly)
      await semaphore.tryGuard(() => Promise.resolve(step), { permits: 1 + (step % 2) })?.value
    }
  },
  'endless async channel': async () => {
    const channel = Channel.getOrCreate<string>(id, { messagesMax: 2 })
    const counter = AtomicCounter.getOrCreate(id)
    parentPort?.postMessage('started')
    for (let step = 0; ; step++) {
      const puts = [channel.put('x'.repeat(step % 2000)), channel.put('y')]
      await Promise.all([channel.take(), channel.take(), ...puts])
      if (channel.offer('z')) channel.poll()
      counter.add(1)
      counter.compareAndSet(counter.value, 0)
    }
  },
  passed: () =>
    Channel.getOrCreate<Lock>(id, { messagesMax: 1 })
      .poll()
      ?.guardSync((held) => held),
}

void (async () => parentPort?.postMessage({ result: await jobs[what]?.() }))()
