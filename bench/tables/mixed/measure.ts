/**
 * A process that measures all payloads of table `mixed`: `node measure.js '<order as JSON>'`, the samples as
 * JSON on standard output.
 *
 * Warm: all contenders in one process, after every payload has passed through each of them in shuffled order
 * several times. After 100 values: one contender in a new process, whose first 100 values are of all
 * payloads.
 */
import assert from 'node:assert/strict'
import { shuffled } from '../../harness/rounds.ts'
import type { Codec } from '../transport/codecs.ts'
import { slice } from '../transport/slice.ts'
import { contendersOf, mixedCodecs } from './contenders.ts'
import { MIXED_PAYLOADS, mixedObjects, type MixedPayload } from './payloads.ts'

/** What to measure: with `codec`, the values after the first 100 of that one alone. */
export interface MixedOrder {
  readonly codec?: string
  readonly rounds: number
  /** Rounds that other processes have done before. */
  readonly before: number
  readonly sliceMs: number
}

/** Nanoseconds per object, one per round, by payload, contender and direction. */
export type MixedSamples = Record<string, Record<string, Partial<Record<MixedDirection, number[]>>>>
/** What of a codec is timed; `both` where it has no halves. */
export type MixedDirection = 'encode' | 'decode' | 'both'

const MIXING_PASSES = 10
const WARM_UP_MS = 20
/** Values before the clock starts, and values of each payload behind it, at which a thread is still cold. */
const FIRST_VALUES = 100
const COLD_OBJECTS = 8
/** Objects of each payload in all; contenders of few payloads send some of them again. */
const COLD_OBJECTS_MADE = 16

interface Entry {
  readonly payload: MixedPayload
  readonly codec: Codec
  readonly objects: readonly unknown[]
}

function prove({ payload, codec }: Entry, far: unknown, near: unknown): void {
  try {
    assert.deepEqual(far, near)
  } catch (cause) {
    throw new Error(`WRONG_ANSWER: ${codec.name} changed '${payload.label}'`, { cause })
  }
}

async function warm(order: MixedOrder): Promise<MixedSamples> {
  const codecs = await mixedCodecs(false)
  const entries = MIXED_PAYLOADS.flatMap((payload) => {
    const objects = shuffled(mixedObjects(payload), payload.label.length)
    return contendersOf(payload).map((name): Entry => ({ payload, objects, codec: codecs.get(name)! }))
  })
  mix(entries)
  const runs = entries.flatMap(runsOf)
  for (const { run } of runs) slice(run, WARM_UP_MS)
  const samples: MixedSamples = {}
  for (let round = 0; round < order.rounds; round += 1) {
    for (const { entry, direction, run } of shuffled(runs, order.before + round))
      keep(samples, entry, direction, slice(run, order.sliceMs))
  }
  for (const entry of entries)
    for (const object of entry.objects) prove(entry, entry.codec.decode(entry.codec.encode(object)), object)
  return samples
}

/** Everything through every contender, in another order each time. */
function mix(entries: readonly Entry[]): void {
  const values = entries.flatMap((entry) => entry.objects.map((object) => ({ entry, object })))
  for (let pass = 0; pass < MIXING_PASSES; pass += 1) {
    for (const { entry, object } of shuffled(values, pass)) {
      const { codec } = entry
      codec.encodeTimed?.(object)
      const far = codec.decode(codec.encode(object))
      if (pass === 0) prove(entry, far, object)
    }
  }
}

interface Run {
  readonly entry: Entry
  readonly direction: MixedDirection
  readonly run: (index: number) => unknown
}

function runsOf(entry: Entry): Run[] {
  const { codec, objects } = entry
  const sent = objects.map((object) => codec.encode(object))
  const encode = codec.encodeTimed ?? ((value) => codec.encode(value))
  const decode: Run = { entry, direction: 'decode', run: (index) => codec.decode(sent[index]) }
  if (codec.isWhole === true) return [{ ...decode, direction: 'both' }]
  return [{ entry, direction: 'encode', run: (index) => encode(objects[index]) }, decode]
}

function keep(samples: MixedSamples, entry: Entry, direction: MixedDirection, ns: number): void {
  const of = ((samples[entry.payload.label] ??= {})[entry.codec.name] ??= {})
  ;(of[direction] ??= []).push(ns)
}

async function cold(name: string, order: MixedOrder): Promise<MixedSamples> {
  const codec = (await mixedCodecs(true)).get(name)!
  const entries = MIXED_PAYLOADS.filter((payload) => contendersOf(payload).includes(name)).map(
    (payload): Entry => {
      const objects = shuffled(mixedObjects(payload, COLD_OBJECTS_MADE), order.before)
      return { payload, codec, objects }
    },
  )
  const firsts = Array.from({ length: FIRST_VALUES }, (_, at) => {
    const { objects } = entries[at % entries.length]
    const turn = Math.floor(at / entries.length)
    return objects[COLD_OBJECTS + (turn % (COLD_OBJECTS_MADE - COLD_OBJECTS))]
  })
  process.hrtime.bigint()
  for (const first of shuffled(firsts, order.before)) {
    codec.encodeTimed?.(first)
    codec.decode(codec.encode(first))
  }
  const samples: MixedSamples = {}
  const decoded: { entry: Entry; far: unknown[] }[] = []
  for (const entry of shuffled(entries, order.before + 1)) {
    const far = coldHalves(entry, (direction, ns) => keep(samples, entry, direction, ns))
    decoded.push({ entry, far })
  }
  for (const { entry, far } of decoded) prove(entry, far, entry.objects.slice(0, COLD_OBJECTS))
  return samples
}

/** The first objects of a payload, encoded and decoded under the clock; returns what was decoded. */
function coldHalves(
  { codec, objects }: Entry,
  timed: (direction: MixedDirection, ns: number) => void,
): unknown[] {
  const encode = codec.encodeTimed ?? codec.encode
  const encodeFrom = process.hrtime.bigint()
  for (let index = 0; index < COLD_OBJECTS; index += 1) encode(objects[index])
  const encodeTo = process.hrtime.bigint()
  const sent = objects.slice(0, COLD_OBJECTS).map((object) => codec.encode(object))
  const far = new Array<unknown>(COLD_OBJECTS)
  const decodeFrom = process.hrtime.bigint()
  for (let index = 0; index < COLD_OBJECTS; index += 1) far[index] = codec.decode(sent[index])
  const decodeTo = process.hrtime.bigint()
  if (codec.isWhole !== true) timed('encode', Number(encodeTo - encodeFrom) / COLD_OBJECTS)
  timed(codec.isWhole === true ? 'both' : 'decode', Number(decodeTo - decodeFrom) / COLD_OBJECTS)
  return far
}

const order = JSON.parse(process.argv[2]) as MixedOrder
process.stdout.write(
  JSON.stringify(await (order.codec === undefined ? warm(order) : cold(order.codec, order))),
)
