/**
 * A thread that encodes and decodes its first values: `node first.js '<order as JSON>'`, figures as JSON on
 * standard output.
 *
 * Nothing of the contender has run before the clock starts except what runs when its module is loaded.
 */
import assert from 'node:assert/strict'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { loadCodecs, type Codec } from '../transport/codecs.ts'
import { MIXED_PAYLOADS } from '../mixed/payloads.ts'
import { definitions, mediaTypes } from '../mixed/public.ts'
import { REAL_PAYLOADS, textsFrom } from '../transport/payloads.ts'

/** Whose first values, where, and of what kinds, one after the other. */
export interface FirstOrder {
  readonly codec: string
  readonly isWorker: boolean
  readonly parts: readonly Part[]
}

/**
 * The first page, the pages after it, objects of ever-new keys, of many shapes, log records, lock files, one
 * list of many rows; and public data: definitions of a schema, lock files, one list of media types.
 */
export type Part =
  | 'first'
  | 'later'
  | 'newKeys'
  | 'shapes'
  | 'schemas'
  | 'logs'
  | 'lockFiles'
  | 'npmLockFiles'
  | 'rows'
  | 'mediaTypes'

/** Microseconds per value. */
export type First = Partial<Readonly<Record<Part, Timed>>>
/** Without encode: the contender has no halves, and decode is the round trip. */
interface Timed {
  readonly encode?: number
  readonly decode: number
}

const PAGES = 300
const NEW_KEYS_OBJECTS = 2000
const KEYS = 8
const SHAPES = 398
const SHAPES_OBJECTS = 2000
const DEFINITIONS = 500
const LOGS = 300
const LOCK_FILES = 20
const NPM_LOCK_FILES = 8
const ROWS = 5000
const MEDIA_TYPES = 2500

const VALUES: Readonly<Record<Part, () => readonly unknown[]>> = {
  first: () => pages().slice(0, 1),
  later: () => pages().slice(1),
  newKeys: objectsOfNewKeys,
  shapes: objectsOfManyShapes,
  schemas: () =>
    definitions()
      .slice(0, DEFINITIONS)
      .map(([, definition]) => definition),
  logs: () => mixed('log record, optional fields', LOGS),
  lockFiles: () => mixed('lock file of 40 packages', LOCK_FILES),
  npmLockFiles: npmLockFiles,
  rows: () => [Array.from({ length: ROWS }, (_, id) => ({ id: (id * 7919) % 1e6, ok: id % 3 === 0 }))],
  mediaTypes: () => [
    mediaTypes()
      .slice(0, MEDIA_TYPES)
      .map(([type, facts]) => ({ type, ...facts })),
  ],
}

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

function objectsOfManyShapes(): unknown[] {
  const text = textsFrom(1_299_709)
  const shapes = Array.from({ length: SHAPES }, () => Array.from({ length: KEYS }, () => text(6)))
  return Array.from({ length: SHAPES_OBJECTS }, (_, id) =>
    Object.fromEntries(shapes[id % SHAPES].map((name, key) => [name, id + key])),
  )
}

/** Each of packages that no other one has. */
function npmLockFiles(): unknown[] {
  const { make } = MIXED_PAYLOADS.find((payload) => payload.label === 'lock file of 40 npm packages')!
  return Array.from({ length: NPM_LOCK_FILES }, (_, index) => make(index * 8, textsFrom(1)))
}

function mixed(label: string, count: number): unknown[] {
  const { make } = MIXED_PAYLOADS.find((payload) => payload.label === label)!
  const text = textsFrom(15_485_863)
  return Array.from({ length: count }, (_, index) => make(index, text))
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
  const made = order.parts.map((part) => [part, VALUES[part]()] as const)
  microseconds()
  return Object.fromEntries(made.map(([part, values]) => [part, timed(codec, values)]))
}

async function main(order: FirstOrder): Promise<First> {
  if (!order.isWorker) return measure(order)
  const worker = new Worker(new URL(import.meta.url), { workerData: { ...order, isWorker: false } })
  return new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject))
}

if (isMainThread) process.stdout.write(JSON.stringify(await main(JSON.parse(process.argv[2]) as FirstOrder)))
else parentPort!.postMessage(await measure(workerData as FirstOrder))
