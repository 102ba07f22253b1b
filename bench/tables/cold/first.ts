/**
 * A thread that encodes and decodes its first values: `node first.js '<order as JSON>'`, figures as JSON on
 * standard output.
 *
 * Nothing of the contender has run before the clock starts except what runs when its module is loaded.
 */
import assert from 'node:assert/strict'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { loadCodecs, type Codec } from '../transport/codecs.ts'
import { REAL_PAYLOADS, textsFrom } from '../transport/payloads.ts'

/** Whose first values, and where. */
export interface FirstOrder {
  readonly codec: string
  readonly isWorker: boolean
}

/** Microseconds per value: the first page, the pages after it, objects of ever-new keys. */
export type First = Readonly<Record<'first' | 'later' | 'newKeys', Timed>>
/** Without encode: the contender has no halves, and decode is the round trip. */
interface Timed {
  readonly encode?: number
  readonly decode: number
}

const PAGES = 300
const NEW_KEYS_OBJECTS = 2000
const KEYS = 8

function pages(): unknown[] {
  const text = textsFrom(7919)
  return Array.from({ length: PAGES }, (_, index) => REAL_PAYLOADS[0].make(index, text))
}

function objectsOfNewKeys(): unknown[] {
  const text = textsFrom(104_729)
  return Array.from({ length: NEW_KEYS_OBJECTS }, (_, id) =>
    Object.fromEntries(Array.from({ length: KEYS }, (_, key) => [text(6), id + key])),
  )
}

function timed(codec: Codec, values: readonly unknown[]): Timed {
  const encode = codec.encodeTimed ?? codec.encode
  const startedUs = microseconds()
  for (const value of values) encode(value)
  const encodeUs = microseconds() - startedUs
  const sent = values.map((value) => codec.encode(value))
  const decoded = new Array<unknown>(values.length)
  const decodeStartedUs = microseconds()
  for (let index = 0; index < sent.length; index += 1) decoded[index] = codec.decode(sent[index])
  const decode = (microseconds() - decodeStartedUs) / values.length
  assert.deepEqual(decoded, values, `WRONG_ANSWER: ${codec.name}`)
  return codec.isWhole === true ? { decode } : { encode: encodeUs / values.length, decode }
}

function microseconds(): number {
  return Number(process.hrtime.bigint()) / 1000
}

async function measure(order: FirstOrder): Promise<First> {
  const codec = (await loadCodecs(true)).find(({ name }) => name === order.codec)!
  const [first, ...later] = pages()
  const newKeys = objectsOfNewKeys()
  microseconds()
  return { first: timed(codec, [first]), later: timed(codec, later), newKeys: timed(codec, newKeys) }
}

async function main(order: FirstOrder): Promise<First> {
  if (!order.isWorker) return measure(order)
  const worker = new Worker(new URL(import.meta.url), { workerData: { ...order, isWorker: false } })
  return new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject))
}

if (isMainThread) process.stdout.write(JSON.stringify(await main(JSON.parse(process.argv[2]) as FirstOrder)))
else parentPort!.postMessage(await measure(workerData as FirstOrder))
