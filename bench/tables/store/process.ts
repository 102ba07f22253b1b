/**
 * A process of one contender and one payload: `node process.js <contender> <label>`, orders by IPC.
 *
 * It first requires that every value comes back as it went, in the other thread's keys too, and again at the
 * end: a wrong answer ends the process and with it the run.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { Store } from 'corespun/store'
import { serveOrders } from '../../harness/orders.ts'
import { type Calls, STORE_CONTENDERS } from './contenders.ts'
import { NUMBER_PAYLOADS, SIZE_PAYLOADS, STORE_PAYLOADS } from './payloads.ts'
import { type Doing, NS_AT, SHARED_BYTES, Word, doings, keysOf, timed } from './turns.ts'

/** What can be ordered: a slice of one kind, or two threads at once. */
export type StoreOrder =
  | { readonly what: 'slice'; readonly name: string; readonly ms: number }
  | {
      readonly what: 'pair'
      readonly first: Doing
      readonly second: Doing
      readonly isSame: boolean
      readonly ms: number
    }
  | { readonly what: 'end' }

/** Long enough for the engine to compile what a payload runs through. */
const WARM_UP_MS = 80

const [contender, label] = process.argv.slice(2) as [string, string]
const payload = [...STORE_PAYLOADS, ...NUMBER_PAYLOADS, ...SIZE_PAYLOADS].find(
  (each) => each.label === label,
)!
const values = payload.values()
const characters = Math.max(...values.map((value) => JSON.stringify(value).length))
const keeper = await STORE_CONTENDERS[contender].open(characters)
const runs = await runsOf(keeper.calls)
const pairs = doings(keeper.calls, values, 0)
for (let index = 0; index < values.length; index += 1) {
  for (const key of [keysOf(0, false), keysOf(1, false), keysOf(0, true)])
    keeper.calls.set(key[index], values[index])
}
prove()
for (const run of Object.values(runs)) timed(run, WARM_UP_MS)
const memory = new SharedArrayBuffer(SHARED_BYTES)
const words = new Int32Array(memory)
const doubles = new Float64Array(memory)
let peer: Worker | undefined
if (keeper.handle !== undefined && payload.seedRow !== undefined) peer = await startPeer()

serveOrders(answer, { runs: Object.keys(runs), hasPeer: peer !== undefined })

async function answer(order: StoreOrder): Promise<unknown> {
  if (order.what === 'slice') {
    const run = runs[order.name]
    // What nobody has written since it was read: so each key is read once, untimed.
    if (order.name === 'view') for (let index = 0; index < values.length; index += 1) run(index)
    return timed(run, order.ms)
  }
  if (order.what === 'pair') return pair(order)
  prove()
  Atomics.store(words, Word.turn, -1)
  Atomics.notify(words, Word.turn)
  if (peer !== undefined) await once(peer, 'exit')
  await keeper.close()
  return 'ended'
}

/** How much both do together, in units of what each does alone. */
function pair({ first, second, isSame, ms }: Extract<StoreOrder, { what: 'pair' }>): {
  times: number
  ns: number
} {
  const keys = isSame ? 'same' : 'different'
  const run = pairs[`${first} ${keys}`]
  timed(run, ms / 4)
  const alone = timed(run, ms)
  const peerAlone = beginPeer(second, isSame, ms)()
  const finish = beginPeer(second, isSame, ms)
  const together = timed(run, ms)
  const peerTogether = finish()
  return { times: alone / together + peerAlone / peerTogether, ns: 1 / (1 / together + 1 / peerTogether) }
}

function beginPeer(doing: Doing, isSame: boolean, ms: number): () => number {
  words[Word.doing] = doing === 'get' ? 0 : 1
  words[Word.keys] = isSame ? 0 : 1
  words[Word.ms] = ms
  const turn = Atomics.add(words, Word.turn, 1) + 1
  Atomics.notify(words, Word.turn)
  return () => {
    for (let done = Atomics.load(words, Word.done); done !== turn; done = Atomics.load(words, Word.done)) {
      Atomics.wait(words, Word.done, done)
    }
    return doubles[NS_AT]
  }
}

async function startPeer(): Promise<Worker> {
  const workerData = { contender, label, handle: keeper.handle, memory }
  const worker = new Worker(new URL('./peer.js', import.meta.url), { workerData })
  await once(worker, 'message')
  return worker
}

async function runsOf(of: Calls): Promise<Record<string, (index: number) => unknown>> {
  const keys = keysOf(0, false)
  const common = {
    set: (index: number) => of.set(keys[index], values[index]),
    get: (index: number) => of.get(keys[index]),
    ...(SIZE_PAYLOADS.includes(payload) ? {} : viewRuns(of, keys)),
  }
  if (contender !== 'corespun') return common
  return { ...(await transportRuns()), ...common, ...(await atomicRuns(of as Store, keys)) }
}

/** One key, by `update` and by a transaction. Each writes the value that comes next, so nothing is spared. */
async function atomicRuns(
  of: Store,
  keys: readonly string[],
): Promise<Record<string, (index: number) => unknown>> {
  const { atomicallySync } = await import('corespun/store')
  return {
    update: (index) => of.update(keys[index], () => values[index]),
    atomically: (index) => atomicallySync((tx) => tx.update(of, keys[index], () => values[index])),
  }
}

/** What is read right after it was written, by `get` and by `view`; and a view again. */
function viewRuns(of: Calls, keys: readonly string[]): Record<string, (index: number) => unknown> {
  if (of.view === undefined) return {}
  return {
    view: (index) => of.view!(keys[index]),
    'set, get': (index) => {
      of.set(keys[index], values[index])
      return of.get(keys[index])
    },
    'set, view': (index) => {
      of.set(keys[index], values[index])
      return of.view!(keys[index])
    },
  }
}

/**
 * The transport alone, as a store uses it: into memory that is there, and out of 64 frames. And with the one
 * copy that a store cannot do without: from that memory to 64 buffers, from 64 buffers to such memory.
 */
async function transportRuns(): Promise<Record<string, (index: number) => unknown>> {
  const { FrameWriter, readFrame } = await import('../../harness/internal.ts')
  const [scratch, inbound] = [new Uint8Array(1 << 18), new Uint8Array(1 << 18)]
  const writer = new FrameWriter(scratch)
  const frames = values.map((value) => scratch.slice(0, writer.write(value, 0)))
  const copies = frames.map((frame) => frame.slice())
  // A frame is shorter once its shapes have numbers of the process.
  const lengths = frames.map(({ length }) => length)
  const written = frames.map(({ length }) => scratch.subarray(0, length))
  const alone = {
    encode: (index: number) => writer.write(values[index], 0),
    decode: (index: number) => readFrame(frames[index], 0, frames[index].length),
  }
  if (payload.seedRow !== undefined) return alone
  return {
    ...alone,
    ...(ArrayBuffer.isView(values[0]) ? { memcpy: memcpyRun() } : {}),
    'encode, copy': (index) => {
      lengths[index] = writer.write(values[index], 0)
      copies[index].set(written[index])
    },
    'copy, decode': (index) => {
      inbound.set(copies[index])
      return readFrame(inbound, 0, lengths[index])
    },
  }
}

/** Copies between 64 pairs of buffers of the payload's size. */
function memcpyRun(): (index: number) => void {
  const from = values as Uint8Array[]
  const to = from.map((bytes) => bytes.slice())
  return (index) => to[index].set(from[index])
}

function prove(): void {
  const keys = keysOf(0, false)
  values.forEach((value, index) => {
    const got = keeper.calls.get(keys[index])
    const bytes = (one: unknown): unknown => (ArrayBuffer.isView(one) ? [...(one as Uint8Array)] : one)
    assert.deepEqual(bytes(got), bytes(value), `${contender} changed '${label}'`)
  })
}
