/**
 * A process of table `stream`: objects to a worker and back, bytes, or an upload, of one contender.
 *
 * The worker answers each object with another one, and the sum of what comes back is known; of bytes it
 * inverts each chunk, and the length and a sum of one byte of each chunk are known. What a client receives of
 * its upload, the client compares (uploader.ts).
 */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { Worker } from 'node:worker_threads'
import { zone } from 'corespun/zone'
import { checkAnswer } from '../../harness/errors.ts'
import { DIST_FOLDER } from '../../harness/paths.ts'
import { serveOrders } from '../../harness/orders.ts'

/** So many small objects there and back. */
export interface Objects {
  readonly what: 'objects'
  readonly items: number
}

/**
 * So many bytes there and back, in chunks of {@link CHUNK_BYTES}: from this process, or from a client whose
 * request a server here passes to the worker, and whose response is what comes back.
 */
export interface Bytes {
  readonly what: 'bytes' | 'upload'
  readonly mebibytes: number
}

/** A pass of objects. */
export interface ObjectsFound {
  readonly us: number
  readonly cpuUs: number
}

/** A pass of bytes. */
export interface BytesFound {
  readonly mbPerS: number
  /** Highest resident memory, and by how much that of the second half exceeds that of the first, MB. */
  readonly highestMb: number
  readonly growthMb: number
}

interface Item {
  readonly id: number
  readonly name: string
  readonly price: number
}

const MEBI = 2 ** 20
const CHUNK_BYTES = 2 ** 16
/** Messages of `postMessage` that have no answer yet: the window of a stream. */
const IN_FLIGHT = 4096

const contender = process.argv[2]
const passes = { corespun: streamed, postMessage: posted } as Record<
  string,
  (items: number) => Promise<number>
>
const pool = contender === 'corespun' ? zone.create('stream', { workers: 1 }) : undefined
const worker = pool === undefined ? echoing() : undefined

serveOrders((order: Objects | Bytes) => {
  if (order.what === 'objects') return objects(order)
  return order.what === 'bytes' ? bytes(order) : upload(order)
})

async function objects({ items }: Objects): Promise<ObjectsFound> {
  const [start, cpu] = [performance.now(), process.cpuUsage()]
  const got = await passes[contender](items)
  const us = (performance.now() - start) * 1000
  const { user, system } = process.cpuUsage(cpu)
  check(`${items} objects`, got, items + (items * (items - 1)) / 2)
  return { us: us / items, cpuUs: (user + system) / items }
}

function item(id: number): Item {
  return { id, name: 'an item of a list', price: id % 100 }
}

/** The sum of the numbers of all answers, each of which is one more than that of its object. */
async function streamed(count: number): Promise<number> {
  function* source(): Generator<Item> {
    for (let id = 0; id < count; id++) yield item(id)
  }
  let sum = 0
  for await (const { id } of zone.get('stream').stream(answered, source())) sum += id
  return sum
}

async function* answered(items: AsyncIterable<Item>): AsyncGenerator<Item> {
  for await (const { id, name, price } of items) yield { id: id + 1, name, price }
}

function echoing(): Worker {
  const code = `const { parentPort: port } = require('node:worker_threads')
    port.on('message', ({ id, name, price }) => port.postMessage({ id: id + 1, name, price }))`
  return new Worker(code, { eval: true })
}

function posted(count: number): Promise<number> {
  const to = worker as Worker
  return new Promise((resolve) => {
    let [sent, received, sum] = [0, 0, 0]
    const receive = ({ id }: Item): void => {
      sum += id
      received++
      if (sent < count) to.postMessage(item(sent++))
      if (received < count) return
      to.off('message', receive)
      resolve(sum)
    }
    to.on('message', receive)
    while (sent < Math.min(count, IN_FLIGHT)) to.postMessage(item(sent++))
  })
}

/** Each chunk has memory of its own, as those of an upload have. */
async function bytes({ mebibytes }: Bytes): Promise<BytesFound> {
  const chunks = (mebibytes * MEBI) / CHUNK_BYTES
  function* source(): Generator<Uint8Array> {
    for (let index = 0; index < chunks; index++) yield new Uint8Array(CHUNK_BYTES).fill(index)
  }
  const highest = [0, 0]
  let [length, sum, index] = [0, 0, 0]
  const start = performance.now()
  for await (const chunk of zone.get('stream').stream(inverted, source())) {
    length += chunk.length
    sum += chunk[CHUNK_BYTES - 1]
    const half = index < chunks / 2 ? 0 : 1
    if (index++ % 64 === 0) highest[half] = Math.max(highest[half], process.memoryUsage.rss() / MEBI)
  }
  const seconds = (performance.now() - start) / 1000
  check('bytes', length, mebibytes * MEBI)
  check('a byte of each chunk', sum, (chunks / 256) * ((255 * 256) / 2))
  const [first, second] = highest
  return { mbPerS: mebibytes / seconds, highestMb: Math.max(...highest), growthMb: second - first }
}

/** A request whose body is `mebibytes` long, and its response; memory is looked at every 20 ms. */
async function upload({ mebibytes }: Bytes): Promise<BytesFound> {
  const { serve } = await import('corespun/http')
  const server = await serve({
    port: 0,
    quiet: true,
    limits: { bodyBytesMax: 2 * mebibytes * MEBI },
    routes: { '/': { POST: ({ body }) => zone.get('stream').stream(inverted, body ?? []) } },
  })
  const residentMb: number[] = []
  const sampling = setInterval(() => residentMb.push(process.memoryUsage.rss() / MEBI), 20)
  const start = performance.now()
  const program = `${DIST_FOLDER}/tables/stream/uploader.js`
  const { stdout } = await promisify(execFile)(process.execPath, [program, server.url, String(mebibytes)])
  const seconds = (performance.now() - start) / 1000
  clearInterval(sampling)
  await server.close()
  check('bytes of an upload', Number(stdout), mebibytes * MEBI)
  const half = residentMb.length >>> 1
  const [first, second] = [residentMb.slice(0, half), residentMb.slice(half)].map((mb) => Math.max(...mb))
  return { mbPerS: mebibytes / seconds, highestMb: Math.max(first, second), growthMb: second - first }
}

async function* inverted(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) {
    for (let at = 0; at < chunk.length; at++) chunk[at] ^= 255
    yield chunk
  }
}

function check(work: string, got: number, expected: number): void {
  checkAnswer({ contender, work, got, expected })
}
