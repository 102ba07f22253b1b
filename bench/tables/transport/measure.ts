/**
 * A process that measures payloads: `node measure.js '<order as JSON>'`, the samples as JSON on standard
 * output.
 *
 * One payload in a process of its own is *fresh*. Several with `isMixed` all pass through every codec several
 * times before anything is timed, built in both ways, as in a process that has been running for long.
 */
import assert from 'node:assert/strict'
import { type Codec, JSON_NAME, loadCodecs } from './codecs.ts'
import { shuffled } from '../../harness/rounds.ts'
import { slice } from './slice.ts'
import { REAL_PAYLOADS, SEED_PAYLOADS, objectsOf, type Built, type Payload } from './payloads.ts'

export interface MeasureOrder {
  readonly labels: readonly string[]
  readonly built: Built
  readonly isMixed: boolean
  readonly rounds: number
  /** Rounds that other processes have done before. */
  readonly before?: number
  readonly sliceMs: number
}

/** Nanoseconds per object, one per round, by payload, contender and direction. */
export type Measured = Record<string, Record<string, Partial<Record<Direction | 'bytes', number[]>>>>
/** What of a codec is timed. */
export type Direction = 'encode' | 'decode' | 'both'

/** Enough for the engine to compile what each payload runs through. */
const WARM_UP_MS = 100
const MIXING_PASSES = 6

interface Prepared {
  readonly payload: Payload
  readonly objects: readonly unknown[]
  readonly sent: Map<Codec, unknown[]>
}

async function main(order: MeasureOrder): Promise<Measured> {
  const codecs = await loadCodecs()
  const payloads = [...SEED_PAYLOADS, ...REAL_PAYLOADS].filter(({ label }) => order.labels.includes(label))
  const prepared = payloads.map((payload) => prepare(payload, order.built, codecs))
  if (order.isMixed) mix(payloads, codecs)
  const measured: Measured = {}
  for (const one of prepared) measured[one.payload.label] = measure(one, codecs, order)
  return measured
}

/** Encode all objects and require that every codec returns equal objects. */
function prepare(payload: Payload, built: Built, codecs: readonly Codec[]): Prepared {
  const objects = objectsOf(payload, built)
  const sent = new Map<Codec, unknown[]>()
  for (const codec of codecs) {
    const encoded = objects.map((object) => codec.encode(object))
    encoded.forEach((one, index) => prove(codec, payload, codec.decode(one), objects[index]))
    sent.set(codec, encoded)
  }
  return { payload, objects, sent }
}

function prove(codec: Codec, payload: Payload, far: unknown, near: unknown): void {
  try {
    assert.deepEqual(far, near)
  } catch (cause) {
    throw new Error(`WRONG_ANSWER: ${codec.name} changed '${payload.label}'`, { cause })
  }
}

function mix(payloads: readonly Payload[], codecs: readonly Codec[]): void {
  for (let pass = 0; pass < MIXING_PASSES; pass += 1) {
    for (const payload of payloads) {
      for (const built of ['assigned', 'parsed'] as const) {
        for (const object of objectsOf(payload, built)) {
          for (const codec of codecs) codec.decode((codec.encodeTimed?.(object), codec.encode(object)))
        }
      }
    }
  }
}

function measure(one: Prepared, codecs: readonly Codec[], order: MeasureOrder): Measured[string] {
  const result: Measured[string] = {}
  const runs = codecs.flatMap((codec) => runsOf(codec, one))
  for (const { run } of runs) slice(run, WARM_UP_MS)
  for (let round = 0; round < order.rounds; round += 1) {
    for (const { codec, direction, run } of shuffled(runs, (order.before ?? 0) + round)) {
      const samples = ((result[codec.name] ??= {})[direction] ??= [])
      samples.push(slice(run, order.sliceMs))
    }
  }
  for (const codec of codecs) {
    const encoded = codec.encode(one.objects[0])
    if (codec.isWhole !== true) result[codec.name].bytes = [(encoded as string | Uint8Array).length]
    prove(codec, one.payload, codec.decode(encoded), one.objects[0])
  }
  assert.ok(result[JSON_NAME] !== undefined)
  return result
}

interface Run {
  readonly codec: Codec
  readonly direction: Direction
  readonly run: (index: number) => unknown
}

/** Closures of their own for each payload and codec, so that no call site is shared. */
function runsOf(codec: Codec, { objects, sent }: Prepared): Run[] {
  const encoded = sent.get(codec)!
  const encode = codec.encodeTimed ?? ((value) => codec.encode(value))
  const decode: Run = { codec, direction: 'decode', run: (index) => codec.decode(encoded[index]) }
  if (codec.isWhole === true) return [{ ...decode, direction: 'both' }]
  return [{ codec, direction: 'encode', run: (index) => encode(objects[index]) }, decode]
}

process.stdout.write(JSON.stringify(await main(JSON.parse(process.argv[2]) as MeasureOrder)))
